"""The queues of namespaces that bring their own quota: takes a namespace's name, reads the world, converges.

Previous step: a Namespace, a Cohort that one names, or a generated object changed. What is to be done says
`admitter.policy.plans`; a defect is told on the Namespace, and on the ClusterQueue by
`admitter.controllers.quota_status.statuses`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from admitter.api.conditions import ConditionType
from admitter.cache.namespace_views import NamespaceView
from admitter.cache.views import ObjectView
from admitter.cache.world import World
from admitter.client.store import either
from admitter.client.transport import Transport
from admitter.client.workqueue import WorkQueue
from admitter.controllers.placement.generator import GeneratedObjectWriter
from admitter.controllers.telemetry.events import Events, Subject
from admitter.names import GENERATED_LABEL, ROOT_COHORT
from admitter.policy.defects import Defect
from admitter.policy.plans import plan

WORKERS: Final = 16


@dataclass(eq=False)
class NamespaceQueues:
    """Makes, sets right and deletes the ClusterQueue and the LocalQueue of each namespace.

    `changed` is called with the name of each ClusterQueue that has or loses a defect.
    """

    world: World
    events: Events
    transport: Transport
    changed: Callable[[str], None]

    def __post_init__(self) -> None:
        self._generator = GeneratedObjectWriter(self.world, self.transport)
        self._defects: dict[str, Defect] = {}
        self.queue: WorkQueue[str] = WorkQueue(self.converge, WORKERS)

    async def converge(self, namespace: str) -> None:
        """Give a namespace the queues that its annotations ask for."""
        now = plan(self.world, namespace)
        if now.defect != self._defects.get(namespace):
            self._tell(namespace, now.defect)
        for wanted in now.put:
            await self._generator.put(wanted)
        for plural, view in now.delete:
            await self._generator.delete(plural, view)

    def touch_all(self) -> None:
        """Any namespace may lack its queues, or have some that it should not have."""
        for namespace in self.world.namespaces:
            self.namespace_changed(None, namespace)
        for cluster_queue in self.world.cluster_queues:
            self.cluster_queue_changed(None, cluster_queue)
        for local_queue in self.world.local_queues:
            self.local_queue_changed(None, local_queue)

    def namespace_changed(self, old: NamespaceView | None, new: NamespaceView | None) -> None:
        before, after = ((view.annotations, view.terminating) if view else ({}, False) for view in (old, new))
        if new is None or before != after:
            self.queue.add(either(old, new).name)

    def cohort_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        """A Cohort came, changed or went; whether it exists decides for those that name it."""
        name = either(old, new).name
        if name != ROOT_COHORT and (old is None or new is None):
            for _, namespace in self.world.namespaces_by_cohort.get(name):
                self.queue.add(namespace)

    def cluster_queue_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        """A user may have edited a generated ClusterQueue, or deleted one with its name."""
        if old is not None and new is not None and (old.spec, old.labels) == (new.spec, new.labels):
            return
        views = [view for view in (old, new) if view is not None]
        name = views[0].name
        namespace = self.world.namespaces.get(("", name))
        asks = namespace is not None and namespace.annotations
        if asks or any(GENERATED_LABEL in view.labels for view in views):
            self.queue.add(name)

    def local_queue_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        """The same of a LocalQueue; that of a namespace has its name, and that of its ClusterQueue."""
        view = either(old, new)
        if view.name == view.namespace:
            self.cluster_queue_changed(old, new)

    def _tell(self, namespace: str, defect: Defect | None) -> None:
        """Say once that something is wrong; what the ClusterQueue shows already has been said."""
        if defect is None:
            del self._defects[namespace]
        else:
            self._defects[namespace] = defect
            view = self.world.namespaces.get(("", namespace))
            if view is not None and defect != self._shown(namespace):
                subject = Subject("v1", "Namespace", namespace, namespace, view.uid)
                self.events.record(subject, *defect, lasting=True)
        self.changed(namespace)

    def _shown(self, name: str) -> tuple[str, str] | None:
        queue = self.world.cluster_queues.get(("", name))
        conditions = queue.status.get("conditions") or () if queue is not None else ()
        active = next((each for each in conditions if each["type"] == ConditionType.ACTIVE), None)
        return (active.get("reason", ""), active.get("message", "")) if active is not None else None
