"""One process of those that run: it follows until it leads, and begins anew when it no longer leads.

What it knows and has decided ends with its term: the next term begins with what the API server says.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final

import structlog

from admitter.client.transport import HttpTransport, Transport
from admitter.controllers.app import App
from admitter.controllers.lifecycle import AppLifecycle, Role
from admitter.election.elector_thread import ElectorThread
from admitter.election.leases import LeaseSettings

PAUSE_SECONDS: Final = 1.0

log = structlog.get_logger(__name__)


Connect = Callable[..., Awaitable[HttpTransport]]
"""Opens a pool, as `HttpTransport.connect` does: `repeats`, and perhaps `permit`, are given."""


@dataclass(eq=False)
class Replica:
    """Runs one controller after the other."""

    connect: Connect
    build: Callable[[Transport], App]
    identity: Callable[[], str]  # makes a name that no process has had yet; each term has its own
    settings: LeaseSettings
    shards: int = 1  # how many parts the cohort trees are spread over; the same for all processes
    _elector: ElectorThread | None = None
    _lifecycle: AppLifecycle | None = None

    @property
    def role(self) -> Role:
        return self._lifecycle.role if self._lifecycle is not None else Role.STARTING

    @property
    def standing(self) -> str:
        """The same in words, and of what it leads if not of all; then a line on what its API server lacks."""
        other = self._elector.other_shard_count if self._elector is not None else None
        if other is not None:
            return f"{self.role}: waits for processes that run with --shards {other}, and not {self.shards}"
        if self._lifecycle is None:
            return str(self.role)
        of = ""
        if self.role is Role.LEADER and self.shards > 1:
            led = self._lifecycle.led
            of = f" of shard{'s' if len(led) > 1 else ''} {', '.join(map(str, led))}"
        return f"{self.role}{of}\n{self._lifecycle.lacks}".rstrip()

    async def run(self, stop: asyncio.Event) -> None:
        """Follow and lead until asked to stop; ClusterError if there is no way to reach the cluster."""
        while not stop.is_set():
            elector = self._elector = ElectorThread(
                lambda: self.connect(repeats=False), self.identity(), self.shards, self.settings
            )
            async with await self.connect(repeats=True, permit=elector.permit) as transport:
                self._lifecycle = AppLifecycle(self.build(transport))
                await self._term(self._lifecycle, elector, stop)
            self._lifecycle = None
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), PAUSE_SECONDS)

    async def _term(self, lifecycle: AppLifecycle, elector: ElectorThread, stop: asyncio.Event) -> None:
        """Follow, and perhaps lead, until that is over or it is time to stop."""
        running = asyncio.create_task(lifecycle.run(elector), name="controller")
        ends = {
            asyncio.create_task(elector.lost()): "no longer leading",
            asyncio.create_task(lifecycle.overruled.wait()): "overruled: another controller decides",
            asyncio.create_task(stop.wait()): "stopping",
        }
        done, _ = await asyncio.wait([running, *ends], return_when=asyncio.FIRST_COMPLETED)
        for end in done - {running}:
            log.info(ends[end])
        orderly = stop.is_set() and not running.done()
        clean: Collection[int] = await lifecycle.stop() if orderly else ()
        for task in (running, *ends):
            task.cancel()
        await asyncio.wait([running])
        await elector.resign(clean=clean)
        if not running.cancelled():
            running.result()
