"""Deployments and StatefulSets in a queue, run by Kubernetes itself: rollouts, scaling and evictions."""

import json
from typing import Any

import pytest

from tests.cluster.auditor import Auditor
from tests.cluster.pods import GATE, QUEUE, gates, maker
from tests.cluster.queued_pods import phase, queued_pod
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

NODES = "on-demand"
"""The nodes on which all of them run."""


def serves(team: Team, kind: str, replicas: int, *, pod: dict[str, Any] | None = None, **spec: Any) -> None:
    """Make a Deployment or StatefulSet `web` with a queue, of pods of one CPU."""
    made = maker(team.namespace, kind, "web", None)
    made["metadata"]["labels"] = {QUEUE: "main"}
    made["spec"] |= {"replicas": replicas, **spec}
    made["spec"]["template"]["spec"] |= pod or {}
    team.apply(made)


def rolls_over(team: Team, kind: str) -> None:
    """Change what its pods are made of, but not what they ask for."""
    team.patch(kind, "web", {"spec": {"template": {"metadata": {"annotations": {"turn": "second"}}}}})


def pods(team: Team, **annotations: str) -> list[dict[str, Any]]:
    """Its pods that are not on their way out; with these annotations."""
    found = team.read("pods", "--selector=app=web")["items"]
    return [
        each
        for each in found
        if "deletionTimestamp" not in each["metadata"]
        and annotations.items() <= each["metadata"].get("annotations", {}).items()
    ]


def running(team: Team, **annotations: str) -> list[str]:
    """The names of those that run."""
    return sorted(
        each["metadata"]["name"]
        for each in pods(team, **annotations)
        if each.get("status", {}).get("phase") == "Running"
    )


def gated(team: Team) -> list[str]:
    return [each["metadata"]["name"] for each in pods(team) if gates(each) == [GATE]]


def lines(team: Team) -> list[list[str]]:
    """Kind and name of each Workload that is not over, as `kubectl get workloads` shows them."""
    shown = team.kubectl("get", "workloads.admitter.dev", "--no-headers", "--ignore-not-found")
    return sorted(line.split()[1:3] for line in shown.splitlines() if "Finished" not in line)


def told(team: Team, kind: str) -> list[str]:
    """Messages of events on the Deployment or StatefulSet that say that there is no quota for its pods."""
    selector = f"--field-selector=involvedObject.name=web,involvedObject.kind={kind},reason=InsufficientQuota"
    return [each["message"] for each in team.read("events", selector)["items"]]


def audited(team: Team, cpus: int) -> Auditor:
    return Auditor(team.cluster, team.namespace, {(team.flavor(NODES), "cpu"): float(cpus)})


def offers(team: Team, cpus: int, **more: Any) -> None:
    team.offers({"cpu": {NODES: str(cpus)}}, **more)


def surge(pods_more: int, pods_less: int) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": pods_more, "maxUnavailable": pods_less}}


def test_a_deployment_rolls_over_within_the_quota_that_it_has(team: Team) -> None:
    offers(team, 2)
    with audited(team, 2) as auditor:
        serves(team, "Deployment", 2, strategy=surge(1, 1))
        eventually(lambda: len(running(team)) == 2, what="its pods to run")
        rolls_over(team, "deployment")
        eventually(
            lambda: len(pods(team)) == len(running(team, turn="second")) == 2, what="new pods in their places"
        )
        assert [kind for kind, _ in lines(team)] == ["Pod", "Pod"]
    assert auditor.excesses == []
    assert auditor.most_on[NODES] == 2, "never more than the quota at once"


def test_a_deployment_that_may_not_lose_a_pod_says_why_its_rollout_waits(team: Team) -> None:
    offers(team, 2)
    with audited(team, 3) as auditor:
        serves(team, "Deployment", 2, strategy=surge(1, 0))
        eventually(lambda: len(running(team)) == 2, what="its pods to run")
        kills = team.controller.kills
        rolls_over(team, "deployment")
        eventually(lambda: gated(team), what="a pod that waits")
        (waiting,) = gated(team)
        eventually(lambda: team.reason(waiting) == "InsufficientQuota", what="the reason")
        team.hears(
            lambda: told(team, "Deployment") and team.events(waiting), kills, "events on it and on the pod"
        )
        messages = told(team, "Deployment")
        assert len(messages) == 1 or team.controller.kills > kills
        for message in messages:
            assert message.startswith(f"pod {waiting} waits: asks for 1 cpu from ClusterQueue")
        assert team.events(waiting).keys() <= {"InsufficientQuota"}
        assert (len(running(team)), auditor.most_on[NODES]) == (2, 2)
        offers(team, 3)
        eventually(lambda: len(pods(team)) == len(running(team, turn="second")) == 2, what="the rollout")
        assert len(told(team, "Deployment")) == 1 or team.controller.kills > kills, "one for one wait"
    assert auditor.excesses == []


