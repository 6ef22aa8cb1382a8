"""Evictions where a tree has had too little quota for too long (`admitter.policy.shortage`).

Previous step: a cycle is over. Next step: the Job of each victim is stopped (`workload.jobs`).
"""

import asyncio
from collections.abc import Callable, Iterable

from admitter.cache.world import World
from admitter.client.store import Key
from admitter.policy.shortage import Shortages
from admitter.policy.status import Clock


class ShortageEvictions:
    """Looks for victims after each cycle, and when a delay ends."""

    def __init__(
        self,
        world: World,
        shortages: Shortages,
        keys_of: Callable[[Iterable[str]], list[Key]],
        evict: Callable[[Key], None],
        clock: Clock,
    ) -> None:
        """Call `look` after each cycle.

        Args:
            world: all objects.
            shortages: says which Workloads have to go.
            keys_of: finds Workloads by their UIDs.
            evict: called with the key of each victim.
            clock: the time.
        """
        self._world = world
        self._shortages = shortages
        self._keys_of = keys_of
        self._evict = evict
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Evict what has to go, and look again when more may have to."""
        self.close()
        now = self._clock().timestamp()
        evicted = self._shortages.look(now, lambda: {w.uid for w in self._world.workloads if w.evicting})
        for key in self._keys_of(evicted):
            self._evict(key)
        if self._shortages.due is not None:
            left = self._shortages.due - now
            self._timer = asyncio.get_running_loop().call_later(left, self.look)

    def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
