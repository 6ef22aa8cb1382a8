"""Of workloads of the same priority, those go first that lose least work: docs/design/eviction-limits.md."""

from dataclasses import replace

import pytest
from orjson import loads

from admitter.engine.commands import Command, Define, Release, Reserve
from admitter.engine.cycle import Engine
from admitter.engine.observer import AskedRoots, Observer
from admitter.engine.state import EngineState
from admitter.engine.tree_cycle import Plan
from admitter.journal.calls import parsed, written
from admitter.journal.state import known
from tests.engine.builders import cohort, engine, evicted, pods, use, workload
from tests.engine.preempting import DEFAULT, LOWER, RECLAIM, asks, cpus


def runs(made: Engine, uid: str, cpu: int, since: float, saved: float = 0, *, priority: int = 0) -> None:
    """Something of queue b that was admitted at some time, and says that it has saved its work."""
    who = workload(uid, pods(cpu=str(cpu)), queue="b", priority=priority, created=since)
    made.apply(Reserve(uid, use("b", "default", cpu=str(cpu)), who, since, checkpoint=saved))


def lent(*told: tuple[str, float, float], within: bool = False) -> Engine:
    """Workloads of 10 CPUs each in queue b, since some time, with a checkpoint; a may take its own back."""
    own = cpus("a", str(10 * len(told)), RECLAIM)
    made = engine(DEFAULT, own, cpus("b", "100", LOWER) if within else cpus("b", "0"))
    for uid, since, saved in told:
        runs(made, uid, 10, since, saved)
    return made


def test_what_has_saved_its_work_last_goes_first() -> None:
    made = lent(("old", 10, 100), ("new", 50, 0))
    asks(made, "asks", 10, "a")
    assert evicted(made.cycle(200)) == {"old": "asks"}, "it loses 100 s of work, the other one 150 s"


def test_what_says_nothing_loses_all_since_its_start() -> None:
    made = lent(("old", 10, 0), ("new", 50, 0), ("middle", 30, 0))
    asks(made, "asks", 10, "a")
    assert evicted(made.cycle(200)) == {"new": "asks"}


@pytest.mark.parametrize("saved", [-5.0, 0.0, 9.0, 10.0])
def test_a_checkpoint_before_the_start_counts_as_the_start(saved: float) -> None:
    made = lent(("old", 10, saved), ("new", 50, 0))
    asks(made, "asks", 10, "a")
    assert evicted(made.cycle(200)) == {"new": "asks"}


def test_priority_decides_before_lost_work() -> None:
    made = lent(("low", 10, 0))
    runs(made, "high", 10, 20, 190, priority=1)
    made.apply(Define((cpus("a", "20", RECLAIM),)))
    asks(made, "asks", 10, "a", priority=2)
    assert evicted(made.cycle(200)) == {"low": "asks"}


def test_a_checkpoint_in_the_future_counts_from_its_moment() -> None:
    made = lent(("old", 10, 300), ("new", 50, 0))
    assert made.due == 300
    made.cycle(200)
    asks(made, "early", 10, "a")
    assert evicted(made.cycle(201)) == {"new": "early"}
    made = lent(("old", 10, 300), ("new", 50, 0))
    made.cycle(200)
    asks(made, "late", 10, "a")
    assert evicted(made.cycle(300)) == {"old": "late"}
    assert made.due is None


def test_a_workload_that_is_gone_or_says_something_else_has_no_checkpoint_in_the_future() -> None:
    made = lent(("one", 10, 300), ("other", 20, 400))
    made.apply(Release("one"))
    assert made.due == 400
    runs(made, "other", 10, 20, 100)
    assert made.due == 100
    made.cycle(150)
    assert made.due is None


def test_a_new_checkpoint_of_a_running_workload_changes_the_order() -> None:
    made = lent(("old", 10, 0), ("new", 50, 0))
    made.cycle(60)
    runs(made, "old", 10, 10, 60)
    made.cycle(61)
    asks(made, "asks", 10, "a")
    assert evicted(made.cycle(70)) == {"old": "asks"}


def test_in_the_own_queue_and_by_shares_it_is_the_same_order() -> None:
    made = lent(("old", 10, 100), ("new", 50, 0), within=True)
    runs(made, "rest", 100, 1)
    asks(made, "asks", 10, "b", priority=1)
    assert evicted(made.cycle(200)) == {"old": "asks"}
    fair = engine(
        DEFAULT,
        cohort("c", limits={"cpu": {"default": "20"}}, fair=True),
        cpus("a", "0", RECLAIM),
        cpus("b", "0"),
    )
    runs(fair, "old", 10, 10, 100)
    runs(fair, "new", 10, 50)
    asks(fair, "asks", 10, "a")
    assert evicted(fair.cycle(200)) == {"old": "asks"}


def test_a_new_engine_is_told_of_checkpoints_in_the_future_too() -> None:
    before = lent(("old", 10, 300), ("new", 50, 100))
    before.cycle(200)
    told = [each for each in known(before._state) if isinstance(each, Reserve)]
    assert {each.holder: each.checkpoint for each in told} == {"old": 300, "new": 100}
    again = engine(DEFAULT, cpus("a", "20", RECLAIM), cpus("b", "0"))
    for each in told:
        again.apply(each)
    asks(again, "asks", 10, "a")
    assert evicted(again.cycle(250)) == {"new": "asks"}
    assert again.due == 300


class Told(Observer):
    """Which commands made a difference."""

    def __init__(self) -> None:
        self.commands: list[Command] = []

    def applied(self, command: Command) -> None:
        self.commands.append(command)

    def decided(self, now: float, asked: AskedRoots, plan: Plan, state: EngineState) -> None:
        """Cycles are not looked at."""

    def resumed(self, asked: AskedRoots, state: EngineState) -> None:
        """Other trees are not looked at."""

    def abandoned(self, asked: AskedRoots) -> None:
        """Other trees are not looked at."""


def test_a_checkpoint_makes_a_difference_and_the_same_one_again_none() -> None:
    told = Told()
    made = Engine(observer=told)
    for command in known(lent(("old", 10, 100))._state):
        made.apply(command)
    made.cycle(200)
    said = next(each for each in told.commands if isinstance(each, Reserve))
    told.commands.clear()
    made.apply(said)
    assert told.commands == []
    later = replace(said, checkpoint=150.0)
    made.apply(later)
    assert told.commands == [later]


def test_journals_of_before_say_nothing_of_checkpoints() -> None:
    told = Reserve("x", use("b", "default", cpu="1"), since=5.0, checkpoint=7.0)
    line = loads(written(told))
    assert parsed(line) == told
    del line["with"][-1]
    assert parsed(line) == replace(told, checkpoint=0.0)
