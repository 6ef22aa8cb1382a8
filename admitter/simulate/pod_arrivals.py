"""Queued pods of a simulation: each is a workload, or a part of its group's, as the controller's stores say.

Previous step: `admitter.simulate.pods` has made pods of manifests. What no simulated API server would keep is
an error: a pod of a queue that is not there by Kueue's label, and one that its group has no place for.
A pod that names no queue is its elastic quota's if that manages all pods, or goes to the default queue of its
managed namespace, and is else left alone.
"""

from collections.abc import Callable
from typing import Any

from admitter.cache.pod_groups import PodGroup, group_key
from admitter.cache.queued_pods import QueuedPod, parse_queued_pod
from admitter.cache.views import JobView, WorkloadView, parse_workload
from admitter.cache.world import World
from admitter.names import ELASTIC_QUOTA_QUEUE, QUEUE_ALIAS_LABEL, QUEUE_LABEL
from admitter.policy.derive import metadata_for, workload_spec
from admitter.policy.snapshot import Snapshot
from admitter.quantities.amounts import InvalidQuantityError
from admitter.quantities.durations import InvalidDurationError
from admitter.simulate.items import Item, Key
from admitter.simulate.lifecycles import Lifecycles
from admitter.simulate.manifests import Invalid, default_queue_of_pods, runtime
from admitter.simulate.objects import Objects, timestamp
from admitter.simulate.pods import MADE_OF, as_created

Json = dict[str, Any]


class PodArrivals:
    """Pods as they come, change and go."""

    def __init__(
        self, snapshot: Snapshot, objects: Objects, lifecycles: Lifecycles, invalid: Callable[[Invalid], None]
    ) -> None:
        self._elastic = snapshot.catalog.elastic
        self._world = snapshot.world
        self._objects = objects
        self._lifecycles = lifecycles
        self._invalid = invalid
        self._due: list[tuple[Json, Key, bool]] = []
        self._lasts: dict[Key, float | None] = {}
        self._changed: dict[Key, tuple[QueuedPod, str]] = {}  # by Workload: a pod of it, and what to call it
        self._uids: dict[Key, str] = {}  # of Workloads: the UID of the pod that came first

    def put(self, raw: Json, key: Key, *, gone: bool) -> None:
        """A pod comes, changes or goes at this moment."""
        self._due.append((raw, key, gone))

    def take_in(self, now: float) -> None:
        """Take in the pods of this moment, once its queues are there."""
        due, self._due = self._due, []
        for raw, key, gone in due:
            if gone:
                self._go(key)
            else:
                self._come(raw, key, now)
        changed, self._changed = self._changed, {}
        for pod, named in changed.values():
            self._enter(pod, named, now)

    def _come(self, raw: Json, key: Key, now: float) -> None:
        named, queued = raw[MADE_OF], self._in_a_queue(raw)
        if queued is None:
            return
        pod = parse_queued_pod(as_created(queued))
        before = self._world.queued_pods.get(key)
        group = self._world.pod_groups.get(pod.group_uid) if pod.is_member else None
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
        for each in (before, pod):
            if each is not None:
                self._note(each, named)

    def _in_a_queue(self, raw: Json) -> Json | None:
        """A pod with the queue that the API server has it name; None if it is not queued."""
        metadata = raw["metadata"]
        labels, namespace = metadata.get("labels") or {}, metadata["namespace"]
        own, alias = labels.get(QUEUE_LABEL), labels.get(QUEUE_ALIAS_LABEL, "")
        gives_way = not own or (own == ELASTIC_QUOTA_QUEUE and not metadata.get("ownerReferences"))
        if gives_way and self._world.local_queues.get((namespace, alias)) is not None:
            own = alias
        elif not own and self._elastic.manages_pods(namespace) and not raw["spec"].get("nodeName"):
            own = ELASTIC_QUOTA_QUEUE
        elif not own and not raw["spec"].get("nodeName") and not metadata.get("ownerReferences"):
            own = default_queue_of_pods(self._world.labels_of(namespace))
        if own:
            return {**raw, "metadata": {**metadata, "labels": {**labels, QUEUE_LABEL: own}}}
        if QUEUE_ALIAS_LABEL in labels and QUEUE_LABEL not in labels:
            words = f"its label {QUEUE_ALIAS_LABEL} names LocalQueue {alias}, which is not there"
            self._invalid(Invalid(raw[MADE_OF], f"{words}: it is not queued"))
        return None

    def _go(self, key: Key) -> None:
        before = self._world.queued_pods.get(key)
        if before is not None:
            self._world.queued_pods.delete(key, before.uid)
            self._lasts.pop(key, None)
            self._note(before, f"Pod {before.namespace}/{before.name}")

    def _note(self, pod: QueuedPod, named: str) -> None:
        """A Workload has changed: that of a group is looked at once for all pods of a moment."""
        key = (pod.namespace, pod.workload)
        self._uids.setdefault(key, pod.uid)
        self._changed[key] = (pod, named)

    def _job_of(self, pod: QueuedPod) -> JobView | None:
        if not pod.is_member:
            return self._world.jobs.get((pod.namespace, pod.title))
        group = self._world.pod_groups.get(pod.group_uid)
        return self._world.pod_groups.jobs.get(group_key(group)) if group is not None else None

    def _enter(self, pod: QueuedPod, named: str, now: float) -> None:
        """Let a pod or its group wait as what it is now; its Workload goes with the last pod."""
        key = (pod.namespace, pod.workload)
        known = self._world.workloads.get(key)
        uid = known.uid if known is not None else self._uids[key]
        job = self._job_of(pod)
        if job is None:
            del self._uids[key]
            self._lifecycles.forget(uid, now)
            return
        try:
            spec = workload_spec(job, self._world)
        except InvalidQuantityError as error:
            self._invalid(Invalid(job.name if job.problem else named, str(error)))
            self._lifecycles.forget(uid, now)
            return
        view = _workload(job, self._world, spec, uid, self._objects.next_version())
        item = self._lifecycles.items.get(uid)
        said = [self._lasts.get(each.key) for each in self._world.members_of(job)]
        lasts = max((each for each in said if each is not None), default=None)
        self._lifecycles.put(view, job, item.runtime if lasts is None and item is not None else lasts)


def _workload(job: JobView, world: World, spec: Json, uid: str, version: str) -> WorkloadView:
    """The Workload of a pod or a group."""
    created = timestamp(job.created)
    known = {"uid": uid, "resourceVersion": version, "creationTimestamp": created}
    return parse_workload({"metadata": metadata_for(job, world) | known, "spec": spec})


def again(item: Item, spec: Json, world: World, version: str) -> WorkloadView:
    """The Workload of a pod or a group with another spec."""
    assert item.job is not None
    return _workload(item.job, world, spec, item.view.uid, version)


def _is_full(group: PodGroup, pod: QueuedPod) -> bool:
    """Whether a group has all of its pods: another one would be deleted."""
    return not group.serving and group.sizes == [pod.size] and group.alive.total() >= pod.size > 0
