"""What makes queued pods is told why these wait: a Deployment that rolls out says so in its events.

Previous step: `workload.waiting` has written why the Workload of a pod, or of a group, waits.
"""

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from admitter.cache.job_resources import OwnerView, owner_of
from admitter.cache.views import JobView, WorkloadView
from admitter.cache.world import World
from admitter.client.errors import ClusterError
from admitter.client.transport import Transport
from admitter.controllers.telemetry.events import Events, Subject
from admitter.policy.messages import same_but_for_use

GROUP: Final = "apps"
KINDS: Final = frozenset({"ReplicaSet", "StatefulSet", "DaemonSet"})
MOST_REMEMBERED: Final = 10_000


@dataclass(eq=False)
class Makers:
    """Writes an event for each reason for which pods of one maker wait, until one of them is admitted."""

    world: World
    events: Events
    transport: Transport
    # by UID of a ReplicaSet: its Deployment, or itself without one
    _above: OrderedDict[str, Subject] = field(default_factory=OrderedDict)
    _said: OrderedDict[str, dict[str, str]] = field(default_factory=OrderedDict)  # reasons by UID of a maker

    async def waits(self, workload: WorkloadView, reason: str, message: str) -> None:
        """Tell the maker of a Workload's pods why they wait, unless it has been told."""
        job, owner = self.world.job_of(workload.key), self._owner(workload)
        if job is None or owner is None:
            return
        maker = await self._maker(job.namespace, owner)
        if maker is None:
            return
        said = self._said.setdefault(maker.uid, {})
        if not same_but_for_use(said.get(reason, ""), message):
            said[reason] = message
            self.events.record(maker, reason, f"{_title(job)} waits: {message}", topic=reason)
        _bound(self._said)

    def admitted(self, workload: WorkloadView) -> None:
        """The next wait of pods of its maker is another one."""
        owner = self._owner(workload)
        if owner is not None:
            maker = self._above.get(owner.uid)
            self._said.pop(maker.uid if maker is not None else owner.uid, None)

    def _owner(self, workload: WorkloadView) -> OwnerView | None:
        job = self.world.job_of(workload.key)
        if job is None or not job.resource.is_pods or job.owner is None:
            return None
        return job.owner if job.owner.group == GROUP and job.owner.kind in KINDS else None

    async def _maker(self, namespace: str, owner: OwnerView) -> Subject | None:
        """What users have written of which pods come with this owner; None if that is not there."""
        made = Subject(f"{GROUP}/v1", owner.kind, namespace, owner.name, owner.uid)
        if owner.kind != "ReplicaSet":
            return made
        if owner.uid not in self._above:
            path = f"/apis/{GROUP}/v1/namespaces/{namespace}/replicasets/{quote(owner.name, safe='')}"
            with suppress(ClusterError):  # it is gone, or may not be read: then its pods alone tell
                metadata = (await self.transport.get(path))["metadata"]
                if metadata["uid"] == owner.uid:
                    self._above[owner.uid] = _above(made, owner_of(metadata))
                    _bound(self._above)
        return self._above.get(owner.uid)


def _above(made: Subject, owner: OwnerView | None) -> Subject:
    """The Deployment of a ReplicaSet; itself without one."""
    if owner is None or (owner.group, owner.kind) != (GROUP, "Deployment"):
        return made
    return Subject(made.api_version, owner.kind, made.namespace, owner.name, owner.uid)


def _title(job: JobView) -> str:
    """A pod, or a group, as an event names it."""
    kind, _, name = job.name.rpartition("/")
    return f"pod {name}" if kind == "pod" else f"group {name}"


def _bound(remembered: OrderedDict[str, Subject] | OrderedDict[str, dict[str, str]]) -> None:
    if len(remembered) > MOST_REMEMBERED:
        remembered.popitem(last=False)
