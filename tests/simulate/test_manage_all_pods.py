"""Pods that name no queue where an elastic quota manages all of them, with `admitter simulate`."""

from pathlib import Path
from typing import Any

import pytest

from tests.cluster.objects import Json, elastic_quota, job, local_queue
from tests.cluster.pods import GROUP, KUEUES_QUEUE, QUEUE, SIZE, maker, owner, pod
from tests.simulate.test_simulate import annotate, simulate, states


def namespace(name: str = "team", *, managed: bool = True) -> Json:
    labels = {"admitter.dev/managed": "true"} if managed else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def quota(cpus: int = 1, name: str = "team", **spec: Any) -> list[Json]:
    """A managed namespace with a quota that manages all pods."""
    return [namespace(name), elastic_quota(name, min={"cpu": cpus}, **{"manageAllPods": True, **spec})]


def bare(name: str, **more: Any) -> Json:
    return pod("team", name, None, **more)


@pytest.mark.parametrize("first", [True, False], ids=["quota first", "pods first"])
def test_pods_that_name_no_queue_are_the_quotas(tmp_path: Path, *, first: bool) -> None:
    pods = [
        annotate(bare("one"), "simulated-runtime", "10s"),
        bare("two", labels={QUEUE: ""}),
        bare("three", labels={KUEUES_QUEUE: "nope"}),
        pod("team", "named", "elastic-quota"),
        pod("other", "else", None),
    ]
    result = simulate(tmp_path, *(quota(2) + pods if first else pods + quota(2)))
    assert result["workloads"][0]["clusterQueue"] == "eq_team_quota"
    assert states(result) == {
        "pod/one": "Finished",
        "pod/two": "Admitted",
        "pod/three": "Admitted",
        "pod/named": "Pending",
    }


def test_what_names_a_queue_or_counts_otherwise_is_left_out(tmp_path: Path) -> None:
    made = job("team", "work", queue=None)
    of_job = {"apiVersion": "batch/v1", "kind": "Job", "name": "work", "uid": "u", "controller": True}
    chat = maker("team", "Deployment", "chat", None)
    chat["metadata"]["uid"] = "chat"
    pods = [
        bare("bound", nodeName="node"),
        bare("work-0", owners=[of_job]),
        bare("chat-0", owners=[owner(chat)]),
        pod("team", "main", "main"),
    ]
    result = simulate(tmp_path, *quota(9), local_queue("team", "gone"), made, chat, *pods)
    assert states(result) == {"pod/chat-1": "Admitted", "pod/main": "Pending"}


def test_pods_of_a_deployment_wait_each_for_itself_and_those_of_a_group_together(tmp_path: Path) -> None:
    chat = maker("team", "Deployment", "chat", None)
    chat["spec"]["replicas"] = 2
    group = [bare(f"tune-{n}", labels={GROUP: "tune"}, annotations={SIZE: "2"}) for n in range(2)]
    result = simulate(tmp_path, *quota(3), *group, chat)
    assert states(result) == {"podgroup/tune": "Admitted", "pod/chat-1": "Admitted", "pod/chat-2": "Pending"}


def test_it_needs_a_managed_namespace_and_a_quota_in_force(tmp_path: Path) -> None:
    unmanaged = simulate(tmp_path, namespace(managed=False), *quota(9)[1:], bare("free"))
    assert states(unmanaged) == {}
    older = elastic_quota("team", "older", min={"cpu": 1})
    younger = annotate(quota(9)[1], "simulated-at", "10s")
    late = annotate(bare("late"), "simulated-at", "20s")
    assert states(simulate(tmp_path, namespace(), older, younger, late)) == {}


def test_pods_from_before_the_quota_managed_them_are_left_alone(tmp_path: Path) -> None:
    managing = annotate(quota(9)[1], "simulated-at", "10s")
    late = annotate(bare("late"), "simulated-at", "10s")
    before = elastic_quota("team", min={"cpu": 9})
    result = simulate(tmp_path, namespace(), before, managing, bare("early"), late)
    assert states(result) == {"pod/late": "Admitted"}
