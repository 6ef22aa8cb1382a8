"""Preemption terms: what is granted to those that may be preempted. Source: docs/design/elastic-quota.md."""

from collections.abc import Callable
from dataclasses import replace
from math import inf

import pytest

from admitter.engine.commands import CancelEviction, Define, Release, Submit, Withdraw
from admitter.engine.cycle import Engine
from admitter.engine.model import Workload
from admitter.engine.policy import (
    ANY_TERMS,
    NO_TERMS,
    Cohort,
    PreemptionPolicy,
    Queue,
    Reclaim,
    VictimTerms,
    WithinQueue,
)
from tests.engine.builders import admitted, cohort, engine, evicted, pods
from tests.engine.elastic import asks, gpus, quotas, running, runs, settle, used
from tests.engine.preempting import DEFAULT, LOWER, NEWER, RECLAIM, cpus
from tests.engine.preempting import asks as asks_cpus
from tests.engine.preempting import running as runs_cpus


def terms(grace: float = 0, runtime: float = 0) -> dict[str, str]:
    return {"gracePeriod": f"{grace}s", "minRuntime": f"{runtime}s"}


def lent(runtime: float = 60, **more: Cohort) -> Engine:
    """What is a's is used by b: 10 since 0:00, and 10 since 0:30."""
    made = quotas(*more.values(), gpus("a", 20), gpus("b", 0, preemption=terms(runtime=runtime)))
    running(made, "early", pods(gpu="10"), name="b", since=0)
    running(made, "late", pods(gpu="10"), name="b", since=30)
    return made


def test_it_is_no_candidate_before_it_has_run_for_so_long() -> None:
    made = lent()
    asks(made, "a", 10)
    assert evicted(made.cycle(59)) == {}
    assert made.waits("asks")
    assert evicted(made.cycle(60)) == {"early": "asks"}, "the newer one has not run for long enough"


def test_the_engine_says_when_the_first_one_will_be_one() -> None:
    made = lent()
    asks(made, "a", 20)
    assert made.due is None, "no preemptor has asked yet"
    made.cycle(40)
    assert made.due == 60
    assert not made.changed
    assert evicted(made.cycle(60)) == {}, "the one alone is not enough"
    assert made.due == 90
    assert set(evicted(made.cycle(90))) == {"early", "late"}
    assert made.due is None


@pytest.mark.parametrize("now", [41, 59, 59.999])
def test_before_its_time_nothing_is_decided(now: float) -> None:
    made = lent()
    asks(made, "a", 10)
    made.cycle(40)
    plan = made.cycle(now)
    assert (plan.admissions, plan.evictions, plan.refusals) == ([], [], {})
    assert made.due == 60


def test_a_workload_that_a_cycle_admitted_runs_since_then() -> None:
    made = quotas(gpus("a", 10), gpus("b", 0, preemption=terms(runtime=60)))
    made.apply(Submit(Workload("late", "b", 0, 0, (pods(gpu="10"),))))
    assert admitted(made.cycle(1000)) == ["late"]
    asks(made, "a", 10)
    assert evicted(made.cycle(1001)) == {}
    assert made.due == 1060


def test_a_workload_that_is_evicted_and_admitted_again_has_all_of_its_time_again() -> None:
    made = lent()
    asks(made, "a", 10)
    settle(made, 60)
    assert used(made) == {"a": 10, "b": 10}
    made.apply(Release("asks"))
    assert admitted(made.cycle(70)) == ["early"]
    asks(made, "a", 10, uid="again")
    made.cycle(71)
    assert made.due == 90, "the other one is the first to have run for a minute"
    made.apply(Release("late"))
    asks(made, "a", 20, uid="all")
    made.apply(Withdraw("again"))
    made.cycle(91)
    assert made.due == 130


def test_if_another_workload_ends_no_victim_has_to_be_waited_for() -> None:
    made = lent()
    asks(made, "a", 10)
    made.cycle(40)
    made.apply(Release("late"))
    assert admitted(made.cycle(41)) == ["asks"]
    plan = made.cycle(60)
    assert (plan.evictions, made.due) == ([], None)


