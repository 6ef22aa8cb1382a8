"""An engine that takes no short cuts decides the same.

The short cuts: candidates are taken from lines that are kept in order, the ways to place a workload come one
after the other, and a flavor in which too little could go is passed at a glance.
"""

import random
from typing import Final
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitter.engine.commands import Command, Release, Submit
from admitter.engine.cycle import Engine
from admitter.engine.model import Workload
from admitter.engine.policy import BorrowWithin, Fungibility, PreemptionPolicy, Queue, Reclaim, WithinQueue
from admitter.engine.quota.lines import ANY_RANK, CandidateLine, CandidateLines, Lesser
from tests.engine import test_nothing_is_missed as missed
from tests.engine import test_tree_properties as tree
from tests.engine.builders import engine, flavor, pods, queue, workload
from tests.scale import examples, histories


class Plodding(Engine):
    """Looks at all candidates of every queue, and begins again with all flavors when one comes to nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._state.assigner.alone = mock.Mock(return_value=None)  # type: ignore[method-assign]

    def apply(self, command: Command) -> None:
        super().apply(command)
        self.tree.apart.update(self.tree.queues)


class Twin(missed.Twin):
    """Tells one that takes no short cuts all that it is told, and compares what both decide."""

    def __init__(self) -> None:
        super().__init__()
        self.untiring = Plodding()  # type: ignore[assignment]


class Shortened(missed.Patient):
    """As the tree, in queues that grant time or share one flavor, or neither."""

    make = Twin


TestShortened = Shortened.TestCase
TestShortened.settings = histories(24)


def some_queues(chance: random.Random) -> list[Queue]:
    """One to three queues of one cohort with three flavors, in most of which little is free."""
    made = []
    for name in ("q0", "q1", "q2")[: chance.randint(1, 3)]:
        limits = {
            resource: {kind: str(chance.choice((0, most, most))) for kind in "abc"}
            for resource, most in (("cpu", 4), ("memory", 8))
        }
        policy = PreemptionPolicy(
            chance.choice(list(WithinQueue)), chance.choice(list(Reclaim)), chance.choice(list(BorrowWithin))
        )
        rules = Fungibility(chance.random() < 0.7, chance.random() < 0.3)
        made.append(queue(name, limits, cohort="c", fungibility=rules, preemption=policy))
    return made


@pytest.mark.parametrize("seed", range(examples(15)))
def test_where_most_flavors_are_full_the_same_is_decided(seed: int) -> None:
    chance = random.Random(seed)
    queues = some_queues(chance)
    engines = [engine(*map(flavor, "abc"), *queues, made=made) for made in (Engine(), Plodding())]
    running: dict[str, Workload] = {}
    for step in range(12):
        for number in range(chance.randint(0, 4)):
            cpu, memory = str(chance.randint(1, 3)), str(chance.choice((0, 0, 1, 3)))
            least = chance.choice((None, None, 1))
            asked = pods(chance.randint(1, 2), min_count=least, cpu=cpu, memory=memory)
            name, priority = chance.choice(queues).name, chance.randint(0, 3)
            made = workload(f"w{step}-{number}", asked, queue=name, priority=priority, created=step)
            for each in engines:
                each.apply(Submit(made))
        for uid in chance.sample(sorted(running), min(len(running), chance.randint(0, 1))):
            del running[uid]
            for each in engines:
                each.apply(Release(uid))
        mine, expected = (each.cycle(step) for each in engines)
        assert mine.admissions == expected.admissions
        assert tree.preempting(mine) == tree.preempting(expected)
        assert mine.planned == expected.planned
        assert mine.refusals == expected.refusals
        running |= {made.uid: made for made, _ in mine.admissions}
        for uid in tree.preempting(mine):
            made = running.pop(uid)
            for each in engines:
                each.apply(Release(uid))
                each.apply(Submit(made))


CPU: Final = ("f", "cpu")
GPU: Final = ("f", "gpu")
members = st.lists(
    st.tuples(
        st.integers(0, 3),  # priority
        st.integers(0, 3),  # creation
        st.integers(0, 3),  # admission
        st.integers(1, 5),  # CPU
        st.sampled_from([0, 0, 2]),  # GPUs
        st.sampled_from(["q0", "q1"]),
    ),
    max_size=12,
)


def place(made: Workload, since: int) -> tuple[int, float, float, str]:
    return (made.priority, -since, -made.created, made.uid)


@given(members, st.integers(0, 3), st.integers(0, 3), st.integers(0))
def test_lines_say_what_a_list_says(
    wanted: list[tuple[int, int, int, int, int, str]], priority: int, created: int, seed: int
) -> None:
    """Whatever came and went before, in whichever order."""
    lines: CandidateLines[str] = CandidateLines()
    known = {}
    for number, (level, since, age, cpu, gpu, name) in enumerate(wanted):
        made = workload(f"w{number}", queue=name, priority=level, created=age)
        usage = ((CPU, cpu), (GPU, gpu))
        lines.add(name, usage, place(made, since), made, made.uid)
        known[made.uid] = (made, since, usage)
    chance = random.Random(seed)
    for uid in chance.sample(sorted(known), len(known) // 2):
        made, since, usage = known.pop(uid)
        lines.remove(made.queue, usage, place(made, since))
    asking = workload("asks", priority=priority, created=created)
    for lesser in (ANY_RANK, Lesser(priority), Lesser(priority, asking.rank)):
        fronts = []
        for name in ("q0", "q1"):
            for number, key in enumerate((CPU, GPU)):
                among = sorted(
                    (place(made, since), made.uid, usage[number][1])
                    for made, since, usage in known.values()
                    if made.queue == name and usage[number][1] and lesser.has(made)
                )
                line: CandidateLine[str] = lines.of(name).get(key, CandidateLine())
                assert list(line.members(lesser)) == [(where, uid) for where, uid, _ in among]
                assert line.amount(lesser) == sum(amount for *_, amount in among)
                assert line.largest >= max((amount for *_, amount in among), default=0)
                fronts += [(among[0][0], name)] if among else []
        if lesser.after is None:
            assert list(lines.fronts((CPU, GPU), lesser.below)) == sorted(fronts)
