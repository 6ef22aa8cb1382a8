"""Examples of docs/coming-from-nos.md and docs/coming-from-scheduler-plugins.md, with `admitter simulate`."""

from pathlib import Path

import pytest

from tests.cluster.objects import Json
from tests.simulate.elastic import (
    GPU,
    GPU_MEMORY,
    SLICE,
    asks,
    capacities,
    events,
    priority_class,
    quota,
    rows,
    used,
)
from tests.simulate.test_simulate import simulate, states

TEN = {SLICE: 1}


def gpus(namespace: str, least: int, most: int) -> Json:
    return quota(namespace, {GPU: least}, {GPU: most})


def of_each_state(result: Json) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, state in states(result).items():
        found.setdefault(state, set()).add(name)
    return found


def the_table(*more: Json) -> list[Json]:
    """Minimums of 40, 10 and 30; at t1 A uses 40, B 40 and C nothing, in pods of 10 GB."""
    return [
        *(quota(f"team-{name}", {GPU_MEMORY: least}) for name, least in (("a", 40), ("b", 10), ("c", 30))),
        *(asks("team-a", f"a{n}", TEN, n) for n in range(4)),
        *(asks("team-b", f"b{n}", TEN, n) for n in range(4)),
        *more,
    ]


def test_t1_of_the_example(tmp_path: Path) -> None:
    result = simulate(tmp_path, *the_table())
    assert used(result, GPU_MEMORY) == {
        "eq_team-a_quota": "40",
        "eq_team-b_quota": "40",
        "eq_team-c_quota": "0",
    }
    assert capacities(result) == dict.fromkeys(["a0", "a1", "a2", "a3", "b0"], "in-quota") | dict.fromkeys(
        ["b1", "b2", "b3"], "over-quota"
    )
    borrowed = {
        row["name"]: row["usage"]["elastic_quota"][GPU_MEMORY]["borrowed"] for row in result["clusterQueues"]
    }
    assert borrowed == {"eq_team-a_quota": "0", "eq_team-b_quota": "30", "eq_team-c_quota": "0"}


def test_t2_of_the_example_and_the_next_pod_waits(tmp_path: Path) -> None:
    result = simulate(
        tmp_path, *the_table(asks("team-a", "first", TEN, 60), asks("team-a", "next", TEN, 120))
    )
    assert used(result, GPU_MEMORY) == {
        "eq_team-a_quota": "50",
        "eq_team-b_quota": "30",
        "eq_team-c_quota": "0",
    }
    assert events(result)[-2:] == [(60, "Preempted", "b3"), (60, "Admitted", "first")]
    (preempted,) = [event for event in result["events"] if event["type"] == "Preempted"]
    assert preempted["preemptor"].startswith("team-a/job-first-")
    assert of_each_state(result)["Pending"] == {"b3", "next"}
    assert capacities(result)["first"] == "over-quota"
    assert rows(result)["next"]["message"] == (
        f"asks for 10 {GPU_MEMORY} from ElasticQuota team-a/quota: too much of the 80 {GPU_MEMORY} (of which "
        "40 are its own) is in use; no workload that it may preempt would make room"
    )


def test_the_pod_of_the_example_is_10_and_32_gb(tmp_path: Path) -> None:
    result = simulate(
        tmp_path,
        quota("team", {GPU_MEMORY: 42}),
        asks("team", "both", {SLICE: 1, GPU: 1}),
        asks("team", "no", TEN),
    )
    (pod_set,) = rows(result)["both"]["podSets"]
    assert pod_set["usage"] == {GPU_MEMORY: "42"}
    assert pod_set["flavors"] == {GPU_MEMORY: "any_node"}
    assert states(result) == {"both": "Admitted", "no": "Pending"}


def test_a_crowd_of_ones_own_size_waits_and_nothing_loops(tmp_path: Path) -> None:
    """B runs seven Jobs of 10, one of 7 and one of 3; A asks for 70."""
    sizes = [10] * 7 + [7, 3]
    result = simulate(
        tmp_path,
        *(quota(name, {GPU_MEMORY: least}) for name, least in (("a", 40), ("b", 10), ("c", 30))),
        *(asks("b", f"b{n}", {GPU_MEMORY: size}, n) for n, size in enumerate(sizes)),
        asks("a", "large", {GPU_MEMORY: 70}, 60),
    )
    assert states(result)["large"] == "Pending"
    assert events(result, "Preempted") == []
    assert used(result, GPU_MEMORY) == {"eq_a_quota": "0", "eq_b_quota": "80", "eq_c_quota": "0"}


def story_1(*more: Json) -> list[Json]:
    """QuotaA (min 4, max 6) and QuotaB (min 6, max 8); A uses 2 GPUs and B 3, then A comes to 4."""
    return [
        *(gpus("a", 4, 6), gpus("b", 6, 8)),
        *(asks("a", f"a{n}", {GPU: 1}, n) for n in range(4)),
        *(asks("b", f"b{n}", {GPU: 1}, n) for n in range(3)),
        *more,
    ]


def test_story_1_borrows_up_to_its_max(tmp_path: Path) -> None:
    result = simulate(tmp_path, *story_1(*(asks("a", f"more{n}", {GPU: 1}, 10 + n) for n in range(3))))
    assert used(result, GPU) == {"eq_a_quota": "6", "eq_b_quota": "3"}
    assert of_each_state(result)["Pending"] == {"more2"}
    assert rows(result)["more2"]["reason"] == "InsufficientQuota"


