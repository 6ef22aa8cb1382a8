"""What Workloads and pods show of themselves: in quota or over it, and when they will have to go.

Labels and annotations are output: nothing is decided by them. Only those that differ are written, so a
restart writes nothing; and a pod is born with the label that its place has.
"""

import asyncio
from collections.abc import Iterator
from typing import Final

import structlog

from admitter.cache.pod_views import PodView
from admitter.cache.views import WorkloadView, at, timestamp
from admitter.cache.world import World, pods_path, workload_path
from admitter.client.errors import ClusterError, NotFoundError, UnreadableError
from admitter.client.failures import REFUSALS_TOLD, Failures, is_rejected
from admitter.client.pace import Pace
from admitter.client.store import Key
from admitter.client.transport import Json, Transport
from admitter.controllers.guarded import guarded
from admitter.controllers.telemetry.events import Events
from admitter.engine.quota.capacity import Capacity, OverQuotaUse
from admitter.names import CAPACITY_ALIAS_LABEL, CAPACITY_LABEL, EVICTION_TIME_ANNOTATION

IN_QUOTA: Final = "in-quota"
OVER_QUOTA: Final = "over-quota"
PAUSE_SECONDS: Final = 0.2
WRITES_AT_A_TIME: Final = 16
REFUSED_SECONDS: Final = 10.0

log = structlog.get_logger(__name__)

Write = tuple[str, Key, Json]
"""`pod` or `workload`, its key, and the metadata to merge in."""
Target = tuple[str, Key]
"""`pod` or `workload`, and its key."""


