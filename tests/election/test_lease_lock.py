"""One Lease, several that want it: whatever is slow, lost or paused, no two are ever sure of it at once."""

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from random import Random
from typing import Any, Self, cast

import pytest

from admitter.client.errors import ClusterError, api_error
from admitter.client.transport import Transport
from admitter.election.lease_lock import LeaseLock, Term
from admitter.election.leases import Clocks, LeaseCache, LeaseSettings
from tests.client.virtual_time import VirtualTime
from tests.election.lease_server import NOON, LeaseServer
from tests.scale import scaled

Json = dict[str, Any]
NAME = "admitter-controller"
SETTINGS = LeaseSettings()


class Candidate:
    """A process that wants the Lease; it can be paused, as by SIGSTOP, also while it waits for an answer.

    Attributes:
        election: its own.
        terms: those that it has won.
    """

    def __init__(self, name: str, server: LeaseServer, time: VirtualTime) -> None:
        self.terms: list[Term] = []
        self.paused_until = 0.0
        self._time = time
        clocks = Clocks(lambda: time.now, lambda: NOON, self._sleep)
        transport = cast("Transport", self)
        self._lease_cache = LeaseCache(transport, SETTINGS.duration, clocks)
        self.lock = LeaseLock(transport, self._lease_cache, NAME, name, SETTINGS, clocks)
        self._server = server

    @property
    def exclusive(self) -> bool:
        return self._time.now < self.lock.exclusive_until

    async def _sleep(self, seconds: float) -> None:
        await self._time.sleep(max(seconds, self.paused_until - self._time.now))

    async def _slept(self, call: Awaitable[Json]) -> Json:
        try:
            return await call
        finally:
            await self._sleep(0.0)

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        return await self._slept(self._server.get(path, query))

    async def create(self, path: str, body: Json) -> Json:
        return await self._slept(self._server.create(path, body))

    async def patch(self, path: str, body: Json) -> Json:
        return await self._slept(self._server.patch(path, body))

    async def refresh(self) -> None:
        while True:
            with suppress(ClusterError):
                await self._lease_cache.refresh()
            await self._sleep(SETTINGS.look)

    async def run(self) -> None:
        refreshing = asyncio.create_task(self.refresh())
        try:
            while True:
                self.terms.append(await self.lock.acquire(lambda: True))
                await self.lock.renew_until_lost()
        finally:
            refreshing.cancel()


class Scene:
    """Candidates at one server."""

    def __init__(self, names: str, seed: int = 0, **server: float) -> None:
        self.time = VirtualTime()
        self.random = Random(seed)
        self.server = LeaseServer(self.time, self.random, **server)
        self.candidates = [Candidate(name, self.server, self.time) for name in names]
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(each.run()) for each in self.candidates]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def until(self, end: float) -> None:
        """Let time pass in small steps; at none of them are two sure of the Lease."""
        while self.time.now < end:
            await self.time.pass_until(self.time.now + 0.05)
            assert sum(each.exclusive for each in self.candidates) <= 1

    def stop(self, candidate: Candidate) -> None:
        """It does nothing more, and lets go of nothing."""
        self._tasks[self.candidates.index(candidate)].cancel()

    @property
    def leader(self) -> Candidate:
        (leader,) = (each for each in self.candidates if each.exclusive)
        return leader


async def test_one_leads_and_another_follows_when_it_stops() -> None:
    async with Scene("ab") as scene:
        await scene.until(5)
        first = scene.leader
        scene.stop(first)
        stopped = scene.time.now
        await scene.until(stopped + SETTINGS.duration + 2 * SETTINGS.look + 0.1)
        second = scene.leader
    assert second is not first
    assert not second.terms[0].handed_over, "something of the first may be on its way"


