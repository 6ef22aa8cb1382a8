"""Why a workload waits, in the words that its user reads."""

from dataclasses import replace
from datetime import UTC, datetime
from math import inf

import pytest

from admitter.api.conditions import WaitingReason
from admitter.engine.commands import Submit
from admitter.engine.cycle import Engine
from admitter.engine.model import PodSet
from admitter.engine.policy import EvictionLimit, PreemptionPolicy, Queue, Strategy, WithinQueue
from admitter.engine.quota.back_off import BackOff
from admitter.engine.quota.eviction_limits import LimitOf, LimitReached
from admitter.engine.refusal import FlavorRefusal, Reason, Refusal, Rule
from admitter.policy.messages import (
    Use,
    pod_set_title,
    same_but_for_use,
    waiting_message,
    workload_title,
)
from tests.engine.builders import SPOT_TAINT, cohort, engine, flavor, pods, queue, workload

SPOT = flavor("spot", taints=(SPOT_TAINT,), type="spot")
ON_DEMAND = flavor("on-demand", type="on-demand")
QUOTAS = {"cpu": {"spot": "4", "on-demand": "2"}, "memory": {"spot": "8Gi", "on-demand": "4Gi"}}


def message(*pod_sets: PodSet) -> str:
    """What a workload is told that comes first to an empty queue."""
    made = engine(SPOT, ON_DEMAND, queue("total", QUOTAS))
    made.apply(Submit(workload("asked", *pod_sets, queue="total")))
    return waiting_message(made.cycle().refusals["asked"])


@pytest.mark.parametrize(
    ("pod_sets", "expected"),
    [
        (
            (pods(cpu="3"),),
            (
                "asks for 3 cpu, which ClusterQueue total can never give: the taint spot=true:NoSchedule of "
                "spot is not tolerated; on-demand has only 2 cpu in all"
            ),
        ),
        (
            (pods(cpu="1", selector={"type": "spot"}),),
            (
                "asks for 1 cpu, and no flavor of ClusterQueue total suits it: the taint "
                "spot=true:NoSchedule of spot is not tolerated; on-demand does not match type=spot"
            ),
        ),
        (
            (pods(cpu="1", gpu="2"),),
            "asks for gpu, which ClusterQueue total does not cover",
        ),
        ((pods(),), "requests none of what ClusterQueue total covers: cpu and memory"),
        (
            (pods(2, cpu="1", memory="2Gi", name="a"), pods(cpu="500m", memory="1Gi", name="b")),
            (
                "pod set b asks for 500m cpu and 1Gi memory, which ClusterQueue total can never give: "
                "the taint spot=true:NoSchedule of spot is not tolerated; on-demand has only 2 cpu in all, "
                "of which other pod sets get 2"
            ),
        ),
    ],
    ids=["never fits", "no flavor matches", "not covered", "nothing requested", "second pod set"],
)
def test_the_sentence(pod_sets: tuple[PodSet, ...], expected: str) -> None:
    assert message(*pod_sets) == expected


def test_a_pod_set_of_a_group_is_named_by_the_first_digits_of_its_digest() -> None:
    assert pod_set_title("shape-50d91e4c5fe1f31621afdb5f") == "shape-50d91e"
    assert pod_set_title("shape-50d91e") == "pod set shape-50d91e"
    assert pod_set_title("leader") == "pod set leader"


def test_what_is_in_use_and_what_waits_behind_it() -> None:
    made = engine(ON_DEMAND, queue("total", {"cpu": {"on-demand": "2"}}, Strategy.STRICT_FIFO))
    for number, cpu in enumerate(("1", "2", "1")):
        made.apply(Submit(workload(f"w{number}", pods(cpu=cpu), queue="total", created=number)))
    refusals = made.cycle().refusals
    assert waiting_message(refusals["w1"]) == (
        "asks for 2 cpu from ClusterQueue total: too much of the 2 cpu of on-demand is in use"
    )
    assert waiting_message(refusals["w2"]) == (
        "waits behind an older or more important workload: ClusterQueue total is StrictFIFO"
    )


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def in_use(used: str, *others: str) -> tuple[str, str]:
    """What a workload is told that asks for 6 CPUs of 9 of which some are used: as data says it, and now."""
    made = engine(
        ON_DEMAND, *others and [SPOT], queue("total", {"cpu": dict.fromkeys(("on-demand", *others), "9")})
    )
    made.apply(Submit(workload("runs", pods(cpu=used, selector={"type": "on-demand"}), queue="total")))
    made.apply(Submit(workload("asks", pods(cpu="6"), queue="total", created=1)))
    refusal = made.cycle().refusals["asks"]
    use = Use(made, "total", NOON)
    return waiting_message(refusal), waiting_message(refusal, use=use)


