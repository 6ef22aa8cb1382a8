"""The ends of maximum run times.

The deadline is in the status of each Workload, so a process that starts, or leads from now on, ends it at the
same second. Next step: the Workload is evicted (`admitter.controllers.workload.eviction`).
"""

from collections.abc import Callable

from admitter.cache.run_time_status import run_time_of
from admitter.cache.views import WorkloadView
from admitter.client.store import Key
from admitter.controllers.workload.alarms import Alarms
from admitter.policy.status import Clock


class Deadlines:
    """Follows admitted Workloads with a deadline, and calls `over` with the key of each at its deadline."""

    def __init__(self, clock: Clock, over: Callable[[Key], None]) -> None:
        self._alarms = Alarms(clock, over)

    def workload_changed(self, old: WorkloadView | None, new: WorkloadView | None) -> None:
        if old is not None and (new is None or new.uid != old.uid):
            self._alarms.drop(old.uid)
        if new is None:
            return
        holds = new.admission is not None and not new.evicting
        deadline = run_time_of(new.status).deadline if holds else None
        if deadline is None:
            self._alarms.drop(new.uid)
        else:
            self._alarms.set(new.uid, new.key, deadline)

    def close(self) -> None:
        self._alarms.close()
