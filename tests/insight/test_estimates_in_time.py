"""Estimates where futures are dear: as many as there is time for, and what is said of the rest."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import pytest

from admitter.insight.explain.text import short, start
from admitter.insight.forecast.deadline import Deadline
from admitter.insight.forecast.estimates import NOT_IN_TIME, Estimate, Estimator
from admitter.insight.forecast.playing import Playing, in_turn
from admitter.insight.report import estimate_json
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from admitter.simulate.items import Event
from admitter.simulate.simulator import Simulator
from tests.insight.states import NOW, State

T = TypeVar("T")


class Steps:
    """A clock on which each look takes a second: so time is what is played, not what the machine does."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return float(self.looks)


@pytest.fixture
def state() -> State:
    """A queue of four CPUs in which one runs, which takes 100, 200 or 300 seconds, and two wait."""
    state = State()
    state.queue("total", {"cpu": {"default": {"min": "4"}}})
    state.namespace("a", "total")
    for number, runtime in enumerate((100, 200, 300)):
        usage = {"cpu": ("4", "default")}
        state.holds(
            "a", f"took-{number}", usage, cluster_queue="total", since=-9000, finished=-9000 + runtime
        )
    state.holds("a", "runs", {"cpu": ("4", "default")}, cluster_queue="total", since=-60)
    state.waits("a", "first", {"cpu": "4"}, created=-20)
    state.waits("a", "second", {"cpu": "4"}, created=-10)
    return state


def estimated(state: State, name: str, playing: Playing) -> Estimate:
    known = facts(state.snapshot())
    picture = Snapshot(known)
    view = picture.find("a", name)
    assert view is not None
    return Estimator(known, picture, expected=(), playing=playing).of([view])[view.uid]


def looks_of_one_future(state: State, name: str) -> int:
    clock = Steps()
    estimated(state, name, Playing(proceed=Deadline(10_000.0, clock).proceed))
    return clock.looks // 20


def test_with_time_enough_it_is_as_if_there_was_no_deadline(state: State) -> None:
    told = estimated(state, "second", Playing(proceed=Deadline(10_000.0, Steps()).proceed))
    assert told == estimated(state, "second", Playing())
    assert (told.told, told.runs, told.late, told.reached) == (20, 20, False, None)
    assert "with 90% confidence" in start(told)


def test_where_futures_are_dear_there_are_fewer_and_that_is_said(state: State) -> None:
    each = looks_of_one_future(state, "second")
    found = estimated(state, "second", Playing(proceed=Deadline(each * 3.5, Steps()).proceed))
    assert 2 <= found.told <= 4, "they take about as long as each other"
    assert found.median is not None
    assert f", from {found.told} of 20 playouts, by finished Jobs" in start(found)
    assert "confidence" not in start(found)
    assert f"from {found.told} of 20 playouts)" in short(found)
    answer = estimate_json(found, NOW)
    assert (answer["futures"], answer["inTime"]) == ({"told": found.told, "of": 20}, True)
    assert answer["confidence"] is None


def test_time_for_less_than_one_future_tells_how_far_that_was_played(state: State) -> None:
    each = looks_of_one_future(state, "second")
    found = estimated(state, "second", Playing(proceed=Deadline(each - 2.0, Steps()).proceed))
    assert (found.told, found.median, found.late) == (0, None, True)
    assert found.reached is not None
    assert 100 - 60 <= found.reached < 300, "the first one has started"
    assert start(found).startswith("no estimate in time; probably not within ")
    assert short(found) == "no estimate in time"
    answer = estimate_json(found, NOW)
    assert (answer["futures"], answer["inTime"], answer["median"]) == ({"told": 0, "of": 20}, False, None)
    assert answer["playedUntil"] is not None


def test_without_any_time_nothing_is_played(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Simulator, "run")
    found = estimated(state, "second", Playing(proceed=Deadline(0.0, Steps()).proceed))
    assert (found.told, found.late, found.reached) == (0, True, None)
    assert start(found) == start(NOT_IN_TIME) == "no estimate in time"
    assert estimate_json(found, NOW)["playedUntil"] is None


def endless(simulator: Simulator, **_: object) -> Iterator[Event]:
    """Evictions that never come to an end, all at the same moment."""
    while True:
        yield Event(simulator.now, "Preempted", ("a", "runs"), "total", "Preempted")


def silent(simulator: Simulator, watch: Callable[[float], None]) -> Iterator[Event]:
    """Steps in which nothing happens to any Workload."""
    while True:
        watch(simulator.now)
    yield