def test_what_is_in_use_now_is_said_in_numbers() -> None:
    assert in_use("5")[1] == (
        "asks for 6 cpu from ClusterQueue total: 5 of 9 cpu of on-demand in use, 4 free, 6 asked "
        "(at 2026-01-01T12:00:00Z)"
    )
    assert in_use("5", "spot")[1] == (
        "asks for 6 cpu from ClusterQueue total: 5 of 9 cpu of on-demand in use, 4 free, 6 asked; "
        "the taint spot=true:NoSchedule of spot is not tolerated (at 2026-01-01T12:00:00Z)"
    )


def told(made: Engine, uid: str) -> str:
    """What a workload is told with what is in use, after a cycle."""
    refusal = made.cycle().refusals[uid]
    return waiting_message(refusal, use=Use(made, refusal.queue, NOON))


LIMITED = replace(queue("total", {"cpu": {"on-demand": "8", "spot": "8"}}), limits={"cpu": 8000})


@pytest.mark.parametrize(
    ("defined", "spot"),
    [(queue("total", {"cpu": {"on-demand": "8"}}), False), (LIMITED, False), (LIMITED, True)],
    ids=["one flavor", "a limit on all flavors", "two flavors below a limit"],
)
def test_what_other_pod_sets_get_is_said_beside(defined: Queue, *, spot: bool) -> None:
    """Six are free, and each of the pod sets asks for four."""
    made = engine(ON_DEMAND, flavor("spot", type="spot"), defined)
    made.apply(Submit(workload("runs", pods(cpu="2", selector={"type": "on-demand"}), queue="total")))
    leader = pods(cpu="4", name="leader", selector={"type": "spot" if spot else "on-demand"})
    worker = pods(cpu="4", name="worker", selector={"type": "on-demand"})
    made.apply(Submit(workload("asks", leader, worker, queue="total", created=1)))
    message = told(made, "asks")
    assert message.startswith(
        "pod set worker asks for 4 cpu from ClusterQueue total: 2 of 8 cpu of on-demand in use, 6 free, "
        "4 asked beside 4 for other pod sets"
    )
    assert same_but_for_use(message, message.replace("beside 4", "beside 3"))


def test_what_is_kept_for_others_is_not_in_use() -> None:
    """Six of eight are in use; the owner of four waits for these, and claims the two that are free."""
    made = engine(
        ON_DEMAND,
        cohort("all"),
        queue("borrows", {"cpu": {"on-demand": "4"}}, cohort="all"),
        queue("owns", {"cpu": {"on-demand": "4"}}, cohort="all"),
    )
    made.apply(Submit(workload("runs", pods(cpu="6"), queue="borrows")))
    made.cycle()
    made.apply(Submit(workload("owner", pods(cpu="4"), queue="owns", created=1)))
    made.apply(Submit(workload("asks", pods(cpu="2"), queue="borrows", created=2)))
    message = told(made, "asks")
    assert message.startswith(
        "asks for 2 cpu from ClusterQueue borrows: 6 of 8 cpu (of which 4 are its own) of on-demand in use, "
        "2 kept for others, 0 free, 2 asked"
    )
    assert same_but_for_use(message, message.replace("6 of 8", "8 of 8").replace("2 kept for others, ", ""))


def test_what_is_free_and_asked_are_not_rounded_to_the_same() -> None:
    made = engine(ON_DEMAND, queue("total", {"memory": {"on-demand": "32Gi"}}))
    made.apply(Submit(workload("runs", pods(memory="16Gi"), queue="total")))
    made.apply(Submit(workload("asks", pods(memory=str(2**34 + 1)), queue="total", created=1)))
    assert "16Gi of 32Gi memory of on-demand in use, 16Gi free, 17179869185 asked" in told(made, "asks")


def test_what_is_in_use_makes_no_other_message() -> None:
    (_, five), (plain, eight) = in_use("5"), in_use("8")
    assert five != eight
    assert same_but_for_use(five, eight)
    assert not same_but_for_use(five, plain)
    assert not same_but_for_use(five, five.replace("6 asked", "7 asked"))
    assert not same_but_for_use(five, five.replace("of 9", "of 10"))
    assert not same_but_for_use(five, five.replace("on-demand", "spot"))
    borrowing = five.replace("9 cpu", "9 cpu (of which none are its own)")
    assert not same_but_for_use(five, borrowing)
    assert same_but_for_use(borrowing, borrowing.replace("5 of", "1500m of").replace("4 free", "0 free"))


