"""Each decision is told once, by the change that it makes."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from structlog.testing import capture_logs

from admitter.api.conditions import EvictedReason, FinishedReason
from admitter.cache.preemption_status import PreemptionStatus
from admitter.cache.views import WorkloadView, parse_job
from admitter.controllers.telemetry.decisions import Decisions
from admitter.controllers.telemetry.metrics import Metrics
from admitter.policy import status
from admitter.policy.lifecycle import Step
from tests.policy.test_status import ADMISSION, applied, at, view

WHO = {"namespace": "team", "workload": "w", "log_level": "info"}
IN_QUEUE = WHO | {"cluster_queue": "total"}
BY = PreemptionStatus(("other", "urgent"), "uid-urgent", ADMISSION)
QUEUE = {"cluster_queue": "total", "kind": "ClusterQueue"}


PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def documented() -> dict[str, set[str]]:
    """The keys that lines have, by event, as the documentation says."""
    table = PAGE.read_text().partition("## The log")[2].partition("## Stop")[0]
    rows = re.findall(r"^\| `([a-z ]+)` \| .* \| ([^|]*) \|$", table, flags=re.MULTILINE)
    return {event: set(re.findall(r"`([a-z_]+)`", keys)) for event, keys in rows}


KEYS = documented()


def checked(lines: list[Any]) -> list[Any]:
    """The same lines; each has the keys that are documented, but for a Job where there is none."""
    for line in lines:
        keys = line.keys() - {"event", "log_level"}
        assert keys <= KEYS[line["event"]], line
        assert KEYS[line["event"]] - keys <= {"job", "by"}, line
    return list(lines)


class Told:
    """What is told of a Workload that changes."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.decisions = Decisions(self.metrics, lambda _: self.now)
        self.now = view({})

    def change(self, patch: Any) -> list[Any]:
        """The lines that a patch of its status makes."""
        return self.become(applied(self.now, patch))

    def become(self, new: WorkloadView) -> list[Any]:
        old, self.now = self.now, new
        with capture_logs() as lines:
            self.decisions.workload_changed(old, new)
        return checked(lines)

    def counted(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)


def test_one_life_with_one_line_a_decision() -> None:
    told = Told()
    words = {"reason": "InsufficientQuota", "message": "too much"}
    assert told.change(status.waiting(told.now, words["reason"], words["message"], at(0))) == [
        WHO | {"event": "refused", "queue": "q"} | words
    ]
    admitted = {"event": "admitted", "queue": "q", "waited_seconds": 12 * 3600 + 60.0}
    assert told.change(status.admitted(told.now, ADMISSION, (0, 1), at(1))) == [IN_QUEUE | admitted]
    assert told.change(status.eviction(told.now, Step.ANNOUNCE, BY, 180, at(2))) == [
        IN_QUEUE
        | {
            "event": "told to end",
            "reason": "Preempted",
            "by": "other/urgent",
            "until": "2026-01-01T12:05:00Z",
        }
    ]
    (evicted,) = told.change(status.preempted(told.now, BY, at(5)))
    assert evicted.pop("message").startswith("preempted for a Workload of another namespace in ")
    assert evicted == IN_QUEUE | {"event": "evicted", "reason": "Preempted", "by": "other/urgent"}
    assert told.change(status.released(told.now, at(6))) == [
        IN_QUEUE | {"event": "released", "reason": "Preempted"}
    ]
    again = told.change(status.admitted(told.now, ADMISSION, (0, 1), at(9)))
    assert again == [IN_QUEUE | admitted | {"waited_seconds": 240.0}], "it has waited since its eviction"
    ended = status.finished(told.now, FinishedReason.JOB_SUCCEEDED, "done", at(10))
    assert told.change(ended) == [IN_QUEUE | {"event": "finished", "reason": "JobSucceeded"}]
    assert told.counted("admitter_admissions_total", **QUEUE) == 2
    assert told.counted("admitter_admission_wait_seconds_sum", **QUEUE) == 12 * 3600 + 300
    assert told.counted("admitter_evictions_total", **QUEUE, reason="Preempted") == 1
    assert told.counted("admitter_finished_workloads_total", **QUEUE, reason="JobSucceeded") == 1


def test_a_victim_that_need_not_go_after_all() -> None:
    told = Told()
    told.change(status.admitted(told.now, ADMISSION, (0, 1), at(1)))
    told.change(status.eviction(told.now, Step.ANNOUNCE, BY, 180, at(2)))
    assert told.change(status.eviction_cancelled(told.now, at(3))) == [IN_QUEUE | {"event": "spared"}]


def test_one_evicted_for_another_reason_than_a_preemptor() -> None:
    told = Told()
    told.change(status.admitted(told.now, ADMISSION, (0, 1), at(1)))
    paused = status.evicted(told.now, EvictedReason.DEACTIVATED, "paused", at(2))
    line = {"event": "evicted", "reason": "Deactivated", "message": "paused"}
    assert told.change(paused) == [IN_QUEUE | line]


def test_what_is_so_still_and_what_was_so_before_is_not_told() -> None:
    told = Told()
    told.change(status.waiting(told.now, "InsufficientQuota", "too much", at(0)))
    same = status.waiting(told.now, "InsufficientQuota", "too much", at(1))
    assert told.change(same) == []
    told.change(status.admitted(told.now, ADMISSION, (0, 1), at(1)))
    assert told.become(replace(told.now, version=9)) == []
    with capture_logs() as lines:
        told.decisions.workload_changed(None, told.now)
        told.decisions.closed = True
        told.decisions.workload_changed(told.now, None)
    assert lines == []


def test_one_that_is_deleted_with_its_quota() -> None:
    told = Told()
    told.change(status.admitted(told.now, ADMISSION, (0, 1), at(1)))
    with capture_logs() as lines:
        told.decisions.workload_changed(told.now, None)
    assert checked(lines) == [IN_QUEUE | {"event": "deleted"}]


def a_job(*, suspend: bool, started: bool) -> Any:
    metadata = {"name": "report", "namespace": "team", "uid": "uid-job", "resourceVersion": "1"}
    labels: dict[str, str] = {}
    raw: dict[str, Any] = {
        "metadata": metadata | {"creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "suspend": suspend,
            "template": {"metadata": {"labels": labels}, "spec": {"containers": []}},
        },
    }
    if started:
        labels["admitter.dev/workload"] = parse_job(raw).workload
    return parse_job(raw)


def test_a_start_is_told_once_and_that_of_another_controller_is_not() -> None:
    told = Told()
    told.change(status.admitted(told.now, ADMISSION, (0, 1), at(1)))
    waits, runs = a_job(suspend=True, started=False), a_job(suspend=False, started=True)
    with capture_logs() as lines:
        told.decisions.job_changed(waits, runs)
        told.decisions.job_changed(runs, runs)
        told.decisions.job_changed(None, runs)
        told.decisions.job_changed(waits, a_job(suspend=False, started=False))
    assert checked(lines) == [IN_QUEUE | {"event": "started"}]
