"""A simulation of what is made and deleted again and again (docs/design/preemption.md)."""

from pathlib import Path

import pytest

from tests.cluster.objects import Json, cluster_queue, local_queue, resource_flavor, workload
from tests.simulate.test_simulate import annotate, asks, simulate

RECLAIMS = {"reclaimWithinCohort": "Any"}
HOUR = 3600
EVERY = 10


def lent() -> list[Json]:
    """A queue of 4 CPUs, which a Job of another one uses from the first second on."""
    borrower = asks("borrower", 4)
    borrower["metadata"]["labels"]["admitter.dev/queue-name"] = "lends"
    return [
        resource_flavor("default", {}),
        cluster_queue("owner", {"cpu": {"default": "4"}}, cohort="all", preemption=RECLAIMS),
        cluster_queue("lends", {"cpu": {"default": "0"}}, cohort="all"),
        local_queue("team", "owner", "main"),
        local_queue("team", "lends", "lends"),
        local_queue("neighbour", "owner", "main"),
        borrower,
    ]


def brief(number: int, begins: int, lasts: int = 1, namespace: str = "team") -> Json:
    """A Workload that is made by hand, and deleted after so many seconds."""
    made = annotate(workload(namespace, f"w{number:03}"), "simulated-at", f"{begins}s")
    return annotate(made, "simulated-until", f"{begins + lasts}s")


def evictions(result: Json) -> list[int]:
    """When the borrower was evicted, in seconds from the start."""
    times = [each["time"] for each in result["events"] if each["type"] == "Preempted"]
    return [int(t[11:13]) * 3600 + int(t[14:16]) * 60 + int(t[17:19]) for t in times]


@pytest.mark.long
def test_what_is_made_and_deleted_for_an_hour_evicts_eleven_times(tmp_path: Path) -> None:
    """Each is there for a second, and deleted: the next one that comes after the back-off evicts."""
    attempts = [brief(number, number * EVERY) for number in range(1, HOUR // EVERY)]
    result = simulate(tmp_path, *lent(), *attempts)
    assert evictions(result) == [10, 30, 60, 110, 200, 370, 700, 1310, 1920, 2530, 3140]


def test_a_pending_workload_is_requeued_when_the_back_off_is_over(tmp_path: Path) -> None:
    result = simulate(tmp_path, *lent(), brief(0, 5), brief(1, 7, lasts=HOUR))
    assert evictions(result) == [5, 16]


def test_a_neighbour_in_the_queue_is_not_held_up(tmp_path: Path) -> None:
    result = simulate(tmp_path, *lent(), brief(0, 5), brief(1, 7, lasts=HOUR, namespace="neighbour"))
    assert evictions(result) == [5, 7]


def test_the_reason_is_told(tmp_path: Path) -> None:
    result = simulate(tmp_path, *lent(), brief(0, 5), brief(1, 7), options=["--until", "7s"])
    (row,) = [row for row in result["workloads"] if row["name"] == "w001"]
    assert row["reason"] == "PreemptionBackedOff"
    assert row["message"].endswith(
        "a place gained by eviction was given back unused: evicts again after 00:00:16Z"
    )


def test_a_job_with_pods_that_have_run_gives_nothing_back(tmp_path: Path) -> None:
    first = annotate(annotate(asks("first", 1), "simulated-at", "5s"), "simulated-until", "6s")
    result = simulate(tmp_path, *lent(), first, annotate(asks("second", 1), "simulated-at", "7s"))
    assert evictions(result) == [5, 7]
