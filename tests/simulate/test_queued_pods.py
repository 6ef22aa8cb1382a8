"""Pods that name a queue, alone and in groups, and what makes them, with `admitter simulate`."""

from pathlib import Path
from typing import Any

import pytest

from tests.cluster.objects import Json, cluster_queue, local_queue, resource_flavor
from tests.cluster.pods import GROUP, SIZE, group_pod, maker, pod
from tests.simulate.test_kinds import errors, jobset
from tests.simulate.test_simulate import annotate, asks, simulate, states

INCOMPLETE = "PodGroupIncomplete"


def queue(cpus: int, **spec: Any) -> list[Json]:
    quota = {"cpu": {"default": str(cpus)}}
    return [
        resource_flavor("default", {}),
        cluster_queue("total", quota, **spec),
        local_queue("team", "total"),
    ]


def queued(made: Json, **spec: Any) -> Json:
    """What makes pods, with the queue on itself."""
    del made["spec"]["template"]["metadata"]["labels"]["admitter.dev/queue-name"]
    made["metadata"]["labels"] = {"admitter.dev/queue-name": "main"}
    made["spec"] |= spec
    return made


def deployment(replicas: int) -> Json:
    return queued(maker("team", "Deployment", "chat"), replicas=replicas)


def waits(result: Json) -> dict[str, str]:
    return {row["job"]: row["message"] for row in result["workloads"] if row["state"] == "Pending"}


def happened(result: Json) -> list[tuple[str, str, str]]:
    return [
        (event["time"][17:19], event["type"], event["name"].rpartition("-")[0]) for event in result["events"]
    ]


def started(result: Json) -> dict[str, str | None]:
    return {row["job"]: row["started"] and row["started"][14:19] for row in result["workloads"]}


def test_a_pod_is_a_workload_and_runs_for_its_time(tmp_path: Path) -> None:
    first = annotate(pod("team", "first"), "simulated-runtime", "10s")
    result = simulate(tmp_path, *queue(1), first, pod("team", "second"), pod("team", "free", queue=None))
    assert states(result) == {"pod/first": "Finished", "pod/second": "Admitted"}
    assert happened(result) == [
        ("00", "Admitted", "pod-first"),
        ("10", "Finished", "pod-first"),
        ("10", "Admitted", "pod-second"),
    ]


def test_a_group_is_admitted_once_all_of_it_is_there(tmp_path: Path) -> None:
    late = annotate(group_pod("team", "tune-1", "tune"), "simulated-at", "5s")
    early = annotate(group_pod("team", "tune-0", "tune"), "simulated-runtime", "20s")
    half = group_pod("team", "half-0", "half", 3)
    result = simulate(tmp_path, *queue(9), early, late, half)
    assert states(result) == {"podgroup/tune": "Finished", "podgroup/half": "Pending"}
    assert waits(result) == {"podgroup/half": "1 of its 3 pods is there"}
    (tune,) = (row for row in result["workloads"] if row["job"] == "podgroup/tune")
    assert (tune["pods"], tune["started"][17:19], tune["ended"][17:19]) == (2, "05", "25")
    (pod_set,) = tune["podSets"]
    assert (pod_set["count"], pod_set["usage"]) == (2, {"cpu": "2"})


def test_what_is_written_first_is_served_first_whatever_it_is(tmp_path: Path) -> None:
    group = [group_pod("team", f"tune-{number}", "tune") for number in range(2)]
    result = simulate(tmp_path, *queue(2), *group, pod("team", "train"), options=["--cycles", "1"])
    assert states(result) == {"podgroup/tune": "Admitted", "pod/train": "Pending"}
    result = simulate(tmp_path, *queue(2), pod("team", "train"), *group, options=["--cycles", "1"])
    assert states(result) == {"podgroup/tune": "Pending", "pod/train": "Admitted"}
    job = asks("job", 2)
    del job["metadata"]["creationTimestamp"]
    for given, first in (([job, *group], "job"), ([*group, job], "podgroup/tune")):
        result = simulate(tmp_path, *queue(2), *given, options=["--cycles", "1"])
        assert {name for name, state in states(result).items() if state == "Admitted"} == {first}


def test_pods_that_say_different_sizes_wait_and_say_so(tmp_path: Path) -> None:
    pods = [group_pod("team", f"tune-{size}", "tune", size) for size in (2, 3)]
    without = pod("team", "bare", labels={GROUP: "bare"})
    result = simulate(tmp_path, *queue(9), *pods, without)
    assert waits(result) == {
        "podgroup/tune": "its pods say that the group has 2 pods, and 3",
        "podgroup/bare": "a pod of it does not say how many there are",
    }


