"""How many pods there are, limited by queues, elastic quotas and namespaces, with `admitter simulate`."""

from pathlib import Path

import pytest

from tests.cluster.objects import ADMITTER, Json, cluster_queue, local_queue, resource_flavor
from tests.simulate.elastic import asks, quota
from tests.simulate.test_namespaces import namespace
from tests.simulate.test_simulate import simulate, states

FIVE = {"cpu": {"default": "9"}, "memory": {"default": "36Gi"}, "pods": {"default": "5"}}


def queue(**limits: dict[str, str]) -> list[Json]:
    return [resource_flavor("default", {}), cluster_queue("total", limits), local_queue("team", "total")]


def test_a_queue_counts_pods_beside_what_they_request(tmp_path: Path) -> None:
    jobs = [asks("team", f"j{n}", {"cpu": 1}, n, pods=2, queue="main") for n in range(3)]
    result = simulate(tmp_path, *queue(**FIVE), *jobs)
    assert states(result) == {"j0": "Admitted", "j1": "Admitted", "j2": "Pending"}
    (row,) = result["clusterQueues"]
    assert row["usage"]["default"]["pods"] == {"used": "4", "borrowed": "0"}
    (waits,) = [row for row in result["workloads"] if row["state"] == "Pending"]
    assert waits["message"] == (
        "asks for 2 cpu and 2 pods from ClusterQueue total: too much of the 5 pods of default is in use"
    )


def test_a_queue_of_pods_alone_admits_what_requests_nothing_else(tmp_path: Path) -> None:
    limits = {"pods": {"default": "2"}}
    jobs = [asks("team", "plain", {}, 1, queue="main"), asks("team", "cpus", {"cpu": 1}, 2, queue="main")]
    result = simulate(tmp_path, *queue(**limits), *jobs)
    assert states(result) == {"plain": "Admitted", "cpus": "Pending"}
    assert [row["reason"] for row in result["workloads"]] == ["ResourceNotCovered", ""]


@pytest.mark.parametrize(
    ("definitions", "name"),
    [
        pytest.param([quota("team", {"pods": 3})], "elastic-quota", id="an elastic quota"),
        pytest.param([namespace("team", quota='{"pods": 3}')], "team", id="an annotation alone"),
        pytest.param([namespace("team", quota='{"cpu": 9, "pods": "3"}')], "team", id="an annotation"),
        pytest.param(
            [
                resource_flavor("default", {}),
                cluster_queue("total", {"cpu": {"default": "9"}}, limits={"pods": 3}),
                local_queue("team", "total"),
            ],
            "main",
            id="a limit on what the queue does not list",
        ),
    ],
)
def test_three_pods_and_no_more(tmp_path: Path, definitions: list[Json], name: str) -> None:
    jobs = [asks("team", f"j{n}", {"cpu": 1}, n, queue=name, pods=2 - n // 2) for n in range(3)]
    result = simulate(tmp_path, *definitions, *jobs)
    assert states(result) == {"j0": "Admitted", "j1": "Pending", "j2": "Admitted"}


def workload(name: str, second: int, *, least: int | None = None, **requests: str) -> Json:
    pod_set = {"name": "main", "count": 4, "requests": requests} | ({"minCount": least} if least else {})
    return {
        "apiVersion": ADMITTER,
        "kind": "Workload",
        "metadata": {
            "name": name,
            "namespace": "team",
            "creationTimestamp": f"2026-01-01T00:00:{second:02}Z",
        },
        "spec": {"queueName": "main", "podSets": [pod_set]},
    }


def test_workloads_made_by_hand_count_pods_and_fewer_if_they_can_do_with_fewer(tmp_path: Path) -> None:
    made = [workload("all", 1, cpu="1"), workload("rest", 2, least=1, cpu="1"), workload("odd", 3, pods="5")]
    result = simulate(tmp_path, *queue(**FIVE), *made)
    counts = {row["name"]: [each["count"] for each in row["podSets"]] for row in result["workloads"]}
    assert (counts["all"], counts["rest"]) == ([4], [1])
    (odd,) = [row for row in result["workloads"] if row["name"] == "odd"]
    assert (odd["state"], odd["reason"]) == ("Pending", "InvalidRequests")
    assert "pods is 5, but each pod counts as one" in odd["message"]
