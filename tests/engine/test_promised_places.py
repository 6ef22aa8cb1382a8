"""Pending reservations: their owners, and which evictions are cancelled (docs/design/preemption.md)."""

from dataclasses import replace

from admitter.engine.commands import Define, Release, StartEviction, Submit, Withdraw
from admitter.engine.cycle import Engine
from admitter.engine.policy import PreemptionPolicy, Queue, Reclaim, Strategy, VictimTerms, WithinQueue
from admitter.engine.refusal import Reason
from admitter.engine.tree_cycle import Plan
from tests.engine.builders import admitted, cohort, engine, evicted, queue
from tests.engine.preempting import DEFAULT, LOWER, RECLAIM, asks, cpus, running

LOWER_AND_RECLAIM = PreemptionPolicy(WithinQueue.LOWER_PRIORITY, Reclaim.ANY)


def graceful(name: str, limits: str, seconds: float, preemption: PreemptionPolicy | None = None) -> Queue:
    """A queue that grants its workloads so long a grace period."""
    return replace(cpus(name, limits, preemption), victim_terms=VictimTerms(grace=seconds))


def passed_on(plan: Plan) -> dict[str, str]:
    return {each.victim: each.preemptor.uid for each in plan.reassigned}


def waits_again(made: Engine, uid: str) -> None:
    """A victim is gone, and competes again."""
    held = made.ledger.held(uid)
    assert held is not None
    assert held.workload is not None
    made.apply(Release(uid))
    made.apply(Submit(held.workload))


def low_has_a_place(preemption: PreemptionPolicy) -> Engine:
    """One owns 3, which two's `v` uses: it was told to go for `low`."""
    made = engine(DEFAULT, cpus("one", "3..3", preemption), graceful("two", "0..3", 300))
    running(made, "v", 3, "two")
    asks(made, "low", 3, "one", priority=0)
    assert evicted(made.cycle(60)) == {"v": "low"}
    asks(made, "hi", 3, "one", priority=9)
    return made


def test_a_place_passes_to_a_more_important_workload_that_comes_in_between() -> None:
    made = low_has_a_place(RECLAIM)
    plan = made.cycle(120)
    assert (evicted(plan), passed_on(plan)) == ({}, {"v": "hi"})
    assert [workload.uid for workload in plan.taken_over["hi"]] == ["low"]
    made.apply(StartEviction("v"))
    made.apply(Release("v"))
    assert admitted(made.cycle(360)) == ["hi"]
    made.apply(Release("hi"))
    assert admitted(made.cycle(420)) == ["low"]


def test_it_passes_rather_than_start_and_stop_at_the_same_moment() -> None:
    made = low_has_a_place(LOWER_AND_RECLAIM)
    assert passed_on(made.cycle(120)) == {"v": "hi"}
    assert list(made.ledger.pending_reservations) == ["hi"]


def test_it_does_not_pass_to_one_that_would_take_more_than_it() -> None:
    """hi would need 4: of these one would be borrowed, for which v was not told to go."""
    made = engine(DEFAULT, cpus("one", "3", RECLAIM), graceful("two", "0", 300), cpus("three", "1"))
    running(made, "v", 3, "two")
    asks(made, "low", 3, "one")
    assert evicted(made.cycle(60)) == {"v": "low"}
    asks(made, "hi", 4, "one", priority=9)
    plan = made.cycle(120)
    assert (passed_on(plan), list(made.ledger.pending_reservations)) == ({}, ["low"])


def test_before_another_one_is_evicted_a_place_passes() -> None:
    """v-low has been told to go for zero; high takes that place, and v-mid, which is above zero, runs on."""
    made = engine(DEFAULT, graceful("q", "2", 60, LOWER))
    running(made, "v-low", 1, "q", priority=-5)
    running(made, "v-mid", 1, "q", priority=7)
    asks(made, "zero", 1, "q")
    assert evicted(made.cycle(24)) == {"v-low": "zero"}
    asks(made, "high", 1, "q", priority=100)
    plan = made.cycle(32)
    assert (evicted(plan), passed_on(plan)) == ({}, {"v-low": "high"})


