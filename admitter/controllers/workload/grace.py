"""Workloads with a pending eviction, which run until then (`gracePeriod`).

They keep their quota while they run; a preemptor has a pending reservation for it. When the time is up they
are evicted (`admitter.controllers.workload.eviction`), unless no preemptor needs their quota any more.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from admitter.cache.views import WorkloadView
from admitter.client.store import Key
from admitter.engine.quota.ledger import Ledger
from admitter.policy.lifecycle import Step, due_step
from admitter.policy.status import Clock


@dataclass(eq=False)
class GracePeriods:
    """Follows Workloads with a pending eviction, and calls `over` at the end of each one's grace period."""

    ledger: Ledger
    clock: Clock
    over: Callable[[Key], None]
    _pending: dict[str, tuple[WorkloadView, float]] = field(default_factory=dict)
    _timers: dict[str, asyncio.TimerHandle] = field(default_factory=dict)

    def workload_changed(self, old: WorkloadView | None, new: WorkloadView | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            self._forget(old.uid)
        if new is None:
            return
        evict_at, before = new.evict_at, self._pending.get(new.uid)
        if evict_at is None or new.evicting:
            self._forget(new.uid)
            return
        self._pending[new.uid] = new, evict_at
        if before is None or before[1] != evict_at:
            self._stop_timer(new.uid)
            self._start_timer(new.uid, evict_at)

    def pending(self) -> Iterator[tuple[WorkloadView, Step | None]]:
        """The Workloads with a pending eviction, and the step that each is due for."""
        now = self.clock().timestamp()
        for workload, evict_at in list(self._pending.values()):
            yield workload, due_step(evict_at, now, needed=self.is_needed(workload))

    def needless(self) -> Iterator[WorkloadView]:
        """The Workloads with a pending eviction that no preemptor needs any more."""
        return (workload for workload, _ in list(self._pending.values()) if not self.is_needed(workload))

    def due(self, workload: WorkloadView) -> Step | None:
        """The step that the pending eviction of a Workload is due for, if it has one."""
        if workload.evict_at is None:
            return None
        return due_step(workload.evict_at, self.clock().timestamp(), needed=self.is_needed(workload))

    def is_needed(self, workload: WorkloadView) -> bool:
        return self.ledger.evicting(workload.uid)

    def _start_timer(self, uid: str, evict_at: float) -> None:
        left = max(0.0, evict_at - self.clock().timestamp())
        self._timers[uid] = asyncio.get_running_loop().call_later(left, self._look, uid)

    def _look(self, uid: str) -> None:
        """The time should be up; the loop's clock may be ahead of the wall clock."""
        victim, evict_at = self._pending[uid]
        if self.clock().timestamp() < evict_at:
            self._start_timer(uid, evict_at)
        else:
            self.over(victim.key)

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _forget(self, uid: str) -> None:
        self._pending.pop(uid, None)
        self._stop_timer(uid)

    def _stop_timer(self, uid: str) -> None:
        timer = self._timers.pop(uid, None)
        if timer is not None:
            timer.cancel()
