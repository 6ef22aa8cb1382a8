"""What a waiting workload's subtree owns is not newly borrowed (docs/design/claims.md)."""

from dataclasses import replace

import pytest

from admitter.engine.commands import Define, Release, Reserve, Submit, Withdraw
from admitter.engine.cycle import Engine
from admitter.engine.policy import PreemptionPolicy, Queue, Strategy, WithinQueue
from admitter.engine.refusal import Reason
from tests.engine.builders import admitted, cohort, engine, evicted, pods, queue, use, workload
from tests.engine.preempting import DEFAULT, LOWER, asks, cpus, running


def owners(*more: Queue, strategy: Strategy = Strategy.BEST_EFFORT_FIFO) -> Engine:
    """Team a owns 2 CPUs, team b 4; a uses all 6 by Jobs of one."""
    limits = {"cpu": {"default": "4"}}
    made = engine(DEFAULT, cpus("a", "2"), queue("b", limits, cohort="c", strategy=strategy), *more)
    for number in range(6):
        running(made, f"a{number}", 1, "a")
    return made


@pytest.mark.parametrize("strategy", [Strategy.STRICT_FIFO, Strategy.BEST_EFFORT_FIFO])
def test_an_owner_starts_once_enough_has_ended_whatever_else_is_submitted(strategy: Strategy) -> None:
    made = owners(strategy=strategy)
    asks(made, "b0", 4, "b")
    for number in range(4):
        assert admitted(made.cycle()) == []
        made.apply(Release(f"a{number}"))
        asks(made, f"late{number}", 1, "a", priority=9)
    assert admitted(made.cycle()) == ["b0"]
    assert admitted(made.cycle()) == [], "2 run, and 4 of 6 are taken"


def test_no_more_is_kept_than_is_asked_for_and_owned() -> None:
    made = owners()
    asks(made, "b0", 1, "b")
    asks(made, "late0", 1, "a")
    asks(made, "late1", 1, "a", created=100)
    made.apply(Release("a0"))
    assert admitted(made.cycle()) == ["b0"], "it asks for one: nothing is kept any more"
    made.apply(Release("a1"))
    assert admitted(made.cycle()) == ["late0"]


def test_what_is_owned_by_those_that_borrow_is_theirs() -> None:
    """b asks for 5 and owns 4: it borrows as others do, and keeps nothing from them."""
    made = owners()
    asks(made, "b0", 5, "b")
    asks(made, "late", 1, "a")
    made.apply(Release("a0"))
    assert admitted(made.cycle()) == ["late"]


def test_in_a_best_effort_queue_the_first_that_is_owned_counts() -> None:
    made = owners()
    asks(made, "large", 5, "b", priority=5)
    asks(made, "b0", 3, "b")
    asks(made, "late", 1, "a")
    made.apply(Release("a0"))
    assert admitted(made.cycle()) == []
    made.apply(Release("a1"))
    made.apply(Release("a2"))
    assert admitted(made.cycle()) == ["b0"]


def test_behind_a_strict_head_that_owns_too_little_nothing_is_kept() -> None:
    made = owners(strategy=Strategy.STRICT_FIFO)
    asks(made, "large", 5, "b", priority=5)
    asks(made, "b0", 3, "b")
    asks(made, "late", 1, "a")
    made.apply(Release("a0"))
    assert admitted(made.cycle()) == ["late"]


def test_a_queue_takes_its_own_back_whatever_others_claim() -> None:
    """Both own something that a third one borrows: one that stays within its own is not bound."""
    made = engine(DEFAULT, cpus("a", "2"), cpus("b", "4"), cpus("d", "0"))
    for number in range(6):
        running(made, f"d{number}", 1, "d")
    asks(made, "b0", 4, "b")
    asks(made, "a0", 1, "a")
    made.apply(Release("d0"))
    assert admitted(made.cycle()) == ["a0"]


def test_a_claim_ends_with_its_workload() -> None:
    made = owners()
    asks(made, "b0", 4, "b")
    asks(made, "late", 1, "a")
    made.apply(Release("a0"))
    assert admitted(made.cycle()) == []
    made.apply(Withdraw("b0"))
    assert admitted(made.cycle()) == ["late"]


