"""Runs the elector in a thread of its own.

A decision may take seconds in which the event loop does nothing else; the Leases are renewed meanwhile.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

import structlog

from admitter.client.transport import HttpTransport
from admitter.election.elector import ElectionListener, Elector
from admitter.election.lease_lock import Term
from admitter.election.leases import SYSTEM_CLOCKS, LeaseCache, LeaseSettings

POLL_SECONDS: Final = 0.02
"""The time between two looks at a Lease that may have expired."""
LEAVE_SECONDS: Final = 3.0

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class ElectorThread:
    """Takes part in one election, from `start` until a Lease is lost or all are handed over.

    It opens connections for the Leases alone, on which each call is tried once. The identity is unique among
    all processes, ever.
    """

    connect: Callable[[], Awaitable[HttpTransport]]
    identity: str
    shard_count: int
    settings: LeaseSettings
    _elector: Elector | None = None
    _listener: ElectionListener | None = None

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name="elector", daemon=True)
        self._elector_loop = asyncio.new_event_loop()
        self._leave = asyncio.Event()
        self._clean: Collection[int] = ()

    def start(self, listener: ElectionListener) -> None:
        """Take part from now on; the listener is called in the event loop of the caller."""
        self._listener = listener
        self._thread.start()

    @property
    def lease_cache(self) -> LeaseCache | None:
        """The Leases of all processes; None before the first connection."""
        return self._elector.cache if self._elector is not None else None

    @property
    def other_shard_count(self) -> int | None:
        """The number of shards of other processes, if it is not this one's: this one waits for their end."""
        return self._elector.other_shard_count if self._elector is not None else None

    async def lost(self) -> None:
        """Wait until another process leads or may, or until the elector has failed."""
        await self._over

    async def permit(self) -> None:
        """Wait until no other process can hold this one's shards; to be awaited before each write."""
        while self._elector is None or SYSTEM_CLOCKS.monotonic() >= self._elector.exclusive_until:  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)  # they are renewed in another thread

    def publish(self, shard: int, annotations: dict[str, str]) -> None:
        if self._elector is not None:
            self._elector.publish(shard, annotations)

    def release(self, shard: int) -> None:
        if self._elector is not None:
            self._in_elector_loop(partial(self._elector.release, shard))

    async def resign(self, *, clean: Collection[int]) -> None:
        """Leave the election; `clean` are the shards that `Elector.leave` hands over."""
        self._clean = clean
        if self._thread.ident is None:
            self._elector_loop.close()
            return
        self._in_elector_loop(self._leave.set)
        await asyncio.to_thread(self._thread.join, LEAVE_SECONDS)

    # What the elector calls in its own thread is passed on to the listener, in the listener's loop.

    def acquired(self, shard: int, term: Term) -> None:
        self._in_listener_loop(lambda listener: listener.acquired(shard, term))

    def release_requested(self, shard: int) -> None:
        self._in_listener_loop(lambda listener: listener.release_requested(shard))

    def leases_refreshed(self) -> None:
        self._in_listener_loop(lambda listener: listener.leases_refreshed())

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._elector_loop) as runner:
                runner.run(self._take_part())
        except Exception:
            log.exception("the elector has failed")
        finally:
            self._in_listener_loop(lambda _: None if self._over.done() else self._over.set_result(None))

    async def _take_part(self) -> None:
        async with await self.connect() as transport:
            elector = Elector(transport, self.identity, self.shard_count, self.settings, self)
            self._elector = elector
            leaving = asyncio.create_task(self._leave.wait())
            running = asyncio.create_task(elector.run())
            await asyncio.wait([leaving, running], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                leaving.cancel()
                running.result()
                return
            running.cancel()
            await asyncio.wait([running])
            await elector.leave(self._clean)

    def _in_listener_loop(self, act: Callable[[ElectionListener], None]) -> None:
        """Call something in the loop of the listener, if that still runs."""
        listener = self._listener
        if listener is not None and not self._loop.is_closed():
            with suppress(RuntimeError):  # it was closed this moment
                self._loop.call_soon_threadsafe(act, listener)

    def _in_elector_loop(self, act: Callable[[], None]) -> None:
        """Call something in the loop of the elector, if that still runs."""
        with suppress(RuntimeError):  # the elector has ended, and its loop with it
            self._elector_loop.call_soon_threadsafe(act)
