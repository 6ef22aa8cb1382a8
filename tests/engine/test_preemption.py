"""Which victims preemption takes, and what it reserves for how long. Source: docs/design/preemption.md."""

from dataclasses import replace

import pytest

from admitter.engine.commands import (
    CancelEviction,
    Define,
    Evict,
    Release,
    Reserve,
    SetFlavor,
    StartEviction,
    Submit,
    Withdraw,
)
from admitter.engine.cycle import Engine
from admitter.engine.policy import (
    Fungibility,
    Strategy,
)
from admitter.engine.refusal import Reason
from tests.engine.builders import (
    admitted,
    cohort,
    engine,
    evicted,
    flavor,
    flavors_of,
    pods,
    queue,
    use,
    workload,
)
from tests.engine.preempting import DEFAULT, LOWER, asks, cpus, running


def test_nothing_is_preempted_unless_a_queue_says_so() -> None:
    made = engine(DEFAULT, cpus("q", "4"))
    running(made, "low", 4, "q")
    asks(made, "high", 1, "q", priority=9)
    plan = made.cycle()
    assert evicted(plan) == {}
    assert plan.refusals["high"].reason is Reason.INSUFFICIENT_QUOTA


def test_the_preemptor_is_admitted_when_its_victim_has_gone() -> None:
    made = engine(DEFAULT, cpus("q", "4", LOWER))
    running(made, "low", 4, "q")
    asks(made, "high", 3, "q", priority=1)
    plan = made.cycle()
    assert evicted(plan) == {"low": "high"}
    assert admitted(plan) == []
    assert plan.refusals["high"].reason is Reason.PREEMPTING
    made.apply(Release("low"))
    assert admitted(made.cycle()) == ["high"]


def test_no_other_workload_takes_the_hole() -> None:
    made = engine(DEFAULT, cpus("q", "4", LOWER))
    running(made, "low", 3, "q")
    asks(made, "high", 4, "q", priority=1)
    made.cycle()
    asks(made, "sneaks", 1, "q")  # 1 CPU is free all the time
    asks(made, "important", 1, "q", priority=0)
    assert admitted(made.cycle()) == []
    made.apply(Release("low"))
    assert admitted(made.cycle()) == ["high"]


def test_what_the_plan_leaves_over_is_used_but_not_before_it_is_free() -> None:
    made = engine(DEFAULT, cpus("q", "4", LOWER))
    running(made, "low", 4, "q")
    asks(made, "high", 3, "q", priority=1)
    made.cycle()
    asks(made, "small", 1, "q")
    assert admitted(made.cycle()) == [], "the victim still runs"
    made.apply(Release("low"))
    assert admitted(made.cycle()) == ["high", "small"]


def test_a_second_preemptor_does_not_count_the_same_victims() -> None:
    made = engine(DEFAULT, cpus("q", "4", LOWER))
    running(made, "low", 4, "q")
    asks(made, "one", 3, "q", priority=1)
    asks(made, "two", 3, "q", priority=1, created=100)
    plan = made.cycle()
    assert evicted(plan) == {"low": "one"}
    assert plan.refusals["two"].reason is Reason.INSUFFICIENT_QUOTA


def test_no_eviction_that_would_not_be_enough() -> None:
    made = engine(DEFAULT, cpus("q", "4", LOWER))
    running(made, "low", 2, "q")
    running(made, "high", 2, "q", priority=5)
    asks(made, "asks", 3, "q", priority=1)
    assert evicted(made.cycle()) == {}


def test_lowest_priority_then_newest_then_uid_goes_first() -> None:
    made = engine(DEFAULT, cpus("q", "6", LOWER))
    running(made, "important", 1, "q", priority=2, since=9)
    running(made, "old", 1, "q", since=1)
    running(made, "b", 1, "q", since=5)
    running(made, "a", 1, "q", since=5)
    running(made, "middle", 2, "q", priority=1, since=7)
    asks(made, "asks", 2, "q", priority=3)
    assert evicted(made.cycle()) == {"a": "asks", "b": "asks"}


def test_a_victim_that_is_not_needed_is_put_back() -> None:
    made = engine(DEFAULT, cpus("q", "6", LOWER))
    running(made, "small", 1, "q", since=9)
    running(made, "large", 5, "q", since=1)
    asks(made, "asks", 5, "q", priority=1)
    assert evicted(made.cycle()) == {"large": "asks"}


