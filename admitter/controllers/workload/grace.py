"""Workloads that have been told that they will be evicted, and go on until then (`gracePeriod`).

Their quota is theirs as long as they go on; their place is promised to a preemptor. When the time is up they
are evicted (`admitter.controllers.workload.eviction`); if nobody is promised their place any more, they stay.
"""

import asyncio
from collections.abc import Callable, Iterator
from datetime import datetime

from admitter.cache.views import WorkloadView
from admitter.client.store import Key
from admitter.engine.quota.ledger import Ledger
from admitter.policy.status import Clock


class GracePeriods:
    """Follows those who have been told."""

    def __init__(self, ledger: Ledger, clock: Clock, over: Callable[[Key], None]) -> None:
        """Prepare.

        Args:
            ledger: knows who has to go.
            clock: the time.
            over: called with the key of a Workload whose time is up.
        """
        self._ledger = ledger
        self._clock = clock
        self._over = over
        self._pending: dict[str, WorkloadView] = {}
        self._timers: dict[str, tuple[float, asyncio.TimerHandle]] = {}

    def now(self) -> datetime:
        """The current time, in UTC."""
        return self._clock()

    def workload_changed(self, old: WorkloadView | None, new: WorkloadView | None) -> None:
        """A Workload came, changed or went."""
        if old is not None and (new is None or new.uid != old.uid):
            self._forget(old.uid)
        if new is None:
            return
        if new.evict_at is None or new.evicting:
            self._forget(new.uid)
            return
        self._pending[new.uid] = new
        if new.uid in self._timers and self._timers[new.uid][0] == new.evict_at:
            return
        self._stop_timer(new.uid)
        self._start_timer(new.uid, new.evict_at)

    def is_over(self, workload: WorkloadView) -> bool:
        """Whether a Workload has been told that it will be evicted, its time is up, and its place needed."""
        if workload.evict_at is None or self._clock().timestamp() < workload.evict_at:
            return False
        return self._ledger.evicting(workload.uid)

    def is_needed(self, workload: WorkloadView) -> bool:
        """Whether the place of a Workload that holds quota is promised to another one."""
        return self._ledger.evicting(workload.uid)

    def _start_timer(self, uid: str, evict_at: float) -> None:
        left = max(0.0, evict_at - self._clock().timestamp())
        timer = asyncio.get_running_loop().call_later(left, self._look, uid)
        self._timers[uid] = (evict_at, timer)

    def _look(self, uid: str) -> None:
        """The time should be up; the loop's clock may be ahead of that by which it counts."""
        told = self._pending[uid]
        if told.evict_at is not None and self._clock().timestamp() < told.evict_at:
            self._start_timer(uid, told.evict_at)
        else:
            self._over(told.key)

    def still_needed(self) -> Iterator[WorkloadView]:
        """Workloads that have been told, and whose place is promised."""
        yield from [workload for workload in self._pending.values() if self._ledger.evicting(workload.uid)]

    def no_longer_needed(self) -> Iterator[WorkloadView]:
        """Those who need not go: nobody is promised their place any more."""
        for workload in list(self._pending.values()):
            if not self._ledger.evicting(workload.uid):
                yield workload

    def close(self) -> None:
        """Nothing more happens to anybody."""
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _forget(self, uid: str) -> None:
        self._pending.pop(uid, None)
        self._stop_timer(uid)

    def _stop_timer(self, uid: str) -> None:
        _, timer = self._timers.pop(uid, (0.0, None))
        if timer is not None:
            timer.cancel()
