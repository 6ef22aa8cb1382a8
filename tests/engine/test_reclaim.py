"""`reclaimWithinCohort`: a queue takes back what it lent. Source: docs/design/preemption.md."""

import pytest

from admitter.engine.commands import Reserve, Submit
from admitter.engine.cycle import Engine
from admitter.engine.policy import (
    Cohort,
    PreemptionPolicy,
    Queue,
    Reclaim,
)
from tests.engine.builders import (
    admitted,
    cohort,
    engine,
    evicted,
    pods,
    queue,
    use,
    workload,
)
from tests.engine.preempting import DEFAULT, RECLAIM, asks, cpus, running


def test_a_queue_takes_back_what_it_lent() -> None:
    made = engine(DEFAULT, cpus("a", "4", RECLAIM), cpus("b", "4"))
    running(made, "own", 4, "b", priority=9, since=1)
    running(made, "borrowed", 3, "b", priority=9, since=2)
    asks(made, "asks", 4, "a")
    assert evicted(made.cycle()) == {"borrowed": "asks"}


def test_but_not_in_order_to_borrow() -> None:
    made = engine(DEFAULT, cpus("a", "4", RECLAIM), cpus("b", "4"))
    running(made, "borrowed", 8, "b")
    asks(made, "asks", 5, "a", priority=9)
    assert evicted(made.cycle()) == {}


def test_and_not_from_a_queue_within_its_own() -> None:
    made = engine(DEFAULT, cpus("a", "4", RECLAIM), cpus("b", "4"), cpus("c", "0"))
    running(made, "lent-of-a", 4, "c", since=1)
    running(made, "within", 4, "b", since=2)
    asks(made, "asks", 4, "a")
    assert evicted(made.cycle()) == {"lent-of-a": "asks"}


@pytest.mark.parametrize(("priority", "expected"), [(0, False), (1, True)])
def test_reclaim_of_lower_priority_only(priority: int, *, expected: bool) -> None:
    made = engine(DEFAULT, cpus("a", "4", PreemptionPolicy(reclaim=Reclaim.LOWER_PRIORITY)), cpus("b", "4"))
    running(made, "borrows", 8, "b")
    asks(made, "asks", 4, "a", priority=priority)
    assert evicted(made.cycle()) == ({"borrows": "asks"} if expected else {})


POOLED = PreemptionPolicy(reclaim=Reclaim.ANY)


@pytest.mark.parametrize("pooled", [True, False], ids=["in the cohort", "by another queue"])
def test_taking_back_one_resource_while_borrowing_another(*, pooled: bool) -> None:
    """GPUs are contested; CPUs are free, but owned by no queue or by one that could claim them."""
    made = engine(
        DEFAULT,
        cohort("c", limits={"cpu": {"default": "8" if pooled else "0"}, "gpu": {"default": "0"}}),
        queue("a", {"cpu": {"default": "0"}, "gpu": {"default": "2"}}, cohort="c", preemption=POOLED),
        queue("b", {"cpu": {"default": "0" if pooled else "8"}, "gpu": {"default": "0"}}, cohort="c"),
    )
    borrowed = workload("borrowed", pods(gpu="2", cpu="1"), queue="b")
    made.apply(Reserve("borrowed", use("b", "default", gpu="2", cpu="1"), borrowed))
    made.apply(Submit(workload("asks", pods(gpu="2", cpu="1"), queue="a", created=9)))
    assert evicted(made.cycle()) == ({"borrowed": "asks"} if pooled else {})


def hierarchy(*more: Queue | Cohort) -> Engine:
    """Left has 4 of its own in one queue and 2 in the cohort, right has 6; all under top."""
    return engine(
        DEFAULT,
        cohort("left", "top", {"cpu": {"default": "2"}}),
        cohort("right", "top"),
        cpus("left-1", "4", RECLAIM, "left"),
        cpus("left-2", "0", RECLAIM, "left"),
        cpus("right-1", "6", None, "right"),
        cpus("right-2", "0", None, "right"),
        *more,
    )


def test_a_subtree_takes_back_what_it_lent_to_another_subtree() -> None:
    made = hierarchy()
    running(made, "right", 6, "right-1", since=1)
    running(made, "over", 6, "right-2", since=2)
    asks(made, "asks", 2, "left-2")
    assert evicted(made.cycle()) == {"over": "asks"}, "left has 6, of which 2 belong to no queue"


def test_within_a_subtree_a_queue_without_quota_takes_nothing_from_its_sibling() -> None:
    made = hierarchy()
    running(made, "right", 6, "right-1")
    running(made, "sibling", 6, "left-1")
    asks(made, "asks", 1, "left-2", priority=9)
    assert evicted(made.cycle()) == {}


