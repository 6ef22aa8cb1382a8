"""Writes to queued pods: their start, their eviction, and what makes sure that no start is on its way.

A pod is started by one patch and can't be stopped again: it is deleted, with the time to end that it has, and
its condition `DisruptionTarget` says why. Each write names the version of the pod that was decided on, or its
UID, so that it does nothing to a pod that is another one by now.
"""

import asyncio
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from typing import Final

from admitter.cache.queued_pods import PREEMPTION_REASON, QueuedPod
from admitter.cache.views import JobView, Json, timestamp
from admitter.cache.world import World, pods_path
from admitter.client.errors import NotFoundError
from admitter.client.transport import STRATEGIC_PATCH, Transport
from admitter.names import POD_GROUP_LABEL, QUEUE_LABEL, RETURNED_ANNOTATION
from admitter.policy.status import Clock

AT_A_TIME: Final = 16
"""So many pods of a group are written side by side."""
LONGEST_MESSAGE: Final = 1024


def pod_path(pod: QueuedPod) -> str:
    return f"{pods_path(pod.namespace)}/{pod.name}"


async def side_by_side(writes: Iterable[Awaitable[None]]) -> None:
    """Await all writes, some at a time; the first error is raised once all have come to their end.

    Each is taken when its turn has come, so that none is left when this is cancelled.
    """
    left, errors = iter(writes), list[BaseException]()

    async def some() -> None:
        for write in left:
            [outcome] = await asyncio.gather(write, return_exceptions=True)
            if outcome is not None:
                errors.append(outcome)

    await asyncio.gather(*(some() for _ in range(AT_A_TIME)))
    if errors:
        raise errors[0]


async def stop(job: JobView, why: str, now: Clock, world: World, transport: Transport) -> None:
    """Delete the pods of a job object that run, side by side."""
    running = [pod for pod in world.members_of(job) if pod.running]
    await side_by_side(evict(pod, why, now, world, transport) for pod in running)


async def evict(pod: QueuedPod, why: str, now: Clock, world: World, transport: Transport) -> None:
    """Delete a pod that runs, and say why; it uses quota until it is gone.

    What it says names the version that runs, since of a pod that has it no success counts any more.
    """
    if pod.deleting:
        return
    with suppress(NotFoundError):  # it is gone, and a watch will say so
        if not pod.disrupted:
            condition = {
                "type": "DisruptionTarget",
                "status": "True",
                "reason": PREEMPTION_REASON,
                "message": why[:LONGEST_MESSAGE],
                "lastTransitionTime": timestamp(now()),
            }
            metadata = {"uid": pod.uid, "resourceVersion": str(pod.version)}
            body: Json = {"metadata": metadata, "status": {"conditions": [condition]}}
            world.take_pod(await transport.patch(f"{pod_path(pod)}/status", body, STRATEGIC_PATCH))
        await transport.delete(pod_path(pod), {"preconditions": {"uid": pod.uid}})


async def read_group(namespace: str, title: str, world: World, transport: Transport) -> list[QueuedPod]:
    """Take in all pods that name a group as the API server has them now; also those of other users.

    Args:
        namespace: where.
        title: the group, as messages name it: `podgroup/tune`.
        world: what is known.
        transport: to the API server.
    """
    query = {"labelSelector": f"{POD_GROUP_LABEL}={title.rpartition('/')[2]},{QUEUE_LABEL}"}
    listed = await transport.get(pods_path(namespace), query)
    return [world.read_queued_pods.take(raw) for raw in listed["items"]]


async def bar(pod: QueuedPod, mark: str, world: World, transport: Transport) -> None:
    """Make sure that a pod that waits is still as it was seen, and that a start on its way comes too late."""
    if pod.barred == mark:
        return
    metadata = {"resourceVersion": str(pod.version), "annotations": {RETURNED_ANNOTATION: mark}}
    world.take_pod(await transport.patch(pod_path(pod), {"metadata": metadata}))
