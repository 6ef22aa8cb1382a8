"""Which queues use which node, and how the rest is spread."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitter.insight.fragmentation import Bin, Fit, Fitting, fit, spread
from admitter.insight.listing import rows
from admitter.insight.occupancy import Occupancy, Part, natural
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from tests.insight.nodes import GPU, node, park, pods
from tests.insight.states import State

Json = dict[str, Any]


def occupancy(state: State) -> Occupancy:
    return Occupancy(Snapshot(facts(state.snapshot())))


def test_each_node_has_the_pods_that_are_bound_to_it_and_have_not_ended() -> None:
    found = occupancy(park())
    used = {node.view.name: found.parts(node.pods, GPU)[0] for node in found.nodes}
    assert used == {
        "gpu-0": [Part("vision", 8, 2)],
        "gpu-1": [Part("vision", 3, 1), Part("speech", 1, 1)],
        "gpu-2": [Part("vision", 3, 3)],
        "gpu-3": [Part("speech", 4, 2)],
        "gpu-4": [Part("vision", 8, 1)],
        "gpu-5": [],
        "cpu-0": [],
        "cpu-1": [],
    }
    assert [node.flavor for node in found.nodes] == ["a100"] * 6 + ["cpu"] * 2
    assert [node.usable for node in found.nodes] == [True] * 4 + [False] * 2 + [True] * 2
    assert [node.place for node in found.nodes][2:4] == [("a", "a2"), ("b", "b1")]
    assert found.resources(found.nodes) == [GPU, "cpu", "memory"]


@pytest.mark.parametrize(
    ("taint", "ready", "flavor"),
    [
        pytest.param(None, True, "a100", id="plain"),
        pytest.param("node.kubernetes.io/unreachable", False, "a100", id="lost, and tainted because of that"),
        pytest.param("example.com/for-others", True, "", id="for others"),
    ],
)
def test_a_node_keeps_its_flavor_while_it_can_not_be_used(
    taint: str | None, ready: bool, flavor: str
) -> None:
    state = State("a100")
    taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
    node(state, "n", "a100", {GPU: "8"}, ready=ready, taints=taints)
    assert [each.flavor for each in occupancy(state).nodes] == [flavor]


def test_what_a_queue_does_not_count_is_told_by_the_requests_of_the_workload() -> None:
    state = park()
    one = state.holds("team-a", "one", {GPU: ("1", "a100"), "cpu": ("2", "a100")}, cluster_queue="vision")
    pods(state, one, "gpu-5", {GPU: "1", "cpu": "2"}, counted=(GPU,))
    two = state.holds("team-a", "two", {GPU: ("1", "a100")}, cluster_queue="vision")
    two["spec"]["podSets"] = [{"name": n, "count": 1, "requests": {"cpu": n}} for n in ("1", "2")]
    pods(state, two, "gpu-5", {GPU: "1", "cpu": "2"}, counted=(GPU,))
    gone = {"metadata": {"name": "gone", "namespace": "team-a", "uid": "gone"}}
    pods(state, gone, "gpu-5", {GPU: "1", "cpu": "2"}, counted=(GPU,))
    found = occupancy(state)
    (last,) = (node for node in found.nodes if node.view.name == "gpu-5")
    assert found.parts(last.pods, "cpu") == ([Part("vision", 2000, 1)], 2), "of two it is not known"
    assert found.parts(last.pods, GPU) == ([Part("vision", 2, 2), Part("", 1, 1)], 0), "no queue counts one"


def test_pods_without_a_node_and_on_nodes_that_are_gone_are_counted_apart() -> None:
    state = park()
    late = state.holds("team-a", "late", {GPU: ("4", "a100")}, cluster_queue="vision")
    pods(state, late, "", {GPU: "4"}, number=2)
    pods(state, late, "gpu-gone", {GPU: "4"})
    found = occupancy(state)
    assert [pod.workload for pod in found.without_node] == ["late", "late"]
    assert found.elsewhere == 1


def test_nodes_are_in_the_order_of_their_numbers() -> None:
    names = ["n-10", "n-2", "n-2-b", "m", "2", "n-" + "9" * 500, "n"]
    assert sorted(names, key=natural) == ["2", "m", "n", "n-2", "n-2-b", "n-10", "n-" + "9" * 500]


def test_how_the_free_part_of_a_resource_is_spread() -> None:
    found = Fitting(occupancy(park()), GPU).spread(lambda node: node.flavor == "a100")
    assert (found.nodes, found.total, found.used, found.free, found.largest) == (4, 32, 19, 13, 5)
    assert [(each.least, each.nodes) for each in found.bins if each.nodes] == [(0, 1), (4, 2), (5, 1)]
    assert dict(found.fits) == {1: 13, 2: 6, 4: 3, 8: 0}


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=9), st.sampled_from([GPU, "cpu"]))
def test_every_node_is_in_one_bin(nodes: list[tuple[int, int]], resource: str) -> None:
    unit = 7919 if resource == "cpu" else 1
    totals = [max(pair) * unit for pair in nodes]
    frees = [min(pair) * unit for pair in nodes]
    found = spread(totals, frees, resource)
    assert sum(each.nodes for each in found.bins) == (len(nodes) if any(totals) else 0)
    for each in found.bins:
        assert each.nodes == sum(each.least <= free <= each.most for free in frees)
    assert found.used + found.free == found.total
    for size, number in found.fits:
        assert (number > 0) == (found.largest >= size)


def test_bins_of_large_amounts_are_eighths() -> None:
    found = spread([64_000, 64_000], [0, 33_000], "cpu").bins
    assert found[0] == Bin(0, 0, 1)
    assert [each for each in found if each.nodes] == [Bin(0, 0, 1), Bin(32_001, 40_000, 1)]


@pytest.mark.parametrize(
    ("size", "expected"), [(3, Fit.FITS), (4, Fit.SPREAD), (7, Fit.FULL), (8, Fit.FULL), (9, Fit.TOO_LARGE)]
)
def test_why_a_pod_fits_on_no_node(size: int, expected: Fit) -> None:
    assert fit(size, [3, 2, 0, 1], 8) is expected


def test_waiting_pods_that_fit_on_no_node_now() -> None:
    state = park()
    for name, gpus, number in (("small", "1", 20), ("half", "4", 5), ("whole", "8", 1), ("giant", "9", 1)):
        state.waits("team-a", name, {GPU: gpus}, pods=number)
    state.waits("team-a", "none", {"cpu": "1"})
    found = occupancy(state)
    waiting = {each.row.job: each for each in Fitting(found, GPU).waiting(rows(found.snapshot, None))}
    assert {name: (each.count, each.size, each.fitting, each.fit) for name, each in waiting.items()} == {
        "small": (20, 1, 13, Fit.FITS),
        "half": (5, 4, 3, Fit.FITS),
        "whole": (1, 8, 0, Fit.SPREAD),
        "giant": (1, 9, 0, Fit.TOO_LARGE),
    }


def test_pods_fit_only_on_nodes_of_their_queues_flavors() -> None:
    state = park()
    state.put("resourceflavors", "h100", spec={"nodeLabels": {"kind": "h100"}})
    node(state, "new", "h100", {GPU: "8"})
    state.waits("team-a", "whole", {GPU: "8"})
    found = occupancy(state)
    (whole,) = Fitting(found, GPU).waiting(rows(found.snapshot, None))
    assert (whole.fitting, whole.fit) == (0, Fit.SPREAD)
    nodes = [replace(each, pods=()) for each in found.nodes]
    found.nodes = nodes
    (whole,) = Fitting(found, GPU).waiting(rows(found.snapshot, None))
    assert (whole.fitting, whole.fit) == (1, Fit.FITS)
