"""Reservations of trees that other processes decide about now are not written, wherever their writes are."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from structlog.testing import capture_logs

from admitter.client.errors import ConflictError
from admitter.controllers.workload.reservation_writer import ReservationWriter
from tests.apiserver.loop import run
from tests.policy.test_status import ADMISSION, view


class Scene:
    """A reservation that is being written: the process abandons its tree before, or while, it is refused."""

    def __init__(self) -> None:
        self.epoch: int | None = 1
        self.patches = 0
        self.failures: list[object] = []
        self.slots = asyncio.Semaphore(1)
        self.view = view({})
        shards = SimpleNamespace(epoch_of=lambda _: self.epoch)
        world: Any = SimpleNamespace(workloads={self.view.key: self.view}, shards=shards)
        engine: Any = SimpleNamespace(ledger=SimpleNamespace(pending_reservations={}))
        reasons: Any = SimpleNamespace(failed=lambda *failure: self.failures.append(failure))
        writes: Any = SimpleNamespace(slots=self.slots, patch=self.patch)
        self.writer = ReservationWriter(world, engine, reasons, writes)

    async def patch(self, *_: object) -> None:
        self.patches += 1
        self.abandon()
        raise ConflictError(409, "Conflict", "the object has been modified")

    def abandon(self) -> None:
        self.epoch = None
        self.writer.abandon_trees()

    async def writes(self, *, waits: bool) -> None:
        found: Any = SimpleNamespace(uid=self.view.uid, key=self.view.key, generation=3, admission=ADMISSION)
        self.writer.adopt([found])
        async with asyncio.TaskGroup() as group:
            if waits:
                await self.slots.acquire()
            self.writer.write(group, ())
            await asyncio.sleep(0)
            if waits:
                self.abandon()
                self.slots.release()


@pytest.mark.parametrize("waits", [True, False], ids=["before it is sent", "while it is refused"])
def test_a_reservation_that_is_abandoned_while_it_is_written(waits: bool) -> None:
    async def scene() -> Scene:
        made = Scene()
        await made.writes(waits=waits)
        await made.writer.drained()
        return made

    with capture_logs() as logged:
        made = run(scene())
    assert logged == [], "no defect is passed over"
    assert made.patches == (not waits)
    assert made.failures == []
    assert made.view.uid not in made.writer