@pytest.mark.parametrize("never_ends", [endless, silent])
def test_a_single_future_that_never_ends_is_ended(
    state: State, never_ends: Callable[..., Iterator[Event]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Simulator, "run", never_ends)
    clock = Steps()
    assert estimated(state, "first", Playing(proceed=Deadline(500.0, clock).proceed)).late
    assert clock.looks <= 500 + 20, "each of the others looks once, and is not begun"


def test_one_that_never_ends_takes_no_other_along_where_they_are_played_apart(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, begun = Simulator.run, iter(range(1000))

    def run_or_not(simulator: Simulator, **options: Callable[[float], None]) -> Iterator[Event]:
        return endless(simulator) if next(begun) == 0 else run(simulator, **options)  # type: ignore[arg-type]

    def apart(futures: Sequence[Callable[[], T]], /) -> list[T]:
        clock.looks = 0
        found = []
        for future in futures:
            clock.looks = 0  # each has a process, and so time, of its own
            found.append(future())
        return found

    monkeypatch.setattr(Simulator, "run", run_or_not)
    clock = Steps()
    found = estimated(state, "second", Playing(apart, Deadline(1000.0, clock).proceed))
    assert (found.told, found.late, found.reached) == (19, False, None)
    assert ", from 19 of 20 playouts" in start(found)


def test_a_player_may_lose_futures(state: State) -> None:
    def loses(futures: Sequence[Callable[[], T]], /) -> list[T]:
        return in_turn(futures[::5])

    found = estimated(state, "second", Playing(loses))
    assert (found.told, found.runs) == (4, 20)


def test_what_ends_the_work_is_no_want_of_time(state: State) -> None:
    def gone() -> None:
        raise ConnectionAbortedError

    with pytest.raises(ConnectionAbortedError):
        estimated(state, "second", Playing(proceed=gone))


def test_time_goes_to_all_trees_alike() -> None:
    state = State()
    for name in ("a", "b", "c"):
        state.queue(f"queue-{name}", {"cpu": {"default": {"min": "4"}}})
        state.namespace(name, f"queue-{name}")
        runtime = {"admitter.dev/expected-runtime": "5m"}
        state.waits(name, "sooner", {"cpu": "4"}, created=-20, annotations=runtime)
        state.waits(name, "later", {"cpu": "4"}, created=-10, annotations=runtime)
    known = facts(state.snapshot())
    picture = Snapshot(known)
    views = [view for view in picture.world.workloads if view.job and view.job[0] == "later"]
    clock = Steps()
    Estimator(known, picture, playing=Playing(proceed=Deadline(10_000.0, clock).proceed)).of(views)
    each = clock.looks / 60
    playing = Playing(proceed=Deadline(each * 9.5, Steps()).proceed)
    found = Estimator(known, picture, playing=playing).of(views)
    told = [found[view.uid].told for view in views]
    assert (max(told) - min(told) <= 1, sum(told)) == (True, 10), "the last one may have been begun"


def test_newcomers_for_which_there_was_no_time_are_not_left_out_in_silence() -> None:
    only_alone = Estimate(60.0, 60.0, None, (), 0, coming=True, told=1)
    assert start(only_alone) == (
        "not before in 1 min, probably in 1 min if no more Jobs come, "
        "or later if they keep coming as they did, from 1 of 20 playouts"
    )


def test_ends_of_a_range_that_are_written_alike_are_no_range() -> None:
    """88.2 s and 88.4 s are both 1 min 28 s."""
    narrow = Estimate(88.2, 88.3, 88.4, (), 0)
    assert short(narrow) == "in 1 min 28 s"
    assert start(narrow) == "in 1 min 28 s with 90% confidence"
    begins = Estimate(0.2, 0.4, 0.8, (), 0)
    assert (short(begins), start(begins)) == ("at once", "at once with 90% confidence")
    wider = Estimate(88.2, 88.3, 89.8, (), 0)
    assert short(wider).startswith("in 1 min 28 s (1 min 28 s to 1 min ")
    assert " between in 1 min 28 s and in 1 min " in start(wider)


def test_words_of_a_range_that_few_futures_give() -> None:
    few = partial(replace, Estimate(600.0, 1200.0, 1800.0, (), 0))
    assert start(few(told=3)) == "in 20 min; between in 10 min and in 30 min, from 3 of 20 playouts"
    assert start(few(told=1)) == "in 20 min, from 1 of 20 playouts"
    assert short(few(told=3)) == "in 20 min (10 min to 30 min, from 3 of 20 playouts)"
    assert short(few(told=3, latest=None)) == "in 20 min or later (from 3 of 20 playouts)"
    assert start(few(told=2, median=None, late=True, reached=300.0)) == (
        "no estimate in time; probably not within 5 min"
    )
