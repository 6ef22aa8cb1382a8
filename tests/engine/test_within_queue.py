"""`withinClusterQueue`. Source: docs/design/preemption.md."""

import pytest

from admitter.engine.commands import Reserve, Submit
from admitter.engine.policy import (
    PreemptionPolicy,
)
from tests.engine.builders import (
    cohort,
    engine,
    evicted,
    flavor,
    pods,
    queue,
    use,
    workload,
)
from tests.engine.preempting import DEFAULT, LOWER, NEWER, asks, cpus, running


@pytest.mark.parametrize(
    ("policy", "priority", "created", "expected"),
    [
        (LOWER, 1, 99, True),
        (LOWER, 0, 0, False),
        (NEWER, 1, 99, True),
        (NEWER, 0, 0, True),
        (NEWER, 0, 99, False),
        (NEWER, -1, 0, False),
    ],
    ids=[
        "LowerPriority, higher",
        "LowerPriority, equal",
        "LowerOrNewer, higher",
        "LowerOrNewer, older equal",
        "LowerOrNewer, newer equal",
        "LowerOrNewer, lower",
    ],
)
def test_within_a_queue(policy: PreemptionPolicy, priority: int, created: float, *, expected: bool) -> None:
    made = engine(DEFAULT, cpus("q", "4", policy))
    running(made, "victim", 4, "q", since=50)
    asks(made, "asks", 1, "q", priority=priority, created=created)
    assert evicted(made.cycle()) == ({"victim": "asks"} if expected else {})


def test_a_workload_that_uses_nothing_of_what_is_contested_stays() -> None:
    made = engine(
        flavor("spot"),
        flavor("on-demand"),
        queue("q", {"cpu": {"spot": "4", "on-demand": "4"}}, preemption=LOWER),
    )
    for number, (name, since) in enumerate([("spot", 1), ("on-demand", 2)]):
        who = workload(name, pods(cpu="4"), created=number)
        made.apply(Reserve(name, use("q", name, cpu="4"), who, since))
    made.apply(Submit(workload("asks", pods(cpu="2", selector={"kind": "any"}), priority=1, created=9)))
    assert evicted(made.cycle()) == {"spot": "asks"}, "the first flavor, though the newer one is in the other"


def test_a_queue_below_three_cohorts_preempts_in_itself_while_it_borrows() -> None:
    made = engine(
        DEFAULT,
        cohort("top", limits={"cpu": {"default": "4"}}),
        cohort("middle", "top"),
        cohort("low", "middle"),
        cpus("q", "0", LOWER, "low"),
        cpus("other", "0", LOWER, "top"),
    )
    running(made, "mine", 2, "q")
    running(made, "theirs", 2, "other")
    asks(made, "asks", 2, "q", priority=1)
    assert evicted(made.cycle()) == {"mine": "asks"}
