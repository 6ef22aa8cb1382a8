"""Writes each eviction that limits count into the record of its ClusterQueue, before it begins.

Previous step: an eviction is due, decided by a cycle (`workload.decision_writer`) or since a grace period is
over (`workload.eviction`). Next step: the same write the status of the Workload.

A process that stops between the two has recorded an eviction that never began: limits count one too many,
and never one too few.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from admitter.cache.views import Json, WorkloadView
from admitter.cache.world import World, collection_path
from admitter.client.errors import (
    ClusterError,
    ConflictError,
    NotFoundError,
    UnreadableError,
    is_outcome_unknown,
)
from admitter.client.transport import Transport
from admitter.engine.quota.tree import Tree
from admitter.policy.eviction_records import FIELD, begins_at, record_of, written_record
from admitter.policy.status import Clock

T = TypeVar("T")

TRIES: Final = 5
"""So often a record is written at most if another field of the status is written at the same time."""
QUEUES: Final = collection_path("clusterqueues", "")


@dataclass(eq=False)
class EvictionRecords:
    """Records evictions; those of one queue that come while one is written are written together."""

    world: World
    tree: Tree
    transport: Transport
    clock: Clock

    def __post_init__(self) -> None:
        self._locks = defaultdict[str, asyncio.Lock](asyncio.Lock)
        self._added = defaultdict[str, set[str]](set)  # UIDs that are to be recorded, by queue
        self._removed = defaultdict[str, set[tuple[float, str]]](set)
        self._entered = dict[tuple[str, str], float]()  # what was written for a call that still waits

    async def begin(
        self, workload: WorkloadView, write: Callable[[datetime], Awaitable[T | None]]
    ) -> T | None:
        """Write the eviction of a Workload that holds quota, with the time that it is called with.

        Where limits count it, it is recorded before. It is taken out again if `write` says by None that
        nothing is to be written any more, or if the API server has refused it for certain.
        """
        assert workload.admission is not None
        queue, uid = workload.admission.queue, workload.uid
        if not self.tree.limiting(queue):
            return await write(self.clock())
        at = await self._enter(queue, uid)
        while (now := self.clock()).timestamp() > at:  # it took too long
            self._removed[queue].add((at, uid))
            at = await self._enter(queue, uid)
        try:
            written = await write(now)
        except ClusterError as error:
            if not is_outcome_unknown(error):
                await self._take_out(queue, uid, at)
            raise
        if written is None:
            await self._take_out(queue, uid, at)
        return written

    async def _enter(self, queue: str, uid: str) -> float:
        """Record an eviction; returns when it has to begin at the latest, in seconds since the epoch."""
        self._added[queue].add(uid)
        try:
            async with self._locks[queue]:
                if uid in self._added[queue]:  # no other call has written it
                    await self._write(queue)
            return self._entered.pop((queue, uid))
        finally:
            self._added[queue].discard(uid)

    async def _take_out(self, queue: str, uid: str, at: float) -> None:
        """Take out what has not begun; if that fails limits count one too many."""
        self._removed[queue].add((at, uid))
        with suppress(ClusterError):
            async with self._locks[queue]:
                if (at, uid) in self._removed[queue]:
                    await self._write(queue)

    async def _write(self, queue: str) -> None:
        """Write all that is to be recorded of a queue; nothing if it is gone, as nothing limits it then."""
        added, removed = {*self._added[queue]}, {*self._removed[queue]}
        view = self.world.cluster_queues.get(("", queue))
        known = (str(view.version), view.status) if view is not None else None
        for left in range(TRIES, 0, -1):
            at = begins_at(self.clock().timestamp())
            if known is not None:
                version, status = known
                kept = [each for each in record_of(status) if each not in removed]
                record = sorted((*kept, *((at, uid) for uid in added)))
                status = {FIELD: written_record(tuple(record))}
                body = {"metadata": {"resourceVersion": version}, "status": status}
                try:
                    self._take(await self.transport.patch(f"{QUEUES}/{queue}/status", body))
                except NotFoundError:
                    known = None
                except ConflictError:
                    if left == 1:
                        raise
                    known = await self._read(queue)
                    continue
            self._entered |= {(queue, uid): at for uid in added}
            self._added[queue] -= added
            self._removed[queue] -= removed
            return

    async def _read(self, queue: str) -> tuple[str, Json] | None:
        """The version and the status of a ClusterQueue, as the API server has them; None: it is gone."""
        listed = await self.transport.get(QUEUES, {"fieldSelector": f"metadata.name={queue}"})
        for raw in listed["items"]:
            self._take(raw)
            return raw["metadata"]["resourceVersion"], raw.get("status") or {}
        return None

    def _take(self, raw: Json) -> None:
        with suppress(UnreadableError):  # it is noted in the store
            self.world.source_of("clusterqueues").take(raw)
