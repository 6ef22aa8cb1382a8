"""WorkloadPriorityClasses on a real API server: order, values that change, queues that may not use one."""

from functools import partial
from typing import Any

import pytest

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.abuse import Attacker
from tests.cluster.objects import ADMITTER, Json, job, workload
from tests.cluster.pods import pod
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

CLASS, KUEUES_CLASS = "admitter.dev/priority-class", "kueue.x-k8s.io/priority-class"


def a_class(team: Team, name: str, value: int, **spec: Any) -> str:
    """Make a WorkloadPriorityClass, or change it; returns its full name."""
    full = f"{team.namespace}-{name}"
    kind = {"apiVersion": ADMITTER, "kind": "WorkloadPriorityClass"}
    team.apply({**kind, "metadata": {"name": full}, "spec": {"value": value, **spec}})
    return full


def of_class(made: Json, name: str, label: str = CLASS) -> Json:
    """An object with the label of a class."""
    made["metadata"]["labels"] = {**made["metadata"].get("labels", {}), label: name}
    return made


def priorities(team: Team) -> dict[str, int]:
    return {name: int(made["spec"]["priority"]) for name, made in team.workloads().items()}


def test_labels_of_jobs_and_pods_order_them_and_a_changed_value_orders_what_waits_anew(team: Team) -> None:
    team.offers({"cpu": {"on-demand": "1"}})
    team.apply(job(team.namespace, "busy", seconds=None))
    team.runs("busy")
    gold, iron = a_class(team, "gold", 30), a_class(team, "iron", 10)
    team.apply(
        of_class(job(team.namespace, "first", seconds=None), iron),
        of_class(job(team.namespace, "second", seconds=None), gold, KUEUES_CLASS),
        of_class(pod(team.namespace, "third"), gold),
    )
    eventually(
        lambda: priorities(team) == {"busy": 0, "first": 10, "second": 30, "third": 30},
        what="the values of classes",
    )
    a_class(team, "iron", 90)
    eventually(lambda: priorities(team)["first"] == 90, what="the value of now")
    team.kubectl("delete", "job", "busy")
    team.runs("first")
    assert team.state("second") == "Pending"
    a_class(team, "iron", 20)
    eventually(lambda: priorities(team)["first"] == 20, what="the value of what is admitted")
    assert team.state("first") == "Admitted"
    team.patch("job", "second", {"metadata": {"labels": {KUEUES_CLASS: None}}})
    eventually(lambda: priorities(team)["second"] == 0, what="a Job without a class")
    team.kubectl("delete", "job", "first")
    eventually(lambda: team.state("third") == "Admitted", what="the pod of the higher class")
    assert team.state("second") == "Pending"


def test_what_is_admitted_is_evicted_once_its_class_has_a_lower_value(team: Team) -> None:
    team.offers({"cpu": {"on-demand": "1"}}, preemption={"withinClusterQueue": "LowerPriority"})
    mine = a_class(team, "mine", 50)
    team.apply(of_class(job(team.namespace, "victim", seconds=None), mine))
    team.runs("victim")
    team.apply(of_class(job(team.namespace, "other", seconds=None), a_class(team, "other", 40)))
    eventually(lambda: team.state("other") == "Pending", what="a Job that waits")
    a_class(team, "mine", 30)
    team.runs("other")
    assert team.condition("victim", "Preempted")["status"] == "True"


def test_a_class_is_used_only_where_it_is_for_whatever_a_tenant_writes(
    team: Team, attacker: Attacker, user: Cluster
) -> None:
    """Labels of Jobs are the tenant's, those of namespaces and classes are not."""
    team.offers({"cpu": {"on-demand": "9"}}, priorityClasses=[])
    of_others = a_class(team, "others", 1000, clusterQueues=["of-others"])
    of_free = a_class(team, "free", 1000, namespaceSelector={"matchLabels": {"free": team.namespace}})
    low = team.priority_class("low", 1)
    attacker.create(
        of_class(job(team.namespace, "queue", seconds=None), of_others),
        of_class(job(team.namespace, "namespace", seconds=None), of_free, KUEUES_CLASS),
        of_class(job(team.namespace, "none", seconds=None), "none-such"),
        of_class(job(team.namespace, "pods", pod={"priorityClassName": low}), a_class(team, "usual", 5)),
        workload(team.namespace, "by-hand") | {"spec": _by_hand(of_others)},
    )
    for name, reason, words in (
        (
            "queue",
            "PriorityClassNotAllowed",
            f"its WorkloadPriorityClass {of_others} is not for ClusterQueue {team.cluster_queue}",
        ),
        (
            "namespace",
            "PriorityClassNotAllowed",
            f"its WorkloadPriorityClass {of_free} is not for namespace {team.namespace}",
        ),
        ("none", "PriorityClassNotFound", "its WorkloadPriorityClass none-such does not exist"),
        (
            "pods",
            "PriorityClassNotAllowed",
            f"its PriorityClass is {low}, but ClusterQueue {team.cluster_queue} takes none",
        ),
        (
            "by-hand",
            "PriorityClassNotAllowed",
            f"its WorkloadPriorityClass {of_others} is not for ClusterQueue {team.cluster_queue}",
        ),
    ):
        attacker.undone(partial(_waits_with, team, name, reason), f"{name} refused")
        assert team.workload(name)["status"]["message"] == words
    for refused in (
        ("label", "namespace", team.namespace, f"free={team.namespace}"),
        ("patch", "workloadpriorityclass", of_others, "--type=merge", '--patch={"spec":{"value":1}}'),
        ("delete", "workloadpriorityclass", of_others),
    ):
        with pytest.raises(KubectlError, match="forbidden"):
            user.run_kubectl(*refused)
    with pytest.raises(KubectlError, match="only active can be changed"):
        user.run_kubectl(
            *("patch", "workloads.admitter.dev", "by-hand", f"--namespace={team.namespace}", "--type=merge"),
            '--patch={"spec":{"workloadPriorityClass":null}}',
        )
    team.kubectl("label", "namespace", team.namespace, f"free={team.namespace}")
    team.runs("namespace")
    a_class(team, "others", 1000, clusterQueues=[team.cluster_queue])
    team.runs("queue")


def _waits_with(team: Team, name: str, reason: str) -> bool:
    return team.reason(name) == reason


def _by_hand(name: str) -> Json:
    pod_sets = [{"name": "main", "count": 1, "requests": {"cpu": "1"}}]
    return {"queueName": "main", "priority": 3, "workloadPriorityClass": name, "podSets": pod_sets}
