"""Places that evictions have made and that are given back unused (docs/design/preemption.md)."""

from dataclasses import replace

import pytest

from admitter.engine.commands import (
    Define,
    Release,
    Reserve,
    ReturnReservation,
    SetBackOff,
    Submit,
    UseReservation,
    Withdraw,
)
from admitter.engine.cycle import Engine
from admitter.engine.policy import PreemptionPolicy, Queue, Reclaim, Strategy, VictimTerms, WithinQueue
from admitter.engine.quota.back_off import LONGEST_SECONDS, MOST, BackOff, seconds
from admitter.engine.refusal import Reason
from admitter.engine.tree_cycle import Plan
from tests.engine.builders import admitted, engine, evicted, pods, queue, use, workload
from tests.engine.preempting import DEFAULT, LOWER, RECLAIM, cpus, running

CPUS = {"cpu": {"default": "4"}}


def team(made: Engine, uid: str, namespace: str = "a", *, cpu: int = 1, priority: int = 0) -> None:
    """A workload of the queue that owns 4 CPUs."""
    asked = workload(uid, pods(cpu=str(cpu)), queue="owner", priority=priority, created=99)
    made.apply(Submit(replace(asked, namespace=namespace)))


def lent(
    *more: Queue, strategy: Strategy = Strategy.BEST_EFFORT_FIFO, policy: PreemptionPolicy = RECLAIM
) -> Engine:
    """The owner's 4 CPUs are lent to four workloads of one CPU each."""
    owner = queue("owner", CPUS, strategy, cohort="c", preemption=policy)
    made = engine(DEFAULT, owner, cpus("borrower", "0"), *more)
    for number in range(4):
        running(made, f"b{number}", 1, "borrower", since=number)
    return made


def come_back(made: Engine, plan: Plan, now: float) -> Plan:
    """The victims have gone, and wait again."""
    for eviction in plan.evictions:
        victim = eviction.victim
        made.apply(Release(victim.holder))
        assert victim.workload is not None
        made.apply(Submit(victim.workload))
    return made.cycle(now)


def preemptors(plan: Plan) -> list[str]:
    """For which workloads others are evicted: one each."""
    return list(evicted(plan).values())


def deleted(made: Engine, uid: str) -> None:
    """Its user deletes a workload."""
    made.apply(ReturnReservation(uid))
    made.apply(Withdraw(uid))
    made.apply(Release(uid))


def given_back(made: Engine, now: float, uid: str = "unused", namespace: str = "a") -> Plan:
    """Something evicts, is admitted and deleted at once; returns the plan that evicts."""
    team(made, uid, namespace)
    plan = made.cycle(now)
    come_back(made, plan, now)
    deleted(made, uid)
    made.cycle(now)
    return plan


def test_a_place_that_is_given_back_unused_keeps_its_namespace_from_evicting_for_ten_seconds() -> None:
    made = lent()
    assert preemptors(given_back(made, 100)) == ["unused"]
    team(made, "next")
    plan = made.cycle(100)
    assert evicted(plan) == {}
    assert plan.refusals["next"].reason is Reason.PREEMPTION_BACKED_OFF
    assert plan.refusals["next"].back_off == BackOff(1, 110)
    assert made.due == 110
    assert evicted(made.cycle(109)) == {}
    assert preemptors(made.cycle(110)) == ["next"]


def test_a_place_that_is_given_back_before_it_was_taken_counts_too() -> None:
    made = lent()
    team(made, "unused")
    assert preemptors(made.cycle(100)) == ["unused"]
    deleted(made, "unused")
    assert made.changed, "a cycle notes it"
    team(made, "next", cpu=2)
    assert evicted(made.cycle(100)) == {}


def test_another_priority_by_itself_gives_nothing_back() -> None:
    """The value of a class may be an administrator's to change; of another class the caller says so."""
    made = lent()
    team(made, "mine", priority=5)
    assert preemptors(made.cycle(100)) == ["mine"]
    team(made, "mine", priority=1)
    assert preemptors(made.cycle(100)) == []
    assert "mine" in made.ledger.pending_reservations, "its victims are on their way out"
    team(made, "next", cpu=2)
    assert preemptors(made.cycle(100)) == ["next", "next"], "nothing keeps its namespace from evicting"


def test_each_one_doubles_the_back_off_up_to_ten_minutes() -> None:
    assert [seconds(count) for count in range(1, MOST + 1)] == [10, 20, 40, 80, 160, 320, 600]
    made, now, waits = lent(), 0.0, []
    for _ in range(MOST + 2):
        given_back(made, now)
        due = made.due
        assert due is not None
        waits.append(due - now)
        now = due
    assert waits == [10, 20, 40, 80, 160, 320, 600, 600, 600]


