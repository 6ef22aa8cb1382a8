"""The schedule of the next hours: it follows the rules, says how sure it is, and can be made in pieces."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest

from admitter.insight.forecast.schedule import Forecaster, Range
from admitter.insight.snapshot_file import facts
from admitter.policy.snapshot import Snapshot
from tests.insight.states import NOW, State
from tests.web.pages import department

EACH = 10
"""Seconds of an hour that one of the finished Jobs took longer than the one before."""


def forecast(state: State, runs: int = 20, horizon: float = 6 * 3600.0) -> Forecaster:
    known = facts(state.snapshot())
    return Forecaster(known, Snapshot(known), runs=runs, horizon=horizon)


def played(state: State, runs: int = 20, horizon: float = 6 * 3600.0) -> Forecaster:
    made = forecast(state, runs, horizon)
    for _ in made.play():
        pass
    return made


def spoken(made: Forecaster) -> list[tuple[str, float, float | None]]:
    """Names, starts and ends, in seconds from now."""
    return [
        (stay.view.name, stay.starts - NOW, stay.ends - NOW if stay.ends is not None else None)
        for stay in made.stays
    ]


def line() -> State:
    """A queue with room for one at a time: one runs, two wait, and five like them took 100 to 140 s."""
    state = State()
    state.queue("a", {"cpu": {"default": {"min": "8"}}})
    state.namespace("team", "a")
    for number in range(5):
        state.holds(
            "team",
            f"past-{number}",
            {"cpu": ("8", "default")},
            cluster_queue="a",
            since=-9000,
            finished=-8900 + 10 * number,
        )
    state.holds("team", "runs", {"cpu": ("8", "default")}, cluster_queue="a", since=-60)
    for number in range(2):
        state.put(
            "workloads",
            f"waits-{number}",
            "team",
            spec={
                "queueName": "main",
                "priority": 0,
                "podSets": [{"name": "main", "count": 1, "requests": {"cpu": "8"}}],
            },
            status={"state": "Pending"},
        )
    return state


def test_each_starts_when_the_one_before_ends_and_runs_for_the_median() -> None:
    made = played(line())
    assert spoken(made) == [("runs", -60, 60), ("waits-0", 60, 180), ("waits-1", 180, 300)]
    assert made.done
    assert made.is_whole
    assert [stay.admission.queue for stay in made.stays] == ["a", "a", "a"]


def test_the_range_has_what_most_playouts_say() -> None:
    made = played(line())
    uids = {stay.view.name: stay.view.uid for stay in made.stays}
    runs = made.end_of(uids["runs"])
    assert runs is not None
    assert runs.latest is not None
    assert NOW + 40 <= runs.earliest <= NOW + 60 <= runs.latest <= NOW + 80
    assert made.start_of(uids["waits-0"]) == runs, "it starts when the other ends"
    second = made.start_of(uids["waits-1"])
    assert second is not None
    assert second.latest is not None
    assert second.earliest >= NOW + 140
    assert second.latest <= NOW + 220
    assert second.latest - second.earliest > runs.latest - runs.earliest, "what is further away is less sure"
    assert made.start_of("another") is None


class Growing(list[Any]):
    """A list to which another thread adds one each time it is looked through."""

    def __iter__(self) -> Iterator[Any]:
        there = list(super().__iter__())
        self.append(there[0])
        return iter(there)


def test_it_may_be_asked_while_another_thread_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made = played(line())
    uid = made.stays[1].view.uid
    known = made.start_of(uid), made.end_of(uid)
    monkeypatch.setattr(made, "_told", Growing(made._told))
    assert (made.start_of(uid), made.end_of(uid)) == known


def test_it_is_the_same_however_small_the_pieces_are() -> None:
    whole, pieces = played(line()), forecast(line())
    steps = 0
    while not pieces.done:
        list(islice(pieces.play(), 1))
        steps += 1
        assert steps < 10_000
    assert steps > 20
    assert spoken(pieces) == spoken(whole)
    uid = whole.stays[1].view.uid
    assert pieces.start_of(uid) == whole.start_of(uid)


def test_of_a_part_it_says_how_far_it_goes_and_no_range() -> None:
    made = forecast(line())
    playing = made.play()
    while len(made.stays) < 2:
        next(playing)
    assert made.taken < made.reached < made.until
    assert not made.is_whole
    assert not made.done
    assert made.end_of(made.stays[0].view.uid) is None
    assert made.stays[0].ends == NOW + 60
    assert made.stays[1].ends is None


def test_an_end_after_the_horizon_is_no_end_and_the_range_is_open() -> None:
    made = played(line(), horizon=90.0)
    assert spoken(made) == [("runs", -60, 60), ("waits-0", 60, None)]
    assert made.reached == NOW + 90
    assert made.end_of(made.stays[1].view.uid) is None
    cut = played(line(), horizon=60.0)
    found = cut.end_of(cut.stays[0].view.uid)
    assert found is not None
    assert found.latest is None


def test_without_known_runtimes_it_says_so_and_nothing_ends() -> None:
    state = State()
    state.queue("a", {"cpu": {"default": {"min": "8"}}})
    state.namespace("team", "a")
    state.holds("team", "runs", {"cpu": ("8", "default")}, cluster_queue="a", since=-60)
    state.waits("team", "waits", {"cpu": "8"})
    made = played(state)
    assert spoken(made) == [("runs", -60, None)]
    assert made.basis().unknown == 2
    assert not made.basis().sources
    assert made.basis(lambda namespace: namespace == "other").unknown == 0
    assert made.end_of(made.stays[0].view.uid) is None


def test_an_eviction_says_for_whom() -> None:
    state = department()
    for name in ("b", "a"):
        spec = state.objects["clusterqueues"][0 if name == "a" else 1]["spec"]
        spec["preemption"] = {"reclaimWithinCohort": "Any"}
    state.waits("team-b", "owner", {"cpu": "8"}, created=-10)
    made = played(state)
    stopped = [stay for stay in made.stays if stay.reason]
    assert [(stay.view.name, stay.reason) for stay in stopped] == [("long", "Preempted")]
    assert stopped[0].preemptor is not None
    assert stopped[0].preemptor[0] == "team-b"
    assert stopped[0].ends == NOW
    again = [stay for stay in made.stays if stay.view.name == "long"]
    assert [stay.first for stay in again] == [True, False], "it is admitted anew"


def test_equal_seeds_give_equal_ranges() -> None:
    one, other = played(department()), played(department())
    for stay in one.stays:
        found = one.end_of(stay.view.uid)
        assert found == other.end_of(stay.view.uid)
        assert isinstance(found, Range)
