"""A clock that goes only when nothing else can: tests of pauses take no time."""

import asyncio
import heapq
from itertools import count

ROUNDS = 12
"""So many turns of the loop bring every task to where it waits for the clock, or for another task."""


class VirtualTime:
    """Seconds that pass by sleeping alone.

    Attributes:
        now: how many have passed.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self._numbers = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    async def sleep(self, seconds: float) -> None:
        """Go on when so much time has passed."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, next(self._numbers), woken))
        await woken

    async def pass_until(self, end: float) -> None:
        """Let time pass, and everything happen that falls into it."""
        await self._settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            self.now, _, woken = heapq.heappop(self._sleepers)
            if not woken.done():
                woken.set_result(None)
                await self._settle()
        self.now = end

    async def _settle(self) -> None:
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