def test_no_cycle_is_due_for_a_workload_that_does_not_wait_any_more() -> None:
    made = lent()
    asks(made, "a", 10)
    made.cycle(40)
    made.apply(Withdraw("asks"))
    assert made.cycle(60).evictions == []
    assert made.due is None


def test_the_time_counts_only_where_it_would_help() -> None:
    made = lent()
    asks(made, "a", 21)
    made.cycle(40)
    assert made.due is None, "there are 20 in all"
    asks(made, "b", 5, uid="beyond")
    made.cycle(41)
    assert made.due is None, "b has no right to more, whatever ends"


def test_a_shorter_time_counts_at_once_and_a_longer_one_too() -> None:
    made = lent()
    asks(made, "a", 10)
    made.cycle(40)
    made.apply(Define((gpus("b", 0, preemption=terms(runtime=45)),)))
    assert evicted(made.cycle(44)) == {}
    assert made.due == 45
    made.apply(Define((gpus("b", 0, preemption=terms(runtime=300)),)))
    made.cycle(45)
    assert evicted(made.cycle(45)) == {}
    assert made.due == 300


def test_in_its_own_queue_it_counts_too() -> None:
    made = quotas(gpus("a", 10, preemption=terms(runtime=60)))
    running(made, "low", pods(gpu="10"), name="a", since=5)
    asks(made, "a", 10, uid="high", priority=9)
    assert evicted(made.cycle(64)) == {}
    assert made.due == 65
    assert evicted(made.cycle(65)) == {"low": "high"}


@pytest.mark.parametrize(
    ("rules", "priority"), [(LOWER, 1), (NEWER, 0)], ids=["lower priority", "newer of equal priority"]
)
def test_a_queue_written_by_hand_grants_it_in_its_own_queue(rules: object, priority: int) -> None:
    made = engine(
        DEFAULT, replace(cpus("q", "4", LOWER if rules is LOWER else NEWER), victim_terms=VictimTerms(0, 60))
    )
    runs_cpus(made, "runs", 4, "q", since=5)
    asks_cpus(made, "asks", 4, "q", priority=priority, created=0)
    assert evicted(made.cycle(64)) == {}
    assert made.due == 65
    assert evicted(made.cycle(65)) == {"runs": "asks"}


def test_a_queue_written_by_hand_grants_terms_to_borrowers() -> None:
    made = engine(DEFAULT, cpus("a", "4", RECLAIM), replace(cpus("b", "0"), victim_terms=VictimTerms(0, 60)))
    runs_cpus(made, "runs", 4, "b", since=5)
    asks_cpus(made, "asks", 4, "a")
    assert evicted(made.cycle(64)) == {}
    assert made.due == 65
    assert evicted(made.cycle(65)) == {"runs": "asks"}


def test_where_it_is_shared_by_weight_it_counts_too() -> None:
    shared = cohort("c", limits={"cpu": {"default": "4"}}, fair=True)
    made = engine(
        DEFAULT,
        shared,
        cpus("a", "0", RECLAIM),
        replace(cpus("b", "0", RECLAIM), victim_terms=VictimTerms(0, 60)),
    )
    for number in range(4):
        runs_cpus(made, f"b{number}", 1, "b", since=number)
    asks_cpus(made, "asks", 2, "a")
    assert evicted(made.cycle(60)) == {}
    assert made.due == 61
    assert set(evicted(made.cycle(61))) == {"b0", "b1"}


def test_of_two_that_wait_each_is_woken_for_its_own() -> None:
    made = quotas(
        gpus("a", 10),
        gpus("d", 10),
        gpus("b", 0, preemption=terms(runtime=60)),
        gpus("c", 0, preemption=terms(runtime=10)),
    )
    running(made, "of-b", pods(gpu="10"), name="b", since=0)
    running(made, "of-c", pods(gpu="10"), name="c", since=0)
    asks(made, "a", 10, uid="for-a")
    asks(made, "d", 10, uid="for-d")
    made.cycle(5)
    assert made.due == 10
    assert evicted(made.cycle(10)) == {"of-c": "for-a"}
    made.cycle(11)
    assert made.due == 60
    assert evicted(made.cycle(60)) == {"of-b": "for-d"}


