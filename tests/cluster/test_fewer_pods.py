"""A Job that can do with fewer pods runs with as many as fit, on the real Job controller."""

from typing import Any

import pytest

from tests.cluster.auditor import Auditor
from tests.cluster.objects import Json, job
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

LEAST = "admitter.dev/min-parallelism"
ORIGINAL = "admitter.dev/original-parallelism"


def able(team: Team, name: str, least: int, **more: Any) -> Json:
    """A Job that can do with so many pods."""
    made = job(team.namespace, name, **more)
    made["metadata"]["annotations"] = {LEAST: str(least)}
    return made


def of(team: Team, name: str) -> tuple[int, str]:
    """The parallelism of a Job, and what it was before an admission lowered it."""
    read = team.read("job", name)
    return read["spec"]["parallelism"], read["metadata"].get("annotations", {}).get(ORIGINAL, "")


def test_it_runs_with_what_fits_and_after_an_eviction_asks_for_all(team: Team) -> None:
    team.offers({"cpu": {"on-demand": "4"}}, preemption={"withinClusterQueue": "LowerPriority"})
    high = team.priority_class("high", 100)
    limits = {(team.flavor("on-demand"), "cpu"): 4.0}
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        team.apply(job(team.namespace, "first", seconds=None))
        team.runs("first")
        team.apply(able(team, "able", 2, pods=6, seconds=None))
        team.runs("able", pods=3)
        assert of(team, "able") == (3, "6")
        assert team.workload("able")["status"]["message"] == "runs with 3 of 6 pods"
        assert "it runs with 3 of 6 pods" in team.condition("able", "Admitted")["message"]
        assert team.workload("able")["status"]["admission"]["podSets"][0]["count"] == 3
        wide = team.kubectl("get", "workloads.admitter.dev", "--output=wide")
        assert "runs with 3 of 6 pods" in wide
        team.controller.kill()
        urgent = {"priorityClassName": high}
        team.apply(job(team.namespace, "high", requests={"cpu": "3"}, seconds=None, pod=urgent))
        team.runs("high")
        assert of(team, "able") == (6, "")
        pod_set = team.workload("able")["spec"]["podSets"][0]
        assert (pod_set["count"], pod_set["minCount"]) == (6, 2)
        team.kubectl("delete", "job", "high")
        team.runs("able", pods=3)
        assert of(team, "able") == (3, "6")
    assert auditor.excesses == []
    assert auditor.most_pods <= 4


def test_fewer_pods_do_all_the_work_one_after_the_other(team: Team) -> None:
    team.offers({"cpu": {"on-demand": "2"}})
    team.apply(able(team, "able", 1, pods=5, seconds=1))
    eventually(lambda: team.state("able") == "Finished", what="the Job to finish")
    assert team.read("job", "able")["status"]["succeeded"] == 5
    assert of(team, "able") == (2, "5")
