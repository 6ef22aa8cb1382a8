"""Spaces the writes that can wait: those that can't have a busy API server to themselves.

Reasons to wait, statuses of queues, events and marks tell people what is so; nothing is decided by them. The
slower the API server answers compared with its best, the longer they pause: a loaded server gets few of
them, an idle one as many as there are. They are few at a time, so that they do not take each other for load.
If it refuses, `admitter.client.throttle` lets all others go first.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from admitter.client.throttle import patient

SLOW: Final = 4.0
"""An answer that takes so many times as long as the best one is taken for a sign of load."""
PAUSES: Final = 5.0
"""So many times as long as such an answer took is the pause after it."""
LONGEST_PAUSE_SECONDS: Final = 2.0
AT_A_TIME: Final = 4
FORGETTING: Final = 1.002
"""By this factor the best time known grows with each answer: servers and ways to them change."""


class Pace:
    """Spaces writes that can wait by how long they take; shared by all writers of such."""

    def __init__(
        self,
        clock: Callable[[], float] = lambda: asyncio.get_running_loop().time(),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Begin without a pause; the clock tells the time in seconds, by default the loop's time."""
        self._clock = clock
        self._sleep = sleep
        self._best = float("inf")
        self._places = asyncio.Semaphore(AT_A_TIME)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """One write, when its turn has come; its place is free after the pause that it should make."""
        async with self._places:
            began = self._clock()
            before = patient.set(True)
            try:
                yield
            except Exception:  # how fast a server refuses says nothing of how fast it works
                await self._rest(self._clock() - began)
                raise
            finally:
                patient.reset(before)
            took = self._clock() - began
            self._best = min(took, self._best * FORGETTING)
            await self._rest(took)

    async def _rest(self, took: float) -> None:
        if took > SLOW * self._best:
            await self._sleep(min(PAUSES * took, LONGEST_PAUSE_SECONDS))
