"""What a change does at once is always told; starts are compared as far as there is time to play."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from admitter.insight.forecast.deadline import Allowance, Deadline
from admitter.insight.snapshot_file import facts
from admitter.insight.stamps import spell
from admitter.insight.what_if.compare import Difference, compare
from admitter.insight.what_if.report import difference_json, tables
from admitter.policy.snapshot import Facts
from admitter.simulate.items import Event
from admitter.simulate.manifests import Change
from admitter.simulate.simulator import Simulator
from tests.cluster.objects import cluster_queue
from tests.insight.asking import Desk
from tests.insight.states import State

WAITING = 12


class Steps:
    """A clock on which each look takes a second: so time is what is played, not what the machine does."""

    def __init__(self) -> None:
        self.looks = 0

    def __call__(self) -> float:
        self.looks += 1
        return float(self.looks)


@pytest.fixture
def state() -> State:
    """A queue of four CPUs: one of ten minutes runs, and a dozen like it wait."""
    state = State()
    state.queue("total", {"cpu": {"default": {"min": "4"}}})
    state.namespace("a", "total")
    for number, finished in enumerate((600, 600, 600)):
        usage = {"cpu": ("4", "default")}
        name = f"took-{number}"
        state.holds("a", name, usage, cluster_queue="total", since=-9000, finished=-9000 + finished)
    state.holds("a", "runs", {"cpu": ("4", "default")}, cluster_queue="total", since=0)
    for number in range(WAITING):
        state.waits("a", f"waits-{number:02}", {"cpu": "4"}, created=number - 100)
    return state


def doubled(known: Facts) -> list[Change]:
    return [Change(known.taken, 0, cluster_queue("total", {"cpu": {"default": "8"}}))]


def compared(state: State, allowed: Allowance | None) -> Difference:
    known = facts(state.snapshot())
    if allowed is None:
        return compare(known, doubled(known))
    return compare(known, doubled(known), allowed=allowed)


def told(difference: Difference) -> str:
    console = Console(width=120, highlight=False)
    with console.capture() as capture:
        for table in tables(difference):
            console.print(table)
    return capture.get()


def test_with_time_enough_it_is_as_if_there_was_no_limit(state: State) -> None:
    whole = compared(state, None)
    assert compared(state, Allowance(10_000.0, Steps())) == whole
    assert whole.until is None
    assert len(whole.shifts) == WAITING - 1, "the first starts at once with the change"
    assert difference_json(whole, 0.0)["startsUntil"] is None
    assert "Other starts: 11" in told(whole)


def test_starts_are_compared_as_far_as_both_playouts_were_played(state: State) -> None:
    whole = compared(state, None)
    clock = Steps()
    compared(state, Allowance(10_000.0, clock))
    some = compared(state, Allowance(clock.looks * 0.6, Steps()))
    assert some.outcomes == whole.outcomes
    assert some.until is not None
    assert 600 <= some.until <= 7200
    known = {shift.key: shift for shift in whole.shifts}
    assert 0 < len(some.shifts) < len(whole.shifts)
    for shift in some.shifts:
        exact = known[shift.key]
        assert shift.after == exact.after
        assert exact.after is not None
        assert exact.after <= some.until
        assert shift.before in {exact.before, None}, "later than was played"
    assert f"Other starts within {spell(some.until)}, as far as there was time to look: " in told(some)
    assert difference_json(some, 0.0)["startsUntil"] is not None


@pytest.mark.parametrize("seconds", [0.0, 500.0])
def test_starts_that_are_never_found_keep_nothing_else_back(
    state: State, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, run = compared(state, None), Simulator.run

    def endless(simulator: Simulator, **options: Any) -> Iterator[Event]:
        yield from run(simulator, **options) if "until" in options else _evictions(simulator)

    monkeypatch.setattr(Simulator, "run", endless)
    clock = Steps()
    some = compared(state, Allowance(seconds, clock))
    assert (some.outcomes, some.excesses, some.shifts, some.until) == (
        whole.outcomes,
        whole.excesses,
        (),
        0.0,
    )
    assert clock.looks <= seconds + 10


def _evictions(simulator: Simulator) -> Iterator[Event]:
    while True:
        yield Event(simulator.now, "Preempted", ("a", "runs"), "total", "Preempted")


def test_two_playouts_in_one_process_have_half_of_the_time_each(state: State) -> None:
    known = facts(state.snapshot())
    parts: list[float] = []

    class Noted(Allowance):
        def begin(self, part: float = 1.0) -> Deadline:
            parts.append(part)
            return Deadline.after(1.0, lambda: 0.0)

    for processes in (1, 2, 8):
        compare(known, doubled(known), processes=processes, allowed=Noted(1.0))
    assert parts == [0.5, 0.5, 1.0, 1.0, 1.0, 1.0]


def test_the_command_says_it_too(state: State, tmp_path: Path) -> None:
    manifest = cluster_queue("total", {"cpu": {"default": "8"}})
    answer = Desk(state, tmp_path).what_if(manifest, options=("--estimate-for", "0s"))
    assert [each["name"] for each in answer["workloads"]] == ["waits-00"]
    assert (answer["starts"], answer["startsUntil"]) == ([], "2026-01-01T00:00:00Z")
