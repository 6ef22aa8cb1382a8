"""Members of a replica set that share shards, in a time of their own."""

import asyncio
from collections.abc import Collection
from contextlib import suppress
from random import Random
from typing import Any, Self, cast

from admitter.client.transport import Transport
from admitter.election.elector import Elector, lease_name
from admitter.election.lease_lock import Term
from admitter.election.leases import Clocks, LeaseSettings
from tests.client.virtual_time import VirtualTime
from tests.election.lease_server import NOON, LeaseServer

STEP = 0.05


class Member:
    """A process that takes part, again and again under new names; it can be paused, as by SIGSTOP.

    Attributes:
        name: the first part of its names.
        shards: those that it has now.
        terms: all that it has won, each with the name that it had then, and the shard.
        elector: its present one.
        identity: its present name.
        handing: for how many seconds it has something on its way when it is to release a shard.
    """

    def __init__(self, name: str, scene: "Members", number: int) -> None:
        self.name, self.number = name, number
        self.shards: set[int] = set()
        self.terms: list[tuple[str, int, Term]] = []
        self.paused_until = 0.0
        self.handing = 0.3
        self.leaving = asyncio.Event()
        self.identity = ""
        self.elector: Elector
        self._scene = scene
        self._rounds = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._anew()

    def _anew(self) -> None:
        self._rounds += 1
        self.identity = f"{self.name}-{self._rounds}"
        time = self._scene.time
        clocks = Clocks(lambda: time.now, lambda: NOON, self._sleep)
        server = cast("Transport", self._scene.server)
        self.elector = Elector(server, self.identity, self.number, LeaseSettings(), self, clocks)

    async def _sleep(self, seconds: float) -> None:
        await self._scene.time.sleep(max(seconds, self.paused_until - self._scene.time.now))

    def acquired(self, shard: int, term: Term) -> None:
        self.shards.add(shard)
        self.terms.append((self.identity, shard, term))

    def release_requested(self, shard: int) -> None:
        task = asyncio.create_task(self._release(self.elector, shard))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _release(self, elector: Elector, shard: int) -> None:
        await self._sleep(self.handing)
        if elector is self.elector:
            self.shards.discard(shard)
            elector.release(shard)

    def leases_refreshed(self) -> None:
        """Nothing follows."""

    def is_sure_of(self, shard: int) -> bool:
        return shard in self.shards and self._scene.time.now < self.elector.exclusive_until

    async def run(self) -> None:
        while True:
            running = asyncio.create_task(self.elector.run())
            leaving = asyncio.create_task(self.leaving.wait())
            try:
                await asyncio.wait([running, leaving], return_when=asyncio.FIRST_COMPLETED)
            finally:
                running.cancel()
                leaving.cancel()
                clean = frozenset(self.shards) if self.leaving.is_set() else frozenset()
                self.shards.clear()
                await asyncio.wait([running, leaving])
            await self.elector.leave(clean)
            if self.leaving.is_set():
                return
            with suppress(asyncio.CancelledError):
                running.result()
            self._anew()


class Members:
    """Some members at one server."""

    def __init__(self, names: str, number: int, seed: int = 0, **server: Any) -> None:
        self.time = VirtualTime()
        self.random = Random(seed)
        self.number = number
        self.server = LeaseServer(self.time, self.random, **server)
        self.all: dict[str, Member] = {name: Member(name, self, number) for name in names}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def __aenter__(self) -> Self:
        for name in self.all:
            self.start(name)
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def start(self, name: str, number: int | None = None) -> Member:
        """Let a member begin; a new one, if there is none of that name."""
        member = self.all.setdefault(name, Member(name, self, number or self.number))
        self._tasks[name] = asyncio.create_task(member.run())
        return member

    def kill(self, name: str) -> None:
        """It does nothing more, and lets go of nothing."""
        self._tasks.pop(name).cancel()
        dead = self.all.pop(name)
        dead.elector.leave = _nothing  # type: ignore[method-assign]  # it is dead

    async def until(self, end: float, step: float = STEP) -> None:
        """Let time pass in small steps; at none of them are two sure of one shard."""
        while self.time.now < end:
            await self.time.pass_until(self.time.now + step)
            for shard in range(self.number):
                sure = [member.name for member in self.all.values() if member.is_sure_of(shard)]
                assert len(sure) <= 1, (self.time.now, shard, sure)

    async def pass_time(self, seconds: float, step: float = STEP) -> None:
        """As `until`, from now."""
        await self.until(self.time.now + seconds, step)

    def owners(self) -> list[str]:
        """The member that is sure of each shard; empty: none."""
        found = []
        for shard in range(self.number):
            (owner,) = [m.name for m in self.all.values() if m.is_sure_of(shard)] or [""]
            found.append(owner)
        return found

    def held(self, shard: int) -> str:
        """The holder of a shard, as the server knows; empty: none."""
        lease = self.server.leases.get(lease_name(shard))
        return str(lease["spec"]["holderIdentity"]) if lease is not None else ""


async def _nothing(clean: Collection[int]) -> None:
    assert not clean, "it has let go of nothing in order"