def test_a_pod_too_many_would_be_deleted_and_is_named(tmp_path: Path) -> None:
    pods = [group_pod("team", f"tune-{number}", "tune") for number in range(3)]
    result = simulate(tmp_path, *queue(9), *pods, exit_code=1)
    assert states(result) == {"podgroup/tune": "Admitted"}
    words = "its group tune has all of its 2 pods already: it would be deleted"
    assert errors(result) == {"Pod team/tune-2": words}


def test_names_of_kueue_mean_what_the_policies_make_of_them(tmp_path: Path) -> None:
    labels = {"kueue.x-k8s.io/queue-name": "main", "kueue.x-k8s.io/pod-group-name": "tune"}
    annotations = {
        "kueue.x-k8s.io/pod-group-total-count": "3",
        "kueue.x-k8s.io/pod-group-fast-admission": "true",
    }
    group = pod("team", "tune-0", queue=None, labels=labels, annotations=annotations)
    nowhere = pod("team", "lost", queue=None, labels={"kueue.x-k8s.io/queue-name": "gone"})
    result = simulate(tmp_path, group, nowhere, *queue(9), exit_code=1)
    assert states(result) == {"podgroup/tune": "Admitted"}
    assert [row["pods"] for row in result["workloads"]] == [3]
    words = "names LocalQueue gone, which is not there: it is not queued"
    assert errors(result) == {"Pod team/lost": f"its label kueue.x-k8s.io/queue-name {words}"}


def test_pods_of_a_deployment_are_each_for_itself(tmp_path: Path) -> None:
    result = simulate(tmp_path, *queue(2), deployment(3))
    assert states(result) == {"pod/chat-1": "Admitted", "pod/chat-2": "Admitted", "pod/chat-3": "Pending"}


def test_a_deployment_scales_up_and_down_to_nothing(tmp_path: Path) -> None:
    later = [annotate(deployment(n), "simulated-at", at) for n, at in ((0, "20s"), (3, "10s"), (1, "30s"))]
    result = simulate(tmp_path, *queue(9), deployment(1), *later, options=["--until", "15s"])
    assert started(result) == {"pod/chat-1": "00:00", "pod/chat-2": "00:10", "pod/chat-3": "00:10"}
    result = simulate(tmp_path, *queue(9), deployment(1), *later, options=["--until", "25s"])
    assert result["workloads"] == []
    result = simulate(tmp_path, *queue(9), deployment(1), *later)
    assert started(result) == {"pod/chat-1": "00:30"}


def test_a_stateful_set_is_one_group(tmp_path: Path) -> None:
    sets = [queued(maker("team", "StatefulSet", name), replicas=2) for name in ("db", "mail")]
    result = simulate(tmp_path, *queue(3), *sets)
    assert states(result) == {"podgroup/db": "Admitted", "podgroup/mail": "Pending"}
    apart = maker("team", "StatefulSet", "apart")
    assert states(simulate(tmp_path, *queue(3), apart)) == {"pod/apart-0": "Admitted"}


def test_each_replica_of_a_leader_worker_set_is_a_group(tmp_path: Path) -> None:
    template = {"spec": pod("team", "any")["spec"]}
    leader = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}
    made = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {
            "name": "llm",
            "namespace": "team",
            "labels": {"admitter.dev/queue-name": "main"},
            "annotations": {"admitter.dev/simulated-runtime": 10},
        },
        "spec": {
            "replicas": 2,
            "leaderWorkerTemplate": {"size": 3, "leaderTemplate": leader, "workerTemplate": template},
        },
    }
    result = simulate(tmp_path, *queue(4), made)
    assert states(result) == {"podgroup/llm-0": "Finished", "podgroup/llm-1": "Finished"}
    assert started(result) == {"podgroup/llm-0": "00:00", "podgroup/llm-1": "00:10"}
    assert sorted(each["count"] for each in result["workloads"][0]["podSets"]) == [1, 2]


