"""Evictions where a tree has had too little quota for too long (`admitter.policy.shortage`).

Previous step: a cycle is over. Next step: the Job of each victim is stopped (`workload.jobs`).
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from admitter.cache.world import World
from admitter.client.store import Key
from admitter.policy.shortage import Shortages
from admitter.policy.status import Clock


@dataclass(eq=False)
class ShortageEvictions:
    """Looks for victims after each cycle, and when a delay ends; `evict` is called with the key of each."""

    world: World
    shortages: Shortages
    keys_of: Callable[[Iterable[str]], list[Key]]
    evict: Callable[[Key], None]
    clock: Clock
    _timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Evict what has to go, and look again when more may have to."""
        self.close()
        now = self.clock().timestamp()
        evicted = self.shortages.look(now, lambda: {w.uid for w in self.world.workloads if w.evicting})
        for key in self.keys_of(evicted):
            self.evict(key)
        if self.shortages.due is not None:
            left = self.shortages.due - now
            self._timer = asyncio.get_running_loop().call_later(left, self.look)

    def close(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