def test_a_queue_that_borrows_inside_of_a_subtree_within_its_own_is_safe_from_outside() -> None:
    made = hierarchy(cpus("other", "3", RECLAIM, "top"), cpus("greedy", "0", None, "top"))
    running(made, "inside", 6, "right-2", since=9)
    running(made, "outside", 3, "greedy", since=1)
    running(made, "left", 6, "left-1", since=5)
    asks(made, "asks", 3, "other")
    assert evicted(made.cycle()) == {"outside": "asks"}, "right as a whole uses 6 of its 6"


@pytest.mark.parametrize(
    ("asking", "victims"),
    [
        pytest.param("a", {"in-c": "asks"}, id="the queue's own, from a cousin of the second degree"),
        pytest.param("b", {"in-c": "asks"}, id="what the cohort above owns, though the queue owns nothing"),
        pytest.param("d", {}, id="a queue of the same branch as the borrower owns nothing"),
    ],
)
def test_three_levels_deep(asking: str, victims: dict[str, str]) -> None:
    """top: west (west-1: a has 3, b 0, west-1 itself 2) and east (east-1: c 0, d 0), 4 of top's own."""
    made = engine(
        DEFAULT,
        cohort("top", limits={"cpu": {"default": "4"}}),
        cohort("west", "top"),
        cohort("west-1", "west", {"cpu": {"default": "2"}}),
        cohort("east", "top"),
        cohort("east-1", "east"),
        cpus("a", "3", RECLAIM, "west-1"),
        cpus("b", "0", RECLAIM, "west-1"),
        cpus("c", "0", RECLAIM, "east-1"),
        cpus("d", "0", RECLAIM, "east-1"),
    )
    running(made, "early", 4, "c", since=1)
    running(made, "in-c", 5, "c", since=2)
    asks(made, "asks", 2, asking, priority=9)
    assert evicted(made.cycle()) == victims


def test_nearest_relatives_give_first() -> None:
    made = engine(
        DEFAULT,
        cohort("left", "top"),
        cohort("right", "top"),
        cpus("a", "2", RECLAIM, "left"),
        cpus("sister", "0", None, "left"),
        cpus("cousin", "0", None, "right"),
        cpus("lends", "2", None, "right"),
    )
    running(made, "in-cousin", 2, "cousin", since=9)
    running(made, "in-sister", 2, "sister", since=1, priority=5)
    asks(made, "asks", 2, "a")
    assert evicted(made.cycle()) == {"in-sister": "asks"}


def test_several_go_if_one_is_not_enough_and_across_queues() -> None:
    made = engine(DEFAULT, cpus("a", "4", RECLAIM), cpus("b", "0"), cpus("c", "0"))
    running(made, "b-1", 1, "b", since=1, priority=1)
    running(made, "b-2", 1, "b", since=2)
    running(made, "c-1", 2, "c", since=3)
    asks(made, "asks", 3, "a")
    assert evicted(made.cycle()) == {"c-1": "asks", "b-2": "asks"}


def test_what_a_lending_limit_keeps_home_needs_no_reclaim() -> None:
    made = engine(DEFAULT, cpus("a", "4/1", RECLAIM), cpus("b", "4"))
    running(made, "own", 4, "b", since=1)
    running(made, "borrows", 1, "b", since=2)
    asks(made, "three", 3, "a")
    asks(made, "one", 1, "a", created=100)
    plan = made.cycle()
    assert admitted(plan) == ["three"]
    assert evicted(plan) == {"borrows": "one"}


def near_and_far() -> Engine:
    """An owner of 4, and two that own nothing: one below the same cohort, one above it."""
    return engine(
        DEFAULT,
        cohort("right", "top"),
        cpus("far", "0", None, "top"),
        cpus("near", "0", None, "right"),
        cpus("owner", "4", RECLAIM, "right"),
    )


def test_an_owner_takes_its_quota_back_from_near_and_far_at_once() -> None:
    made = near_and_far()
    running(made, "in-far", 2, "far", since=1)
    running(made, "in-near", 2, "near", since=1)
    asks(made, "asks", 3, "owner")
    assert evicted(made.cycle()) == {"in-far": "asks", "in-near": "asks"}


def test_lower_priority_goes_before_nearer_relatives() -> None:
    made = near_and_far()
    running(made, "in-far", 2, "far", priority=0)
    running(made, "in-near", 2, "near", priority=9)
    asks(made, "asks", 2, "owner", priority=5)
    assert evicted(made.cycle()) == {"in-far": "asks"}