FIRST_OR_NEXT = {"cpu": {"spot": "4", "on-demand": "4"}}


@pytest.mark.parametrize("preempt", [False, True], ids=["TryNextFlavor", "Preempt"])
def test_preempting_in_the_first_flavor_or_taking_the_next(*, preempt: bool) -> None:
    made = engine(
        flavor("spot"),
        flavor("on-demand"),
        queue("q", FIRST_OR_NEXT, preemption=LOWER, fungibility=Fungibility(preempt=preempt)),
    )
    low = workload("low", pods(cpu="4"))
    made.apply(Reserve("low", use("q", "spot", cpu="4"), low))
    made.apply(Submit(workload("high", pods(cpu="2"), priority=1, created=9)))
    plan = made.cycle()
    if preempt:
        assert evicted(plan) == {"low": "high"}
        made.apply(Release("low"))
        assert flavors_of(made.cycle(), "high") == {"main": {"cpu": "spot"}}
    else:
        assert flavors_of(plan, "high") == {"main": {"cpu": "on-demand"}}


def test_a_flavor_without_allowed_victims_is_passed_for_one_that_has_some() -> None:
    made = engine(flavor("spot"), flavor("on-demand"), queue("q", FIRST_OR_NEXT, preemption=LOWER))
    made.apply(Reserve("high", use("q", "spot", cpu="4"), workload("high", pods(cpu="4"), priority=9)))
    made.apply(Reserve("low", use("q", "on-demand", cpu="4"), workload("low", pods(cpu="4"))))
    made.apply(Submit(workload("asks", pods(cpu="2"), priority=1, created=9)))
    assert evicted(made.cycle()) == {"low": "asks"}


def test_a_strict_queue_waits_for_its_preempting_head() -> None:
    strict = queue("q", {"cpu": {"default": "4"}}, Strategy.STRICT_FIFO, preemption=LOWER)
    made = engine(DEFAULT, strict)
    running(made, "low", 3, "q")
    asks(made, "head", 2, "q", priority=1)
    made.cycle()
    asks(made, "small", 1, "q")
    assert admitted(made.cycle()) == []
    made.apply(Release("low"))
    assert admitted(made.cycle()) == ["head", "small"]


@pytest.mark.parametrize("end", ["withdrawn", "cancelled", "resized"])
def test_a_place_is_kept_no_longer_than_it_is_wanted(end: str) -> None:
    made = engine(DEFAULT, cpus("q", "4", LOWER))
    running(made, "low", 4, "q")
    asks(made, "high", 4, "q", priority=1)
    made.cycle()
    if end == "withdrawn":
        made.apply(Withdraw("high"))
    elif end == "cancelled":
        made.apply(CancelEviction("low"))
    else:
        asks(made, "high", 9, "q", priority=1)
    made.apply(Release("low"))
    asks(made, "next", 4, "q", priority=0)
    assert admitted(made.cycle()) == (["high"] if end == "cancelled" else ["next"])


def test_a_place_survives_a_restart() -> None:
    made = engine(DEFAULT, cpus("q", "4", LOWER))
    running(made, "low", 4, "q")
    high = workload("high", pods(cpu="3"), queue="q", priority=1, created=99)
    made.apply(Evict("low", high, use("q", "default", cpu="3")))
    made.apply(Submit(high))
    asks(made, "early", 3, "q", created=0, priority=1)
    assert admitted(made.cycle()) == []
    made.apply(Release("low"))
    assert admitted(made.cycle()) == ["high"]


def test_a_place_of_which_only_some_evictions_were_written_is_not_taken_before_there_is_room() -> None:
    """The process that planned it ended between the writes: what it had not written it had not evicted."""
    made = engine(DEFAULT, cpus("q", "4", LOWER))
    for victim in ("first", "second"):
        running(made, victim, 2, "q")
    high = workload("high", pods(cpu="4"), queue="q", priority=1, created=99)
    made.apply(Submit(high))
    made.apply(Evict("first", high, use("q", "default", cpu="4")))
    made.apply(StartEviction("first"))
    plans = [made.cycle()]
    assert admitted(plans[0]) == []
    made.apply(Release("first"))
    plans.append(made.cycle())
    assert admitted(plans[1]) == [], "2 of the 4 CPUs are in use"
    assert {victim for plan in plans for victim in evicted(plan)} == {"second"}, "and are asked for anew"
    made.apply(Release("second"))
    assert admitted(made.cycle()) == ["high"]


