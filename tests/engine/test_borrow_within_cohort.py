"""`borrowWithinCohort`: preempting in order to borrow. Source: docs/design/preemption.md."""

import pytest

from admitter.engine.commands import Release
from admitter.engine.policy import (
    BorrowWithin,
    PreemptionPolicy,
)
from admitter.engine.refusal import Reason
from tests.engine.builders import (
    admitted,
    cohort,
    engine,
    evicted,
)
from tests.engine.preempting import DEFAULT, RECLAIM, asks, cpus, running


@pytest.mark.parametrize(
    ("threshold", "victim", "expected"),
    [(None, 4, True), (None, 5, False), (3, 3, True), (3, 4, False)],
    ids=["lower", "equal", "at the threshold", "above the threshold"],
)
def test_preempting_in_order_to_borrow(threshold: int | None, victim: int, *, expected: bool) -> None:
    policy = PreemptionPolicy(borrow=BorrowWithin.LOWER_PRIORITY, threshold=threshold)
    made = engine(DEFAULT, cpus("a", "2", policy), cpus("b", "4"), cpus("c", "2"))
    running(made, "borrows", 8, "b", priority=victim)
    asks(made, "asks", 3, "a", priority=5)
    assert evicted(made.cycle()) == ({"borrows": "asks"} if expected else {})


def test_a_borrower_does_not_preempt_a_workload_within_its_own_quota() -> None:
    policy = PreemptionPolicy(borrow=BorrowWithin.LOWER_PRIORITY)
    made = engine(DEFAULT, cpus("a", "2", policy), cpus("b", "4"))
    running(made, "within", 4, "b")
    running(made, "mine", 2, "a", priority=9)
    asks(made, "asks", 1, "a", priority=5)
    assert evicted(made.cycle()) == {}


def test_a_borrower_takes_only_what_others_borrow_if_they_could_take_it_back() -> None:
    borrows = PreemptionPolicy(borrow=BorrowWithin.LOWER_PRIORITY)
    made = engine(DEFAULT, cpus("a", "2", borrows), cpus("b", "4", RECLAIM), cpus("c", "2"))
    running(made, "first", 3, "b", since=1)
    running(made, "second", 5, "b", since=2)
    asks(made, "small", 3, "a", priority=5)
    asks(made, "large", 6, "a", priority=4)
    plan = made.cycle()
    assert evicted(plan) == {"first": "small"}, "5 of the 4 that b has are left"
    assert plan.refusals["large"].reason is Reason.INSUFFICIENT_QUOTA


def test_never_is_the_default() -> None:
    made = engine(DEFAULT, cpus("a", "2", RECLAIM), cpus("b", "4"), cpus("c", "2"))
    running(made, "borrows", 8, "b")
    asks(made, "asks", 3, "a", priority=5)
    assert evicted(made.cycle()) == {}


def test_three_levels_deep() -> None:
    policy = PreemptionPolicy(borrow=BorrowWithin.LOWER_PRIORITY)
    made = engine(
        DEFAULT,
        cohort("top", limits={"cpu": {"default": "4"}}),
        cohort("left", "top"),
        cohort("left-1", "left"),
        cohort("right", "top", {"cpu": {"default": "2"}}),
        cpus("a", "0", policy, "left-1"),
        cpus("b", "0", None, "right"),
        cpus("c", "0", None, "right"),
    )
    running(made, "in-b", 3, "b", since=1)
    running(made, "in-c", 3, "c", since=2)
    asks(made, "asks", 3, "a", priority=1)
    assert evicted(made.cycle()) == {"in-c": "asks"}, "right has 2 and uses 6"
    made.apply(Release("in-c"))
    assert admitted(made.cycle()) == ["asks"]
    asks(made, "more", 3, "a", priority=1)
    assert evicted(made.cycle()) == {"in-b": "more"}, "3 of 2: it still borrows"
    made.apply(Release("in-b"))
    running(made, "within", 2, "b", since=3)
    assert admitted(made.cycle()) == []
    asks(made, "last", 1, "a", priority=1)
    assert evicted(made.cycle()) == {}, "right uses what it has"


def test_it_is_tried_again_when_an_owner_borrows_more() -> None:
    """Before, the eviction would have left b with less than its own, which it could take back."""
    policy = PreemptionPolicy(borrow=BorrowWithin.LOWER_PRIORITY)
    made = engine(DEFAULT, cpus("a", "0", policy), cpus("b", "2", RECLAIM), cpus("c", "2"))
    running(made, "low", 2, "b")
    running(made, "high", 1, "b", priority=9)
    asks(made, "asks", 2, "a", priority=5)
    assert evicted(made.cycle()) == {}
    asks(made, "more", 1, "b", priority=9)
    plan = made.cycle()
    assert admitted(plan) == ["more"]
    assert evicted(plan) == {"low": "asks"}