def test_story_1_gives_back_what_it_borrowed(tmp_path: Path) -> None:
    borrowed = asks("a", "borrowed", {GPU: 2}, 10)
    result = simulate(
        tmp_path,
        *story_1(borrowed, asks("b", "back", {GPU: 3}, 60), asks("b", "one", {GPU: 1}, 90)),
        asks("b", "two", {GPU: 2}, 91),
    )
    assert events(result, "Preempted") == [(60, "Preempted", "borrowed")]
    assert used(result, GPU) == {"eq_a_quota": "4", "eq_b_quota": "6"}
    assert of_each_state(result)["Pending"] == {"borrowed", "one", "two"}, "what A has is its own"


def story_2(*more: Json) -> list[Json]:
    """QuotaA (min 3, max 4), QuotaB (min 4, max 6) and QuotaC (min 3, max 4)."""
    return [*(gpus("a", 3, 4), gpus("b", 4, 6), gpus("c", 3, 4)), *more]


def test_story_2_takes_from_a_quota_that_uses_more_than_its_min(tmp_path: Path) -> None:
    result = simulate(
        tmp_path,
        *story_2(
            *(asks("a", f"a{n}", {GPU: 1}, n) for n in range(4)),
            *(asks("b", f"b{n}", {GPU: 1}, n) for n in range(3)),
            *(asks("c", f"c{n}", {GPU: 1}, n) for n in range(3)),
            asks("b", "pod", {GPU: 1}, 60),
        ),
    )
    assert events(result, "Preempted") == [(60, "Preempted", "a3")]
    assert used(result, GPU) == {"eq_a_quota": "3", "eq_b_quota": "4", "eq_c_quota": "3"}


@pytest.mark.parametrize(("priority", "victims"), [("high", ["pod-b"]), ("", [])], ids=["higher", "equal"])
def test_story_2_takes_from_its_own_beyond_its_min(tmp_path: Path, priority: str, victims: list[str]) -> None:
    result = simulate(
        tmp_path,
        priority_class("high", 1000),
        *story_2(
            asks("a", "a0", {GPU: 2}),
            asks("c", "c0", {GPU: 3}),
            asks("b", "pod-a", {GPU: 2}, 1),
            asks("b", "pod-b", {GPU: 3}, 2),
            asks("b", "pod-c", {GPU: 1}, 60, priority=priority),
        ),
    )
    assert [name for _, _, name in events(result, "Preempted")] == victims
    assert states(result)["pod-c"] == ("Admitted" if victims else "Pending")


def test_a_high_priority_beyond_its_min_takes_nothing_of_others(tmp_path: Path) -> None:
    """Namespaces quota1 and quota2 have min 0 and max 2 CPUs, quota3 min 1: as in scheduler-plugins."""
    result = simulate(
        tmp_path,
        priority_class("high-priority", 1_000_000),
        quota("quota1", {"cpu": 0}, {"cpu": 2}),
        quota("quota2", {"cpu": 0}, {"cpu": 2}),
        quota("quota3", {"cpu": 1}, {"cpu": 2}),
        asks("quota1", "nginx1", {"cpu": 1}),
        asks("quota2", "nginx2", {"cpu": 1}, 10, priority="high-priority"),
    )
    assert states(result) == {"nginx1": "Admitted", "nginx2": "Pending"}
    assert capacities(result)["nginx1"] == "over-quota"
    later = asks("quota3", "owner", {"cpu": 1}, 20)
    result = simulate(
        tmp_path,
        priority_class("high-priority", 1_000_000),
        *(quota(f"quota{n}", {"cpu": int(n == 3)}, {"cpu": 2}) for n in (1, 2, 3)),
        asks("quota1", "nginx1", {"cpu": 1}),
        asks("quota2", "nginx2", {"cpu": 1}, 10, priority="high-priority"),
        later,
    )
    assert states(result) == {"nginx1": "Pending", "nginx2": "Pending", "owner": "Admitted"}


@pytest.mark.parametrize("together", [True, False], ids=["one Job of two pods", "two Jobs"])
def test_victims_may_be_on_any_node(tmp_path: Path, *, together: bool) -> None:
    """Quota1 borrows two CPUs in pods of one; quota2 asks for both in one pod, as in scheduler-plugins."""
    small = (
        [asks("quota1", "nginx", {"cpu": 1}, pods=2)]
        if together
        else [asks("quota1", f"nginx{n}", {"cpu": 1}) for n in range(2)]
    )
    result = simulate(
        tmp_path,
        quota("quota1", {"cpu": 0}, {"cpu": 2}),
        quota("quota2", {"cpu": 2}, {"cpu": 2}),
        *small,
        asks("quota2", "large", {"cpu": 2}, 30),
    )
    assert states(result).pop("large") == "Admitted"
    assert {state for name, state in states(result).items() if name != "large"} == {"Pending"}
    assert len(events(result, "Preempted")) == len(small)
    assert used(result, "cpu") == {"eq_quota1_quota": "0", "eq_quota2_quota": "2"}


def test_one_cycle_shows_which_victim_goes_for_which_preemptor(tmp_path: Path) -> None:
    manifests = [
        *(gpus("a", 0, 2), gpus("b", 2, 2)),
        asks("a", "victim", {GPU: 2}),
        asks("b", "preemptor", {GPU: 2}, 30),
    ]
    result = simulate(tmp_path, *manifests, options=["--cycles", "2"])
    assert states(result) == {"victim": "Preempted", "preemptor": "Pending"}
    assert rows(result)["preemptor"]["reason"] == "Preempting"
    assert rows(result)["preemptor"]["message"] == (
        "its place in ElasticQuota b/quota is kept: it starts when victims or extra pods have ended"
    )