@pytest.mark.long
def test_one_that_creates_and_deletes_for_an_hour_evicts_eleven_times() -> None:
    """At 0, 10, 30, 70, 150, 310 and 630 s, and every 600 s after that (docs/design/preemption.md)."""
    made = lent()
    evictions: list[int] = []
    for now in range(3600):
        evictions += [now for _ in given_back(made, now, f"w{now}").evictions]
    assert evictions == [0, 10, 30, 70, 150, 310, 630, 1230, 1830, 2430, 3030]


@pytest.mark.parametrize("quiet", [0, 1, 300, 600, 700, 1200, 1800])
def test_no_pauses_let_it_evict_more_often_than_the_bound(quiet: int) -> None:
    """With a pause after every so many: at most 7 and one for each ten minutes, and one for where it ends."""
    for burst in (1, 2, 3, 5, 7):
        made, now, evictions, window = lent(), 0.0, 0, 6 * 3600
        while now < window:
            for _ in range(burst):
                if now >= window:
                    break
                evictions += len(given_back(made, now).evictions)
                now = made.due or now
            now += quiet
        assert evictions <= MOST + window / LONGEST_SECONDS + 1, burst


def test_each_ten_minutes_of_quiet_one_counts_less() -> None:
    made = lent()
    for now in (0, 10, 30):
        given_back(made, now)
    assert made.due == 70
    given_back(made, 70 + LONGEST_SECONDS)
    assert made.due == 70 + LONGEST_SECONDS + 40, "two count still, and this one"


def test_one_error_of_a_user_costs_ten_seconds_and_is_forgotten() -> None:
    made = lent()
    given_back(made, 0)
    given_back(made, 10 + LONGEST_SECONDS)
    assert made.due == 20 + LONGEST_SECONDS


def test_other_namespaces_of_the_queue_evict_as_ever() -> None:
    made = lent()
    given_back(made, 0)
    team(made, "mine")
    team(made, "theirs", "b")
    plan = made.cycle(1)
    assert preemptors(plan) == ["theirs"]
    assert plan.refusals["mine"].reason is Reason.PREEMPTION_BACKED_OFF


def test_in_a_strict_queue_other_namespaces_do_not_wait_behind_it() -> None:
    made = lent(strategy=Strategy.STRICT_FIFO)
    given_back(made, 0)
    team(made, "mine", priority=9)
    team(made, "theirs", "b")
    plan = made.cycle(1)
    assert preemptors(plan) == ["theirs"]
    assert plan.refusals["mine"].reason is Reason.PREEMPTION_BACKED_OFF
    plan = come_back(made, plan, 2)
    assert admitted(plan) == ["theirs"]
    assert preemptors(made.cycle(10)) == ["mine"]


def test_where_namespaces_take_turns_the_others_do_not_wait_behind_it_either() -> None:
    owner = replace(
        queue("owner", CPUS, Strategy.STRICT_FIFO, cohort="c", preemption=RECLAIM), by_namespace=True
    )
    made = engine(DEFAULT, owner, cpus("borrower", "0"))
    for number in range(4):
        running(made, f"b{number}", 1, "borrower", since=number)
    given_back(made, 0)
    team(made, "mine", priority=9)
    team(made, "theirs", "b")
    assert preemptors(made.cycle(1)) == ["theirs"]


def test_what_is_free_it_gets() -> None:
    made = lent()
    given_back(made, 0)
    team(made, "next")
    assert admitted(made.cycle(1)) == []
    made.apply(Release("b0"))
    assert admitted(made.cycle(2)) == ["next"]


def test_it_says_that_quota_is_short_where_it_could_evict_nothing_anyway() -> None:
    made = lent(policy=LOWER)
    team(made, "low", priority=-1)
    made.apply(SetBackOff("owner", "a", BackOff(3, 50)))
    plan = made.cycle(1)
    assert plan.refusals["low"].reason is Reason.INSUFFICIENT_QUOTA


def test_a_place_that_is_used_is_nobodys_loss() -> None:
    made = lent()
    team(made, "worked")
    come_back(made, made.cycle(0), 0)
    made.apply(UseReservation("worked"))
    deleted(made, "worked")
    team(made, "next", cpu=2)
    assert evicted(made.cycle(1)), "it takes back what b3 has got again"


def test_a_finished_one_has_used_its_place() -> None:
    made = lent()
    team(made, "done")
    come_back(made, made.cycle(0), 0)
    made.apply(Release("done"))
    made.apply(ReturnReservation("done"))
    team(made, "next", cpu=2)
    assert evicted(made.cycle(1))


def test_what_was_held_for_ten_minutes_was_used_even_without_pods() -> None:
    for held, counts in ((LONGEST_SECONDS - 1, True), (LONGEST_SECONDS, False)):
        made = lent()
        team(made, "reserved")
        come_back(made, made.cycle(0), 0)
        deleted(made, "reserved")
        made.cycle(held)
        assert (made.due is not None) is counts, held


