"""Holds calls back while the API server can't take them, all of the process together.

If each caller tried again by itself, a hundred of them would keep a busy server busy. So there is one credit
for all: it falls with each call that the server is too busy for, and grows with each that it answers. It
says how many calls may be under way; one that was refused keeps its place until its pause is over. So a
server that refuses everything is asked once a pause by the whole process, and one that takes calls again gets
more with each.

Calls that can wait (`admitter.client.pace`) are let in only if no others wait, to half of the
places, and are made once.
"""

import asyncio
import heapq
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from itertools import count
from types import TracebackType
from typing import Final, TypeVar

import structlog

from admitter.client.errors import ApiError, ClusterError, is_busy, is_retryable

T = TypeVar("T")

MOST_CREDIT: Final = 64
"""With all of it no call is held back; with less, so many calls may be under way at a time."""
GAIN: Final = 2
"""What an answer adds to the credit. A refusal takes one away: a server that takes half is asked on."""
ATTEMPTS: Final = 5
FIRST_PAUSE_SECONDS: Final = 0.1
LONGEST_PAUSE_SECONDS: Final = 2.0
"""The pause at the lowest credit, if the server does not say how long it wants to be left alone."""
LONGEST_RETRY_AFTER_SECONDS: Final = 30.0

patient: ContextVar[bool] = ContextVar("patient", default=False)
"""Whether what the current task calls can wait, and can be given up."""

log = structlog.get_logger(__name__)

Place = tuple[bool, int]
"""Where a call stands in line: whether it can wait, and its number; it keeps both when it is repeated."""


class ThrottleLine:
    """Lets in the first in line while there is room.

    So many calls may be under way as there is room; half of them calls that can wait, but at least one.
    """

    def __init__(self, room: int) -> None:
        self.room = room
        self.inside = 0
        self._waiting: list[tuple[Place, asyncio.Future[None]]] = []

    def __len__(self) -> int:
        return len(self._waiting)

    def join(self, place: Place) -> "Turn":
        """Stand in line; the block of what is returned begins when its turn has come."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (place, turn))
        self.let_in()
        return Turn(self, turn)

    def keep(self) -> "Turn":
        """A turn without waiting, be there room or not: of a call that began before there was a limit."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        turn.set_result(None)
        self.inside += 1
        return Turn(self, turn)

    def leave(self) -> None:
        self.inside -= 1
        self.let_in()

    def let_in(self) -> None:
        """Let calls in that have room; a call has ended, or there is more room."""
        while self._waiting:
            (can_wait, _), turn = self._waiting[0]
            if not turn.cancelled():
                if self.inside >= (max(1, self.room // 2) if can_wait else self.room):
                    return
                self.inside += 1
                turn.set_result(None)
            heapq.heappop(self._waiting)


class Turn:
    """A block that begins when a line lets it, and makes room when it ends."""

    def __init__(self, line: ThrottleLine, turn: asyncio.Future[None]) -> None:
        self._line = line
        self._turn = turn

    async def __aenter__(self) -> None:
        try:
            await self._turn
        except asyncio.CancelledError:
            if not self._turn.cancelled():  # it had just been let in
                self._line.leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.leave()


class Throttle:
    """Lets calls to one API server through, and repeats those that it may take later."""

    def __init__(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._sleep = sleep
        self._line = ThrottleLine(MOST_CREDIT)
        self._numbers = count()
        self._told = False

    @property
    def credit(self) -> int:
        """How many calls may be under way at a time, from 1 to `MOST_CREDIT`."""
        return self._line.room

    @property
    def waiting(self) -> int:
        return len(self._line)

    async def call(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """What an attempt answers in the end.

        Raises:
            ClusterError: the last attempt's; an earlier one may have been acted upon unseen.
        """
        can_wait = patient.get()
        place, left = (can_wait, next(self._numbers)), 1 if can_wait else ATTEMPTS
        if self.credit == MOST_CREDIT and not self._line:
            try:
                return await attempt()  # as nearly always: to keep account of it costs as much as the call
            except ClusterError as error:
                self._judge(error)
                left -= 1
                if not left or not is_retryable(error):
                    raise
                async with self._line.keep():
                    await self._rest(error, left)
        turn = self._line.join(place)
        while True:
            async with turn:
                try:
                    answer = await attempt()
                except ClusterError as error:
                    self._judge(error)
                    left -= 1
                    if not is_retryable(error):
                        raise
                    await self._rest(error, left)
                    if not left:
                        raise
                    turn = self._line.join(place)  # before it makes room, so that no later one comes first
                else:
                    self._answered()
                    return answer

    def _judge(self, error: ClusterError) -> None:
        """Learn from a failure how the server is, unless only this call is concerned."""
        if is_busy(error):
            self._line.room = max(1, self.credit - 1)
            if self.credit == 1 and not self._told:
                self._told = True
                log.warning("the API server takes too little: calls are held back", error=str(error))
        elif not is_retryable(error):
            self._answered()

    def _answered(self) -> None:
        if self.credit < MOST_CREDIT:
            self._line.room = min(MOST_CREDIT, self.credit + GAIN)
            self._line.let_in()
            if self.credit == MOST_CREDIT and self._told:
                self._told = False
                log.warning("the API server takes everything again")

    async def _rest(self, error: ClusterError, left: int) -> None:
        """Keep the place while the server wants no more calls; longer the fewer attempts are left."""
        pause = FIRST_PAUSE_SECONDS * 2 ** (ATTEMPTS - 1 - left) if left else 0.0
        if is_busy(error):
            wished = error.retry_after if isinstance(error, ApiError) else None
            own = max(pause, LONGEST_PAUSE_SECONDS / self.credit)
            pause = min(wished, LONGEST_RETRY_AFTER_SECONDS) if wished else own
        await self._sleep(pause)
