"""Queued pods of a simulation: each is a workload, or a part of its group's, as the controller's stores say.

Previous step: `admitter.simulate.pods` has made pods of manifests. What no simulated API server would keep is
an error: a pod of a queue that is not there by Kueue's label, and one that its group has no place for.
"""

from collections.abc import Callable
from typing import Any

from admitter.cache.pod_groups import PodGroup, group_key
from admitter.cache.queued_pods import QueuedPod, parse_queued_pod
from admitter.cache.views import JobView, WorkloadView, parse_workload
from admitter.cache.world import World
from admitter.names import QUEUE_ALIAS_LABEL, QUEUE_LABEL
from admitter.policy.derive import metadata_for, workload_spec
from admitter.quantities.amounts import InvalidQuantityError
from admitter.quantities.durations import InvalidDurationError
from admitter.simulate.items import Item, Key
from admitter.simulate.lifecycles import Lifecycles
from admitter.simulate.manifests import Invalid, runtime
from admitter.simulate.objects import Objects
from admitter.simulate.pods import MADE_OF, as_created

Json = dict[str, Any]


class PodArrivals:
    """Pods as they come, change and go."""

    def __init__(
        self, world: World, objects: Objects, lifecycles: Lifecycles, invalid: Callable[[Invalid], None]
    ) -> None:
        self._world = world
        self._objects = objects
        self._lifecycles = lifecycles
        self._invalid = invalid
        self._due: list[tuple[Json, Key, bool]] = []
        self._lasts: dict[Key, float | None] = {}

    def put(self, raw: Json, key: Key, *, gone: bool) -> None:
        """A pod comes, changes or goes at this moment."""
        self._due.append((raw, key, gone))

    def take_in(self, now: float) -> None:
        """Take in the pods of this moment, once its queues are there."""
        due, self._due = self._due, []
        for raw, key, gone in due:
            if gone:
                self._go(key, now)
            else:
                self._come(raw, key, now)

    def _come(self, raw: Json, key: Key, now: float) -> None:
        made = as_created(raw)
        labels, named = raw["metadata"].get("labels") or {}, raw[MADE_OF]
        alias = labels.get(QUEUE_ALIAS_LABEL, "")
        if QUEUE_LABEL not in labels and self._world.local_queues.get((key[0], alias)) is None:
            words = f"its label {QUEUE_ALIAS_LABEL} names LocalQueue {alias}, which is not there"
            self._invalid(Invalid(named, f"{words}: it is not queued"))
            return
        pod = parse_queued_pod(made)
        before = self._world.queued_pods.get(key)
        group = self._world.pod_groups.get(pod.group_uid) if pod.group else None
        if group is not None and before is None and _is_full(group, pod):
            words = f"its group {pod.group} has all of its {pod.size} pods already: it would be deleted"
            self._invalid(Invalid(named, words))
            return
        try:
            self._lasts[key] = runtime(raw)
        except InvalidDurationError as error:
            self._invalid(Invalid(named, str(error)))
            return
        self._objects.namespace(key[0], now)
        self._world.queued_pods.apply(pod)
        if before is not None and before.workload != pod.workload:
            self._left(before, now)
        job = self._job_of(pod)
        if job is not None:
            self._enter(job, named, now)

    def _go(self, key: Key, now: float) -> None:
        before = self._world.queued_pods.get(key)
        if before is not None:
            self._world.queued_pods.delete(key, before.uid)
            self._lasts.pop(key, None)
            self._left(before, now)

    def _left(self, pod: QueuedPod, now: float) -> None:
        """A pod has left its Workload: that goes with the last one."""
        job = self._job_of(pod) if pod.group else None
        if job is not None:
            self._enter(job, f"Pod {pod.namespace}/{pod.name}", now)
        else:
            self._lifecycles.forget(self._metadata(pod.namespace, pod.workload, now)["uid"], now)

    def _job_of(self, pod: QueuedPod) -> JobView | None:
        if not pod.group:
            return self._world.jobs.get((pod.namespace, pod.title))
        group = self._world.pod_groups.get(pod.group_uid)
        return self._world.pod_groups.jobs.get(group_key(group)) if group is not None else None

    def _enter(self, job: JobView, named: str, now: float) -> None:
        """Let a pod or a group wait as what it is now."""
        metadata = self._metadata(job.namespace, job.workload, now)
        try:
            spec = workload_spec(job, self._world)
        except InvalidQuantityError as error:
            self._invalid(Invalid(named if job.problem == "" else job.name, str(error)))
            self._lifecycles.forget(metadata["uid"], now)
            return
        view = parse_workload({"metadata": metadata_for(job, self._world) | metadata, "spec": spec})
        known = self._lifecycles.items.get(view.uid)
        said = [self._lasts.get(pod.key) for pod in self._world.members_of(job)]
        lasts = max((each for each in said if each is not None), default=None)
        if lasts is None and known is not None:
            lasts = known.runtime
        self._lifecycles.put(view, job, lasts)

    def _metadata(self, namespace: str, workload: str, now: float) -> Json:
        """What an API server adds to a Workload, which keeps its UID as long as its pods are there."""
        metadata = {"namespace": namespace, "name": workload}
        return self._objects.completed(metadata, "Workload", now, gone=False)


def again(item: Item, spec: Json, world: World, version: str, created: str) -> WorkloadView:
    """The Workload of a pod or a group with another spec."""
    assert item.job is not None
    known = {"uid": item.view.uid, "resourceVersion": version, "creationTimestamp": created}
    return parse_workload({"metadata": metadata_for(item.job, world) | known, "spec": spec})


def _is_full(group: PodGroup, pod: QueuedPod) -> bool:
    """Whether a group has all of its pods: another one would be deleted."""
    return not group.serving and group.sizes == [pod.size] and group.alive.total() >= pod.size > 0
