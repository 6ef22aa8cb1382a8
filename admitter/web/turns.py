"""Long work for the page: one at a time, and an answer in time whether it is done or not."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from admitter.insight.forecast.deadline import Allowance, Deadline

T = TypeVar("T")

AT_ONCE: Final = Allowance(0.25)
"""So long it may take to say more of a Workload than its status does."""
QUEUEING_SECONDS: Final = 10.0
"""So long an estimate waits for others: the page shows all else meanwhile."""


class Turns:
    """Threads share one processor: what is begun beside other work only makes both later."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._going: set[asyncio.Task[object]] = set()

    async def result(self, work: Callable[[Deadline], T], allowance: Allowance, queueing: float) -> T | None:
        """What work in a thread comes to; None if that takes too long, or other work before it does.

        Args:
            work: is given the moment by which it is wanted, and has to end by itself: nothing else ends it.
            allowance: how long it is waited for.
            queueing: how long its turn is waited for before that, in seconds.
        """
        try:
            async with asyncio.timeout(queueing):
                await self._lock.acquire()
        except TimeoutError:
            return None
        deadline = allowance.begin()
        task = asyncio.create_task(self._done(work, deadline))
        self._going.add(task)
        task.add_done_callback(self._over)
        await asyncio.wait({task}, timeout=max(0.0, deadline.left))
        return task.result() if task.done() else None

    async def _done(self, work: Callable[[Deadline], T], deadline: Deadline) -> T:
        try:
            return await asyncio.to_thread(work, deadline)
        finally:
            self._lock.release()

    def _over(self, task: asyncio.Task[object]) -> None:
        """It may have ended when nothing waited for it any more, which is no error."""
        self._going.discard(task)
        if not task.cancelled():
            task.exception()


@dataclass(frozen=True, slots=True)
class Limits:
    """What all scenes of a page share: the turns, and how long an estimate may take.

    Attributes:
        allowance: so long.
        explaining: whose turn it is to explain.
        estimating: whose turn it is to look ahead.
    """

    allowance: Allowance
    explaining: Turns = field(default_factory=Turns)
    estimating: Turns = field(default_factory=Turns)
