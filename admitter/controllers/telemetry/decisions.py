"""Logs and counts each decision once: one line of log, and counters (`telemetry.metrics`).

A decision changes a Workload's status or starts its Job. The change itself makes the log line, so a write
without an answer has its line, and a failed write has none. docs/operations.md has a table of the lines.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from admitter.api.conditions import ConditionType, EvictedReason
from admitter.cache.timestamps import seconds
from admitter.cache.views import JobView, Json, WorkloadView, at, timestamp
from admitter.client.store import Key
from admitter.controllers.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)

_RESERVED: Final = ConditionType.QUOTA_RESERVED


@dataclass(eq=False)
class Decisions:
    """Tells what became of Workloads and Jobs, unless it is closed: a follower decides nothing."""

    metrics: Metrics
    workload_of: Callable[[Key], WorkloadView | None]
    closed: bool = False

    def workload_changed(self, old: WorkloadView | None, new: WorkloadView | None) -> None:
        """Log what was decided about a Workload; its first known version is no decision of now."""
        if old is None or self.closed:
            return
        if new is None or new.uid != old.uid:
            if old.admission is not None:
                _tell("deleted", old, cluster_queue=old.admission.queue)
        elif new.finished:
            self._finished(old, new)
        elif old.admission is None:
            if new.admission is not None:
                self._admitted(old, new)
            else:
                self._waiting(old, new)
        elif new.admission is None:
            evicted = new.condition(ConditionType.EVICTED)
            _tell("released", new, cluster_queue=old.admission.queue, reason=evicted.get("reason", ""))
        else:
            self._holding(old, new, new.admission.queue)

    def job_changed(self, old: JobView | None, new: JobView | None) -> None:
        if old is None or new is None or self.closed:
            return
        if not old.suspended or new.suspended or new.started_by != new.workload:
            return
        workload = self.workload_of((new.namespace, new.workload))
        admission = workload.admission if workload is not None else None
        if workload is not None and admission is not None:
            _tell("started", workload, cluster_queue=admission.queue)

    def _admitted(self, old: WorkloadView, new: WorkloadView) -> None:
        assert new.admission is not None
        queue = new.admission.queue
        evicted = old.condition(ConditionType.EVICTED)
        since = seconds(evicted["lastTransitionTime"]) if evicted.get("status") == "True" else old.created
        waited = max(0.0, new.since - since)
        self.metrics.admitted(queue, waited)
        _tell("admitted", new, cluster_queue=queue, queue=new.queue, waited_seconds=waited)

    @staticmethod
    def _waiting(old: WorkloadView, new: WorkloadView) -> None:
        """Tell why a Workload waits, if that is news."""
        if old.status is new.status or not new.status.get("reason"):
            return
        before, now = old.condition(_RESERVED), new.condition(_RESERVED)
        if _words(before) != _words(now) and now.get("status") == "False":
            reason, message = now.get("reason", ""), now.get("message")
            _tell("refused", new, queue=new.queue, reason=reason, message=message)

    def _holding(self, old: WorkloadView, new: WorkloadView, queue: str) -> None:
        """Log that an eviction is pending, cancelled or started."""
        if new.evicting and not old.evicting:
            self._evicted(new, queue)
        elif new.evict_at is not None and old.evict_at != new.evict_at:
            until = timestamp(at(new.evict_at))
            reason, by = str(EvictedReason.PREEMPTED), _preemptor(new)
            _tell("told to end", new, cluster_queue=queue, reason=reason, by=by, until=until)
        elif old.evict_at is not None and new.evict_at is None and not new.evicting:
            _tell("spared", new, cluster_queue=queue)

    def _evicted(self, workload: WorkloadView, queue: str) -> None:
        condition = workload.condition(ConditionType.EVICTED)
        reason = condition.get("reason", "")
        self.metrics.evicted(queue, reason)
        by = {"by": _preemptor(workload)} if reason == EvictedReason.PREEMPTED else {}
        message = condition.get("message")
        _tell("evicted", workload, cluster_queue=queue, reason=reason, **by, message=message)

    def _finished(self, old: WorkloadView, new: WorkloadView) -> None:
        if old.finished:
            return
        queue = old.admission.queue if old.admission is not None else ""
        reason = new.condition(ConditionType.FINISHED).get("reason", "")
        self.metrics.finished(queue, reason)
        _tell("finished", new, cluster_queue=queue, reason=reason)


def _tell(event: str, workload: WorkloadView, **more: object) -> None:
    """Log a line on a Workload; one made by hand has no Job."""
    job = {"job": workload.job[0]} if workload.job is not None else {}
    log.info(event, namespace=workload.namespace, workload=workload.name, **job, **more)


def _preemptor(workload: WorkloadView) -> str:
    preemption = workload.preemption
    return "/".join(preemption.key) if preemption is not None else ""


def _words(condition: Json) -> tuple[object, object]:
    return condition.get("reason"), condition.get("message")
