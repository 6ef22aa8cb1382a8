"""The ends of maximum run times: one heap and one timer for all admitted Workloads that have one.

The deadline is in the status of each, so a process that starts, or leads from now on, ends it at the same
second. Next step: the Workload is evicted (`admitter.controllers.workload.eviction`).
"""

import asyncio
import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from admitter.cache.run_time_status import run_time_of
from admitter.cache.views import WorkloadView
from admitter.client.store import Key
from admitter.policy.status import Clock

LONGEST_SLEEP: Final = 3600.0
"""Seconds after which a timer looks at the clock again: the wall clock may be set, and loops have a limit."""


@dataclass(eq=False)
class Deadlines:
    """Follows admitted Workloads with a deadline, and calls `over` with the key of each at its deadline."""

    clock: Clock
    over: Callable[[Key], None]
    # by UID; what the heap has besides is out of date
    _due: dict[str, tuple[float, Key]] = field(default_factory=dict)
    _heap: list[tuple[float, str]] = field(default_factory=list)
    _timer: asyncio.TimerHandle | None = None

    def workload_changed(self, old: WorkloadView | None, new: WorkloadView | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            self._due.pop(old.uid, None)
        if new is None:
            return
        holds = new.admission is not None and not new.evicting
        deadline = run_time_of(new.status).deadline if holds else None
        if deadline is None:
            self._due.pop(new.uid, None)
            return
        known = self._due.get(new.uid)
        self._due[new.uid] = deadline, new.key
        if known is None or known[0] != deadline:
            heapq.heappush(self._heap, (deadline, new.uid))
            if self._heap[0] == (deadline, new.uid):
                self._sleep()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sleep(self) -> None:
        """Set the timer to the first deadline."""
        self.close()
        while self._heap and self._due.get(self._heap[0][1], (None,))[0] != self._heap[0][0]:
            heapq.heappop(self._heap)
        if self._heap:
            left = max(0.0, self._heap[0][0] - self.clock().timestamp())
            self._timer = asyncio.get_running_loop().call_later(min(left, LONGEST_SLEEP), self._look)

    def _look(self) -> None:
        """A deadline should have come; the loop's clock may be ahead of the wall clock."""
        now = self.clock().timestamp()
        while self._heap and self._heap[0][0] <= now:
            deadline, uid = heapq.heappop(self._heap)
            known = self._due.get(uid)
            if known is not None and known[0] == deadline:
                del self._due[uid]
                self.over(known[1])
        self._sleep()
