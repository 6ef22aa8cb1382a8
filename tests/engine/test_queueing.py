"""The order of admission. Sources: docs/coming-from-kueue.md, docs/design/engine.md."""

import pytest

from admitter.engine.commands import Define, Release, Reserve, SetFlavor, Submit, Withdraw
from admitter.engine.cycle import Engine
from admitter.engine.policy import Strategy
from admitter.engine.refusal import Reason
from tests.engine.builders import admitted, cohort, engine, flavor, pods, queue, use, workload

DEFAULT = flavor("default")
STRICT = queue("q", {"cpu": {"default": "9"}}, Strategy.STRICT_FIFO)
BEST_EFFORT = queue("q", {"cpu": {"default": "9"}})


def test_priority_then_age_then_uid() -> None:
    made = engine(DEFAULT, BEST_EFFORT)
    made.apply(Submit(workload("b", pods(cpu="1"), created=2)))
    made.apply(Submit(workload("a", pods(cpu="1"), created=2)))
    made.apply(Submit(workload("old", pods(cpu="1"), created=1)))
    made.apply(Submit(workload("important", pods(cpu="1"), created=9, priority=5)))
    assert admitted(made.cycle()) == ["important", "old", "a", "b"]


def test_strict_head_blocks_those_behind_it() -> None:
    made = engine(DEFAULT, STRICT)
    made.apply(Submit(workload("runs", pods(cpu="5"), created=1)))
    made.apply(Submit(workload("head", pods(cpu="5"), created=2)))
    made.apply(Submit(workload("small", pods(cpu="1"), created=3)))
    plan = made.cycle()
    assert admitted(plan) == ["runs"]
    assert {uid: refusal.reason for uid, refusal in plan.refusals.items()} == {
        "head": Reason.INSUFFICIENT_QUOTA,
        "small": Reason.BEHIND_HEAD,
    }
    made.apply(Release("runs"))
    assert admitted(made.cycle()) == ["head", "small"]


def test_strict_head_that_leaves_lets_the_next_in() -> None:
    made = engine(DEFAULT, STRICT)
    made.apply(Submit(workload("head", pods(cpu="10"), created=1)))
    made.apply(Submit(workload("small", pods(cpu="1"), created=2)))
    assert admitted(made.cycle()) == []
    made.apply(Withdraw("head"))
    assert admitted(made.cycle()) == ["small"]


def test_a_newcomer_of_higher_priority_goes_before_a_strict_head() -> None:
    made = engine(DEFAULT, STRICT)
    made.apply(Submit(workload("head", pods(cpu="10"), created=1)))
    made.cycle()
    made.apply(Submit(workload("first", pods(cpu="1"), created=2, priority=1)))
    made.apply(Submit(workload("later", pods(cpu="1"), created=3)))
    assert admitted(made.cycle()) == ["first"]


def test_best_effort_passes_over_what_does_not_fit() -> None:
    made = engine(DEFAULT, BEST_EFFORT)
    made.apply(Submit(workload("runs", pods(cpu="5"), created=1)))
    made.apply(Submit(workload("head", pods(cpu="5"), created=2)))
    made.apply(Submit(workload("small", pods(cpu="1"), created=3)))
    assert admitted(made.cycle()) == ["runs", "small"]


def test_a_parked_class_is_tried_again_when_quota_is_freed_and_not_before() -> None:
    made = engine(DEFAULT, BEST_EFFORT)
    made.apply(Submit(workload("runs", pods(cpu="9"))))
    made.apply(Submit(workload("waits", pods(cpu="2"))))
    made.cycle()
    assert not made.changed
    made.apply(Submit(workload("also", pods(cpu="2"), created=5)))
    plan = made.cycle()
    assert admitted(plan) == []
    assert list(plan.refusals) == ["also"], "the one told before is not told again"
    made.apply(Release("runs"))
    assert admitted(made.cycle()) == ["waits", "also"]


def test_a_larger_quota_and_a_changed_flavor_wake_what_waits() -> None:
    made = engine(flavor("default", zone="a"), queue("q", {"cpu": {"default": "1"}}))
    made.apply(Submit(workload("big", pods(cpu="2"))))
    made.apply(Submit(workload("elsewhere", pods(cpu="1", selector={"zone": "b"}))))
    assert admitted(made.cycle()) == []
    made.apply(Define((queue("q", {"cpu": {"default": "3"}}),)))
    assert admitted(made.cycle()) == ["big"]
    made.apply(SetFlavor(flavor("default", zone="b")))
    assert admitted(made.cycle()) == ["elsewhere"]


