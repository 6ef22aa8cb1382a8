"""Writes to Jobs that are not admitted, and to the statuses of Workloads.

Each function writes to a Job as it was seen, takes the outcome into the store of Jobs, and returns it. It
raises ClusterError if the Job has changed meanwhile, or can't be written.

`StatusWrites` finds out what became of a write that failed. Previous step: the decision writer writes an
admission or an eviction. A reservation stays in the engine until the write is answered, or until `resolve`
has read the Workload. Next step: `EngineFeed.settle`.
"""

import asyncio
import logging
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_fixed

from admitter.cache.views import JobView, Json, WorkloadView
from admitter.cache.world import World, workload_path
from admitter.client.errors import ClusterError, ConflictError, NotFoundError, UnreadableError, level_of
from admitter.client.store import Key
from admitter.client.transport import Transport
from admitter.names import PLACED_ANNOTATION, PLACEMENT_ANNOTATION, QUEUE_LABEL, RETURNED_ANNOTATION
from admitter.policy.fewer_pods import is_lowered, raising
from admitter.policy.injection import needs_object
from admitter.policy.restoration import restoration
from admitter.policy.status import Clock

PAUSE_SECONDS: Final = 1.0
REFUSED_SECONDS: Final = 10.0
"""For how long nothing is tried again for a Workload after the API server has refused a write for good."""
AT_A_TIME: Final = 32

log = structlog.get_logger(__name__)


async def adopt(job: JobView, queue: str, world: World, transport: Transport) -> JobView:
    return await _write(job, {"labels": {QUEUE_LABEL: queue}}, world, transport, suspend=True)


async def settle(job: JobView, queue: str, world: World, transport: Transport) -> JobView:
    """Queue a Job where a rule sends it, and note that it is not its user's choice."""
    metadata = {"labels": {QUEUE_LABEL: queue}, "annotations": {PLACED_ANNOTATION: queue}}
    return await _write(job, metadata, world, transport, suspend=True)


async def hold(job: JobView, world: World, transport: Transport, policy: str = "") -> JobView:
    """Suspend a Job that must not run; `policy` is the PlacementPolicy, if any, that is to place it."""
    mark = {"annotations": {PLACEMENT_ANNOTATION: policy}} if policy else {}
    return await _write(job, mark, world, transport, suspend=True)


async def release(job: JobView, world: World, transport: Transport) -> JobView:
    """Leave a Job to its user, suspended as it is; until it is resumed, the next policy may place it."""
    noted = {"annotations": {PLACEMENT_ANNOTATION: None, PLACED_ANNOTATION: ""}}
    return await _write(job, noted, world, transport)


async def bar(job: JobView, mark: str, world: World, transport: Transport) -> JobView:
    """Make sure that a Job still is as it was seen, and that a start on its way comes too late.

    The Job is suspended, and a start would name the same version of it. The mark is another one each time,
    since a write that changes nothing changes no version.
    """
    return await _write(job, {"annotations": {RETURNED_ANNOTATION: mark}}, world, transport)


async def restore(job: JobView, mark: str, world: World, transport: Transport) -> JobView:
    """The same, and what an admission has put into the object is taken out."""
    body = restoration(job, await whole(job, world, transport))
    body["metadata"]["annotations"][RETURNED_ANNOTATION] = mark
    return world.take_job(job, await transport.patch(job.path, body))


async def delete_workload(workload: WorkloadView, transport: Transport) -> None:
    """Delete a Workload as it was seen; nothing is done if it is gone or another one by now."""
    conditions = {"uid": workload.uid, "resourceVersion": str(workload.version)}
    body = {"preconditions": conditions, "propagationPolicy": "Background"}
    with suppress(ConflictError, NotFoundError):  # its change brings us here again
        await transport.delete(workload_path(workload.key), body)


async def whole(job: JobView, world: World, transport: Transport) -> Json | None:
    """All of an object, if patches of it need that.

    Raises:
        ClusterError: it has changed, which is taken in, or can't be read.
    """
    if not needs_object(job):
        return None
    raw = await transport.get(job.path)
    if world.take_job(job, raw).version != job.version:
        raise ConflictError(409, "Conflict", f"{job.name} has changed")
    return raw


async def _write(
    job: JobView, metadata: Json, world: World, transport: Transport, *, suspend: bool = False
) -> JobView:
    body: Json = {"metadata": {"resourceVersion": str(job.version), **metadata}}
    if suspend:
        body |= job.resource.told(stop=True)
    if suspend and is_lowered(job):
        annotations, fields = raising(job)
        body["metadata"]["annotations"] = {**metadata.get("annotations", {}), **annotations}
        body["spec"] = {**body["spec"], **fields}
    return world.take_job(job, await transport.patch(job.path, body))


@dataclass(eq=False)
class StatusWrites:
    """Writes decisions to statuses; what is written is looked up within one of a bounded number of slots."""

    world: World
    transport: Transport
    now: Clock

    def __post_init__(self) -> None:
        self.slots = asyncio.Semaphore(AT_A_TIME)

    async def patch(self, view: WorkloadView, body: Json, query: Json | None = None) -> WorkloadView:
        """Patch the status of a Workload; the store gets what the API server answers."""
        raw = await self.transport.patch(f"{workload_path(view.key)}/status", body, query=query)
        return self.world.read_workloads.take(raw)

    async def read(self, key: Key) -> WorkloadView:
        return self.world.read_workloads.take(await self.transport.get(workload_path(key)))

    async def resolve(self, key: Key, uid: str, *, lost: bool, holds: bool = False) -> None:
        """Read a Workload after a write that failed, for as long as it takes.

        If the write is `lost`, the API server may still carry it out. Then the Workload gets a new version,
        so that the write fails; only then can another workload have the quota. So it is also with what
        `holds` quota, if it was to get more.
        """

        def tell(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome is not None else None
            level = level_of(error) if isinstance(error, ClusterError) else logging.WARNING
            log.log(level, "can't read a workload", namespace=key[0], workload=key[1], error=str(error))

        retried = retry_if_exception_type(ClusterError)
        retrying = AsyncRetrying(retry=retried, wait=wait_fixed(PAUSE_SECONDS), before_sleep=tell)
        await retrying(self._resolve, key, uid, lost=lost, holds=holds)

    async def _resolve(self, key: Key, uid: str, *, lost: bool, holds: bool) -> None:
        path, workloads = workload_path(key), self.world.read_workloads
        try:
            raw = await self.transport.get(path)
            same = raw["metadata"]["uid"] == uid
            if lost and same and (holds or not workloads.read(raw).admission):
                version = raw["metadata"]["resourceVersion"]
                metadata = {"resourceVersion": version, "annotations": {RETURNED_ANNOTATION: version}}
                raw = await self.transport.patch(path, {"metadata": metadata})
            workloads.take(raw)
        except NotFoundError:
            workloads.store.delete(key, uid)
        except UnreadableError:
            return  # what is reserved for it stays so