def test_pods_are_not_counted_beside_what_makes_them(tmp_path: Path) -> None:
    def owned(kind: str, version: str, name: str) -> list[Json]:
        return [{"apiVersion": version, "kind": kind, "name": name, "uid": name, "controller": True}]

    replica_set = maker("team", "ReplicaSet", "chat-1", queue="main")
    replica_set["metadata"]["ownerReferences"] = owned("Deployment", "apps/v1", "chat")
    pods = [
        pod("team", "of-a-job", owners=owned("Job", "batch/v1", "any")),
        pod("team", "of-a-set", owners=owned("ReplicaSet", "apps/v1", "chat-1")),
        pod("team", "of-a-jobset", owners=owned("JobSet", "jobset.x-k8s.io/v1alpha2", "work")),
        pod("team", "of-others", owners=owned("Workflow", "argoproj.io/v1alpha1", "flow")),
        pod("team", "ended") | {"status": {"phase": "Succeeded"}},
    ]
    odd = maker("team", "ReplicaSet", "odd", queue=None)
    odd["metadata"]["ownerReferences"] = "nonsense"
    pods.append(pod("team", "of-what-is-odd", owners=owned("ReplicaSet", "apps/v1", "odd")))
    result = simulate(tmp_path, *queue(9), deployment(1), odd, replica_set, jobset("work", "1"), *pods)
    assert set(states(result)) == {"pod/chat-1", "jobset/work", "pod/of-others", "pod/of-what-is-odd"}


def preemption(*victims: Json) -> list[Json]:
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 9,
    }
    urgent = annotate(asks("urgent", 2, pod={"priorityClassName": "high"}, lasts="10s"), "simulated-at", "5s")
    del urgent["metadata"]["creationTimestamp"]
    return [*queue(2, preemption={"withinClusterQueue": "LowerPriority"}), high, *victims, urgent]


def test_an_evicted_pod_is_over_unless_a_controller_makes_it_anew(tmp_path: Path) -> None:
    result = simulate(tmp_path, *preemption(pod("team", "train"), deployment(1)))
    assert states(result) == {"pod/train": "Finished", "pod/chat-1": "Admitted", "urgent": "Finished"}
    assert {row["job"]: row["evictions"] for row in result["workloads"]} == {
        "pod/train": 1,
        "pod/chat-1": 1,
        "urgent": 0,
    }
    assert started(result)["pod/chat-1"] == "00:15"


@pytest.mark.parametrize(("retriable", "state"), [("true", "Admitted"), ("false", "Finished")])
def test_an_evicted_group_waits_for_its_pods_if_others_may_take_their_places(
    tmp_path: Path, retriable: str, state: str
) -> None:
    marks = {SIZE: "2", "admitter.dev/retriable-in-group": retriable}
    group = [pod("team", f"tune-{n}", labels={GROUP: "tune"}, annotations=marks) for n in range(2)]
    result = simulate(tmp_path, *preemption(*group))
    assert states(result) == {"podgroup/tune": state, "urgent": "Finished"}


def test_a_pod_that_goes_lets_the_next_in_and_leaves_its_group_incomplete(tmp_path: Path) -> None:
    first = annotate(pod("team", "first"), "simulated-until", "10s")
    group = [
        group_pod("team", "tune-0", "tune"),
        annotate(group_pod("team", "tune-1", "tune"), "simulated-until", "5s"),
    ]
    result = simulate(tmp_path, *queue(1), first, pod("team", "second"), *group)
    assert started(result) == {"pod/second": "00:10", "podgroup/tune": None}
    assert waits(result) == {"podgroup/tune": "1 of its 2 pods is there"}
    assert {row["reason"] for row in result["workloads"] if row["state"] == "Pending"} == {INCOMPLETE}


def test_a_group_of_too_many_shapes_is_an_error_once(tmp_path: Path) -> None:
    pods = [group_pod("team", f"tune-{n}", "tune", 10) for n in range(10)]
    for number, made in enumerate(pods):
        made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = str(number + 1)
    result = simulate(tmp_path, *queue(99), *pods, exit_code=1)
    assert result["workloads"] == []
    assert set(errors(result)) == {"podgroup/tune"}


def test_a_class_that_comes_later_changes_what_a_pod_asks_for(tmp_path: Path) -> None:
    pods = [group_pod("team", f"tune-{n}", "tune") for n in range(2)]
    for each in pods:
        each["spec"]["priorityClassName"] = "high"
    high = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "high"},
        "value": 9,
    }
    result = simulate(tmp_path, *queue(2), *pods, annotate(high, "simulated-at", "5s"))
    assert started(result) == {"podgroup/tune": "00:05"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"replicas": -1}, "spec.replicas: must be a whole number that is not negative"),
        ({"replicas": "3"}, "spec.replicas: must be a whole number that is not negative"),
        ({"replicas": 10**9}, "makes 1000000000 pods, and at most 10000 are read"),
        ({"template": 3}, "spec.template: is missing"),
    ],
)
def test_what_is_wrong_with_what_makes_pods_is_named(tmp_path: Path, changes: Json, words: str) -> None:
    made = deployment(1)
    made["spec"] |= changes
    result = simulate(tmp_path, *queue(2), made, pod("team", "train"), exit_code=1)
    assert errors(result) == {"Deployment team/chat": words}
    assert states(result) == {"pod/train": "Admitted"}
