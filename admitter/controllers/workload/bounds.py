"""Keeps objects of described kinds within the bounds that they are granted, and names pods that are to end.

Previous step: `status.resize` of a Workload says so (`workload.decision_writer`), or it asks for less.
Next step: when the pods that have to end are gone, the grant is lowered here, and their quota is free.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from admitter.api.conditions import EventReason
from admitter.cache.resize_status import ResizeStatus, resize_of
from admitter.cache.views import JobView, WorkloadView
from admitter.cache.world import World, pods_path, workload_path
from admitter.client.signal import Signal
from admitter.client.store import Key
from admitter.client.transport import Transport
from admitter.controllers.telemetry.events import Events, subject_of
from admitter.controllers.workload.fences import Fences
from admitter.controllers.workload.writes import whole
from admitter.names import WORKLOAD_LABEL
from admitter.policy import growing, replicas, status
from admitter.policy.injection import patch_of
from admitter.policy.replicas import Living
from admitter.policy.status import Clock

Json = dict[str, Any]

ACT_SECONDS: Final = 10.0
"""So long after a bound was lowered its operator has acted on it, whatever its status says."""


@dataclass(eq=False)
class Bounds:
    """Patches objects of which the bounds are not as granted: none but those that have grown."""

    world: World
    transport: Transport
    events: Events
    clock: Clock
    fences: Fences
    again: Signal[[Key, float]] = field(default_factory=Signal)  # a Workload is to be looked at after a time

    async def converge(self, job: JobView, workload: WorkloadView) -> None:
        """Do the next thing that brings an object that runs, its pods and its grant in step.

        What others wait for comes first: pods that have to end do, whatever their object asks for meanwhile.
        Each write brings us here again.
        """
        resize = resize_of(workload)
        if resize is not None and resize.shrinks and await self._shrink(job, workload, resize):
            return
        asked = replicas.asked(workload, job)
        if asked is not None:
            less = resize is not None and asked.target < resize.target
            await self._write(workload, status.now_changed(asked, self.clock()) if less else asked)
        elif resize is not None and not resize.shrinks:
            self.fences.forget(workload.uid)
            await self._patch(job, workload, resize, [])

    async def _shrink(self, job: JobView, workload: WorkloadView, resize: ResizeStatus) -> bool:
        """Lower bounds, then the grant once no more pods live; returns whether something was written."""
        acted = self._has_acted(job, workload, resize)  # before pods are listed
        living = await self._living(workload)
        if await self._patch(job, workload, resize, living):
            self.fences.written(workload, resize)
            return True
        await self.fences.close(job, workload, resize)
        lowered = replicas.lowered(workload, job, living)
        if lowered is None:
            return False  # the end of a pod brings us here again
        if not acted:
            self._look_again(workload, resize)
            return False
        await self._write(workload, lowered)
        return True

    async def _patch(
        self, job: JobView, workload: WorkloadView, resize: ResizeStatus, living: list[Living]
    ) -> bool:
        changes = replicas.resizing(job, workload, living)
        if not changes:
            return False
        assert workload.admission is not None
        raw = await whole(job, self.world, self.transport)
        self.world.take_job(job, await self.transport.patch(job.path, patch_of(job, {}, changes, raw)))
        words = growing.words(resize, growing.admitted_pods(workload.admission))
        self.events.record(subject_of(job), EventReason.RESIZED, words)
        return True

    def _has_acted(self, job: JobView, workload: WorkloadView, resize: ResizeStatus) -> bool:
        """Whether no pod is made any more for a larger bound than the object has now, if it is low enough."""
        since = self.fences.since(workload, resize)
        if since is None:
            return False  # a larger one may be on its way
        return bool(job.status.get("acted")) or self.clock().timestamp() >= since + ACT_SECONDS

    def _look_again(self, workload: WorkloadView, resize: ResizeStatus) -> None:
        """Look again when its operator has acted at the latest."""
        since = self.fences.since(workload, resize)
        if since is not None:
            self.again(workload.key, max(0.0, since + ACT_SECONDS - self.clock().timestamp()))

    async def _living(self, workload: WorkloadView) -> list[Living]:
        """The pods of a Workload that live, as the API server alone can say."""
        query = {"labelSelector": f"{WORKLOAD_LABEL}={workload.name}"}
        listed = await self.transport.get(pods_path(workload.namespace), query)
        found = []
        for raw in listed["items"]:
            pod, metadata = self.world.read_pods.read(raw), raw["metadata"]
            if pod.live and pod.is_of(workload):
                ending = "deletionTimestamp" in metadata
                labels = metadata.get("labels") or {}
                found.append(Living(pod.name, metadata["creationTimestamp"], ending, labels))
        return found

    async def _write(self, workload: WorkloadView, resize: ResizeStatus) -> None:
        body = status.holding(workload, None, resize)
        raw = await self.transport.patch(f"{workload_path(workload.key)}/status", body)
        self.world.read_workloads.take(raw)
