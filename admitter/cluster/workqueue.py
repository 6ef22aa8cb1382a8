"""Keys that wait to be looked at: each once, never two at a time for the same key."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

import structlog

from admitter.cluster.errors import ApiError, ClusterError

K = TypeVar("K", bound=Hashable)

FIRST_PAUSE_SECONDS: Final = 0.05
LONGEST_PAUSE_SECONDS: Final = 30.0

log = structlog.get_logger(__name__)


class WorkQueue(Generic[K]):
    """Level-triggered: a key says that something changed, not what; who handles it reads the world.

    A key that is added while it is handled is handled again afterwards. One whose handling fails
    comes back after a pause that doubles with each failure in a row.
    """

    def __init__(self, handle: Callable[[K], Awaitable[None]], workers: int) -> None:
        """Prepare.

        Args:
            handle: converges one key; must be safe to call again.
            workers: how many keys are handled at a time.
        """
        self._handle = handle
        self._workers = workers
        self._waiting: deque[K] = deque()
        self._queued: set[K] = set()
        self._busy: set[K] = set()
        self._again: set[K] = set()
        self._failures: dict[K, int] = {}
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._ready = asyncio.Semaphore(0)

    def add(self, key: K) -> None:
        """Have a key handled soon."""
        if key in self._busy:
            self._again.add(key)
        elif key not in self._queued:
            self._queued.add(key)
            self._waiting.append(key)
            self._ready.release()

    def add_later(self, key: K, seconds: float) -> None:
        """Have a key handled after a while; a later call for the same key replaces an earlier one."""
        earlier = self._timers.pop(key, None)
        if earlier is not None:
            earlier.cancel()
        self._timers[key] = asyncio.get_running_loop().call_later(seconds, self._due, key)

    def _due(self, key: K) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def __len__(self) -> int:
        return len(self._queued) + len(self._busy)

    async def run(self) -> None:
        """Handle keys until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._workers):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            await self._ready.acquire()
            key = self._waiting.popleft()
            self._queued.discard(key)
            self._busy.add(key)
            try:
                await self._handle(key)
                self._failures.pop(key, None)
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

    def _fail(self, key: K, error: Exception) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        pause = min(FIRST_PAUSE_SECONDS * 2 ** min(failures, 20), LONGEST_PAUSE_SECONDS)
        conflict = isinstance(error, ApiError) and error.status in {404, 409}
        log.log(10 if conflict else 30, "will try again", key=key, error=str(error), seconds=pause)
        self.add_later(key, pause)