def test_a_class_that_waits_for_time_wakes_as_a_whole() -> None:
    made = lent()
    for number in range(2):
        asks(made, "a", 10, uid=f"asks-{number}")
    made.cycle(40)
    settle(made, 60)
    assert used(made) == {"a": 10, "b": 10}
    assert made.due == 90
    settle(made, 90)
    assert used(made) == {"a": 20, "b": 0}


# How long before its end a victim knows of it: `gracePeriod`.


def test_the_plan_says_how_long_a_victim_may_go_on() -> None:
    made = quotas(
        gpus("a", 20), gpus("b", 0, preemption=terms(grace=300)), gpus("c", 0, preemption=terms(grace=5))
    )
    runs(made, "b", 5)
    runs(made, "c", 5, 10)
    asks(made, "a", 20)
    plan = made.cycle(100)
    assert {e.victim.holder: e.grace for e in plan.evictions} == {"b-0": 300, "c-0": 5, "c-1": 5}


def test_without_one_it_goes_at_once() -> None:
    made = quotas(gpus("a", 5), gpus("b", 0))
    runs(made, "b", 5)
    asks(made, "a", 5)
    assert [e.grace for e in made.cycle(100).evictions] == [0]


def test_its_own_queue_grants_it_too() -> None:
    made = quotas(gpus("a", 5, preemption=terms(grace=30)))
    runs(made, "a", 5)
    asks(made, "a", 5, priority=1)
    assert [(e.victim.holder, e.grace) for e in made.cycle(100).evictions] == [("a-0", 30)]


def test_while_it_goes_on_its_quota_is_its_own_and_its_place_is_kept() -> None:
    made = quotas(gpus("a", 10), gpus("b", 0, preemption=terms(grace=30)))
    runs(made, "b", 5, 5)
    asks(made, "a", 5)
    made.cycle(100)
    assert used(made) == {"a": 0, "b": 10}
    asks(made, "a", 5, uid="second")
    assert evicted(made.cycle(101)) == {"b-0": "second"}, "the first one is on its way already"
    assert admitted(made.cycle(102)) == []


def test_if_its_preemptor_needs_it_no_more_it_stays() -> None:
    made = quotas(gpus("a", 10), gpus("b", 0, preemption=terms(grace=30)))
    runs(made, "b", 10)
    asks(made, "a", 5)
    made.cycle(100)
    made.apply(Withdraw("asks"))
    made.apply(CancelEviction("b-0"))
    assert made.cycle(101).evictions == []
    assert not made.ledger.evicting("b-0")
    asks(made, "a", 5, uid="later")
    assert evicted(made.cycle(102)) == {"b-0": "later"}


@pytest.mark.parametrize("where", ["b", "c"])
def test_a_victim_that_stays_after_all_may_be_evicted_for_a_preemptor_without_victims_before(
    where: str,
) -> None:
    within = PreemptionPolicy(WithinQueue.LOWER_PRIORITY, Reclaim.LOWER_PRIORITY)
    made = engine(
        DEFAULT,
        cpus("a", "2", preemption=RECLAIM),
        replace(cpus("b", "2", preemption=within), victim_terms=VictimTerms(grace=30)),
        cpus("c", "2"),
    )
    runs_cpus(made, "ends", 2, where, priority=2)
    runs_cpus(made, "high", 2, "b", priority=2)
    runs_cpus(made, "low", 2, "b")
    asks_cpus(made, "asks", 2, "a")
    assert evicted(made.cycle(1)) == {"low": "asks"}
    asks_cpus(made, "waits", 2, "b", priority=2)
    assert evicted(made.cycle(2)) == {}, "low is on its way out for another preemptor"
    made.apply(Release("ends"))
    plan = made.cycle(3)
    assert admitted(plan) == ["asks"]
    assert evicted(plan) == {"low": "waits"}


# What a queue grants is at most what every Cohort above it allows.


