"""Slow work for the page: one task at a time, and an answer in time even if it is not done."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeVar

from admitter.insight.forecast.deadline import Allowance, Deadline
from admitter.web.sessions import party
from admitter.web.trials import Trials

T = TypeVar("T")

AT_ONCE: Final = Allowance(0.25)
"""How long the first answer about a Workload may take; after that, its status is shown."""
QUEUEING_SECONDS: Final = 10.0
"""How long an estimate waits for its turn: the page shows all else meanwhile."""


class _Line:
    """One has the turn, and others wait: parties one after the other, and of each the first comes first."""

    def __init__(self) -> None:
        self._taken = False
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def acquire(self, owner: str) -> None:
        """Wait for a turn of a party, and have it."""
        if not self._taken:
            self._taken = True
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it has come meanwhile
                self.release()
            raise

    def release(self) -> None:
        """End the turn: the next party has one, and then waits behind all others."""
        while self._waiting:
            owner, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[owner] = turns
            if not turn.done():
                turn.set_result(None)
                return
        self._taken = False


class Turns:
    """Threads share one processor: work beside other work only delays both."""

    def __init__(self) -> None:
        self._line = _Line()
        self._going: set[asyncio.Task[object]] = set()

    async def result(
        self, work: Callable[[Deadline], T], allowance: Allowance, queueing: float, user: str = ""
    ) -> T | None:
        """The result of work in a thread; None if it takes too long, or other work before it does.

        The work gets its deadline, and has to end by itself: nothing else ends it. Before that it waits for
        its turn, for so many seconds of `queueing`. Parties have turns in turn, so that the work of one keeps
        none from the others; what is worked out for all has no user.
        """
        try:
            async with asyncio.timeout(queueing):
                await self._line.acquire(party(user))
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
            self._line.release()

    def _over(self, task: asyncio.Task[object]) -> None:
        """The work may have failed after its caller stopped waiting, which is no error."""
        self._going.discard(task)
        if not task.cancelled():
            task.exception()


@dataclass(frozen=True, slots=True)
class Limits:
    """What all scenes of a page share: how long an estimate may take, and the turns of each kind of work."""

    allowance: Allowance
    explaining: Turns = field(default_factory=Turns)
    estimating: Turns = field(default_factory=Turns)
    trying: Turns = field(default_factory=Turns)
    trials: Trials = field(default_factory=Trials)