def test_a_stateful_set_that_is_evicted_comes_back_with_its_ordinals(team: Team) -> None:
    offers(team, 3, preemption={"withinClusterQueue": "LowerPriority"})
    low, high = team.priority_class("low", -1000), team.priority_class("high", 1000)
    ordinals = ["web-0", "web-1", "web-2"]
    with audited(team, 3) as auditor:
        serves(team, "StatefulSet", 3, pod={"priorityClassName": low})
        eventually(lambda: running(team) == ordinals, what="its pods to run")
        assert lines(team) == [["PodGroup", "web"]]
        kills = team.controller.kills
        team.apply(queued_pod(team.namespace, "urgent", cpu="2", priorityClassName=high))
        eventually(lambda: phase(team, "urgent") == "Running", what="the other pod to run")
        assert running(team) == [], "it is admitted as a whole, and so it is evicted"
        # a later one too, if it was gone before the first one had to go
        eventually(lambda: "web-0" in gated(team), what="its first pod to wait")
        team.hears(lambda: told(team, "StatefulSet"), kills, "an event on the StatefulSet")
        assert lines(team) == [["Pod", "urgent"], ["PodGroup", "web"]]
        team.controller.restart()
        team.kubectl("delete", "pod", "urgent")
        eventually(lambda: running(team) == ordinals, what="its pods to run again")
        assert lines(team) == [["PodGroup", "web"]]
    assert auditor.excesses == []
    assert auditor.most_on[NODES] == 3


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_what_is_scaled_to_zero_holds_nothing_until_it_is_scaled_back(team: Team, kind: str) -> None:
    offers(team, 2)
    with audited(team, 2) as auditor:
        serves(team, kind, 2)
        eventually(lambda: len(running(team)) == 2, what="its pods to run")
        team.apply(queued_pod(team.namespace, "other", cpu="2"))
        eventually(lambda: team.reason("other") == "InsufficientQuota", what="another pod to wait")
        team.kubectl("scale", kind.lower(), "web", "--replicas=0")
        eventually(lambda: phase(team, "other") == "Running", what="it to run in their place")
        assert lines(team) == [["Pod", "other"]]
        team.kubectl("scale", kind.lower(), "web", "--replicas=2")
        eventually(lambda: gated(team), what="its pods to wait")
        team.kubectl("delete", "pod", "other")
        eventually(lambda: len(running(team)) == 2, what="its pods to run again")
    assert auditor.excesses == []


def test_a_stateful_set_asks_for_the_difference_and_frees_it(team: Team) -> None:
    offers(team, 3)
    with audited(team, 3) as auditor:
        serves(team, "StatefulSet", 2)
        eventually(lambda: running(team) == ["web-0", "web-1"], what="its pods to run")
        started = {each["metadata"]["uid"] for each in pods(team)}
        team.kubectl("scale", "statefulset", "web", "--replicas=3")
        eventually(lambda: running(team) == ["web-0", "web-1", "web-2"], what="one more to run")
        assert lines(team) == [["Pod", "web-2"], ["PodGroup", "web"]]
        assert started < {each["metadata"]["uid"] for each in pods(team)}, "the others run on"
        team.apply(queued_pod(team.namespace, "other", cpu="2"))
        eventually(lambda: team.reason("other") == "InsufficientQuota", what="another pod to wait")
        team.kubectl("scale", "statefulset", "web", "--replicas=1")
        eventually(lambda: phase(team, "other") == "Running", what="it to run on what is free")
        assert running(team) == ["web-0"]
        assert lines(team) == [["Pod", "other"], ["PodGroup", "web"]]
    assert auditor.excesses == []
    assert auditor.highest[team.flavor(NODES), "cpu"] == 3


def test_a_stateful_set_of_one_pod_rolls_over_though_another_waits_for_its_place(team: Team) -> None:
    offers(team, 1)
    with audited(team, 1) as auditor:
        serves(team, "StatefulSet", 1)
        eventually(lambda: running(team) == ["web-0"], what="its pod to run")
        team.apply(queued_pod(team.namespace, "other"))
        eventually(lambda: team.reason("other") == "InsufficientQuota", what="another pod to wait")
        rolls_over(team, "statefulset")
        eventually(lambda: running(team, turn="second") == ["web-0"], what="a new pod in its place")
        assert phase(team, "other") == "Gated"
        team.kubectl("delete", "statefulset", "web")
        eventually(lambda: phase(team, "other") == "Running", what="the other pod to run")
    assert auditor.excesses == []
    assert auditor.most_on[NODES] == 1


def test_a_stateful_set_rolls_over_to_pods_that_ask_for_something_else(team: Team) -> None:
    offers(team, 3)
    with audited(team, 3) as auditor:
        serves(team, "StatefulSet", 2)
        eventually(lambda: running(team) == ["web-0", "web-1"], what="its pods to run")
        container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": "1500m"}}}
        changed = {
            "template": {"metadata": {"annotations": {"turn": "second"}}, "spec": {"containers": [container]}}
        }
        team.kubectl("patch", "statefulset", "web", f"--patch={json.dumps({'spec': changed})}")
        eventually(
            lambda: running(team, turn="second") == ["web-0", "web-1"], what="new pods in their places"
        )
    assert auditor.excesses == []
