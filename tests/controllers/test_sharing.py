"""A controller that leads some shards: it writes for these alone, and for others once they come to it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from admitter.cache.world import OWN, workload_path
from admitter.election.rendezvous import shard_of
from tests.controllers.test_busy_admission import FIRST, SECOND, Server

NUMBER = 8
QUEUE = "strict"
MINE = shard_of(QUEUE, NUMBER)
OTHER = (MINE + 1) % NUMBER


class Shared(Server):
    """As `Server`, where its queue is in one shard of several."""

    def __init__(self) -> None:
        super().__init__()
        self.shards = self.app.world.shards
        self.shards.spread(NUMBER)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Decide for as long as a block lasts."""
        running = asyncio.create_task(self.app.admissions.run())
        yield
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def turn(self) -> None:
        """Let everything happen that needs no time."""
        for _ in range(50):
            await asyncio.sleep(0)

    def parked(self) -> dict[Any, Any]:
        """The reasons that wait to be written."""
        return self.app.reasons._wanted


async def test_the_leader_of_another_shard_admits_nothing_until_this_one_comes_to_it() -> None:
    server = Shared()
    async with server.running():
        server.lifecycle.lead({OTHER: 1})
        await server.turn()
        assert server.tried == []
        server.lifecycle.lead({MINE: 7})
        await server.turns_until(lambda: server.admitted() != [])
    admission = server.workload(FIRST)["status"]["admission"]
    assert (admission["epoch"], admission.get("shard", 0)) == (7, MINE)


async def test_nothing_is_admitted_in_a_tree_that_may_have_got_what_is_anothers() -> None:
    server = Shared()
    async with server.running():
        before = server.app.world.cluster_queues.get(("", QUEUE))
        assert before is not None
        server.shards._known[QUEUE] = ("another", before.uid)
        server.change(f"{OWN}/clusterqueues/{QUEUE}", {"metadata": {"labels": {"changed": "yes"}}})
        assert server.shards.contested
        server.lifecycle.lead({MINE: 7})
        await server.turn()
        assert server.tried == []
        server.shards.mark_agreed(dict(server.shards.contested))
        server.lifecycle.lead({})
        await server.turns_until(lambda: server.admitted() != [])


async def test_what_was_decided_for_a_shard_is_not_written_any_more_when_that_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = Shared()
    write = server.app.admissions._writer._write_admission
    held = asyncio.Event()

    async def later(*arguments: Any) -> None:
        await held.wait()
        await write(*arguments)

    monkeypatch.setattr(server.app.admissions._writer, "_write_admission", later)
    async with server.running():
        server.lifecycle.lead({MINE: 7})
        await server.turns_until(lambda: bool(server.app.admissions.feed.writing))
        del server.shards.epochs[MINE]
        server.lifecycle.abandon()
        held.set()
        await server.lifecycle.drained()
    assert server.tried == []
    assert server.admitted() == []


async def test_why_a_workload_waits_is_said_by_the_leader_of_its_shard() -> None:
    server = Shared()
    async with server.running():
        server.lifecycle.lead({OTHER: 1})
        server.change(workload_path(("team", SECOND)), {"spec": {"active": False}})
        await server.turn()
        server.parked().clear()
        server.lifecycle.lead({MINE: 7})
        assert ("team", SECOND) in server.parked()