def test_a_preemptor_that_lost_its_reservation_evicts_another_victim() -> None:
    made = engine(DEFAULT, graceful("q", "2", 60, LOWER))
    running(made, "v1", 1, "q", since=1)
    running(made, "v2", 1, "q")
    asks(made, "p1", 1, "q", priority=7)
    assert evicted(made.cycle(20)) == {"v1": "p1"}
    asks(made, "p2", 1, "q", priority=9)
    plan = made.cycle(30)
    assert (evicted(plan), passed_on(plan)) == ({"v2": "p1"}, {"v1": "p2"})


def test_what_need_not_go_for_the_more_important_one_stays() -> None:
    made = engine(DEFAULT, cpus("one", "4", RECLAIM), graceful("two", "0", 60))
    running(made, "v1", 2, "two", since=1)
    running(made, "v2", 2, "two")
    asks(made, "low", 4, "one")
    assert evicted(made.cycle(10)) == {"v1": "low", "v2": "low"}
    made.apply(Define((cpus("one", "4"),)))
    made.cycle(11)
    asks(made, "hi", 2, "one", priority=9)
    plan = made.cycle(12)
    assert passed_on(plan) == {"v1": "hi"}
    assert not made.ledger.evicting("v2")


def test_no_workload_inherits_an_eviction_without_a_right_to_it() -> None:
    """big has to go for hi, which gets in when short ends; free, which evicts nothing, relied on its room."""
    made = engine(DEFAULT, graceful("a", "8", 60, LOWER), cpus("b", "0"))
    running(made, "big", 6, "a")
    running(made, "short", 2, "a", priority=7)
    asks(made, "hi", 1, "a", priority=9)
    assert evicted(made.cycle(10)) == {"big": "hi"}
    asks(made, "free", 5, "b")
    made.cycle(15)
    made.apply(Release("short"))
    assert admitted(made.cycle(30)) == ["hi"]
    assert not made.ledger.evicting("big")
    made.cycle(30)
    assert not made.ledger.pending_reservations


def test_room_that_a_victim_left_is_not_taken_by_one_that_waits_for_its_own() -> None:
    """x goes for mine at once, y for high in an hour: high borrows, and does not get in by what x left."""
    made = engine(DEFAULT, graceful("a", "2", 3600, LOWER), cpus("b", "1", RECLAIM), graceful("c", "0", 60))
    running(made, "y1", 1, "a")
    running(made, "y2", 1, "a", since=1)
    running(made, "x", 1, "c")
    asks(made, "mine", 1, "b")
    assert evicted(made.cycle(10)) == {"x": "mine"}
    asks(made, "high", 1, "a", priority=9)
    assert evicted(made.cycle(20)) == {"y2": "high"}
    made.apply(StartEviction("x"))
    made.apply(Release("x"))
    assert admitted(made.cycle(70)) == ["mine"]


def test_what_is_behind_a_strict_head_with_a_place_is_told_why_it_waits() -> None:
    strict = queue("s", {"cpu": {"default": "4"}}, Strategy.STRICT_FIFO, cohort="c", preemption=RECLAIM)
    made = engine(DEFAULT, strict, cpus("b", "0"))
    running(made, "victim", 1, "b")
    asks(made, "head", 4, "s", priority=9)
    asks(made, "behind", 3, "s")
    plan = made.cycle(60)
    assert (evicted(plan), plan.refusals["behind"].reason) == ({"victim": "head"}, Reason.BEHIND_HEAD)
    made.apply(Release("victim"))
    plan = made.cycle(61)
    assert (admitted(plan), plan.refusals["behind"].reason) == (["head"], Reason.INSUFFICIENT_QUOTA)


def test_a_displaced_workload_takes_nothing_back_from_what_could_come_back() -> None:
    """low goes for high; what high leaves to others it takes back only once high has ended."""
    made = engine(DEFAULT, cpus("a", "4", LOWER_AND_RECLAIM), cpus("b", "2", RECLAIM))
    running(made, "low", 4, "a")
    running(made, "other", 2, "b")
    asks(made, "high", 3, "a", priority=9)
    assert evicted(made.cycle(1)) == {"low": "high"}
    waits_again(made, "low")
    assert admitted(made.cycle(2)) == ["high"]
    assert made.ledger.is_displaced("low")
    made.apply(Release("high"))
    assert not made.ledger.is_displaced("low")
    assert admitted(made.cycle(3)) == ["low"]


