"""What became of a write that failed: the API server is asked until it answers.

Previous step: a status patch fails (`workload.admission`). Quota that the patch reserves stays reserved until
the answer is known; then the store has what the API server holds, and that decides again.
"""

import logging
from typing import Final

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_fixed

from admitter.cache.world import World, workload_path
from admitter.client.errors import ClusterError, NotFoundError, UnreadableError, level_of
from admitter.client.store import Key
from admitter.client.transport import Transport
from admitter.names import RETURNED_ANNOTATION

PAUSE_SECONDS: Final = 1.0

log = structlog.get_logger(__name__)


async def resolve(world: World, transport: Transport, key: Key, uid: str, *, lost: bool) -> None:
    """Read a Workload after a write that failed, for as long as it takes.

    Args:
        world: gets what the API server holds.
        transport: to the API server.
        key: of the Workload.
        uid: of the same.
        lost: whether the write may still be in flight. Then the Workload is written: a write that names an
            earlier version comes too late, and its quota can be another's.
    """

    async def ask() -> None:
        path, workloads = workload_path(key), world.read_workloads
        try:
            raw = await transport.get(path)
            if lost and raw["metadata"]["uid"] == uid and not workloads.read(raw).admission:
                version = raw["metadata"]["resourceVersion"]
                mark = {"annotations": {RETURNED_ANNOTATION: version}}
                body = {"metadata": {"resourceVersion": version, **mark}}
                raw = await transport.patch(path, body)
            workloads.take(raw)
        except NotFoundError:
            workloads.store.delete(key, uid)
        except UnreadableError:
            return  # what is reserved for it stays so

    def tell(state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome is not None else None
        level = level_of(error) if isinstance(error, ClusterError) else logging.WARNING
        log.log(level, "can't read a workload", namespace=key[0], workload=key[1], error=str(error))

    retried = retry_if_exception_type(ClusterError)
    await AsyncRetrying(retry=retried, wait=wait_fixed(PAUSE_SECONDS), before_sleep=tell)(ask)
