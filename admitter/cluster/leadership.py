"""This process's claim to lead, kept up in a thread of its own.

A decision may take seconds in which the event loop does nothing else; the Leases are renewed all the same.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import Final

import structlog

from admitter.cluster.board import SYSTEM_CLOCKS, Board, Clocks
from admitter.cluster.campaign import Campaign, Told
from admitter.cluster.lease import LeaseSettings, Term
from admitter.cluster.transport import Transport

LOOK_SECONDS: Final = 0.02
"""How often it is asked whether a Lease in doubt has been renewed."""
FAREWELL_SECONDS: Final = 3.0

log = structlog.get_logger(__name__)


class Leadership:
    """Campaigns once, leads until that is lost or handed over.

    Attributes:
        number: how many shards there are.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[Transport]],
        identity: str,
        number: int,
        settings: LeaseSettings,
        clocks: Clocks = SYSTEM_CLOCKS,
    ) -> None:
        """Prepare.

        Args:
            connect: opens the connections for the Leases alone, each of whose calls is tried once.
            identity: of no other process, ever.
            number: how many shards there are.
            settings: of the Leases.
            clocks: where the time comes from.
        """
        self.number = number
        self._connect = connect
        self._identity = identity
        self._settings = settings
        self._clocks = clocks
        self._campaign: Campaign | None = None
        self._told: Told | None = None
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, name="leadership", daemon=True)
        self._its_loop = asyncio.new_event_loop()
        self._leave = asyncio.Event()
        self._clean: Collection[int] = ()

    def start(self, told: Told) -> None:
        """Take part from now on; who is told is told in this event loop."""
        self._told = told
        self._thread.start()

    @property
    def board(self) -> Board | None:
        """The Leases of all; None if they were not looked at yet."""
        return self._campaign.board if self._campaign is not None else None

    @property
    def other_number(self) -> int | None:
        """Of how many shards those know for whose end this process waits; None: it waits for nobody."""
        return self._campaign.other_number if self._campaign is not None else None

    async def lost(self) -> None:
        """Wait until somebody else leads or may, or until the campaign has failed."""
        await self._over

    async def permit(self) -> None:
        """Wait until it is sure that nobody else has what this process has; to be asked before each write."""
        while self._campaign is None or self._clocks.monotonic() >= self._campaign.sure_until:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)  # they are renewed in another thread

    def publish(self, shard: int, notes: dict[str, str]) -> None:
        """Have annotations written to the Lease of a shard that is held, with its next renewal."""
        if self._campaign is not None:
            self._campaign.publish(shard, notes)

    def release(self, shard: int) -> None:
        """Let others have a shard; nothing may be decided for it, or on its way, any more."""
        campaign = self._campaign
        if campaign is not None:
            self._there(lambda: campaign.release(shard))

    async def resign(self, *, clean: Collection[int]) -> None:
        """Stop campaigning.

        Args:
            clean: shards for which nothing is on its way any more, neither of this process nor of an earlier
                leader; they are handed over. Leases of others are left to run out.
        """
        self._clean = clean
        if self._thread.ident is None:
            self._its_loop.close()
            return
        self._there(self._leave.set)
        await asyncio.to_thread(self._thread.join, FAREWELL_SECONDS)

    def won(self, shard: int, term: Term) -> None:
        """Pass it on."""
        self._here(lambda told: told.won(shard, term))

    def wanted(self, shard: int) -> None:
        """Pass it on."""
        self._here(lambda told: told.wanted(shard))

    def looked(self) -> None:
        """Pass it on."""
        self._here(lambda told: told.looked())

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._its_loop) as runner:
                runner.run(self._take_part())
        except Exception:
            log.exception("the campaign has ended")
        finally:
            self._here(lambda _: None if self._over.done() else self._over.set_result(None))

    async def _take_part(self) -> None:
        async with await self._connect() as transport:
            campaign = Campaign(transport, self._identity, self.number, self._settings, self, self._clocks)
            self._campaign = campaign
            leaving = asyncio.create_task(self._leave.wait())
            running = asyncio.create_task(campaign.run())
            await asyncio.wait([leaving, running], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                leaving.cancel()
                running.result()
                return
            running.cancel()
            await asyncio.wait([running])
            await campaign.leave(self._clean)

    def _here(self, act: Callable[[Told], None]) -> None:
        """Do something in the loop of whoever is told, if it still turns."""
        told = self._told
        if told is not None and not self._loop.is_closed():
            with suppress(RuntimeError):  # it was closed this moment
                self._loop.call_soon_threadsafe(act, told)

    def _there(self, act: Callable[[], None]) -> None:
        """Do something in the loop of the campaign, if it still turns."""
        with suppress(RuntimeError):  # it has ended by itself, and its loop with it
            self._its_loop.call_soon_threadsafe(act)