def two_flavors() -> Engine:
    """A low one in the first flavor, which a high one has preempted: only there it suits."""
    made = engine(
        flavor("a", kind="a"),
        flavor("b", kind="b"),
        queue("q", {"cpu": {"a": "4", "b": "4"}}, preemption=LOWER),
    )
    made.apply(Submit(workload("low", pods(cpu="4", selector={"kind": "a"}))))
    made.cycle()
    made.apply(Submit(workload("high", pods(cpu="4", selector={"kind": "a"}), priority=1)))
    assert evicted(made.cycle()) == {"low": "high"}
    return made


@pytest.mark.parametrize("change", ["flavor", "queue lists it no more", "stopped", "removed"])
def test_a_place_is_not_kept_where_it_is_not_allowed_any_more(change: str) -> None:
    made = two_flavors()
    if change == "flavor":
        made.apply(SetFlavor(flavor("a", kind="z")))
    elif change == "stopped":
        made.apply(Define((replace(made.tree.queues["q"], admits=False),)))
    elif change == "removed":
        made.apply(Define(gone=("q",)))
    else:
        made.apply(Define((queue("q", {"cpu": {"b": "4"}}, preemption=LOWER),)))
    made.cycle()
    made.apply(Release("low"))
    assert admitted(made.cycle()) == []


def test_a_queue_with_a_pending_workload_goes_while_a_reservation_is_pending_beside_it() -> None:
    made = engine(DEFAULT, cpus("gone", "2"), cpus("stays", "2", LOWER))
    running(made, "low", 4, "stays")
    asks(made, "high", 4, "stays", priority=1)
    assert evicted(made.cycle()) == {"low": "high"}
    asks(made, "waits", 1, "gone")
    assert made.cycle().refusals["waits"].reason is Reason.INSUFFICIENT_QUOTA
    made.apply(Define(gone=("gone",)))
    assert not made.ledger.pending_reservations, "without what was lent there is no room for 4"
    made.apply(Release("low"))
    assert admitted(made.cycle()) == []


def test_a_place_that_others_have_taken_is_given_up() -> None:
    made = engine(flavor("a"), flavor("b"), queue("q", {"cpu": {"a": "4", "b": "4"}}, preemption=LOWER))
    made.apply(Reserve("low", use("q", "a", cpu="4"), workload("low"), 1))
    made.apply(Reserve("high", use("q", "b", cpu="4"), workload("high", priority=9), 1))
    made.apply(Submit(workload("asks", pods(cpu="2"), priority=5)))
    assert evicted(made.cycle()) == {"low": "asks"}
    made.apply(Submit(workload("beside", pods(cpu="2"))))
    assert made.cycle().planned.keys() == {"beside"}
    made.apply(Withdraw("asks"))
    made.apply(CancelEviction("low"))  # so it stays, and what was planned in its place can't be
    assert made.changed
    made.cycle()
    made.apply(Release("high"))
    plan = made.cycle()
    assert flavors_of(plan, "beside") == {"main": {"cpu": "b"}}


def test_a_leftover_pod_in_a_kept_place_ends_it() -> None:
    made = engine(flavor("a"), flavor("b"), queue("q", {"cpu": {"a": "4", "b": "4"}}, preemption=LOWER))
    made.apply(Reserve("low", use("q", "a", cpu="4"), workload("low"), 1))
    made.apply(Reserve("high", use("q", "b", cpu="4"), workload("high", priority=9), 1))
    made.apply(Submit(workload("asks", pods(cpu="4"), priority=5)))
    assert evicted(made.cycle()) == {"low": "asks"}
    made.apply(Release("low"))
    made.apply(Reserve("pod", use("q", "a", cpu="1")))
    assert admitted(made.cycle()) == []
    made.apply(Release("high"))
    assert flavors_of(made.cycle(), "asks") == {"main": {"cpu": "b"}}


