"""Trees of queues on a timeline. Source: docs/coming-from-yunikorn.md."""

from collections import Counter
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.objects import ADMITTER, Json, job, local_queue, resource_flavor
from tests.quotas.test_hierarchy import resources
from tests.simulate.elastic import at, created
from tests.simulate.test_simulate import simulate

CHILDREN = ("child1", "child2", "child3")


def cohort(name: str, **spec: Any) -> Json:
    return {"apiVersion": ADMITTER, "kind": "Cohort", "metadata": {"name": name}, "spec": spec}


def queue(name: str, cohort: str = "", **spec: Any) -> list[Json]:
    """A ClusterQueue for everybody, and a LocalQueue in a namespace of the same name."""
    spec = {"namespaceSelector": {}, **({"cohort": cohort} if cohort else {}), **spec}
    made = {"apiVersion": ADMITTER, "kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec}
    return [made, local_queue(name, name)]


def cpus(**quota: Any) -> list[Json]:
    return resources(cpu={"default": quota})


def asks(namespace: str, name: str, cpu: int, second: int = 0, *, pods: int = 1) -> Json:
    made = job(namespace, name, pods=pods, requests={"cpu": str(cpu)}, seconds=None)
    return created(made, second)


EXAMPLE = [
    resource_flavor("default", {}),
    cohort("root", resources=cpus(min=2000)),
    cohort("parent", parent="root", resources=cpus(max=900)),
    *queue("child1", "parent"),
    *queue("child2", "parent", resources=cpus(max=750)),
    *queue("child3", "parent", resources=cpus(max=750)),
]


def used(result: Json) -> Counter[str]:
    """CPUs in use, by queue."""
    amounts: Counter[str] = Counter()
    for row in result["workloads"]:
        for pod_set in row["podSets"]:
            amounts[row["clusterQueue"]] += int(pod_set["usage"]["cpu"])
    return amounts


@pytest.mark.parametrize("order", list(permutations(CHILDREN)))
def test_the_first_get_what_the_parent_has(tmp_path: Path, order: tuple[str, ...]) -> None:
    jobs = [
        asks(child, f"{child}-{number}", 10, second)
        for second, child in enumerate(order, start=1)
        for number in range(105)
    ]
    result = simulate(tmp_path, *EXAMPLE, *jobs)
    left, expected = 900, {}
    for child in order:
        expected[child] = min(left, 900 if child == "child1" else 750)
        left -= expected[child]
    assert used(result) == Counter(expected)
    assert sum(used(result).values()) == 900


def test_a_sum_of_limits_may_be_more_than_the_parent_has(tmp_path: Path) -> None:
    """750 and 750 are more than 900, and no user is told that this is wrong."""
    jobs = [asks("child2", "two", 450, 1), asks("child3", "three", 450, 2), asks("child3", "more", 1, 3)]
    result = simulate(tmp_path, *EXAMPLE, *jobs)
    assert used(result) == {"child2": 450, "child3": 450}


def test_a_child_over_its_parent_works_by_the_lesser_limit(tmp_path: Path) -> None:
    queues = [*EXAMPLE, *queue("child4", "parent", resources=cpus(max=1000))]
    result = simulate(tmp_path, *queues, asks("child4", "most", 900, 1), asks("child4", "more", 1, 2))
    assert used(result) == {"child4": 900}
    (waiting,) = [row for row in result["workloads"] if row["state"] == "Pending"]
    assert waiting["reason"] == "InsufficientQuota"


def test_what_is_submitted_and_waits_uses_nothing(tmp_path: Path) -> None:
    """A gang of 950 never fits; it takes nothing from those behind it."""
    jobs = [asks("child1", "huge", 10, 1, pods=95), asks("child2", "fits", 750, 2)]
    assert used(simulate(tmp_path, *EXAMPLE, *jobs)) == {"child2": 750}


def test_a_limit_holds_over_all_flavors_together(tmp_path: Path) -> None:
    both = resources(cpu={"default": {"min": 5}, "other": {"min": 5}})
    manifests = [
        resource_flavor("default", {}),
        resource_flavor("other", {}),
        cohort("root", resources=both),
        *queue("team", "root", limits={"cpu": 7}),
        *(asks("team", f"job-{number}", 1, number) for number in range(9)),
    ]
    assert used(simulate(tmp_path, *manifests)) == {"team": 7}


def test_an_ancestor_that_changes_lets_those_below_in(tmp_path: Path) -> None:
    later = cohort("parent", parent="root", resources=cpus(max=1200))
    later["metadata"]["annotations"] = {"admitter.dev/simulated-at": "60s"}
    result = simulate(tmp_path, *EXAMPLE, later, *(asks("child1", f"job-{n}", 300, 1) for n in range(5)))
    assert used(result) == {"child1": 1200}
    admitted = Counter(event["time"] for event in result["events"])
    assert admitted == {at(1): 3, at(61): 1}


def node(name: str, cpu: int, second: int = 0, until: int | None = None, **spec: Any) -> Json:
    """A node that joins some seconds after the start, and may leave."""
    annotations = {"admitter.dev/simulated-at": f"{second}s"}
    if until is not None:
        annotations["admitter.dev/simulated-until"] = f"{until}s"
    metadata = {"name": name, "annotations": annotations, "labels": {"kubernetes.io/hostname": name}}
    status = {"allocatable": {"cpu": str(cpu), "memory": "8Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": status}


FOLLOWS = [*EXAMPLE[:1], cohort("root", capacityFrom="Nodes"), *EXAMPLE[2:]]


def test_the_example_holds_where_the_root_follows_the_nodes(tmp_path: Path) -> None:
    cluster = [node("one", 1000), node("two", 1000)]
    jobs = [asks(child, f"{child}-{n}", 10, s) for s, child in enumerate(CHILDREN, 1) for n in range(101)]
    assert used(simulate(tmp_path, *FOLLOWS, *cluster, *jobs)) == {"child1": 900}


def test_nodes_that_join_let_more_in_and_those_that_leave_keep_others_out(tmp_path: Path) -> None:
    cluster = [node("one", 4), node("two", 4, 60), node("one", 4, 120, unschedulable=True)]
    follows = [cohort("root", capacityFrom="Nodes"), *queue("team", "root")]
    jobs = [asks("team", f"job-{n}", 2, s) for n, s in enumerate((0, 0, 0, 0, 121))]
    short = asks("team", "short", 2, 0)
    short["metadata"]["annotations"] = {"admitter.dev/simulated-runtime": "130s"}
    result = simulate(tmp_path, *follows, *cluster, short, *jobs)
    admitted = [event["time"] for event in result["events"] if event["type"] == "Admitted"]
    assert Counter(admitted) == {at(0): 2, at(60): 2}
    pending = [row["job"] for row in result["workloads"] if row["state"] == "Pending"]
    assert len(pending) == 2, "when the short one ends, more is still in use than there is"


def test_a_queue_below_a_root_without_resources_runs_on_any_node(tmp_path: Path) -> None:
    manifests = [cohort("root", capacityFrom="Nodes"), *queue("team", "root"), node("one", 4)]
    result = simulate(tmp_path, *manifests, asks("team", "fits", 4), asks("team", "more", 1, 1))
    (row, waiting) = result["workloads"]
    assert row["podSets"][0]["flavors"] == {"cpu": "any_node", "pods": "any_node"}
    assert waiting["message"] == (
        "asks for 1 cpu and 1 pods from ClusterQueue team: too much of the 4 cpu (of which none are its own) "
        "is in use"
    )


def test_a_node_that_is_written_wrongly_is_named(tmp_path: Path) -> None:
    wrong = node("one", 4)
    wrong["status"]["allocatable"]["cpu"] = "four"
    result = simulate(tmp_path, *EXAMPLE, wrong, exit_code=1)
    (error,) = result["errors"]
    assert error["object"] == "Node one"
    assert "status.allocatable" in error["message"]
