"""What the controller writes to Jobs that are not admitted: a queue, or that they must not run.

Each function writes to a Job as it was seen, takes the outcome into the store of Jobs, and returns it. It
raises ClusterError if the Job has changed meanwhile, or can't be written.
"""

from admitter.cache.views import JobView
from admitter.cache.world import World, job_path
from admitter.client.transport import Json, Transport
from admitter.names import PLACED_ANNOTATION, PLACEMENT_ANNOTATION, QUEUE_LABEL, RETURNED_ANNOTATION


async def adopt(job: JobView, queue: str, world: World, transport: Transport) -> JobView:
    """Queue a Job."""
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


async def _write(
    job: JobView, metadata: Json, world: World, transport: Transport, *, suspend: bool = False
) -> JobView:
    body: Json = {"metadata": {"resourceVersion": str(job.version), **metadata}}
    if suspend:
        body["spec"] = {"suspend": True}
    return world.read_jobs.take(await transport.patch(job_path(job.key), body))