@pytest.mark.parametrize("known", [True, False], ids=["with another priority", "that was unknown before"])
def test_a_running_workload_that_becomes_evictable_is_evicted(*, known: bool) -> None:
    made = engine(DEFAULT, cpus("q", "4", LOWER))
    before = workload("runs", pods(cpu="4"), priority=5) if known else None
    made.apply(Reserve("runs", use("q", "default", cpu="4"), before))
    asks(made, "asks", 4, "q", priority=3)
    assert evicted(made.cycle()) == {}
    made.apply(Reserve("runs", use("q", "default", cpu="4"), workload("runs", pods(cpu="4"), priority=1)))
    assert made.changed
    assert evicted(made.cycle()) == {"runs": "asks"}


@pytest.mark.parametrize("sets", [1, 2], ids=["of one pod set", "of two pod sets"])
def test_the_one_of_several_choices_that_is_hopeless_is_replaced(sets: int) -> None:
    limits = {"cpu": {"a": "4", "b": "4"}, "gpu": {"y": "4", "z": "4"}}
    made = engine(*(flavor(name) for name in "abyz"), queue("q", limits, preemption=LOWER))
    for name, resource, priority in (("a", "cpu", 0), ("b", "cpu", 0), ("y", "gpu", 9), ("z", "gpu", 0)):
        made.apply(Reserve(name, use("q", name, **{resource: "4"}), workload(name, priority=priority), 1))
    shape = [pods(cpu="4", gpu="4")] if sets == 1 else [pods(cpu="4"), pods(name="more", gpu="4")]
    made.apply(Submit(workload("asks", *shape, priority=5)))
    assert evicted(made.cycle()) == {"a": "asks", "z": "asks"}


def test_a_workload_that_is_admitted_elsewhere_waits_no_longer() -> None:
    made = engine(DEFAULT, cpus("q", "4", LOWER))
    asks(made, "twice", 2, "q", priority=5)
    running(made, "twice", 2, "q")
    asks(made, "other", 2, "q")
    assert admitted(made.cycle()) == ["other"]


@pytest.mark.parametrize(
    "free", [True, False], ids=["the second flavor is free", "and there too a victim must go"]
)
@pytest.mark.parametrize("preempt", [True, False], ids=["Preempt", "TryNextFlavor"])
def test_choices_that_collide_are_replaced_together(*, free: bool, preempt: bool) -> None:
    """Either pod set could have the first flavor by an eviction, but not both."""
    limits = {"cpu": {"a": "8", "b": "4"}}
    fungibility = Fungibility(preempt=preempt)
    made = engine(
        flavor("a", kind="a"),
        flavor("b", kind="b"),
        queue("q", limits, preemption=LOWER, fungibility=fungibility),
    )
    made.apply(Reserve("high", use("q", "a", cpu="4"), workload("high", priority=9)))
    made.apply(Reserve("low-a", use("q", "a", cpu="4"), workload("low-a")))
    if not free:
        made.apply(Reserve("low-b", use("q", "b", cpu="4"), workload("low-b")))
    any_, only = pods(cpu="4", name="any"), pods(cpu="4", name="only", selector={"kind": "a"})
    made.apply(Submit(workload("asks", any_, only, priority=5)))
    assert set(evicted(made.cycle())) == ({"low-a"} if free else {"low-a", "low-b"})


def test_a_requeued_workload_goes_before_lesser_ones_of_its_queue() -> None:
    made = engine(
        DEFAULT, cohort("c", limits={"cpu": {"default": "7"}}), cpus("a", "0"), cpus("b", "0", LOWER)
    )
    running(made, "low", 6, "b")
    asks(made, "first", 5, "a", priority=5)
    asks(made, "second", 1, "a", priority=1)
    asks(made, "urgent", 2, "b", priority=9)
    plan = made.cycle()
    assert evicted(plan) == {"low": "urgent"}
    assert plan.planned.keys() == {"urgent", "first"}
    assert admitted(plan) == []


def test_of_those_admitted_in_one_second_the_younger_one_goes() -> None:
    made = engine(DEFAULT, cpus("q", "2", LOWER))
    for uid, created in (("a-old", 1), ("z-new", 4)):
        made.apply(Reserve(uid, use("q", "default", cpu="1"), workload(uid, queue="q", created=created), 9))
    asks(made, "asks", 1, "q", priority=1)
    assert evicted(made.cycle()) == {"z-new": "asks"}