class Marks:
    """Writes labels and annotations that are not what they should be.

    What the API server goes on refusing is told on the Job, once for all of its pods. Closed, it drops
    changes: a follower looks at everything when it leads.
    """

    def __init__(
        self, world: World, capacity: Capacity, transport: Transport, pace: Pace, events: Events
    ) -> None:
        self._world = world
        self._capacity = capacity
        self._transport = transport
        self._pace = pace
        self._events = events
        self._failures = Failures[Target](self._refused, REFUSALS_TOLD, is_rejected)
        self._told: dict[Target, Key] = {}  # of which refusals the Jobs of which Workloads are told
        self._told_of: set[Key] = set()
        self._retried: set[Target] = set()
        self.closed = False
        self._queues: set[str] = set()
        self._workloads: set[Key] = set()
        self._ready = asyncio.Event()

    def touch_queue(self, name: str) -> None:
        """The capacity of a queue's pods may have changed."""
        if not self.closed:
            self._queues.add(name)
            self._ready.set()

    def touch(self, workload: Key) -> None:
        """What a Workload and its pods show may have changed."""
        if not self.closed:
            self._workloads.add(workload)
            self._ready.set()

    def of_next_pod(self, workload: WorkloadView) -> str | None:
        """What the next pod of a Workload will be; None outside of elastic quotas."""
        if workload.admission is None or not workload.admission.pool:
            return None
        excess = self._excesses(workload.admission.queue).get(workload.uid)
        return OVER_QUOTA if excess is not None and excess.coming else IN_QUOTA

    async def run(self) -> None:
        while True:
            await self._ready.wait()
            await asyncio.sleep(PAUSE_SECONDS)
            self._ready.clear()
            writes = list(self._due())
            self._forget(writes)
            await asyncio.gather(*(self._work(writes) for _ in range(min(WRITES_AT_A_TIME, len(writes)))))

    def _due(self) -> Iterator[Write]:
        """All that differs, of what was touched."""
        queues, self._queues = self._queues, set()
        keys, self._workloads = self._workloads, set()
        for queue in sorted(queues):
            keys.update(self._world.workloads_by_cluster_queue.get(queue))
        excesses = {}
        for key in sorted(keys):
            workload = self._world.workloads.get(key)
            if workload is None or not self._world.owners.owns(key):
                continue
            if workload.finished:
                if workload.capacity == OVER_QUOTA:
                    yield "workload", key, {"labels": _labels(None)}
                continue
            queue = workload.admission.queue if workload.admission is not None else ""
            if queue not in excesses:
                excesses[queue] = self._excesses(queue)
            yield from self._differences(workload, excesses[queue].get(workload.uid))

    def _excesses(self, queue: str) -> dict[str, OverQuotaUse]:
        return {excess.reservation.holder: excess for excess in self._capacity.real(queue).excesses}

    def _differences(self, workload: WorkloadView, excess: OverQuotaUse | None) -> Iterator[Write]:
        elastic = workload.admission is not None and bool(workload.admission.pool)
        capacity = _word(elastic, excess is not None)
        if workload.capacity != (capacity or ""):
            yield "workload", workload.key, {"labels": _labels(capacity)}
        until = timestamp(at(workload.evict_at)) if workload.evict_at is not None else ""
        for pod in self._world.pods_of(workload):
            if pod.live:
                # What the annotation of a pod that ends says stays true.
                said = pod.eviction_time if workload.evicting else until
                change = _difference(pod, elastic, excess, said)
                if change:
                    yield "pod", pod.key, change

    async def _work(self, writes: list[Write]) -> None:
        while writes:
            await guarded(self._write(*writes.pop()), "to write a mark")

    async def _write(self, kind: str, key: Key, metadata: Json) -> None:
        target = (kind, key)
        path = workload_path(key) if kind == "workload" else f"{pods_path(key[0])}/{key[1]}"
        try:
            async with self._pace.turn():
                raw = await self._transport.patch(path, {"metadata": metadata})
            self._world.source_of(f"{kind}s").take(raw)
        except ClusterError as error:
            if not isinstance(error, NotFoundError | UnreadableError):
                self._failed(target, error)
                return
        self._over(target)

    def _failed(self, target: Target, error: ClusterError) -> None:
        kind, (namespace, name) = target
        level = self._failures.note(target, error).level
        log.log(level, "label not written", kind=kind, namespace=namespace, name=name, error=str(error))
        # Not at once: until something changes, the API server may refuse it again.
        workload = self._workload_of(target)
        asyncio.get_running_loop().call_later(REFUSED_SECONDS, self._try_again, target, workload)

    def _try_again(self, target: Target, workload: Key) -> None:
        self._retried.add(target)
        self.touch(workload)

    def _forget(self, writes: list[Write]) -> None:
        """What has failed and is not to be written any more is over: it is gone, or as it should be."""
        due = {(kind, key) for kind, key, _ in writes}
        for target in self._retried - due:
            self._over(target)
        self._retried.clear()

    def _over(self, target: Target) -> None:
        self._failures.over(target)
        workload = self._told.pop(target, None)
        if workload is not None:
            self._told_of.discard(workload)

    def _refused(self, target: Target, error: Exception) -> None:
        """The API server goes on refusing a mark."""
        workload = self._workload_of(target)
        if workload not in self._told_of:  # otherwise a wide Job would have as many events as pods
            self._told[target] = workload
            self._told_of.add(workload)
            self._events.refused(self._world.job_of(workload), error)

    def _workload_of(self, target: Target) -> Key:
        kind, key = target
        pod = self._world.pods.get(key) if kind == "pod" else None
        return (key[0], pod.workload) if pod is not None else key


def _difference(pod: PodView, elastic: bool, excess: OverQuotaUse | None, until: str) -> Json:
    change: Json = {}
    capacity = _word(elastic, excess is not None and pod.name in excess.pods)
    if elastic and pod.capacity != capacity:
        change["labels"] = _labels(capacity)
    if pod.eviction_time != until:
        change["annotations"] = {EVICTION_TIME_ANNOTATION: until or None}
    return change


def _word(elastic: bool, over: bool) -> str | None:
    if not elastic:
        return None
    return OVER_QUOTA if over else IN_QUOTA


def _labels(capacity: str | None) -> dict[str, str | None]:
    return dict.fromkeys((CAPACITY_LABEL, CAPACITY_ALIAS_LABEL), capacity)
