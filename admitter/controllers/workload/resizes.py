"""Gives Jobs the parallelism that their Workloads are granted: more pods on idle quota, or fewer again.

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
from admitter.policy import growing, status
from admitter.policy.status import Clock


@dataclass(eq=False)
class Resizes:
    """Patches Jobs that have not the parallelism that is granted: none but those that have grown."""

    world: World
    transport: Transport
    events: Events
    clock: Clock

    async def converge(self, job: JobView, workload: WorkloadView) -> None:
        """Give a Job that runs the parallelism that is granted."""
        resize = resize_of(workload)
        if resize is None or job.suspended:
            return
        narrowed = growing.narrowed(workload, job)
        if narrowed is not None:
            body = status.holding(workload, None, status.now_changed(narrowed, self.clock()))
            raw = await self.transport.patch(f"{workload_path(workload.key)}/status", body)
            self.world.read_workloads.take(raw)
            return  # its change brings us here again
        patch = growing.patch(workload, job)
        if patch is None or workload.admission is None:
            return
        self.world.take_job(job, await self.transport.patch(job.path, patch))
        words = growing.words(resize, growing.admitted_pods(workload.admission))
        self.events.record(subject_of(job), EventReason.RESIZED, words)
