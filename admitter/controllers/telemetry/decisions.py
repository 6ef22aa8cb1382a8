"""Logs and counts each decision once: one line of log, and counters (`telemetry.metrics`).

A decision changes a Workload's status or starts its Job. The change itself makes the log line, so a write
without an answer has its line, and a failed write has none. docs/operations.md has a table of the lines.
"""

from collections.abc import Callable
from typing import Final

import structlog

from admitter.api.conditions import ConditionType, EvictedReason
from admitter.cache.views import JobView, Json, WorkloadView, at, seconds, timestamp
from admitter.client.store import Key
from admitter.controllers.telemetry.metrics import Metrics

log = structlog.get_logger(__name__)

_RESERVED: Final = ConditionType.QUOTA_RESERVED


class Decisions:
    """Tells what became of Workloads and Jobs.

    Attributes:
        closed: whether nothing is logged: a follower decides nothing.
    """

    def __init__(self, metrics: Metrics, workload_of: Callable[[Key], WorkloadView | None]) -> None:
        """Log and count what changes from now on.

        Args:
            metrics: counts decisions.
            workload_of: finds a Workload by its key.
        """
        self.closed = False
        self._metrics = metrics
        self._workload_of = workload_of

    def workload_changed(self, old: WorkloadView | None, new: WorkloadView | None) -> None:
        """Log what was decided about a Workload; its first known version is no decision of now."""
        if old is None or self.closed:
            return
        if new is None or new.uid != old.uid:
            if old.admission is not None:
                log.info("deleted", **_named(old), cluster_queue=old.admission.queue)
        elif new.finished:
            self._finished(old, new)
        elif old.admission is None:
            if new.admission is not None:
                self._admitted(old, new)
            else:
                self._waiting(old, new)
        elif new.admission is None:
            evicted = new.condition(ConditionType.EVICTED)
            log.info(
                "released", **_named(new), cluster_queue=old.admission.queue, reason=evicted.get("reason", "")
            )
        else:
            self._holding(old, new, new.admission.queue)

    def job_changed(self, old: JobView | None, new: JobView | None) -> None:
        """Tell of a Job that was started."""
        if old is None or new is None or self.closed:
            return
        if not old.suspended or new.suspended or new.started_by != new.workload:
            return
        workload = self._workload_of((new.namespace, new.workload))
        admission = workload.admission if workload is not None else None
        if workload is not None and admission is not None:
            log.info("started", **_named(workload), cluster_queue=admission.queue)

    def _admitted(self, old: WorkloadView, new: WorkloadView) -> None:
        assert new.admission is not None
        queue = new.admission.queue
        evicted = old.condition(ConditionType.EVICTED)
        since = seconds(evicted["lastTransitionTime"]) if evicted.get("status") == "True" else old.created
        waited = max(0.0, new.since - since)
        self._metrics.admitted(queue, waited)
        log.info("admitted", **_named(new), cluster_queue=queue, queue=new.queue, waited_seconds=waited)

    @staticmethod
    def _waiting(old: WorkloadView, new: WorkloadView) -> None:
        """Tell why a Workload waits, if that is news."""
        if old.status is new.status or not new.status.get("reason"):
            return
        before, now = old.condition(_RESERVED), new.condition(_RESERVED)
        if _words(before) != _words(now) and now.get("status") == "False":
            log.info(
                "refused",
                **_named(new),
                queue=new.queue,
                reason=now.get("reason", ""),
                message=now.get("message"),
            )

    def _holding(self, old: WorkloadView, new: WorkloadView, queue: str) -> None:
        """Log that an eviction is pending, cancelled or started."""
        if new.evicting and not old.evicting:
            self._evicted(new, queue)
        elif new.evict_at is not None and old.evict_at != new.evict_at:
            until = timestamp(at(new.evict_at))
            log.info(
                "told to end",
                **_named(new),
                cluster_queue=queue,
                reason=str(EvictedReason.PREEMPTED),
                by=_preemptor(new),
                until=until,
            )
        elif old.evict_at is not None and new.evict_at is None and not new.evicting:
            log.info("spared", **_named(new), cluster_queue=queue)

    def _evicted(self, workload: WorkloadView, queue: str) -> None:
        condition = workload.condition(ConditionType.EVICTED)
        reason = condition.get("reason", "")
        self._metrics.evicted(queue, reason)
        by = {"by": _preemptor(workload)} if reason == EvictedReason.PREEMPTED else {}
        named = _named(workload)
        log.info(
            "evicted", **named, cluster_queue=queue, reason=reason, **by, message=condition.get("message")
        )

    def _finished(self, old: WorkloadView, new: WorkloadView) -> None:
        if old.finished:
            return
        queue = old.admission.queue if old.admission is not None else ""
        reason = new.condition(ConditionType.FINISHED).get("reason", "")
        self._metrics.finished(queue, reason)
        log.info("finished", **_named(new), cluster_queue=queue, reason=reason)


def _named(workload: WorkloadView) -> dict[str, str]:
    """The keys that name the Workload of a line; a Workload made by hand has no Job."""
    job = {"job": workload.job[0]} if workload.job is not None else {}
    return {"namespace": workload.namespace, "workload": workload.name, **job}


def _preemptor(workload: WorkloadView) -> str:
    preemption = workload.preemption
    return "/".join(preemption.key) if preemption is not None else ""


def _words(condition: Json) -> tuple[object, object]:
    return condition.get("reason"), condition.get("message")
