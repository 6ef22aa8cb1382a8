"""Writes for how many pods an admitted Workload still holds quota, once some of its Job have ended for good.

What is written counts (`admitter.policy.held`). It is a write for quota that others can use, so it waits a
moment: if all pods of a Job end at about the same time, nothing is left to be written.
"""

from dataclasses import dataclass, field
from typing import Final

from admitter.cache.resize_status import ResizeStatus, resize_of
from admitter.cache.views import JobView, Json, WorkloadView
from admitter.cache.world import World, workload_path
from admitter.client.signal import Signal
from admitter.client.store import Key
from admitter.client.transport import Transport
from admitter.policy import growing, held, status
from admitter.policy.status import Clock

FIRST_SECONDS: Final = 1.0
"""For so long more pods of a Job may end before it is written that some have."""
NEXT_SECONDS: Final = 5.0
"""As long after such a write the same is written of the same Workload again, whatever ends meanwhile."""


@dataclass(frozen=True, slots=True)
class _Lowered:
    """What a status is to say."""

    held: list[Json] | None  # None: as it does
    resize: ResizeStatus | None = None  # likewise
    awaited: bool = False  # whether another Workload waits for the end of extra pods


@dataclass(eq=False)
class HeldPods:
    """Says what Workloads hold; a process that starts waits anew, and comes to the same."""

    world: World
    transport: Transport
    clock: Clock
    again: Signal[[Key, float]] = field(default_factory=Signal)  # a write is due after so many seconds
    _due: dict[str, float] = field(default_factory=dict)  # when one is, by UID; only if some are given back
    _written: dict[str, float] = field(default_factory=dict)  # when the last one was

    async def converge(self, job: JobView, workload: WorkloadView) -> None:
        """Write what a Workload with a Job that runs holds, if that is less than before."""
        if job.resource.is_pods or workload.evict_at is not None:
            return
        wanted = self._lowered(job, workload)
        if wanted is None:
            self._due.pop(workload.uid, None)
            return
        now, uid = self.clock().timestamp(), workload.uid
        due = self._due.get(uid)
        if due is None:
            again = 0.0 if wanted.awaited else self._written.get(uid, 0.0) + NEXT_SECONDS
            due = self._due[uid] = max(now + FIRST_SECONDS, again)
        if now < due:
            self.again(workload.key, due - now)
            return
        del self._due[uid]
        self._written[uid] = now
        body = status.holding(workload, wanted.held, wanted.resize)
        raw = await self.transport.patch(f"{workload_path(workload.key)}/status", body)
        self.world.read_workloads.take(raw)

    def forget(self, uid: str) -> None:
        """A Workload does not hold quota for a running Job any more."""
        self._due.pop(uid, None)
        self._written.pop(uid, None)

    def _lowered(self, job: JobView, workload: WorkloadView) -> _Lowered | None:
        resize = resize_of(workload)
        if resize is not None and not resize.parts:  # the grants of parts are lowered by `workload.bounds`
            return self._with_extra(job, workload, awaited=resize.shrinks)
        if not any(held.held(workload).values()):
            return None
        if held.wanted(job) == held.held(workload) and job.resource.proves:
            return None  # as it is of most: its pods are not looked up
        alive = sum(pod.live for pod in self.world.pods_of(workload))
        found = held.lowered(workload, job, alive)
        return _Lowered(found) if found is not None else None

    def _with_extra(self, job: JobView, workload: WorkloadView, *, awaited: bool) -> _Lowered | None:
        """The same of a Workload that has grown: its extra pods go first."""
        alive = sum(pod.live for pod in self.world.pods_of(workload))
        needs = sum(held.needed(job, alive).values())
        left, resize = held.lowered(workload, job, alive), growing.given_back(workload, job, needs)
        return None if left is None and resize is None else _Lowered(left, resize, awaited)
