"""What the controller writes to Jobs that are not admitted: a queue, or that they must not run."""

from admitter.cache.views import JobView
from admitter.cache.world import World, job_path
from admitter.client.transport import Json, Transport
from admitter.names import PLACED_ANNOTATION, PLACEMENT_ANNOTATION, QUEUE_LABEL, RETURNED_ANNOTATION


async def adopt(job: JobView, queue: str, world: World, transport: Transport) -> JobView:
    """Queue a Job.

    Raises:
        ClusterError: it has changed meanwhile, or can't be written.
    """
    return await _write(job, {"labels": {QUEUE_LABEL: queue}}, {"spec": {"suspend": True}}, world, transport)


async def settle(job: JobView, queue: str, world: World, transport: Transport) -> JobView:
    """Queue a Job where a rule sends it, and note that it is not its user's choice.

    Raises what `adopt` raises.
    """
    metadata = {"labels": {QUEUE_LABEL: queue}, "annotations": {PLACED_ANNOTATION: queue}}
    return await _write(job, metadata, {"spec": {"suspend": True}}, world, transport)


async def hold(job: JobView, world: World, transport: Transport, policy: str = "") -> JobView:
    """Suspend a Job that must not run; raises what `adopt` raises.

    Args:
        job: the Job.
        world: where the outcome is kept.
        transport: where to write.
        policy: the PlacementPolicy that is to find a queue for it; it is marked for that.
    """
    mark = {"annotations": {PLACEMENT_ANNOTATION: policy}} if policy else {}
    return await _write(job, mark, {"spec": {"suspend": True}}, world, transport)


async def release(job: JobView, world: World, transport: Transport) -> JobView:
    """Leave a Job to its user, suspended as it is; raises what `adopt` raises.

    Until the user resumes it, the next policy may place it.
    """
    noted = {"annotations": {PLACEMENT_ANNOTATION: None, PLACED_ANNOTATION: ""}}
    return await _write(job, noted, {}, world, transport)


async def bar(job: JobView, mark: str, world: World, transport: Transport) -> JobView:
    """Make sure that a Job still is as it was seen, and that a start on its way comes too late.

    Args:
        job: suspended; it names the version that a start would name too.
        mark: what to write; another one each time, since a write that changes nothing changes no version.
        world: where the outcome is kept.
        transport: where to write.

    Raises:
        ClusterError: it has changed meanwhile, or can't be written.
    """
    return await _write(job, {"annotations": {RETURNED_ANNOTATION: mark}}, {}, world, transport)


async def _write(job: JobView, metadata: Json, more: Json, world: World, transport: Transport) -> JobView:
    body = {"metadata": {"resourceVersion": str(job.version), **metadata}, **more}
    return world.read_jobs.take(await transport.patch(job_path(job.key), body))
