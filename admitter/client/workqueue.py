"""Keys that wait to be looked at: each once, never two at a time for the same key."""

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Hashable
from itertools import count
from typing import Final, Generic, TypeVar

import structlog

from admitter.client.errors import ClusterError
from admitter.client.failures import Failures

K = TypeVar("K", bound=Hashable)

Urgency = tuple[int, ...]
"""The smaller, the sooner."""

FIRST_PAUSE_SECONDS: Final = 0.05
LONGEST_PAUSE_SECONDS: Final = 30.0
LEFTOVERS: Final = 4
"""So many times as many entries as keys are kept at most."""
IN_ONE_GO: Final = 16

log = structlog.get_logger(__name__)


class WorkQueue(Generic[K]):
    """Level-triggered: a key says that something changed, not what; its handler reads the world.

    A key that is added while it is handled is handled again afterwards. If its handling fails it comes back
    after a pause that doubles with each failure in a row. If the API server is too busy the pause stays the
    first one: each call is held back already (`admitter.client.throttle`).

    An answer is logged once for a key, until another one comes. A closed queue drops keys: a follower adds
    all of them when it leads.
    """

    def __init__(
        self,
        handle: Callable[[K], Awaitable[None]],
        workers: int,
        urgency: Callable[[K], Urgency | None] = lambda _: (),
        refused: Callable[[K, Exception], None] = lambda _, __: None,
    ) -> None:
        """Call `run` to begin.

        `handle` converges one key, and must be safe to call again. `urgency` says at each change of a key's
        what comes before what, None if there is nothing to do; of equals the first goes first. `refused` is
        called with a key and the last error, once its handling has failed some times in a row, though the API
        server is not busy.
        """
        self.closed = False
        self._handle = handle
        self._workers = workers
        self._urgency = urgency
        self._waiting: list[tuple[Urgency, int, K]] = []
        self._numbers = count()
        self._queued: dict[K, Urgency] = {}
        self._busy: set[K] = set()
        self._again: set[K] = set()
        self._failures = Failures[K](refused)
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._ready = asyncio.Semaphore(0)
        self._finishing = False
        self._finished = asyncio.Event()

    def add(self, key: K) -> None:
        """Have a key handled soon."""
        if self.closed:
            return
        if key in self._busy:
            self._again.add(key)
            return
        urgency, before = self._urgency(key), self._queued.get(key)
        if urgency is None:
            self._failures.over(key)
            return
        if before is not None and before <= urgency:
            return
        self._queued[key] = urgency
        if len(self._waiting) > LEFTOVERS * (len(self._queued) + LEFTOVERS):
            self._tidy()
        heapq.heappush(self._waiting, (urgency, next(self._numbers), key))
        if before is None:
            self._ready.release()

    def add_later(self, key: K, seconds: float) -> None:
        """Have a key handled after a while; a later call for the same key replaces an earlier one."""
        earlier = self._timers.pop(key, None)
        if earlier is not None:
            earlier.cancel()
        self._timers[key] = asyncio.get_running_loop().call_later(seconds, self._due, key)

    def add_at_latest(self, key: K, seconds: float) -> None:
        """Have a key handled after a while, unless it will be sooner."""
        earlier = self._timers.get(key)
        if earlier is None or earlier.when() > asyncio.get_running_loop().time() + seconds:
            self.add_later(key, seconds)

    def hurry(self) -> None:
        """Have keys handled now that wait out a pause after a failure: what they failed by may be over."""
        for key in [key for key in self._timers if key in self._failures]:
            self._timers[key].cancel()
            self._failures.over(key)
            self._due(key)

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def __len__(self) -> int:
        return len(self._queued) + len(self._busy)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    async def finish(self) -> None:
        """Begin with no key any more, and wait until those that are handled now are done with."""
        self._finishing = True
        if self._busy:
            await self._finished.wait()

    async def _work(self) -> None:
        for number in count():
            if number % IN_ONE_GO == 0:
                await asyncio.sleep(0)  # many keys need no call: others must get their turn too
            await self._ready.acquire()
            if self._finishing:
                return
            key = self._pop()
            self._busy.add(key)
            try:
                await self._handle(key)
                self._failures.over(key)
            except ClusterError as error:
                self._fail(key, error)
            except Exception as error:  # a defect that one object brings out must not stop the others
                log.exception("handling failed", key=key)
                self._fail(key, error)
            finally:
                self._busy.discard(key)
                if key in self._again:
                    self._again.discard(key)
                    self.add(key)
                if self._finishing and not self._busy:
                    self._finished.set()

    def _pop(self) -> K:
        """The most urgent key; what waits under an urgency that has been raised since is passed over."""
        while True:
            urgency, _, key = heapq.heappop(self._waiting)
            if self._queued.get(key) == urgency:
                del self._queued[key]
                return key

    def _tidy(self) -> None:
        """Forget under what urgency keys have waited before it was raised."""
        self._waiting = [entry for entry in self._waiting if self._queued.get(entry[2]) == entry[0]]
        heapq.heapify(self._waiting)

    def _fail(self, key: K, error: Exception) -> None:
        level, failures = self._failures.note(key, error)
        pause = min(FIRST_PAUSE_SECONDS * 2 ** min(failures, 20), LONGEST_PAUSE_SECONDS)
        log.log(level, "will try again", key=key, error=str(error), seconds=pause)
        self.add_later(key, pause)