def test_what_ends_in_its_own_queue_ends_that_it_is_displaced() -> None:
    made = engine(DEFAULT, cpus("a", "4", LOWER_AND_RECLAIM), cpus("b", "4"))
    running(made, "low", 2, "a")
    running(made, "rest", 2, "a", priority=5)
    running(made, "full", 4, "b")
    asks(made, "high", 2, "a", priority=9)
    assert evicted(made.cycle(1)) == {"low": "high"}
    waits_again(made, "low")
    made.cycle(2)
    made.apply(Release("rest"))
    assert not made.ledger.is_displaced("low")
    assert made.cycle(3).restored == ["low"]


def test_a_cohort_takes_back_its_own_through_a_queue_that_lends_only_a_part() -> None:
    """c has 2 and its queue 3, of which 2 are lent: together 5, which q asks for."""
    for limits in ("3/2", "3/3", "3"):
        made = engine(
            DEFAULT,
            cohort("c", "r", {"cpu": {"default": "2"}}),
            cpus("q", limits, RECLAIM, parent="c"),
            cpus("other", "0", parent="r"),
        )
        running(made, "borrows", 4, "other")
        asks(made, "large", 5, "q")
        assert evicted(made.cycle(1)) == {"borrows": "large"}, limits


def test_with_fair_sharing_a_set_of_victims_counts_as_a_whole() -> None:
    """h needs 4 of 10: b may lose b3 if low goes as well, for then a ends up with no more than b."""
    policy = PreemptionPolicy(WithinQueue.LOWER_PRIORITY, Reclaim.ANY)
    made = engine(
        DEFAULT,
        cohort("root", "", {"cpu": {"default": "10"}}, fair=True),
        cpus("a", "0", policy, parent="root"),
        cpus("b", "0", policy, parent="root"),
    )
    for since, (uid, cpu, name, priority) in enumerate(
        [("keep", 1, "a", 9), ("low", 2, "a", 0), ("b1", 3, "b", 0), ("b2", 2, "b", 0), ("b3", 2, "b", 0)]
    ):
        running(made, uid, cpu, name, priority=priority, since=since)
    asks(made, "h", 4, "a", priority=9)
    assert evicted(made.cycle(60)) == {"b3": "h", "low": "h"}


def test_a_place_passes_on_although_something_is_free_that_an_owner_claims() -> None:
    """1 CPU is free beside the place of `low`, and kept for `owner`: `high` has that place instead."""
    takes = PreemptionPolicy(reclaim=Reclaim.LOWER_PRIORITY)
    made = engine(DEFAULT, graceful("lends", "0", 15), cpus("owns", "8", takes))
    running(made, "told", 4, "lends", since=1)
    running(made, "stays", 3, "lends", priority=5, since=2)
    running(made, "own", 1, "owns", since=3)
    asks(made, "p", 1, "owns", priority=1, created=4)
    assert evicted(made.cycle(4)) == {"told": "p"}
    asks(made, "low", 2, "lends", created=5)
    assert "low" in made.cycle(5).planned
    asks(made, "owner", 4, "owns", created=6)
    assert evicted(made.cycle(6)) == {}
    assert made.claimed("owns") == {("default", "cpu"): 4000}
    asks(made, "high", 1, "lends", priority=3, created=7)
    plan = made.cycle(7)
    assert {uid: [each.uid for each in lost] for uid, lost in plan.taken_over.items()} == {"high": ["low"]}
    assert ("high" in plan.planned, made.waits("low")) == (True, True)


def test_a_place_passes_on_once_the_queue_is_within_its_own_with_that() -> None:
    """2 CPUs are too few for `high`; with the 3 of `low` it is within what its queue owns."""
    made = engine(DEFAULT, cpus("one", "8", RECLAIM), cpus("lends", "3"))
    running(made, "stays", 3, "lends")
    running(made, "v", 8, "lends", since=1)
    for priority, (uid, cpu) in enumerate([("low", 3), ("mid", 3), ("gone", 2)]):
        asks(made, uid, cpu, "one", priority=priority, created=1)
    assert evicted(made.cycle(60)) == {"v": "gone"}
    asks(made, "high", 4, "one", priority=1, created=3)
    assert made.cycle(61).planned == {}
    made.apply(Withdraw("gone"))
    plan = made.cycle(62)
    assert {uid: [each.uid for each in lost] for uid, lost in plan.taken_over.items()} == {"high": ["low"]}
