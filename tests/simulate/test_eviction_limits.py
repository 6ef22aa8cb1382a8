"""Limits on evictions in a simulation: the same windows as in a cluster."""

from pathlib import Path

import pytest

from tests.cluster.objects import Json, cluster_queue, local_queue, resource_flavor
from tests.simulate.test_run_times import at, told
from tests.simulate.test_simulate import simulate

URGENT = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 5,
}
HOURLY = {"maxEvictions": {"count": 1, "per": "1h"}}


def limited(place: str) -> list[Json]:
    """A queue of 4 CPUs, in which priority decides, with a limit of its own or of its Cohort."""
    rules: Json = {"withinClusterQueue": "LowerPriority"}
    above = {"kind": "Cohort", "metadata": {"name": "all"}, "spec": {"preemption": HOURLY}}
    cohort = [{"apiVersion": "admitter.dev/v1alpha1", **above}] if place == "cohort" else []
    rules |= HOURLY if place == "queue" else {}
    return [
        resource_flavor("default", {}),
        *cohort,
        cluster_queue("total", {"cpu": {"default": "4"}}, preemption=rules, cohort="all"),
        local_queue("team", "total"),
        URGENT,
    ]


def urgent(name: str, seconds: int) -> Json:
    made = at(name, seconds, 2)
    made["spec"]["template"]["spec"]["priorityClassName"] = "urgent"
    return made


@pytest.mark.parametrize("place", ["queue", "cohort"])
def test_the_second_eviction_waits_until_the_window_opens_and_says_so(place: str, tmp_path: Path) -> None:
    jobs = at("old", 0, 2), at("young", 10, 2), urgent("first", 600), urgent("second", 900)
    result = simulate(tmp_path, *limited(place), *jobs, options=["--until", "2h"])
    assert [each[:3] for each in told(result) if each[2] == "Preempted"] == [
        ("00:10:00", "young", "Preempted"),
        ("01:10:00", "old", "Preempted"),
    ]
    result = simulate(tmp_path, *limited(place), *jobs, options=["--until", "20m"])
    (row,) = [each for each in result["workloads"] if each["job"] == "second"]
    title = {"queue": "ClusterQueue total", "cohort": "Cohort all"}[place]
    words = f"{title} allows 1 eviction for others within 1h, and there were so many: next at "
    assert row["reason"] == "EvictionsLimited"
    assert f"{words}2026-01-01T01:10:00Z" in row["message"]
