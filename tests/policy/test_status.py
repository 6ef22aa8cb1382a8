"""The patches of a Workload's status, through one life."""

from datetime import UTC, datetime
from typing import Any

from admitter.api.conditions import EvictedReason, FinishedReason
from admitter.cache.preemption_status import PreemptionStatus
from admitter.cache.views import WorkloadView, parse_workload
from admitter.engine.model import Admission, Assignment
from admitter.policy import status
from admitter.policy.lifecycle import Step

Json = dict[str, Any]

USAGE = (("cpu", 1500), ("memory", 2**30))
ADMISSION = Admission("total", (Assignment("main", 1, (("cpu", "spot"), ("memory", "spot")), USAGE),))


def at(minute: int) -> datetime:
    return datetime(2026, 1, 1, 12, minute, tzinfo=UTC)


def view(status_: Json) -> WorkloadView:
    metadata = {
        "name": "w",
        "namespace": "team",
        "uid": "u",
        "resourceVersion": "3",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return parse_workload(
        {"metadata": metadata, "spec": {"queueName": "q", "podSets": []}, "status": status_}
    )


def applied(workload: WorkloadView, patch: Json) -> WorkloadView:
    """The Workload after a patch; every patch names the version that it was made for."""
    assert patch["metadata"] == {"resourceVersion": "3"}
    merged = {**workload.status, **patch["status"]}
    return view({name: value for name, value in merged.items() if value is not None})


def test_one_life_from_waiting_to_the_end() -> None:
    workload = applied(view({}), status.waiting(view({}), "InsufficientQuota", "too much", at(0)))
    assert (workload.status["state"], workload.status["reason"]) == ("Pending", "InsufficientQuota")

    workload = applied(workload, status.admitted(workload, ADMISSION, (0, 7), at(1)))
    assert workload.admission == ADMISSION, "what is written is read back as the same"
    assert workload.status["admission"]["epoch"] == 7
    assert "shard" not in workload.status["admission"], "shard 0 goes without saying"
    assert "reason" not in workload.status
    assert workload.condition("Admitted")["message"] == (
        "admitted by ClusterQueue total: 1500m cpu of spot, 1Gi memory of spot"
    )

    workload = applied(workload, status.evicted(workload, EvictedReason.DEACTIVATED, "paused", at(2)))
    assert workload.evicting
    assert workload.admission == ADMISSION, "its pods may still run"

    workload = applied(workload, status.released(workload, at(3)))
    assert workload.admission is None
    assert not workload.evicting
    assert workload.is_true("Evicted")
    assert workload.status["message"] == "paused"

    workload = applied(workload, status.admitted(workload, ADMISSION, (3, 8), at(4)))
    assert workload.status["admission"]["shard"] == 3
    assert not workload.is_true("Evicted")

    workload = applied(workload, status.finished(workload, FinishedReason.JOB_SUCCEEDED, "done", at(5)))
    assert workload.finished
    assert workload.admission is None, "a finished Workload holds nothing"
    assert workload.status["admission"]["clusterQueue"] == "total", "but keeps the record"


def test_a_condition_keeps_the_time_of_its_last_transition() -> None:
    first = applied(view({}), status.waiting(view({}), "A", "first", at(0)))
    second = applied(first, status.waiting(first, "B", "second", at(5)))
    assert second.condition("QuotaReserved")["reason"] == "B"
    assert second.condition("QuotaReserved")["lastTransitionTime"] == "2026-01-01T12:00:00Z"


def test_the_write_that_evicts_for_others_keeps_when_it_did() -> None:
    by = PreemptionStatus(("team", "p"), "p", ADMISSION)
    runs = applied(view({}), status.admitted(view({}), ADMISSION, (0, 7), at(1)))
    now = datetime(2026, 1, 1, 13, 5, 0, 1, UTC)
    evicted = applied(runs, status.preempted(runs, by, now))
    assert evicted.status["evictedAt"] == ["2026-01-01T13:05:01Z"], "no window is shorter than it says"
    assert evicted.evictions == (datetime(2026, 1, 1, 13, 5, 1, tzinfo=UTC).timestamp(),)
    earlier = [f"2026-01-01T12:00:0{number}Z" for number in range(10)]
    often = view({**runs.status, "evictedAt": earlier})
    after = status.preempted(often, by, now)["status"]
    assert after["evictedAt"] == [*earlier[1:], "2026-01-01T13:05:01Z"]
    paused = status.evicted(often, EvictedReason.DEACTIVATED, "paused", now)
    announced = status.eviction(often, Step.ANNOUNCE, by, 60.0, now)
    assert all("evictedAt" not in each["status"] for each in (paused, announced))
