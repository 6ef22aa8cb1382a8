"""Who is expected still to come, and what that does to estimates."""

from random import Random

import pytest

from admitter.insight.arrivals import LOOKED_BACK_SECONDS, MOST, Arrivals
from admitter.insight.durations import Durations
from admitter.insight.estimates import Estimate, Estimator
from admitter.insight.snapshot import facts
from admitter.simulate.picture import Picture
from tests.insight.states import NOW, State


@pytest.fixture
def state() -> State:
    """One queue of four CPUs, all of them in use for another minute; what runs there takes two."""
    state = State()
    state.put("priorityclasses", "high", value=100)
    state.queue("total", {"cpu": {"default": {"min": "4"}}})
    state.namespace("a", "total")
    for number in range(3):
        usage = {"cpu": ("4", "default")}
        state.holds("a", f"took-{number}", usage, cluster_queue="total", since=-9000, finished=-8880)
    state.holds("a", "runs", {"cpu": ("4", "default")}, cluster_queue="total", since=-60)
    return state


def habitual(state: State, every: float, count: int, priority: str = "high") -> None:
    """So many Jobs that have come in regular intervals, the last of them just now."""
    for number in range(count):
        state.waits("a", f"{priority}-{number}", {"cpu": "4"}, priority=priority, created=-every * number)


def arrivals(state: State) -> Arrivals:
    picture = Picture(facts(state.snapshot()))
    return Arrivals(picture.world.workloads, Durations(picture), picture.now)


def estimated(state: State, name: str) -> Estimate:
    known = facts(state.snapshot())
    picture = Picture(known)
    view = picture.find("a", name)
    assert view is not None
    return Estimator(known, picture).of([view])[view.uid]


def test_as_many_come_as_came(state: State) -> None:
    habitual(state, every=10, count=31)  # in five minutes
    made = arrivals(state)
    drawn = [made.draw(Random(seed)) for seed in range(50)]
    counts = [len(each) for each in drawn]
    assert 27 < sum(counts) / len(counts) < 35
    assert len(set(counts)) > 5, "nobody knows how many it will be"
    for changes in drawn:
        assert [each.time for each in changes] == sorted(each.time for each in changes)
        assert all(NOW < each.time < NOW + 300 for each in changes)
    assert made.draw(Random(1)) == made.draw(Random(1))


def test_two_are_no_habit_and_what_is_long_past_is_over(state: State) -> None:
    habitual(state, every=10, count=2)
    for number in range(5):
        state.waits("a", f"old-{number}", {"cpu": "3"}, created=-LOOKED_BACK_SECONDS - 1 - number)
    assert arrivals(state).draw(Random(1)) == []


def test_of_very_many_only_so_many_are_drawn(state: State) -> None:
    habitual(state, every=0.01, count=3 * MOST)
    assert 0.9 * MOST < len(arrivals(state).draw(Random(1))) < 1.1 * MOST


def test_those_who_go_first_make_others_start_later(state: State) -> None:
    state.waits("a", "patient", {"cpu": "4"}, created=-500)
    before = estimated(state, "patient")
    assert before.median == pytest.approx(60)
    habitual(state, every=150, count=4)  # each takes two minutes: four of five minutes are theirs
    later = estimated(state, "patient")
    assert later.median is not None
    assert later.median > 60 + 4 * 120, "after those who wait already, and some of those who come"


def test_those_who_go_last_change_nothing(state: State) -> None:
    state.waits("a", "patient", {"cpu": "4"}, created=-500)
    before = estimated(state, "patient")
    habitual(state, every=100, count=4, priority="")
    assert estimated(state, "patient") == before
