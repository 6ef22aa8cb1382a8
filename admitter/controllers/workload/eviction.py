"""Taking an admission back: Evicted is written, the Job suspended, its pods end, then quota is free.

Quota is released only when nothing can run on it any more: the Job was never started, or the Job
controller says that it is suspended, so that it makes no more pods, and a fresh list shows that none lives.
Job status names no generation, so an old answer could say the same: that is why a Job is not suspended before
the Job controller has acted on its start (docs/design/eviction.md).

A Job that can't be started gives back its quota too (`workload.refused_starts`).
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from math import inf
from typing import Final

from admitter.api.conditions import ConditionType, EvictedReason
from admitter.api.job_kind import Injection, Restore
from admitter.cache.job_resources import JOB, POD_GROUP
from admitter.cache.preemption_status import PreemptionStatus
from admitter.cache.run_time_status import run_time_of
from admitter.cache.views import JobView, Json, WorkloadView
from admitter.cache.world import MOST_LEVELS, World, pods_path, workload_path
from admitter.client.signal import Signal
from admitter.client.store import Key
from admitter.client.transport import Transport
from admitter.controllers.workload.eviction_records import EvictionRecords
from admitter.controllers.workload.grace import GracePeriods
from admitter.controllers.workload.pod_jobs import GroupJobs
from admitter.controllers.workload.pod_writes import bar as bar_pod
from admitter.controllers.workload.pod_writes import side_by_side, stop
from admitter.controllers.workload.readiness import ReadyTimeouts
from admitter.controllers.workload.refused_starts import RefusedStarts
from admitter.controllers.workload.writes import bar, hold, restore
from admitter.names import WORKLOAD_LABEL
from admitter.policy import status
from admitter.policy.catalog import Catalog
from admitter.policy.lifecycle import Step
from admitter.policy.restoration import child_restoration
from admitter.policy.run_time import is_over, over_message
from admitter.policy.shortage import Shortages
from admitter.policy.status import Clock

ACT_SECONDS: Final = 10.0
"""By then an operator has acted on a start; only that of Jobs tells in a status that it has."""


@dataclass(eq=False)
class Evictions:
    """Evicts Workloads, one step a call."""

    world: World
    catalog: Catalog
    grace: GracePeriods
    shortages: Shortages
    refused: RefusedStarts
    groups: GroupJobs
    ready: ReadyTimeouts
    transport: Transport
    records: EvictionRecords
    again: Signal[[Key, float]] = field(default_factory=Signal)  # a step is due after so many seconds
    _started: dict[str, float] = field(default_factory=dict)  # when, by UID, in the last `ACT_SECONDS`

    def wanted(self, workload: WorkloadView) -> tuple[EvictedReason, str] | None:
        """Why an admitted Workload must stop; None if it may go on."""
        assert workload.admission is not None
        if not workload.active:
            return EvictedReason.DEACTIVATED, "paused: its spec.active is false"
        run_time = run_time_of(workload.status)
        if is_over(run_time, self.grace.clock().timestamp()):
            return EvictedReason.MAX_RUNTIME_EXCEEDED, over_message(run_time)
        if self.grace.due(workload) is Step.EVICT:
            return EvictedReason.PREEMPTED, "the time that it was granted is over"
        drained = self.catalog.drained((workload.namespace, workload.queue), workload.admission)
        if drained is not None:
            return drained
        short = self.shortages.victim(workload.uid)
        if short is not None:
            return EvictedReason.CAPACITY_SHRUNK, short
        late = self.ready.late(workload)
        return (EvictedReason.PODS_NOT_READY, late) if late else None

    async def begin(self, workload: WorkloadView, reason: EvictedReason, message: str) -> None:
        """Write down that a Workload must stop; it keeps its quota."""
        if reason is EvictedReason.PODS_NOT_READY and not await self.ready.is_late_now(workload):
            return  # what is newer has been taken in, and brings us here again
        by = workload.preemption if reason is EvictedReason.PREEMPTED else None
        if by is not None:
            await self.records.begin(workload, partial(self._preempt, workload, by))
            return
        body = status.evicted(workload, reason, message, self.grace.clock())
        if workload.preemption is not None and not self.grace.is_needed(workload):
            body["status"]["preemption"] = None  # else a restart would take it for what makes room
        if reason is EvictedReason.PODS_NOT_READY:
            body["status"] |= self.ready.evicted(workload)
        await self._patch(workload, body)

    async def _preempt(self, workload: WorkloadView, by: PreemptionStatus, now: datetime) -> WorkloadView:
        return await self._patch(workload, status.preempted(workload, by, now))

    async def _patch(self, workload: WorkloadView, body: Json) -> WorkloadView:
        raw = await self.transport.patch(f"{workload_path(workload.key)}/status", body)
        return self.world.read_workloads.take(raw)

    async def converge(self, workload: WorkloadView, job: JobView | None) -> None:
        """Do the next step of an eviction that is wanted or under way; a Workload made by hand has no Job."""
        if workload.admission is None or await self.ready.pause(workload):
            return
        if not workload.evicting:
            wanted = self.wanted(workload)
            if wanted is not None:
                await self.begin(workload, *wanted)
        elif job is None:
            await self._free(workload)
        elif not job.suspended:
            left = self._until_acted(workload, job)
            if job.resource.is_pods:
                why = str(workload.condition(ConditionType.EVICTED).get("message", ""))
                await stop(job, why, self.grace.clock, self.world, self.transport)
            elif left <= 0:
                await hold(job, self.world, self.transport)
            elif left < inf:
                self.again(workload.key, left)
        elif job.unstarted or job.at_rest:
            await self._release(workload, job)

    def started(self, job: JobView) -> None:
        """A job object was started just now."""
        if job.resource.proves:
            return
        now = self.grace.clock().timestamp()
        for uid in [uid for uid, since in self._started.items() if since + ACT_SECONDS <= now]:
            del self._started[uid]
        self._started[job.uid] = now

    def _until_acted(self, workload: WorkloadView, job: JobView) -> float:
        """In how many seconds the operator of a job object has acted on its start, at the latest.

        Only after that can what its status says later prove that it has stopped.
        """
        if job.resumed:
            return 0.0
        if job.resource.proves:
            return inf
        if self.world.pods_of(workload):
            return 0.0
        since = self._started.get(job.uid, workload.since)
        return since + ACT_SECONDS - self.grace.clock().timestamp()

    async def _release_group(self, workload: WorkloadView, job: JobView) -> None:
        """Free what a group held, once no pod of it runs and no start of one is on its way.

        All pods are read first, since an earlier leader may have started one that is not known here.
        """
        await self.groups.read_members(workload)
        mark, world = str(workload.version), self.world
        waiting = [pod for pod in world.members_of(job) if pod.gated and not pod.deleting]
        await side_by_side(bar_pod(pod, mark, world, self.transport) for pod in waiting)
        if not any(pod.running for pod in world.members_of(job)):
            await self.groups.free(workload)

    def is_idle(self, workload: WorkloadView, job: JobView) -> bool:
        """Whether nothing has come of a start, though its operator has had the time to act on it."""
        if job.resumed or self.world.pods_of(workload):
            return False
        left = self._until_acted(workload, job)
        if left > 0:
            self.again(workload.key, left)
        return left <= 0

    async def _release(self, workload: WorkloadView, job: JobView) -> None:
        if job.resource is POD_GROUP:
            await self._release_group(workload, job)
            return
        if not all(map(_is_still, self.made_for(job))):
            return  # the next change of one of them brings us here again
        if not job.unstarted and await self._has_pods(workload):
            return  # so does the end of the last pod
        await self._restore_children(job)
        # with a problem it is not known where the templates are; what is beside them is found without
        known = not job.problem or job.resource.injection is not Injection.TEMPLATES
        write = restore if job.resource.restore is not None and known else bar
        after = await write(job, str(workload.version), self.world, self.transport)
        self.refused.released(job, after)
        await self._free(workload)

    async def _has_pods(self, workload: WorkloadView) -> bool:
        """Whether pods of a Workload live; that none does is said by the API server alone, as of now."""
        if any(pod.live for pod in self.world.pods_of(workload)):
            return True
        query = {"labelSelector": f"{WORKLOAD_LABEL}={workload.name}"}
        listed = await self.transport.get(pods_path(workload.namespace), query)
        pods = map(self.world.read_pods.read, listed["items"])
        return any(pod.live and pod.is_of(workload) for pod in pods)

    async def count_pods(self, workload: WorkloadView) -> None:
        """Take in all pods of a Workload: those that live count by themselves once it has finished."""
        query = {"labelSelector": f"{WORKLOAD_LABEL}={workload.name}"}
        for raw in (await self.transport.get(pods_path(workload.namespace), query))["items"]:
            self.world.read_pods.take(raw)

    async def _restore_children(self, job: JobView) -> None:
        """Take an admission out of suspended Jobs, which an operator merges its object's templates into."""
        if job.resource.restore in {None, Restore.TEMPLATES}:
            return
        for child in self.made_for(job):
            body = child_restoration(job, child)
            if not body or child.finished or child.deleting:
                continue
            if child.status["startTime"] is not None:
                after = await self.forget_start(child)
                body["metadata"]["resourceVersion"] = str(after.version)
            self.world.take_job(child, await self.transport.patch(child.path, body))

    def made_by(self, job: JobView) -> Iterator[JobView]:
        """The job objects that its operator has made for an object."""
        for key in self.world.jobs_by_owner.get(job.uid):
            made = self.world.jobs.get(key)
            # without a parent no operator has made it: any user may write a UID, and would never be stopped
            if made is not None and self.world.parent_of(made) == (job.name, job.uid):
                yield made

    def made_for(self, job: JobView, levels: int = MOST_LEVELS) -> Iterator[JobView]:
        """The Jobs that operators have made for an object, also for others that they made for it."""
        for made in self.made_by(job) if levels else ():
            if made.resource is JOB:
                yield made
            else:
                yield from self.made_for(made, levels - 1)

    async def _free(self, workload: WorkloadView) -> None:
        await self._patch(workload, status.freed(workload, self.grace.clock()))

    async def forget_start(self, job: JobView) -> JobView:
        """Make a stopped Job's template mutable: before Kubernetes 1.36 `startTime` prevents it."""
        body = {"metadata": {"resourceVersion": str(job.version)}, "status": {"startTime": None}}
        return self.world.take_job(job, await self.transport.patch(f"{job.path}/status", body))


def _is_still(child: JobView) -> bool:
    """Whether a Job that an operator has made makes no more pods before the next start of its object."""
    over = child.finished is not None or child.deleting
    return over or (child.suspended and (child.at_rest or child.unstarted))


@dataclass(eq=False)
class ShortageEvictions:
    """Looks for victims in trees with too little quota for too long, after each cycle and when a delay ends.

    `evict` is called with the key of each victim; the next step is that its Job is stopped.
    """

    world: World
    shortages: Shortages
    keys_of: Callable[[Iterable[str]], list[Key]]
    evict: Callable[[Key], None]
    clock: Clock
    _timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Evict what has to go, and look again when more may have to."""
        self.close()
        now = self.clock().timestamp()
        evicted = self.shortages.look(now, lambda: {w.uid for w in self.world.workloads if w.evicting})
        for key in self.keys_of(evicted):
            self.evict(key)
        if self.shortages.due is not None:
            left = self.shortages.due - now
            self._timer = asyncio.get_running_loop().call_later(left, self.look)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
