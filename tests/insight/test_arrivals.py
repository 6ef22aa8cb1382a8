"""Workloads that may still come: kinds that keep coming, how often, and for how long."""

from collections import Counter
from itertools import pairwise
from random import Random
from statistics import median

import pytest

from admitter.cache.views import WorkloadView
from admitter.insight.forecast.arrivals import MOST, Arrivals
from admitter.insight.forecast.durations import Durations
from admitter.insight.snapshot_file import facts
from admitter.names import SIMULATED_RUNTIME_ANNOTATION
from admitter.policy.snapshot import Snapshot
from admitter.quantities.durations import parse_duration
from admitter.simulate.manifests import Change
from tests.insight.states import NOW, State
from tests.scale import scaled

SEEDS = range(scaled(100, 2000))


@pytest.fixture
def state() -> State:
    """One queue of four CPUs."""
    state = State()
    state.queue("total", {"cpu": {"default": {"min": "4"}}})
    state.namespace("a", "total")
    state.namespace("b", "total")
    return state


def came(state: State, *moments: float, cpus: str = "4", namespace: str = "a", took: float = 1) -> None:
    """Workloads that came at these seconds, started at once and have finished."""
    for moment in moments:
        name = f"{cpus}-came-{len(state.objects['workloads'])}"
        usage = {"cpu": (cpus, "default")}
        state.holds(
            namespace,
            name,
            usage,
            cluster_queue="total",
            since=moment,
            finished=moment + took,
            created=moment,
        )


def arrivals(state: State) -> Arrivals:
    picture = Snapshot(facts(state.snapshot()))
    views: list[WorkloadView] = list(picture.world.workloads)
    return Arrivals(views, Durations(picture), NOW)


def futures(state: State) -> list[list[Change]]:
    found = arrivals(state)
    return [found.draw(Random(seed)) for seed in SEEDS]


def ends(state: State) -> list[float]:
    """After how many seconds the last one comes, in many futures; zero if none does."""
    return [future[-1].time - NOW if future else 0.0 for future in futures(state)]


def asks(change: Change) -> str:
    return str(change.object["spec"]["podSets"][0]["requests"]["cpu"])


def test_workloads_that_came_every_ten_seconds_go_on_so(state: State) -> None:
    came(state, *range(-1000, 0, 10))
    longest = max(futures(state), key=len)
    assert len(longest) == MOST
    assert longest[0].time >= NOW
    pauses = {round(later.time - earlier.time, 6) for earlier, later in pairwise(longest)}
    assert pauses == {10.0}


def test_workloads_that_came_together_come_together(state: State) -> None:
    came(state, *(at for at in range(-960, 0, 120) for _ in range(6)))
    longest = max(futures(state), key=len)
    batches = Counter(round(change.time, 3) for change in longest[:600])
    assert set(batches.values()) == {6}
    assert {round(later - earlier) for earlier, later in pairwise(batches)} == {120}


def test_futures_begin_at_different_moments_of_the_past(state: State) -> None:
    came(state, *range(-1000, 0, 100))
    drawn = [future[0].time - NOW for future in futures(state) if future]
    assert min(drawn) < 10
    assert max(drawn) > 90


def test_half_of_all_futures_go_on_for_longer_than_so_far(state: State) -> None:
    came(state, *range(-1000, 0, 10))
    assert 850 < median(ends(state)) < 1150


def test_a_tenth_of_all_futures_ends_within_a_ninth_of_the_time_so_far(state: State) -> None:
    came(state, *range(-1000, 0, 10))
    early = sum(end < 1000 / 9 for end in ends(state))
    assert 0.06 < early / len(SEEDS) < 0.16


def test_a_burst_is_no_habit(state: State) -> None:
    came(state, *([-30] * 100))
    assert not arrivals(state)
    assert arrivals(state).draw(Random(1)) == []


def test_a_kind_has_stopped_that_was_silent_for_more_than_twice_its_longest_pause(state: State) -> None:
    came(state, -100, -90, -61)
    assert not arrivals(state), "61 s of silence, and 29 s at the most before that"
    came(state, -31)
    assert arrivals(state), "31 s, and 30 s before that"


def test_each_kind_stops_by_itself(state: State) -> None:
    came(state, -100, -95, -90, cpus="1")
    came(state, -100, -60, -20, cpus="4")
    drawn = [change for future in futures(state) for change in future]
    assert {asks(change) for change in drawn} == {"4"}


def test_one_kind_may_come_from_several_namespaces(state: State) -> None:
    came(state, -100, -60, namespace="a")
    came(state, -80, -40, namespace="b")
    drawn = [change for future in futures(state) for change in future]
    assert {change.object["metadata"]["namespace"] for change in drawn} == {"a", "b"}


def test_a_newcomer_runs_for_what_its_kind_took_and_has_a_name_that_no_object_can_have(state: State) -> None:
    came(state, -160, -110, took=30)
    came(state, -60, -55, took=50)
    drawn = [change.object["metadata"] for future in futures(state) for change in future]
    runtimes = {parse_duration(each["annotations"][SIMULATED_RUNTIME_ANNOTATION]) for each in drawn}
    assert runtimes == {30.0, 50.0}
    assert all(" " in each["name"] for each in drawn)


def test_a_kind_of_unknown_runtime_is_left_out(state: State) -> None:
    for moment in (-100, -80, -60):
        state.waits("a", f"waits{moment}", {"cpu": "4"}, created=moment)
    assert not arrivals(state)


def test_only_kinds_of_which_something_is_known_come_again(state: State) -> None:
    state.waits("a", "unknown", {"cpu": "4"}, created=-100)
    for moment in (-75, -50):
        known = {"admitter.dev/expected-runtime": f"{-moment}s"}
        state.waits("a", f"known{moment}", {"cpu": "4"}, created=moment, annotations=known)
    drawn = [change.object["metadata"] for future in futures(state) for change in future]
    runtimes = {parse_duration(each["annotations"][SIMULATED_RUNTIME_ANNOTATION]) for each in drawn}
    assert runtimes == {75.0, 50.0}


def test_a_kind_goes_on_for_as_long_as_it_has_itself(state: State) -> None:
    came(state, -500_000, -200_000, cpus="1")
    came(state, *range(-1000, 0, 100), cpus="4")
    last = [
        max((change.time - NOW for change in future if asks(change) == "4"), default=0.0)
        for future in futures(state)
    ]
    assert 850 < median(last) < 1150


def test_kinds_that_came_in_step_go_on_in_step(state: State) -> None:
    came(state, *range(-1000, 0, 100), cpus="1")
    came(state, *range(-1000, 0, 100), cpus="4")
    for future in futures(state):
        times = {cpus: [change.time for change in future if asks(change) == cpus] for cpus in ("1", "4")}
        assert times["1"] == times["4"]


def test_a_frequent_kind_leaves_the_others_their_part(state: State) -> None:
    came(state, *range(-4000, 0), cpus="1")
    came(state, *range(-4000, 0, 100), cpus="4")
    longest = max(futures(state), key=lambda future: future[-1].time if future else 0.0)
    counts = Counter(asks(change) for change in longest)
    assert counts == {"1": MOST // 2, "4": MOST // 2}


def test_the_same_seed_gives_the_same_future(state: State) -> None:
    came(state, *range(-1000, 0, 10))
    assert arrivals(state).draw(Random(7)) == arrivals(state).draw(Random(7))