async def test_a_lease_that_is_handed_over_is_taken_at_once() -> None:
    async with Scene("ab") as scene:
        await scene.until(5)
        first = scene.leader
        scene.stop(first)
        handed = scene.time.now
        leaving = asyncio.create_task(first.lock.hand_over())
        await scene.until(handed + 0.5)
        second = scene.leader
        await leaving
    assert second is not first
    assert second.terms[0].handed_over


async def test_a_lease_that_a_user_emptied_was_not_handed_over() -> None:
    async with Scene("ab") as scene:
        await scene.until(5)
        first = scene.leader
        scene.stop(first)
        scene.server.edit(NAME, holderIdentity="", leaseTransitions=2**31 - 1)
        await scene.until(8)
        second = scene.leader
        assert scene.server.leases[NAME]["spec"]["leaseTransitions"] == 2**31 - 1, "there is no larger one"
    assert second is not first
    assert not second.terms[0].handed_over


async def test_a_leader_without_its_server_stops_writing_and_goes_on_when_it_is_back() -> None:
    async with Scene("a") as scene:
        await scene.until(5)
        leader = scene.leader
        scene.server.down = True
        await scene.until(7)
        assert not leader.exclusive
        scene.server.down = False
        await scene.until(9)
        assert leader.exclusive
        assert len(leader.terms) == 1, "no other process had the Lease: it is the same term"


async def test_a_leader_that_was_paused_learns_that_another_leads() -> None:
    async with Scene("ab") as scene:
        await scene.until(5)
        first = scene.leader
        first.paused_until = 12.0
        await scene.until(14)
        second = scene.leader
        assert second is not first
        assert not first.exclusive
        assert len(first.terms) == 1, "it follows again"


async def test_a_lease_that_a_user_deletes_is_made_anew() -> None:
    async with Scene("ab") as scene:
        await scene.until(5)
        scene.server.leases.clear()
        await scene.until(9)
        terms = [term for each in scene.candidates for term in each.terms]
        assert scene.leader
    assert [term.handed_over for term in terms] == [False, False], (
        "the last leader may have something on its way"
    )


@pytest.mark.parametrize("lasts", [0, -5, None])
async def test_a_lease_is_its_holders_for_as_long_as_it_should_be_whatever_it_says(lasts: int | None) -> None:
    async with Scene("ab") as scene:
        for second in range(2, 12):
            await scene.until(second)
            scene.server.edit(NAME, leaseDurationSeconds=lasts)
        await scene.until(12)
        assert len(scene.leader.terms) == 1


async def test_a_lease_with_nothing_in_it_is_taken() -> None:
    async with Scene("a") as scene:
        scene.server.leases[NAME] = {"metadata": {"name": NAME, "resourceVersion": "x"}}
        await scene.until(3)
        assert scene.leader.terms == [Term(handed_over=False)]


@pytest.mark.parametrize("seed", range(scaled(12, 250)))
async def test_no_two_are_ever_sure(seed: int) -> None:
    async with Scene("abc", seed, slowness=0.6, losses=0.1) as scene:
        for minute in range(1, 9):
            one = scene.random.choice(scene.candidates)
            one.paused_until = scene.time.now + scene.random.random() * 6
            scene.server.down = scene.random.random() < 0.2
            await scene.until(minute * 6.0)
        scene.server.down, scene.server.losses, scene.server.slowness = False, 0.0, 0.1
        await scene.until(scene.time.now + 20)
        assert scene.leader, "in the end a process leads"


async def test_a_refusal_is_no_reason_to_ask_without_a_pause() -> None:
    calls = 0

    class Refusing(LeaseServer):
        async def create(self, _path: str, _body: Json) -> Json:
            nonlocal calls
            calls += 1
            raise api_error(403, {"message": "leases are forbidden"})

    time = VirtualTime()
    candidate = Candidate("a", Refusing(time, Random(0)), time)
    running = asyncio.create_task(candidate.run())
    await time.pass_until(10)
    assert calls == pytest.approx(10 / SETTINGS.look, abs=2)
    running.cancel()