def test_a_workload_that_changes_while_it_waits_is_tried_anew() -> None:
    made = engine(DEFAULT, BEST_EFFORT)
    made.apply(Submit(workload("w", pods(cpu="10"))))
    made.cycle()
    made.apply(Submit(workload("w", pods(cpu="9"))))
    assert admitted(made.cycle()) == ["w"]


def test_a_queue_that_goes_keeps_its_waiting_and_its_use() -> None:
    made = engine(DEFAULT, BEST_EFFORT)
    made.apply(Submit(workload("runs", pods(cpu="5"))))
    made.cycle()
    made.apply(Submit(workload("waits", pods(cpu="5"))))
    made.apply(Define(gone=("q",)))
    assert admitted(made.cycle()) == []
    made.apply(Define((BEST_EFFORT,)))
    assert admitted(made.cycle()) == []
    made.apply(Release("runs"))
    assert admitted(made.cycle()) == ["waits"]


def test_a_workload_that_asks_for_what_its_queue_does_not_count_holds_up_no_other() -> None:
    made = engine(
        DEFAULT,
        queue("mine", {"cpu": {"default": "4"}}, cohort="c"),
        queue("theirs", {"cpu": {"default": "4"}}, cohort="c"),
    )
    made.apply(Submit(workload("runs", pods(cpu="8"), queue="theirs")))
    made.apply(Submit(workload("hopeless", pods(cpu="6", memory="1Gi"), queue="mine", priority=1)))
    assert admitted(made.cycle()) == ["runs"]
    made.apply(Submit(workload("small", pods(cpu="1"), queue="mine")))
    made.apply(Submit(workload("borrows", pods(cpu="8"), queue="theirs", priority=2)))
    made.apply(Release("runs"))
    assert admitted(made.cycle()) == ["small"], "one that needs no borrowing goes first"


def test_queues_do_not_touch_each_other() -> None:
    made = engine(DEFAULT, BEST_EFFORT, queue("other", {"cpu": {"default": "1"}}))
    made.apply(Submit(workload("a", pods(cpu="9"))))
    made.apply(Submit(workload("b", pods(cpu="1"), queue="other")))
    assert admitted(made.cycle()) == ["b", "a"], "queues are looked at by name"


def test_a_cut_cycle_of_cohorts_that_is_corrected_requeues_all_of_them() -> None:
    made = engine(
        flavor("a"),
        cohort("A", "B"),
        cohort("B", "C"),
        cohort("C", "A"),
        queue("owns", {"cpu": {"a": "4"}}, cohort="A"),
        queue("borrows", {"cpu": {"a": "0"}}, cohort="C"),
    )
    made.apply(Submit(workload("w", pods(cpu="4"), queue="borrows")))
    assert admitted(made.cycle()) == []
    made.apply(Define(cohorts=(cohort("B", "A"),)))  # now C is below A, and A and B alone are in a cycle
    assert admitted(made.cycle()) == ["w"]


def heads_of_two_resources(*, parked: bool) -> Engine:
    """One of memory is free. X and Y wait in q1, Z in q2; neither Y nor Z has to borrow, and Y is older."""
    made = engine(
        flavor("f"),
        *(
            queue(n, {"cpu": {"f": c}, "memory": {"f": c}}, cohort="all")
            for n, c in (("q1", "4"), ("q2", "4"), ("q3", "0"))
        ),
    )
    for uid, name, memory in (("r1", "q1", "3"), ("r2", "q2", "3"), ("r3", "q3", "1"), ("r4", "q3", "1")):
        if parked or uid != "r4":
            made.apply(Reserve(uid, use(name, "f", cpu="1", memory=memory)))
    for uid, name, size, created in (("x", "q1", 5, 0), ("y", "q1", 1, 1), ("z", "q2", 1, 2)):
        made.apply(Submit(workload(uid, pods(cpu=str(size), memory=str(size)), queue=name, created=created)))
    if parked:
        assert admitted(made.cycle()) == []
        made.apply(Release("r4"))
    return made


@pytest.mark.parametrize("parked", [False, True], ids=["learnt at once", "after a wait"])
def test_a_head_that_can_not_fit_does_not_hide_the_workload_behind_it(*, parked: bool) -> None:
    assert admitted(heads_of_two_resources(parked=parked).cycle()) == ["y"]
