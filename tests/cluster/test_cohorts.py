"""Queues that share quota: borrowing, taking back by preemption, cohorts under cohorts."""

import json

import pytest

from tests.cluster.auditor import Auditor
from tests.cluster.objects import job
from tests.cluster.team import Team
from tests.cluster.test_eviction import deleting, let_go, slow_to_end
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

RECLAIM = {"reclaimWithinCohort": "Any"}


def test_a_queue_borrows_what_the_other_does_not_use(team: Team) -> None:
    team.shares(("a", "1"), ("b", "2"))
    team.apply(job(team.namespace, "borrows", pods=3, seconds=None, queue="a"))
    team.runs("borrows", pods=3)
    team.apply(job(team.namespace, "owner", seconds=None, queue="b"))
    eventually(lambda: team.reason("owner") == "InsufficientQuota", what="the owner to wait")
    eventually(
        lambda: '"borrowed": "2"' in json.dumps(team.read("cq", f"{team.namespace}-a").get("status")),
        what="the queue to show what it borrows",
    )


def test_what_was_lent_is_taken_back_and_used_only_when_the_pods_have_gone(team: Team) -> None:
    team.shares(("a", "1"), ("b", "2"), preemption=RECLAIM)
    with Auditor(team.cluster, team.namespace, {(team.flavor("on-demand"), "cpu"): 3.0}) as auditor:
        team.apply(slow_to_end(job(team.namespace, "borrows", pods=1, seconds=None, queue="a")))
        team.runs("borrows")
        team.apply(
            slow_to_end(job(team.namespace, "over", pods=1, requests={"cpu": "2"}, seconds=None, queue="a"))
        )
        team.runs("over")
        team.apply(job(team.namespace, "owner", pods=2, seconds=None, queue="b"))
        eventually(lambda: team.state("over") == "Evicted", what="the newer borrower to be evicted")
        assert team.state("borrows") == "Admitted", "one victim is enough"
        deleting(team, "over")
        eventually(lambda: team.reason("owner") == "Preempting", what="the owner's place to be kept")
        team.apply(job(team.namespace, "sneaks", pods=1, seconds=None, queue="b"))
        eventually(lambda: team.reason("sneaks"), what="the newcomer to wait")
        assert team.pods("owner") == []
        team.controller.kill()
        let_go(team, "over")
        team.runs("owner", pods=2)
        eventually(lambda: team.state("over") == "Pending", what="the victim to wait again")
    assert auditor.excesses == []
    assert team.state("sneaks") == "Pending", "no other workload takes the hole"
    preempted = team.condition("over", "Preempted")
    assert preempted["status"] == "True"
    owner = team.workload("owner")["metadata"]["name"]
    assert preempted["message"] == (
        f"preempted for Workload {team.namespace}/{owner} in ClusterQueue {team.namespace}-b: "
        f"ClusterQueue {team.namespace}-b takes back what it lent (reclaimWithinCohort)"
    )


def test_higher_priority_preempts_in_its_own_queue(team: Team) -> None:
    team.shares(("a", "2"), preemption={"withinClusterQueue": "LowerPriority"})
    team.apply(job(team.namespace, "low", pods=2, seconds=None, queue="a"))
    team.runs("low", pods=2)
    urgent = {"priorityClassName": team.priority_class("urgent", 1000)}
    team.apply(job(team.namespace, "high", pods=1, seconds=1, queue="a", pod=urgent))
    eventually(lambda: team.state("high") == "Finished", what="the urgent Job to finish")
    team.runs("low", pods=2)
    assert team.condition("low", "Preempted")["status"] == "False", "admitted again"


def test_two_levels_of_cohorts(team: Team) -> None:
    team.cohort("company", cpu="1")
    team.cohort("left", "company")
    team.cohort("right", "company")
    team.shares(("a", "1"), cohort="left")
    team.shares(("b", "1"), cohort="right")
    team.apply(job(team.namespace, "all", pods=3, seconds=None, queue="a"))
    team.runs("all", pods=3)
    team.apply(job(team.namespace, "none", seconds=None, queue="b"))
    eventually(lambda: team.reason("none") == "InsufficientQuota", what="the other side to wait")
    assert ": 3 of 3 cpu (of which 1 are its own) of " in team.workload("none")["status"]["message"]


def test_a_cycle_of_parents_is_reported_and_cut(team: Team) -> None:
    team.cohort("x", "y", cpu="1")
    team.cohort("y", "x", cpu="1")
    team.shares(("a", "1"), cohort="x")

    def active() -> list[tuple[str, str]]:
        found = team.read("cohorts", f"{team.namespace}-x", f"{team.namespace}-y")["items"]
        conditions = [c for cohort in found for c in cohort.get("status", {}).get("conditions", [])]
        return [(c["status"], c["reason"]) for c in conditions]

    eventually(lambda: active() == [("False", "CohortCycle")] * 2, what="both to be reported")
    team.apply(job(team.namespace, "three", pods=3, seconds=None, queue="a"))
    eventually(lambda: team.reason("three") == "NeverFits", what="2 to be all there is")
    team.cohort("y", cpu="1")
    team.runs("three", pods=3)
    eventually(lambda: active() == [("True", "Ready")] * 2, what="both to work again")


def test_what_is_borrowed_is_shared_by_weight(team: Team) -> None:
    team.cohort("all", cpu="4", fairSharing={"enabled": True})
    team.shares(("a", "0"), preemption=RECLAIM)
    team.shares(("b", "0"), preemption=RECLAIM, fairSharing={"weight": 3})
    for number in range(4):
        team.apply(job(team.namespace, f"first-{number}", seconds=None, queue="a"))
    eventually(lambda: team.states() == {"Admitted": 4}, what="all of it to be borrowed by the first")
    for number in range(4):
        team.apply(job(team.namespace, f"second-{number}", seconds=None, queue="b"))

    def running() -> list[str]:
        states = {name: w.get("status", {}).get("state") for name, w in team.workloads().items()}
        return sorted(name.split("-")[0] for name, state in states.items() if state == "Admitted")

    eventually(lambda: running() == ["first", *["second"] * 3], what="one to three, as their weights")