@pytest.mark.parametrize("stopped", ["4", "0"], ids=["stopped", "owns nothing any more"])
def test_a_queue_that_could_not_start_it_claims_nothing(stopped: str) -> None:
    made = owners()
    asks(made, "b0", 4, "b")
    asks(made, "late", 1, "a")
    made.apply(Release("a0"))
    assert admitted(made.cycle()) == []
    made.apply(
        Define((replace(queue("b", {"cpu": {"default": stopped}}, cohort="c"), admits=stopped == "0"),))
    )
    if stopped == "0":
        made.apply(Release("a1"))
        made.apply(Release("a2"))
        made.apply(Release("a3"))
        made.apply(Release("a4"))
    assert admitted(made.cycle()) == ["late"]


def test_a_lending_limit_keeps_its_part_anyway() -> None:
    """b keeps 2 of its 4 home, so others hold 2 at most, and 2 are claimed beside them."""
    limits = {"cpu": {"default": "4/2"}}
    made = engine(DEFAULT, cpus("a", "2"), queue("b", limits, cohort="c"))
    for number in range(4):
        running(made, f"a{number}", 1, "a")
    asks(made, "b0", 4, "b")
    for number in range(2):
        asks(made, f"late{number}", 1, "a", priority=9)
        assert admitted(made.cycle()) == []
        made.apply(Release(f"a{number}"))
    assert admitted(made.cycle()) == ["b0"]


def test_what_a_queue_keeps_unlent_is_its_own_though_its_cohort_borrows_what_others_claim() -> None:
    """left owns 1 and uses 5; below it `keeps` lends nothing of its 2, and takes nothing from above."""
    made = engine(
        DEFAULT,
        cohort("top"),
        cohort("left", "top", {"cpu": {"default": "1"}}),
        cpus("uses", "0", parent="left"),
        cpus("keeps", "2/0", parent="left"),
        cpus("owner", "6", parent="top"),
    )
    for number in range(5):
        running(made, f"u{number}", 1, "uses")
    asks(made, "o", 6, "owner")
    assert admitted(made.cycle()) == []
    asks(made, "k", 2, "keeps")
    assert admitted(made.cycle()) == ["k"]


def test_what_a_cohort_owns_is_kept_from_other_cohorts_and_not_from_its_own() -> None:
    """left owns 4; two queues below it have nothing of their own, and right has 2."""
    made = engine(
        DEFAULT,
        cohort("left", "top", {"cpu": {"default": "4"}}),
        cohort("right", "top", {"cpu": {"default": "2"}}),
        cpus("l1", "0", parent="left"),
        cpus("l2", "0", parent="left"),
        cpus("r", "0", parent="right"),
    )
    for number in range(6):
        running(made, f"r{number}", 1, "r")
    asks(made, "l", 4, "l1")
    asks(made, "late", 1, "r", priority=9)
    asks(made, "sibling", 1, "l2", priority=9)
    made.apply(Release("r0"))
    assert admitted(made.cycle()) == ["sibling"], "the cohort owns it for both"


def test_a_more_important_workload_of_the_borrowing_queue_does_not_take_over_what_it_borrows() -> None:
    """Else Jobs of ever higher priority could keep the owner out for ever."""
    made = owners()
    made.apply(Define((cpus("a", "2", LOWER),)))
    asks(made, "b0", 4, "b")
    asks(made, "high", 1, "a", priority=9)
    plan = made.cycle()
    assert (plan.evictions, plan.admissions) == ([], [])
    made.apply(Withdraw("b0"))
    assert [eviction.preemptor.uid for eviction in made.cycle().evictions] == ["high"]


def test_within_its_own_quota_a_queue_preempts_in_itself_as_ever() -> None:
    made = engine(
        DEFAULT, cpus("a", "2", PreemptionPolicy(within=WithinQueue.LOWER_PRIORITY)), cpus("b", "4")
    )
    running(made, "low", 2, "a")
    running(made, "lent", 3, "b")
    asks(made, "b0", 4, "b")
    asks(made, "high", 2, "a", priority=9)
    assert [eviction.preemptor.uid for eviction in made.cycle().evictions] == ["high"]


