"""Taking an admission back: Evicted is written, the Job suspended, its pods end, then quota is free.

Quota is released only when nothing can run on it any more: the Job was never started, or the Job
controller says that it is suspended and has no pods, and a fresh list of its pods confirms it. Job status
names no generation, so an old answer could say the same: that is why a Job is not suspended before the
Job controller has acted on its start (docs/design/eviction.md).
"""

from dataclasses import dataclass
from datetime import datetime

from admitter.api.conditions import EvictedReason
from admitter.cache.views import JobView, WorkloadView
from admitter.cache.world import World, job_path, pods_path, workload_path
from admitter.client.transport import Transport
from admitter.controllers.workload.adoption import bar
from admitter.controllers.workload.grace import GracePeriods
from admitter.controllers.workload.refused_starts import RefusedStarts
from admitter.names import WORKLOAD_LABEL
from admitter.policy import status
from admitter.policy.catalog import Catalog
from admitter.policy.lifecycle import Step
from admitter.policy.shortage import Shortages


@dataclass(eq=False)
class Evictions:
    """Evicts Workloads, one step a call.

    Attributes:
        refused: starts that the API server refused.
    """

    world: World
    catalog: Catalog
    grace: GracePeriods
    shortages: Shortages
    refused: RefusedStarts
    transport: Transport

    def now(self) -> datetime:
        """The current time, in UTC."""
        return self.grace.now()

    def wanted(self, workload: WorkloadView) -> tuple[EvictedReason, str] | None:
        """Why an admitted Workload must stop; None if it may go on."""
        assert workload.admission is not None
        if not workload.active:
            return EvictedReason.DEACTIVATED, "paused: its spec.active is false"
        if self.grace.due(workload) is Step.EVICT:
            return EvictedReason.PREEMPTED, "the time that it was granted is over"
        drained = self.catalog.drained((workload.namespace, workload.queue), workload.admission)
        if drained is not None:
            return drained
        short = self.shortages.victim(workload.uid)
        return (EvictedReason.CAPACITY_SHRUNK, short) if short is not None else None

    async def begin(self, workload: WorkloadView, reason: EvictedReason, message: str) -> None:
        """Write down that a Workload must stop; it keeps its quota."""
        by = workload.preemption if reason is EvictedReason.PREEMPTED else None
        if by is not None:
            body = status.preempted(workload, by, self.grace.now())
        else:
            body = status.evicted(workload, reason, message, self.grace.now())
            if workload.preemption is not None and not self.grace.is_needed(workload):
                body["status"]["preemption"] = None  # else a restart would take it for what makes room
        raw = await self.transport.patch(f"{workload_path(workload.key)}/status", body)
        self.world.read_workloads.take(raw)

    async def converge(self, workload: WorkloadView, job: JobView | None) -> None:
        """Do the next step of an eviction that is wanted or under way.

        Args:
            workload: it may hold nothing, then there is nothing to do.
            job: its Job; None for a Workload made by hand.
        """
        if workload.admission is None:
            return
        if not workload.evicting:
            wanted = self.wanted(workload)
            if wanted is not None:
                await self.begin(workload, *wanted)
        elif job is None:
            await self._free(workload)
        elif job.unstarted:
            await self._bar(workload, job)
            await self._free(workload)
        elif not job.suspended:
            if job.resumed:
                await self._suspend(job)
        elif job.stopped:
            await self._release(workload, job)

    async def _suspend(self, job: JobView) -> None:
        body = {"metadata": {"resourceVersion": str(job.version)}, "spec": {"suspend": True}}
        self.world.read_jobs.take(await self.transport.patch(job_path(job.key), body))

    async def _release(self, workload: WorkloadView, job: JobView) -> None:
        await self._bar(workload, job)
        query = {"labelSelector": f"{WORKLOAD_LABEL}={workload.name}"}
        listed = await self.transport.get(pods_path(workload.namespace), query)
        pods = map(self.world.read_pods.read, listed["items"])
        if any(pod.live and pod.is_of(workload) for pod in pods):
            return  # the end of the last pod brings us here again
        await self._free(workload)

    async def _bar(self, workload: WorkloadView, job: JobView) -> None:
        self.refused.barred(job, await bar(job, str(workload.version), self.world, self.transport))

    async def _free(self, workload: WorkloadView) -> None:
        body = status.released(workload, self.grace.now())
        raw = await self.transport.patch(f"{workload_path(workload.key)}/status", body)
        self.world.read_workloads.take(raw)

    async def forget_start(self, job: JobView) -> JobView:
        """Make a stopped Job's template mutable: before Kubernetes 1.36 `startTime` prevents it."""
        body = {"metadata": {"resourceVersion": str(job.version)}, "status": {"startTime": None}}
        raw = await self.transport.patch(f"{job_path(job.key)}/status", body)
        return self.world.read_jobs.take(raw)
