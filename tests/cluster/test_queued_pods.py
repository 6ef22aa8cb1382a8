"""Queued pods and groups of them on the real scheduler: admitted whole, evicted whole, on their flavors."""

import json

import pytest

from tests.cluster.auditor import Auditor
from tests.cluster.queued_pods import (
    group_workload,
    phase,
    phases,
    pod_named,
    pods_of,
    queued_pod,
    runs,
    says,
)
from tests.cluster.team import Team
from tests.cluster.waiting import eventually, have_ended

pytestmark = pytest.mark.cluster

SEVEN = "7 of its 8 pods are there"


def nodes_of(team: Team, group: str) -> dict[str, str]:
    """For each pod of a group, the type of its node."""
    nodes = {n["metadata"]["name"]: n["metadata"]["labels"] for n in team.read("nodes")["items"]}
    found = pods_of(team, group).items()
    return {name: nodes[pod["spec"]["nodeName"]]["instance-type"] for name, pod in found}


def becomes(team: Team, name: str, end: str) -> None:
    """A pod ends: `Succeeded` or `Failed`."""
    patch = json.dumps({"status": {"phase": end}})
    team.kubectl("patch", "pod", name, "--subresource=status", f"--patch={patch}")


def test_a_pod_runs_once_it_is_admitted_and_the_next_when_it_has_ended(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}})
    team.apply(queued_pod(team.namespace, "first"))
    eventually(lambda: phase(team, "first") == "Running", what="the pod to run")
    team.apply(queued_pod(team.namespace, "second", seconds=1))
    eventually(lambda: team.reason("second") == "InsufficientQuota", what="the second pod to wait")
    assert phase(team, "second") == "Gated"
    first = pod_named(team, "first")
    assert first["spec"]["nodeSelector"] == {"instance-type": "spot"}
    assert first["metadata"]["labels"]["admitter.dev/workload"] == team.workload("first")["metadata"]["name"]
    becomes(team, "first", "Succeeded")
    eventually(lambda: phase(team, "second") == "Succeeded", what="the second pod to end")
    eventually(lambda: team.state("second") == "Finished", what="its Workload to say so")
    columns = team.kubectl("get", "wl", "--no-headers")
    assert sorted(line.split()[1:3] for line in columns.splitlines()) == [["Pod", "first"], ["Pod", "second"]]


def test_a_preempted_pod_says_why_and_is_gone_before_the_next_one_starts(team: Team) -> None:
    team.offers({"cpu": {"spot": "1"}}, preemption={"withinClusterQueue": "LowerPriority"})
    limits = {(team.flavor("spot"), "cpu"): 1.0}
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        victim = queued_pod(team.namespace, "victim")
        victim["metadata"]["annotations"]["admitter.dev/simulated-shutdown"] = "600"
        team.apply(victim)
        eventually(lambda: phase(team, "victim") == "Running", what="the victim to run")
        high = team.priority_class("high", 1000)
        team.apply(queued_pod(team.namespace, "preemptor", priorityClassName=high))
        eventually(
            lambda: "deletionTimestamp" in pod_named(team, "victim").get("metadata", {}),
            what="the victim to be deleted",
        )
        conditions = {c["type"]: c for c in pod_named(team, "victim")["status"]["conditions"]}
        assert conditions["DisruptionTarget"]["reason"] == "PreemptionByAdmitter"
        assert phase(team, "preemptor") == "Gated"
        becomes(team, "victim", "Failed")
        eventually(lambda: phase(team, "preemptor") == "Running", what="the preemptor to run")
    assert auditor.excesses == []


def test_a_group_of_two_shapes_is_admitted_whole_to_two_flavors(team: Team) -> None:
    team.offers({"cpu": {"spot": "6", "on-demand": "4"}})
    limits = {(team.flavor("spot"), "cpu"): 6.0, (team.flavor("on-demand"), "cpu"): 4.0}
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        small = [queued_pod(team.namespace, f"tune-{n}", group="tune", size=8) for n in range(6)]
        large = [queued_pod(team.namespace, f"tune-{n}", cpu="2", group="tune", size=8) for n in (6, 7)]
        team.apply(*small, *large[:1])
        eventually(
            lambda: group_workload(team, "tune").get("status", {}).get("message") == SEVEN,
            what="the group to wait for its last pod",
        )
        assert says(team, "tune", "QuotaReserved") == ("False", "PodGroupIncomplete")
        assert phases(team, "tune") == ["Gated"] * 7
        team.apply(*large[1:])
        runs(team, "tune", 8)
        types = nodes_of(team, "tune")
        assert {types[f"tune-{n}"] for n in range(6)} in ({"spot"}, {"on-demand"})
        assert len({types["tune-0"], types["tune-7"]}) == 2
        columns = team.kubectl("get", "wl", "--no-headers").split()
        assert columns[1:3] == ["PodGroup", "tune"]
    assert auditor.excesses == []


def test_preemption_takes_a_whole_group_and_only_that(team: Team) -> None:
    team.offers({"cpu": {"spot": "5"}}, preemption={"withinClusterQueue": "LowerPriority"})
    limits = {(team.flavor("spot"), "cpu"): 5.0}
    high, low = team.priority_class("high", 1000), team.priority_class("low", -1000)
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        team.apply(queued_pod(team.namespace, "other"))
        eventually(lambda: phase(team, "other") == "Running", what="the other pod to run")
        names = [f"victim-{n}" for n in range(4)]
        team.apply(
            *(queued_pod(team.namespace, n, group="victim", size=4, priorityClassName=low) for n in names)
        )
        runs(team, "victim", 4)
        team.apply(queued_pod(team.namespace, "preemptor", cpu="2", priorityClassName=high))
        eventually(lambda: phase(team, "preemptor") == "Running", what="the preemptor to run")
        have_ended(lambda: pods_of(team, "victim").values())
        assert phase(team, "other") == "Running"
        assert says(team, "victim", "Preempted")[0] == "True"
        team.controller.restart()
        team.kubectl("delete", "pod", "preemptor")
        team.apply(
            *(queued_pod(team.namespace, n, group="victim", size=4, priorityClassName=low) for n in names)
        )
        runs(team, "victim", 4)
    assert auditor.excesses == []


def test_a_pod_takes_the_place_of_one_that_has_failed_and_no_more_than_one(team: Team) -> None:
    team.offers({"cpu": {"spot": "2"}})
    limits = {(team.flavor("spot"), "cpu"): 2.0}
    with Auditor(team.cluster, team.namespace, limits) as auditor:
        team.apply(*(queued_pod(team.namespace, f"tune-{n}", group="tune", size=2) for n in (0, 1)))
        runs(team, "tune", 2)
        becomes(team, "tune-0", "Failed")
        team.controller.restart()
        team.apply(queued_pod(team.namespace, "tune-2", group="tune", size=2))
        eventually(lambda: phase(team, "tune-2") == "Running", what="the pod in its place to run")
        kills = team.controller.kills
        team.apply(queued_pod(team.namespace, "tune-3", group="tune", size=2))
        eventually(lambda: pod_named(team, "tune-3") == {}, what="the pod too many to be deleted")
        team.hears(lambda: "Excess" in team.events("tune-3"), kills, "an event that says why")
        assert (phase(team, "tune-1"), phase(team, "tune-2")) == ("Running", "Running")
        for name in ("tune-1", "tune-2"):
            becomes(team, name, "Succeeded")
        eventually(
            lambda: says(team, "tune", "Finished") == ("True", "JobSucceeded"), what="the group to finish"
        )
    assert auditor.excesses == []