def test_the_engines_reasons_are_those_of_the_conditions() -> None:
    assert {str(reason) for reason in Reason} <= {str(reason) for reason in WaitingReason}


@pytest.mark.parametrize(
    ("fair", "words"), [(False, "would make room"), (True, "would make room, by the shares of their queues")]
)
def test_that_no_workload_can_be_preempted(*, fair: bool, words: str) -> None:
    policy = PreemptionPolicy(WithinQueue.LOWER_PRIORITY)
    made = engine(
        flavor("f"),
        cohort("all", limits={"cpu": {"f": "2"}}, fair=fair),
        queue("total", {"cpu": {"f": "0"}}, cohort="all", preemption=policy),
    )
    made.apply(Submit(workload("runs", pods(cpu="2"), queue="total")))
    made.apply(Submit(workload("asks", pods(cpu="1"), queue="total", created=1)))
    assert waiting_message(made.cycle().refusals["asks"]) == (
        "asks for 1 cpu from ClusterQueue total: too much of the 2 cpu (of which none are its own) of f is "
        f"in use; no workload that it may preempt {words}"
    )


def test_a_workload_has_a_name_in_its_own_namespace_alone() -> None:
    assert workload_title("a", "urgent", "a") == "Workload a/urgent"
    assert workload_title("a", "urgent", "b") == "a Workload of another namespace"


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "a place gained by eviction was given back unused"),
        (3, "places gained by eviction were given back unused 3 times"),
    ],
)
def test_what_evicts_nothing_for_a_while_is_told_why_and_until_when(count: int, words: str) -> None:
    short = FlavorRefusal("default", Rule.BUSY, "cpu", 4000, 4000)
    refusal = Refusal(Reason.PREEMPTION_BACKED_OFF, "total", asked=(("cpu", 1000),), flavors=(short,))
    until = BackOff(count, datetime(2026, 1, 1, 12, 0, 10, tzinfo=UTC).timestamp())
    assert waiting_message(replace(refusal, back_off=until)) == (
        "asks for 1 cpu from ClusterQueue total: too much of the 4 cpu of default is in use; "
        f"{words}: evicts again after 12:00:10Z"
    )
    assert waiting_message(Refusal(Reason.PREEMPTION_BACKED_OFF, "total", back_off=until)) == (
        f"its turn in ClusterQueue total comes after all others; {words}: evicts again after 12:00:10Z"
    )


def test_a_limit_on_evictions_says_how_often_and_when_it_is_over() -> None:
    short = FlavorRefusal("spot", Rule.BUSY, "cpu", quota=4000, own=4000)
    limited = Refusal(
        Reason.EVICTIONS_LIMITED,
        "total",
        asked=(("cpu", 1000),),
        flavors=(short,),
        preempts=True,
        limited=LimitReached("lent", EvictionLimit(2, 3600), 1_767_272_700),
    )
    assert waiting_message(limited).endswith(
        "; a Workload of ClusterQueue lent that would make room was evicted 2 times within 1h: "
        "next at 2026-01-01T13:05:00Z"
    )
    never = replace(limited, limited=LimitReached("lent", EvictionLimit(0, 3600), inf))
    assert waiting_message(never).endswith(
        "; what would make room is in ClusterQueue lent, where no Workload is evicted for others"
    )


NEXT = "and there were so many: next at 2026-01-01T13:05:00Z"


@pytest.mark.parametrize(
    ("of", "count", "until", "words"),
    [
        (
            LimitOf.QUEUE,
            2,
            1_767_272_700,
            f"ClusterQueue lent allows 2 evictions for others within 1h, {NEXT}",
        ),
        (
            LimitOf.COHORT,
            1,
            1_767_272_700,
            f"Cohort lent allows 1 eviction for others within 1h, {NEXT}",
        ),
        (
            LimitOf.QUEUE,
            1,
            inf,
            "ClusterQueue lent allows 1 eviction for others within 1h, and more at once would make room",
        ),
        (
            LimitOf.COHORT,
            0,
            inf,
            "what would make room is in Cohort lent, which allows no eviction for others",
        ),
    ],
)
def test_a_limit_on_all_evictions_of_a_queue_or_cohort_names_it(
    of: LimitOf, count: int, until: float, words: str
) -> None:
    short = FlavorRefusal("spot", Rule.BUSY, "cpu", quota=4000, own=4000)
    reached = LimitReached("lent", EvictionLimit(count, 3600), until, of)
    reason = Reason.EVICTIONS_LIMITED
    limited = Refusal(reason, "total", asked=(("cpu", 1000),), flavors=(short,), limited=reached)
    assert waiting_message(limited).endswith(f"; {words}")
