"""What becomes of a tree when its nodes go (docs/design/hierarchy.md, *The root follows the cluster*)."""

from pathlib import Path
from typing import Any

import pytest

from tests.cluster.objects import Json
from tests.quotas.test_hierarchy import resources
from tests.simulate.elastic import at
from tests.simulate.test_hierarchy import asks, cohort, node, queue, used
from tests.simulate.test_simulate import annotate, simulate

PLAIN = {"apiVersion": "admitter.dev/v1alpha1", "kind": "ResourceFlavor", "metadata": {"name": "plain"}}
LISTED: Any = resources(cpu={"plain": {"min": 4}})


def tree(**root: Any) -> list[Json]:
    """The example: `a` has 4 of its own, `b` nothing, and both run what fits on two nodes of 8."""
    return [
        {**PLAIN, "spec": {}},
        cohort("root", capacityFrom="Nodes", **root),
        *queue("a", "root", resources=LISTED),
        *queue("b", "root", resources=resources(cpu={"plain": {}})),
        asks("a", "own", 4, 0),
        *(asks("b", f"job-{number}", 2, number) for number in range(5)),
    ]


def evicted(result: Json) -> list[tuple[str, str, str]]:
    found = [event for event in result["events"] if event["type"] == "Evicted"]
    return [(event["time"], event["name"].split("-")[2], event["reason"]) for event in found]


def test_with_wait_no_workload_goes_and_none_comes(tmp_path: Path) -> None:
    nodes = [node("one", 8), node("two", 8, until=60)]
    late = [asks("a", "late", 1, 61), asks("b", "later", 1, 62)]
    result = simulate(tmp_path, *tree(), *nodes, *late)
    assert used(result) == {"a": 4, "b": 10}
    assert evicted(result) == []
    assert [row["job"] for row in result["workloads"] if row["state"] == "Pending"] == ["late", "later"]


@pytest.mark.parametrize("after", [0, 30])
def test_with_evict_borrowers_go_the_newest_first(tmp_path: Path, after: int) -> None:
    nodes = [node("one", 8), node("two", 8, until=60)]
    root = {"onShrink": "Evict", "evictAfter": f"{after}s"}
    result = simulate(tmp_path, *tree(**root), *nodes)
    time = at(60 + after)
    assert evicted(result) == [(time, name, "CapacityShrunk") for name in ("4", "3", "2")]
    assert used(result) == {"a": 4, "b": 4}
    waiting = {row["job"]: row["reason"] for row in result["workloads"] if row["state"] == "Pending"}
    assert waiting == dict.fromkeys(("job-2", "job-3", "job-4"), "InsufficientQuota")


def test_what_comes_back_in_time_evicts_no_workload(tmp_path: Path) -> None:
    nodes = [node("one", 8), node("two", 8, until=60), node("three", 8, 80, until=100)]
    result = simulate(tmp_path, *tree(onShrink="Evict", evictAfter="30s"), *nodes)
    assert {time for time, _, _ in evicted(result)} == {at(130)}, "the delay begins anew at the second loss"


def test_an_edit_begins_the_delay_anew(tmp_path: Path) -> None:
    nodes = [node("one", 8), node("two", 8, until=60)]
    edited = cohort("root", capacityFrom="Nodes", onShrink="Evict", evictAfter="40s")
    annotate(edited, "simulated-at", "80s")
    result = simulate(tmp_path, *tree(onShrink="Evict", evictAfter="30s"), edited, *nodes)
    assert {time for time, _, _ in evicted(result)} == {at(120)}


def test_evicted_workloads_come_back_when_a_node_does(tmp_path: Path) -> None:
    nodes = [node("one", 8), node("two", 8, until=60), node("three", 8, 200)]
    result = simulate(tmp_path, *tree(onShrink="Evict", evictAfter="0s"), *nodes)
    assert len(evicted(result)) == 3
    assert used(result) == {"a": 4, "b": 10}