def test_a_place_without_evictions_is_given_back_for_nothing() -> None:
    made = lent()
    made.apply(Release("b0"))
    team(made, "fits")
    assert admitted(made.cycle(0)) == ["fits"]
    deleted(made, "fits")
    made.cycle(1)
    assert made.due is None


def test_a_place_that_the_engine_passes_on_is_not_given_back() -> None:
    """The one that has it then may give it back."""
    policy = PreemptionPolicy(WithinQueue.LOWER_PRIORITY, Reclaim.ANY)
    made = lent(policy=policy)
    made.apply(Define((replace(cpus("borrower", "0"), victim_terms=VictimTerms(grace=300)),)))
    team(made, "low", cpu=4)
    assert len(made.cycle(0).evictions) == 4
    team(made, "high", cpu=4, priority=9)
    assert [each.uid for each in made.cycle(1).taken_over["high"]] == ["low"]
    deleted(made, "low")
    made.cycle(2)
    assert made.due is None
    deleted(made, "high")
    made.cycle(3)
    assert made.due == 13


def test_what_the_engine_evicts_gives_nothing_back() -> None:
    made = lent(policy=PreemptionPolicy(WithinQueue.LOWER_PRIORITY, Reclaim.ANY))
    for number in range(3):
        made.apply(Reserve(f"own{number}", use("owner", "default", cpu="1")))
        made.apply(Release(f"b{number}"))
    team(made, "low")
    come_back(made, made.cycle(0), 0)
    team(made, "high", priority=9)
    assert evicted(made.cycle(1)) == {"low": "high"}
    deleted(made, "low")
    made.cycle(2)
    assert made.due is None


def test_what_others_stop_gives_nothing_back() -> None:
    made = lent()
    team(made, "stopped")
    made.cycle(0)
    made.apply(Withdraw("stopped"))
    made.cycle(1)
    assert made.due is None


def test_another_request_gives_the_place_back() -> None:
    made = lent()
    team(made, "fickle")
    made.cycle(0)
    team(made, "fickle", cpu=2)
    assert evicted(made.cycle(1)) == {}
    assert made.due == 11


def test_places_that_are_given_back_together_count_once() -> None:
    made = lent()
    for number in range(4):
        team(made, f"w{number}")
    assert len(made.cycle(0).evictions) == 4
    for number in range(4):
        deleted(made, f"w{number}")
        made.cycle(number)
    assert made.due == 10


def test_one_that_evicts_nothing_for_its_own_doing_keeps_others_from_borrowing_nothing() -> None:
    made = lent()
    given_back(made, 0)
    team(made, "owner0", cpu=4)
    assert evicted(made.cycle(1)) == {}
    assert made.claimed("owner") == {}
    made.apply(Release("b0"))
    running_now = replace(workload("late", pods(cpu="1"), queue="borrower", created=100), namespace="z")
    made.apply(Submit(running_now))
    assert admitted(made.cycle(2)) == ["late"]


def test_its_claim_stands_again_once_the_back_off_is_over() -> None:
    """It may evict only what is less important in its own queue: what it lent it gets back as others end."""
    made = lent(policy=LOWER)
    made.apply(SetBackOff("owner", "a", BackOff(1, 10)))
    team(made, "owner0", cpu=4)
    made.cycle(1)
    assert made.claimed("owner") == {}
    made.cycle(10)
    assert made.claimed("owner") == {("default", "cpu"): 4000}
    for number in range(4):
        made.apply(Release(f"b{number}"))
        made.apply(Submit(workload(f"late{number}", pods(cpu="1"), queue="borrower", created=100)))
        plan = made.cycle(11 + number)
    assert admitted(plan) == ["owner0"]


def test_what_another_namespace_owns_is_claimed_as_ever() -> None:
    made = lent(policy=LOWER)
    made.apply(SetBackOff("owner", "a", BackOff(1, 10)))
    team(made, "mine", cpu=4, priority=9)
    team(made, "theirs", "b", cpu=3)
    made.cycle(1)
    assert made.claimed("owner") == {("default", "cpu"): 3000}


def test_an_explanation_says_until_when() -> None:
    made = lent()
    given_back(made, 0)
    team(made, "next")
    made.cycle(1)
    found = made.explain("next")
    assert found is not None
    assert found.refusal is not None
    assert (found.refusal.reason, found.refusal.back_off) == (Reason.PREEMPTION_BACKED_OFF, BackOff(1, 10))


def test_a_back_off_of_an_earlier_engine_goes_on_and_doubles() -> None:
    made = lent()
    made.apply(SetBackOff("owner", "a", BackOff(2, 50)))
    made.apply(SetBackOff("owner", "a", BackOff(1, 20)))
    team(made, "next")
    assert evicted(made.cycle(49)) == {}
    assert preemptors(made.cycle(50)) == ["next"]
    deleted(made, "next")
    made.cycle(50)
    assert made.due == 90