def nested(*caps: VictimTerms) -> Callable[[VictimTerms], VictimTerms]:
    """What is left of a grant under cohorts, the nearest one first."""
    names = [f"level-{number}" for number in range(len(caps))]
    cohorts = [
        Cohort(name, parent, victim_terms=cap)
        for name, parent, cap in zip(names, [*names[1:], ""], caps, strict=True)
    ]

    def granted(own: VictimTerms) -> VictimTerms:
        made = engine(DEFAULT, *cohorts, replace(cpus("q", "4", parent="level-0"), victim_terms=own))
        return made.tree.victim_terms("q")

    return granted


@pytest.mark.parametrize(
    ("caps", "own", "expected"),
    [
        pytest.param([ANY_TERMS], (300, 60), (300, 60), id="no cap"),
        pytest.param([VictimTerms(30, inf)], (300, 60), (30, 60), id="grace is capped"),
        pytest.param([VictimTerms(inf, 10)], (300, 60), (300, 10), id="runtime is capped"),
        pytest.param([VictimTerms(900, 900)], (300, 60), (300, 60), id="a cap gives nothing"),
        pytest.param([VictimTerms(0, 0)], (300, 60), (0, 0), id="nothing at all"),
        pytest.param([ANY_TERMS, VictimTerms(30, 20)], (300, 60), (30, 20), id="from above"),
        pytest.param(
            [VictimTerms(40, 20), VictimTerms(30, 50)],
            (300, 60),
            (30, 20),
            id="the least of all levels",
        ),
        pytest.param(
            [VictimTerms(40, 20), ANY_TERMS, VictimTerms(50, 5)],
            (300, 60),
            (40, 5),
            id="three levels",
        ),
        pytest.param([VictimTerms(30, 30)], (0, 0), (0, 0), id="nothing was granted"),
        pytest.param([VictimTerms(30, 30)], (0, 60), (0, 30), id="one of both was granted"),
    ],
)
def test_what_the_cohorts_above_allow(
    caps: list[VictimTerms], own: tuple[float, float], expected: tuple[float, float]
) -> None:
    assert nested(*caps)(VictimTerms(*own)) == VictimTerms(*expected)


def test_a_cohort_that_is_only_named_caps_nothing() -> None:
    made = engine(DEFAULT, replace(cpus("q", "4"), victim_terms=VictimTerms(300, 60)))
    assert made.tree.victim_terms("q") == VictimTerms(300, 60)
    assert made.tree.victim_terms("unknown") == NO_TERMS


def test_a_cap_on_all_elastic_quotas() -> None:
    cap = Cohort("elastic-quota", victim_terms=VictimTerms(10, 20))
    made = lent(60, cap=cap)
    asks(made, "a", 10)
    assert evicted(made.cycle(19)) == {}
    assert made.due == 20
    assert evicted(made.cycle(20)) == {"early": "asks"}


def test_a_cap_that_comes_later_counts_at_once_and_goes_with_its_cohort() -> None:
    made = lent(60)
    asks(made, "a", 10)
    made.cycle(10)
    assert made.due == 60
    made.apply(Define(cohorts=(Cohort("elastic-quota", victim_terms=VictimTerms(inf, 20)),)))
    made.cycle(11)
    made.apply(Define(gone_cohorts=("elastic-quota",)))
    assert evicted(made.cycle(20)) == {}
    made.cycle(21)
    assert evicted(made.cycle(60)) == {"early": "asks"}


def test_a_cap_above_the_cohort_of_all_elastic_quotas() -> None:
    made = quotas(
        Cohort("all", victim_terms=VictimTerms(7, inf)),
        Cohort("elastic-quota", "all", victim_terms=VictimTerms(9, inf)),
        gpus("a", 5),
        gpus("b", 0, preemption=terms(grace=300)),
    )
    runs(made, "b", 5)
    asks(made, "a", 5)
    assert [e.grace for e in made.cycle(100).evictions] == [7]


def test_it_is_the_victims_queue_that_grants() -> None:
    def with_grace(queue: Queue, seconds: float) -> Queue:
        return replace(queue, victim_terms=VictimTerms(seconds, 0))

    made = engine(DEFAULT, with_grace(cpus("a", "4", RECLAIM), 99), with_grace(cpus("b", "0"), 3))
    runs_cpus(made, "runs", 4, "b")
    asks_cpus(made, "asks", 4, "a")
    assert [e.grace for e in made.cycle(100).evictions] == [3]
