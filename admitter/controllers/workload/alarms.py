"""One moment for each of many Workloads, and one timer of the event loop for all of them."""

import asyncio
import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from admitter.client.store import Key
from admitter.policy.status import Clock

LONGEST_SLEEP: Final = 3600.0
"""Seconds after which the timer looks at the clock again: the wall clock may be set."""
SLACK: Final = 1000
"""So many entries more than moments a heap may have, beside as many as there are moments."""


@dataclass(eq=False)
class Alarms:
    """Calls `ring` with the key of each Workload when its moment has come, not before."""

    clock: Clock
    ring: Callable[[Key], None]
    _due: dict[str, tuple[float, Key]] = field(default_factory=dict)  # by UID
    _heap: list[tuple[float, str]] = field(default_factory=list)  # those of `_due`, and earlier ones
    _timer: asyncio.TimerHandle | None = None

    def set(self, uid: str, key: Key, when: float) -> None:
        """Ring at that time, in seconds since the epoch, instead of at any that was set before."""
        known = self._due.get(uid)
        if known is not None and known[0] == when:
            return
        self._due[uid] = when, key
        if len(self._heap) > 2 * len(self._due) + SLACK:
            self._heap = [(due, each) for each, (due, _) in self._due.items()]
            heapq.heapify(self._heap)
        else:
            heapq.heappush(self._heap, (when, uid))
        if self._heap[0] == (when, uid):
            self._start()

    def drop(self, uid: str) -> None:
        self._due.pop(uid, None)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _start(self) -> None:
        self.close()
        while self._heap and self._due.get(self._heap[0][1], (None,))[0] != self._heap[0][0]:
            heapq.heappop(self._heap)
        if self._heap:
            left = max(0.0, self._heap[0][0] - self.clock().timestamp())
            self._timer = asyncio.get_running_loop().call_later(min(left, LONGEST_SLEEP), self._look)

    def _look(self) -> None:
        """Ring what is due; the loop's clock may be ahead of the wall clock."""
        now, rung = self.clock().timestamp(), []
        while self._heap and self._heap[0][0] <= now:
            when, uid = heapq.heappop(self._heap)
            due = self._due.get(uid)
            if due is not None and due[0] == when:
                rung.append(self._due.pop(uid)[1])
        for key in rung:
            self.ring(key)
        self._start()
