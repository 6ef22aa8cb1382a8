"""Gives Jobs the parallelism that their Workloads are granted: more pods on idle quota, or fewer again.

Objects of described kinds get bounds instead (`workload.bounds`).

Previous step: `status.resize` of a Workload says so (`workload.decision_writer`). Next step: when the pods
that have to end are gone, the grant is lowered (`workload.held_status`).
"""

from dataclasses import dataclass

from admitter.api.conditions import EventReason
from admitter.cache.resize_status import resize_of
from admitter.cache.views import JobView, WorkloadView
from admitter.cache.world import World, workload_path
from admitter.client.transport import Transport
from admitter.controllers.telemetry.events import Events, subject_of
from admitter.controllers.workload.bounds import Bounds
from admitter.controllers.workload.fences import Fences
from admitter.policy import growing, replicas, status
from admitter.policy.status import Clock


@dataclass(eq=False)
class Resizes:
    """Patches Jobs that have not the parallelism that is granted: none but those that have grown."""

    world: World
    transport: Transport
    events: Events
    clock: Clock

    def __post_init__(self) -> None:
        self.fences = Fences(self.world, self.transport, self.clock)
        self.bounds = Bounds(self.world, self.transport, self.events, self.clock, self.fences)

    async def converge(self, job: JobView, workload: WorkloadView) -> None:
        """Give a Job that runs the parallelism that is granted, or an object of another kind the bounds."""
        resize = resize_of(workload)
        if job.suspended or job.deleting:
            return
        if replicas.bounds_of(job) or (resize is not None and resize.parts):
            await self.bounds.converge(job, workload)
            return
        if resize is None:
            return
        narrowed = growing.narrowed(workload, job)
        if narrowed is not None:
            body = status.holding(workload, None, status.now_changed(narrowed, self.clock()))
            raw = await self.transport.patch(f"{workload_path(workload.key)}/status", body)
            self.world.read_workloads.take(raw)
            return  # its change brings us here again
        if not resize.shrinks:
            self.fences.forget(workload.uid)
        patch = growing.patch(workload, job)
        if patch is None or workload.admission is None:
            await self.fences.close(job, workload, resize)
            return
        self.world.take_job(job, await self.transport.patch(job.path, patch))
        if resize.shrinks:
            self.fences.written(workload, resize)
        words = growing.words(resize, growing.admitted_pods(workload.admission))
        self.events.record(subject_of(job), EventReason.RESIZED, words)

    def forget(self, uid: str) -> None:
        """A Workload does not hold quota for a running Job any more."""
        self.fences.forget(uid)