def test_each_flavor_and_resource_is_claimed_by_itself() -> None:
    limits = {"cpu": {"default": "2"}, "memory": {"default": "0"}}
    made = engine(
        DEFAULT,
        queue("a", limits, cohort="c"),
        queue("b", {"cpu": {"default": "2"}, "memory": {"default": "8"}}, cohort="c"),
    )
    for number in range(4):
        uid = f"a{number}"
        made.apply(Reserve(uid, use("a", "default", cpu="1"), workload(uid, pods(cpu="1"), queue="a"), 0))
    asks(made, "b0", 2, "b")
    made.apply(Submit(workload("remembers", pods(memory="3"), queue="a", created=200)))
    asks(made, "computes", 1, "a", created=201)
    made.apply(Release("a0"))
    plan = made.cycle()
    assert admitted(plan) == ["remembers"], "memory is claimed by none"
    assert plan.refusals["computes"].reason is Reason.INSUFFICIENT_QUOTA


def test_explain_says_how_much_is_kept_for_which_one() -> None:
    made = owners()
    asks(made, "b0", 4, "b")
    asks(made, "late", 1, "a")
    made.apply(Release("a0"))
    made.cycle()
    explained = made.explain("late")
    assert explained is not None
    ((amounts,),) = explained.amounts.values()
    assert (amounts.borrowable, amounts.claimed) == (0, 1000)
    assert amounts.claims == (("b0", ("queue", "b"), 4000),)


@pytest.mark.parametrize("least", [None, 1])
def test_what_had_room_but_for_claims_preempts_once_that_room_is_taken(least: int | None) -> None:
    made = engine(DEFAULT, cpus("a", "3", LOWER), cpus("b", "3", LOWER))
    running(made, "a-low", 1, "a")
    running(made, "b-low", 1, "b")
    for number, (name, count) in enumerate((("a", 2), ("b", 2), ("a", 1))):
        asked = pods(count, cpu="1", min_count=least if number == 2 else None)
        made.apply(Submit(workload(f"w{number}", asked, queue=name, priority=1, created=number)))
    plan = made.cycle()
    assert admitted(plan) == ["w0", "w1"]
    assert [(each.victim.holder, each.preemptor.uid) for each in plan.evictions] == [("a-low", "w2")]


def test_what_claims_kept_from_evicting_is_tried_again_once_they_are_others() -> None:
    """high needs 4: with one of its queue out there is room, of which one is claimed; with both, for it."""
    made = engine(DEFAULT, cpus("a", "0", LOWER), cpus("b", "4"), cpus("d", "1"))
    running(made, "a0", 1, "a")
    running(made, "a1", 1, "a")
    asks(made, "b0", 4, "b")
    asks(made, "high", 4, "a", priority=9)
    assert made.cycle().evictions == []
    asks(made, "b1", 1, "b", priority=20)
    plan = made.cycle()
    assert admitted(plan) == ["b1"], "and b0 asks for more than b has left"
    assert sorted(eviction.victim.holder for eviction in plan.evictions) == ["a0", "a1"]


def test_what_claims_kept_out_is_let_in_beside_those_that_are_left() -> None:
    """Two claims at once end with one admission: each is looked at beside the other as it is then."""
    made = engine(
        DEFAULT,
        cohort("top"),
        cohort("left", "top"),
        cpus("asks", "0", parent="left"),
        cpus("owner", "3", parent="left"),
        cpus("other", "0", parent="top"),
    )
    running(made, "o0", 3, "owner")
    asks(made, "o1", 2, "owner")
    asks(made, "a", 3, "asks")
    asks(made, "late", 1, "other")
    assert admitted(made.cycle()) == []
    made.apply(Release("o0"))
    assert admitted(made.cycle()) == ["o1", "late"], "a owns 3 with its cohort, and 1 of them is left"


def test_what_has_room_but_for_claims_once_more_preempts_if_that_is_taken_in_the_same_cycle() -> None:
    """Room for `waits` comes and goes within one cycle, as an owner takes its own: only a victim helps."""
    owner = queue("b", {"cpu": {"default": "8"}}, cohort="c", strategy=Strategy.STRICT_FIFO)
    made = engine(DEFAULT, replace(cpus("a", "0"), preemption=LOWER), owner)
    running(made, "low", 1, "a")
    running(made, "small", 1, "b")
    running(made, "large", 4, "b")
    asks(made, "first", 3, "b")
    asks(made, "second", 2, "b", created=100)
    asks(made, "waits", 2, "a", priority=1)
    assert not made.cycle().admissions, "2 are free, and `first` claims them"
    made.apply(Release("large"))
    plan = made.cycle()
    assert admitted(plan) == ["first", "second"]
    assert evicted(plan) == {"low": "waits"}
