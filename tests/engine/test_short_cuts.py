"""An engine that takes no short cuts decides the same.

The short cuts: candidates are taken from lines that are kept in order, the ways to place a workload come one
after the other, and a flavor in which too little could go is passed at a glance.
"""

import random
from typing import Any, Final
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from admitter.engine.cycle import Engine
from admitter.engine.lines import EVERYBODY, Lesser, Line, Lines
from admitter.engine.model import Workload
from tests.engine import test_nothing_is_missed as missed
from tests.engine import test_tree_properties as tree
from tests.engine.builders import workload


class Plodding(Engine):
    """Looks at all candidates of every queue, and begins again with all flavors when one comes to nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._state.assigner.alone = mock.Mock(return_value=None)  # type: ignore[method-assign]

    def define(self, *queues: Any, **more: Any) -> None:
        super().define(*queues, **more)
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
TestShortened.settings = tree.TestTree.settings

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
    lines: Lines[str] = Lines()
    known = {}
    for number, (level, since, age, cpu, gpu, queue) in enumerate(wanted):
        made = workload(f"w{number}", queue=queue, priority=level, created=age)
        usage = ((CPU, cpu), (GPU, gpu))
        lines.add(queue, usage, place(made, since), made, made.uid)
        known[made.uid] = (made, since, usage, queue)
    chance = random.Random(seed)
    for uid in chance.sample(sorted(known), len(known) // 2):
        made, since, usage, queue = known.pop(uid)
        lines.remove(queue, usage, place(made, since))
    asking = workload("asks", priority=priority, created=created)
    for lesser in (EVERYBODY, Lesser(priority), Lesser(priority, asking.rank)):
        fronts = []
        for queue in ("q0", "q1"):
            for number, key in enumerate((CPU, GPU)):
                among = sorted(
                    (place(made, since), made.uid, usage[number][1])
                    for made, since, usage, name in known.values()
                    if name == queue and usage[number][1] and lesser.has(made)
                )
                line: Line[str] = lines.of(queue).get(key, Line())
                assert list(line.members(lesser)) == [(where, uid) for where, uid, _ in among]
                assert line.amount(lesser) == sum(amount for *_, amount in among)
                assert line.first(lesser) == (among[0][0] if among else None)
                assert line.largest >= max((amount for *_, amount in among), default=0)
                fronts += [(among[0][0], queue)] if among else []
        if lesser.after is None:
            assert list(lines.fronts((CPU, GPU), lesser.below)) == sorted(fronts)
