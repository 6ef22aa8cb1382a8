"""Writes statuses of Workloads, and finds out what became of a write that failed.

Previous step: the decision writer writes an admission or an eviction. A reservation stays in the engine until
the write is answered, or until `resolve` has read the Workload. Next step: `EngineFeed.settle`.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_fixed

from admitter.cache.views import Json, WorkloadView
from admitter.cache.world import World, workload_path
from admitter.client.errors import ClusterError, NotFoundError, UnreadableError, level_of
from admitter.client.store import Key
from admitter.client.transport import Transport
from admitter.names import RETURNED_ANNOTATION
from admitter.policy.status import Clock

PAUSE_SECONDS: Final = 1.0
AT_A_TIME: Final = 32

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class StatusWrites:
    """Writes decisions to statuses.

    Attributes:
        now: the time.
        slots: bounds how much is written at a time; what is written is looked up within one.
    """

    world: World
    transport: Transport
    now: Clock

    def __post_init__(self) -> None:
        self.slots = asyncio.Semaphore(AT_A_TIME)

    async def patch(
        self, view: WorkloadView, body: Json, query: Mapping[str, str] | None = None
    ) -> WorkloadView:
        """Patch the status of a Workload; the store gets what the API server answers.

        Raises:
            ClusterError: it is not known to be written.
        """
        raw = await self.transport.patch(f"{workload_path(view.key)}/status", body, query=query)
        return self.world.read_workloads.take(raw)

    async def read(self, key: Key) -> WorkloadView:
        """The Workload as the API server has it.

        Raises:
            ClusterError: it can't be read.
        """
        return self.world.read_workloads.take(await self.transport.get(workload_path(key)))

    async def resolve(self, key: Key, uid: str, *, lost: bool) -> None:
        """Read a Workload after a write that failed, for as long as it takes.

        If the write is `lost`, the API server may still carry it out. Then the Workload gets a new version,
        so that the write fails; only then can another workload have the quota.
        """

        def tell(state: RetryCallState) -> None:
            error = state.outcome.exception() if state.outcome is not None else None
            level = level_of(error) if isinstance(error, ClusterError) else logging.WARNING
            log.log(level, "can't read a workload", namespace=key[0], workload=key[1], error=str(error))

        retried = retry_if_exception_type(ClusterError)
        retrying = AsyncRetrying(retry=retried, wait=wait_fixed(PAUSE_SECONDS), before_sleep=tell)
        await retrying(self._resolve, key, uid, lost=lost)

    async def _resolve(self, key: Key, uid: str, *, lost: bool) -> None:
        path, workloads = workload_path(key), self.world.read_workloads
        try:
            raw = await self.transport.get(path)
            if lost and raw["metadata"]["uid"] == uid and not workloads.read(raw).admission:
                version = raw["metadata"]["resourceVersion"]
                metadata = {"resourceVersion": version, "annotations": {RETURNED_ANNOTATION: version}}
                raw = await self.transport.patch(path, {"metadata": metadata})
            workloads.take(raw)
        except NotFoundError:
            workloads.store.delete(key, uid)
        except UnreadableError:
            return  # what is reserved for it stays so
