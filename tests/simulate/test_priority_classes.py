"""WorkloadPriorityClasses in simulations: order, values that change, and queues that may not use one."""

from pathlib import Path
from typing import Any

import pytest

from tests.cluster.objects import ADMITTER, Json, cluster_queue, local_queue, resource_flavor
from tests.simulate.test_simulate import QUEUES, annotate, asks, happened, simulate, states

PREEMPTING = [
    resource_flavor("default", {}),
    cluster_queue("total", {"cpu": {"default": "4"}}, preemption={"withinClusterQueue": "LowerPriority"}),
    local_queue("team", "total"),
]


def a_class(name: str, value: int, at: str = "", **spec: Any) -> Json:
    metadata = {"name": name}
    made: Json = {"apiVersion": ADMITTER, "kind": "WorkloadPriorityClass", "metadata": metadata}
    made["spec"] = {"value": value, **spec}
    return annotate(made, "simulated-at", at) if at else made


def of_class(made: Json, name: str, label: str = "admitter.dev/priority-class") -> Json:
    made["metadata"]["labels"][label] = name
    return made


def admissions(result: Json) -> list[str]:
    return [name for _, kind, name in happened(result) if kind == "Admitted"]


@pytest.mark.parametrize(
    ("changes", "order"),
    [((), ["one", "three", "two"]), ((a_class("low", 9, at="1m"),), ["one", "two", "three"])],
    ids=["as it is", "a value that changes while it waits"],
)
def test_the_value_of_the_class_orders_what_waits(
    tmp_path: Path, changes: tuple[Json, ...], order: list[str]
) -> None:
    jobs = [asks(name, 4, lasts="2m") for name in ("one", "two", "three")]
    of_class(jobs[1], "low")
    of_class(jobs[2], "high", "kueue.x-k8s.io/priority-class")
    for each in jobs[1:]:
        annotate(each, "simulated-at", "10s")["metadata"].pop("creationTimestamp")
    result = simulate(tmp_path, *QUEUES, a_class("low", 1), a_class("high", 5), *jobs, *changes)
    assert admissions(result) == order


def test_a_lower_value_has_what_runs_evicted(tmp_path: Path) -> None:
    jobs = [of_class(asks("mine", 4, lasts="1h"), "mine"), of_class(asks("other", 4, lasts="1m"), "other")]
    classes = [a_class("mine", 9), a_class("other", 5), a_class("mine", 1, at="10m")]
    result = simulate(tmp_path, *PREEMPTING, *classes, *jobs)
    assert happened(result)[:3] == [
        ("00:00:00", "Admitted", "mine"),
        ("00:10:00", "Preempted", "mine"),
        ("00:10:00", "Admitted", "other"),
    ]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"clusterQueues": ["gold"]}, "its WorkloadPriorityClass mine is not for ClusterQueue total"),
        ({"namespaceSelector": {"matchLabels": {"a": "b"}}}, "its WorkloadPriorityClass mine is not for"),
        (None, "its WorkloadPriorityClass mine does not exist"),
    ],
)
def test_why_a_class_can_not_be_used(tmp_path: Path, spec: Json | None, words: str) -> None:
    classes = [a_class("mine", 9, **spec)] if spec is not None else []
    result = simulate(tmp_path, *QUEUES, *classes, of_class(asks("train", 1), "mine"))
    assert states(result) == {"train": "Pending"}
    (row,) = result["workloads"]
    assert row["message"].startswith(words)


def test_a_class_with_mistakes_is_named(tmp_path: Path) -> None:
    result = simulate(tmp_path, *QUEUES, a_class("odd", 2_000_000_000, clusterQueue="x"), exit_code=1)
    (error,) = result["errors"]
    assert error["object"] == "WorkloadPriorityClass odd"
    assert "spec.value: Input should be less than or equal to 1000000000" in error["message"]
    assert "spec.clusterQueue" in error["message"]
