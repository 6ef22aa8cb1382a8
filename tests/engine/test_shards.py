"""A cycle that looks at some trees alone: what has changed in others is kept for the next look at them."""

from admitter.engine.commands import Release
from admitter.engine.quota.tree import Node
from admitter.engine.refusal import Reason
from tests.engine.builders import admitted, engine, evicted
from tests.engine.preempting import DEFAULT, LOWER, asks, cpus, running


def first(root: Node) -> bool:
    return root == ("cohort", "one")


def everything(_root: Node) -> bool:
    return True


def test_only_trees_that_are_ones_own_are_decided_and_what_changed_in_others_is_kept() -> None:
    made = engine(DEFAULT, cpus("first", "4", parent="one"), cpus("second", "4", parent="two"))
    asks(made, "here", 4, "first")
    asks(made, "there", 4, "second")
    asks(made, "too-much", 5, "second")
    plan = made.cycle(0.0, first)
    assert admitted(plan) == ["here"]
    assert plan.refusals == {}, "why others wait is not for us to say"
    assert not made.changed, "there is nothing to do before something happens"
    assert admitted(made.cycle(0.0, first)) == []
    made.resume(everything)
    assert made.changed
    plan = made.cycle(0.0, everything)
    assert admitted(plan) == ["there"]
    assert plan.refusals["too-much"].reason is Reason.NEVER_FITS


def test_a_process_that_takes_a_tree_again_says_anew_why_its_workloads_wait() -> None:
    made = engine(DEFAULT, cpus("first", "4", parent="one"))
    asks(made, "too-much", 5, "first")
    assert "too-much" in made.cycle(0.0, first).refusals
    made.abandon_trees(lambda _: False)
    made.resume(first)
    assert "too-much" in made.cycle(0.0, first).refusals, "another may have said something else since"


def test_places_are_given_up_with_the_tree_they_are_in_and_are_no_other_trees() -> None:
    made = engine(DEFAULT, cpus("first", "4", LOWER, "one"), cpus("second", "4", LOWER, "two"))
    for name in ("first", "second"):
        running(made, f"low-{name}", 4, name)
        asks(made, f"high-{name}", 4, name, priority=1)
    assert evicted(made.cycle(0.0, everything)) == {"low-first": "high-first", "low-second": "high-second"}
    made.abandon_trees(first)
    assert [*made.ledger.pending_reservations] == ["high-first"]
    assert made.waits("high-second")
    made.apply(Release("low-first"))
    made.apply(Release("low-second"))
    assert admitted(made.cycle(0.0, first)) == ["high-first"]
    made.resume(everything)
    assert admitted(made.cycle(0.0, everything)) == ["high-second"]
