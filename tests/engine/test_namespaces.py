"""Namespaces that share a queue (docs/namespace-fairness.md): the tables, turns, and which must give way."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from admitter.engine.commands import Define, Release, Reserve, SetWeight, Submit
from admitter.engine.cycle import Engine
from admitter.engine.model import Workload
from admitter.engine.policy import PreemptionPolicy, Queue, Reclaim, Strategy, WithinQueue
from tests.engine.builders import admitted, cohort, engine, evicted, flavor, pods, queue, use, workload
from tests.scale import examples

LOWER = PreemptionPolicy(WithinQueue.LOWER_PRIORITY)


def shared(
    name: str,
    cpus: str,
    strategy: Strategy = Strategy.BEST_EFFORT_FIFO,
    *,
    cohort: str = "",
    weight: int = 1,
    preemption: PreemptionPolicy | None = None,
) -> Queue:
    made = queue(name, {"cpu": {"default": cpus}}, strategy, cohort=cohort, weight=weight)
    return replace(made, by_namespace=True, preemption=preemption or made.preemption)


def job(
    uid: str, namespace: str, cpus: str = "1", *, queue: str = "q", priority: int = 0, created: float = 0
) -> Workload:
    made = workload(uid, pods(cpu=cpus), queue=queue, priority=priority, created=created)
    return replace(made, namespace=namespace)


def weighted(made: Engine, weights: dict[str, int]) -> Engine:
    for namespace, weight in weights.items():
        made.apply(SetWeight(namespace, weight))
    return made


def share(made: Engine, namespace: str) -> Fraction:
    sharing = made.ledger.sharing["q"]
    endless, amount = sharing.of(namespace)
    assert not endless
    return Fraction(amount, sharing._scale)


def ones(namespace: str, count: int, queue: str, prefix: str = "") -> Iterator[Workload]:
    for number in range(count):
        yield job(f"{prefix}{queue}-{namespace}-{number:02}", namespace, queue=queue)


TABLES = [
    pytest.param(
        (1, 1),
        {},
        {("q1", "ns1"): 5, ("q1", "ns2"): 10, ("q2", "ns3"): 10, ("q2", "ns4"): 2},
        {("q1", "ns1"): 4, ("q1", "ns2"): 4, ("q2", "ns3"): 6, ("q2", "ns4"): 2},
        id="queues-and-namespaces-of-default-weight",
    ),
    pytest.param(
        (1, 3),
        {"ns1": 3, "ns2": 1, "ns3": 2, "ns4": 6},
        {("q1", "ns1"): 5, ("q1", "ns2"): 10, ("q2", "ns3"): 10, ("q2", "ns4"): 2},
        {("q1", "ns1"): 3, ("q1", "ns2"): 1, ("q2", "ns3"): 10, ("q2", "ns4"): 2},
        id="queues-of-weight-1-and-3-namespaces-of-different-weights",
    ),
    pytest.param(
        (1, 3),
        {"ns1": 2, "ns2": 6},
        {("q1", "ns1"): 10, ("q2", "ns1"): 5, ("q2", "ns2"): 20},
        {("q1", "ns1"): 4, ("q2", "ns1"): 3, ("q2", "ns2"): 9},
        id="what-a-namespace-uses-of-one-queue-counts-in-no-other",
    ),
]


@pytest.mark.parametrize("late", ["", "ns1", "ns2"], ids=["together", "ns1-late", "ns2-late"])
@pytest.mark.parametrize(("weights", "namespaces", "requested", "assigned"), TABLES)
def test_the_tables(
    weights: tuple[int, int],
    namespaces: dict[str, int],
    requested: dict[tuple[str, str], int],
    assigned: dict[tuple[str, str], int],
    late: str,
) -> None:
    """16 CPUs, Jobs of one CPU; with preemption it makes no difference which comes late."""
    sharing = PreemptionPolicy(WithinQueue.LOWER_PRIORITY, Reclaim.ANY)
    made = engine(
        flavor("default"),
        cohort("root", "", {"cpu": {"default": "16"}}, fair=True),
        *(
            shared(name, "0", cohort="root", weight=weight, preemption=sharing if late else None)
            for name, weight in zip(("q1", "q2"), weights, strict=True)
        ),
    )
    weighted(made, namespaces)
    running: dict[str, Workload] = {}
    everybody = [w for (name, ns), count in requested.items() for w in ones(ns, count, name)]
    for arriving in (False, True):
        for each in everybody:
            if (each.namespace == late) is arriving:
                made.apply(Submit(each))
        settle(made, running)
    assert Counter((w.queue, w.namespace) for w in running.values()) == Counter(assigned)
    for name in ("q1", "q2"):
        check_balance(made, running, everybody, name)


def settle(made: Engine, running: dict[str, Workload]) -> None:
    """Decide until nothing changes; victims wait again at once."""
    for now in range(1, 60):
        plan = made.cycle(float(now))
        running.update({w.uid: w for w, _ in plan.admissions})
        for victim in evicted(plan):
            again = running.pop(victim)
            made.apply(Release(victim))
            made.apply(Submit(again))
        if not plan.admissions and not plan.evictions:
            return
    raise AssertionError("it does not come to rest")


def check_balance(made: Engine, running: dict[str, Workload], everybody: list[Workload], queue: str) -> None:
    """Shares of namespaces with unmet demand differ by less than a Job: one more here, or one less there."""
    sharing = made.ledger.sharing[queue]
    hungry = {w.namespace for w in everybody if w.queue == queue and w.uid not in running}
    for namespace, other in permutations(sorted(hungry), 2):
        one_less = sharing.with_(other, {"cpu": -1000})
        assert one_less <= sharing.of(namespace) or one_less < sharing.with_(namespace, {"cpu": 1000})


def test_the_formula_rules_where_the_prose_slips() -> None:
    """Weight 2 with 6 CPUs has 6/2, weight 1 with 2 CPUs has 2/1: the second uses less."""
    made = weighted(engine(flavor("default"), shared("q", "9")), {"ns1": 2})
    made.apply(Reserve("a", use("q", "default", cpu="6"), job("a", "ns1", "6")))
    made.apply(Reserve("b", use("q", "default", cpu="2"), job("b", "ns2", "2")))
    made.apply(Submit(job("c", "ns1")))
    made.apply(Submit(job("d", "ns2")))
    assert share(made, "ns1") == Fraction(6, 9) / 2
    assert share(made, "ns2") == Fraction(2, 9)
    assert admitted(made.cycle()) == ["d"]


def test_after_each_admission_it_is_asked_anew() -> None:
    """Not job1, job2, job3, job4: after job1 it is the other namespace's turn."""
    made = engine(flavor("default"), shared("q", "3"))
    for number, namespace in enumerate(("ns1", "ns1", "ns2", "ns2"), start=1):
        made.apply(Submit(job(f"job{number}", namespace, created=number)))
    assert admitted(made.cycle()) == ["job1", "job3", "job2"]


def test_priority_decides_only_within_a_namespace() -> None:
    made = engine(flavor("default"), shared("q", "2"))
    made.apply(Reserve("old", use("q", "default", cpu="1"), job("old", "ns1")))
    made.apply(Submit(job("urgent", "ns1", priority=9)))
    made.apply(Submit(job("low", "ns2", priority=0)))
    made.apply(Submit(job("high", "ns2", priority=1)))
    assert admitted(made.cycle()) == ["high"]


def test_of_equal_shares_priority_age_and_uid_decide() -> None:
    made = engine(flavor("default"), shared("q", "1"))
    made.apply(Submit(job("b", "ns1", created=2)))
    made.apply(Submit(job("a", "ns2", created=1)))
    made.apply(Submit(job("c", "ns3", created=1)))
    assert admitted(made.cycle()) == ["a"]


def test_the_dominant_resource_counts() -> None:
    made = engine(
        flavor("default"),
        replace(queue("q", {"cpu": {"default": "10"}, "memory": {"default": "100Gi"}}), by_namespace=True),
    )
    made.apply(Reserve("a", use("q", "default", cpu="1", memory="60Gi"), job("a", "ns1")))
    made.apply(Reserve("b", use("q", "default", cpu="5", memory="1Gi"), job("b", "ns2")))
    assert share(made, "ns1") == Fraction(60, 100)
    assert share(made, "ns2") == Fraction(5, 10)


def test_in_a_strict_queue_the_head_of_the_smallest_share_holds_all_up() -> None:
    made = engine(flavor("default"), shared("q", "4", Strategy.STRICT_FIFO))
    made.apply(Reserve("a", use("q", "default", cpu="2"), job("a", "ns1", "2")))
    made.apply(Submit(job("large", "ns2", "3")))
    made.apply(Submit(job("small", "ns1", "1")))
    plan = made.cycle()
    assert admitted(plan) == []
    assert {uid: str(refusal.reason) for uid, refusal in plan.refusals.items()} == {
        "large": "InsufficientQuota",
        "small": "BehindHead",
    }


def test_a_namespace_with_nothing_that_fits_holds_up_no_other() -> None:
    made = engine(flavor("default"), shared("q", "4"))
    made.apply(Reserve("a", use("q", "default", cpu="2"), job("a", "ns1", "2")))
    made.apply(Submit(job("large", "ns2", "3")))
    made.apply(Submit(job("small", "ns1", "1")))
    assert admitted(made.cycle()) == ["small"]


def test_another_weight_counts_at_once() -> None:
    made = engine(flavor("default"), shared("q", "4"))
    made.apply(Reserve("a", use("q", "default", cpu="2"), job("a", "ns1", "2")))
    made.apply(Reserve("b", use("q", "default", cpu="1"), job("b", "ns2")))
    made.apply(SetWeight("ns1", 4))
    made.apply(Submit(job("c", "ns1")))
    made.apply(Submit(job("d", "ns2")))
    assert admitted(made.cycle()) == ["c"]


def test_the_order_can_be_switched_on_and_off_while_something_waits() -> None:
    made = engine(flavor("default"), shared("q", "2"))
    made.apply(Reserve("a", use("q", "default", cpu="2"), job("a", "ns1", "2")))
    for each in (job("b", "ns1", "2", created=1), job("c", "ns2", "2", created=2)):
        made.apply(Submit(each))
    made.cycle()
    plain = replace(shared("q", "4"), by_namespace=False)
    made.apply(Define((plain,)))
    assert admitted(made.cycle()) == ["b"]
    made.apply(Release("b"))
    made.apply(Submit(job("b", "ns1", "2", created=1)))
    made.apply(Define((replace(plain, by_namespace=True),)))
    assert admitted(made.cycle()) == ["c"]


def test_the_place_in_the_queue_is_told_by_turns() -> None:
    made = engine(flavor("default"), shared("q", "1"))
    made.apply(Reserve("a", use("q", "default", cpu="1"), job("a", "ns1")))
    waiting = [job(f"{ns}-{n}", ns, created=n) for ns in ("ns1", "ns2") for n in range(3)]
    for each in waiting:
        made.apply(Submit(each))
    made.cycle()
    places = {w.uid: found.ahead for w in waiting if (found := made.explain(w.uid)) is not None}
    assert sorted(places, key=lambda uid: places[uid]) == [
        "ns2-0",
        "ns1-0",
        "ns2-1",
        "ns1-1",
        "ns2-2",
        "ns1-2",
    ]


def full(*held: tuple[str, str, str, int], cpus: str = "12", **weights: int) -> Engine:
    made = weighted(engine(flavor("default"), shared("q", cpus, preemption=LOWER)), weights)
    for number, (uid, namespace, amount, priority) in enumerate(held):
        asked = job(uid, namespace, amount, priority=priority)
        made.apply(Reserve(uid, use("q", "default", cpu=amount), asked, float(number)))
    return made


def test_the_namespace_with_less_takes_until_they_are_equal() -> None:
    """The worked example: weights 3 and 1, 12 CPUs; nine places go to the first, whatever the priority."""
    running = {f"b{n:02}": job(f"b{n:02}", "ns2", priority=9) for n in range(12)}
    made = full(*((uid, "ns2", "1", 9) for uid in running), ns1=3)
    for number in range(12):
        made.apply(Submit(job(f"a{number:02}", "ns1")))
    settle(made, running)
    assert Counter(w.namespace for w in running.values()) == {"ns1": 9, "ns2": 3}


def test_nothing_is_taken_past_equality() -> None:
    made = full(("b1", "ns2", "2", 0), ("a1", "ns1", "2", 0), cpus="4")
    made.apply(Submit(job("a2", "ns1", "2")))
    assert evicted(made.cycle()) == {}


def test_one_job_that_cannot_be_split_is_left_alone_if_its_namespace_would_then_have_less() -> None:
    made = full(("b1", "ns2", "4", 0), cpus="4")
    made.apply(Submit(job("a1", "ns1", "1")))
    assert evicted(made.cycle()) == {}


def test_within_a_namespace_priority_decides() -> None:
    made = full(("a1", "ns1", "2", 0), ("b1", "ns2", "2", 0), cpus="4")
    made.apply(Submit(job("a2", "ns1", "2", priority=1)))
    assert evicted(made.cycle()) == {"a1": "a2"}


def test_the_largest_share_gives_first_and_of_it_the_lowest_priority() -> None:
    made = full(
        ("b1", "ns2", "2", 1), ("b2", "ns2", "2", 0), ("c1", "ns3", "3", 0), ("c2", "ns3", "3", 9), cpus="10"
    )
    made.apply(Submit(job("a1", "ns1", "2")))
    assert evicted(made.cycle()) == {"c1": "a1"}


def test_a_workload_that_never_preempts_waits_for_its_turn() -> None:
    made = full(("b1", "ns2", "2", 0), ("b2", "ns2", "2", 0), cpus="4")
    made.apply(Define((shared("q", "4"),)))
    made.apply(Submit(job("a1", "ns1", "1")))
    assert evicted(made.cycle()) == {}


def test_a_refused_workload_is_tried_again_when_another_namespace_has_grown() -> None:
    """Nothing of it is contested at first: ns2 takes memory, and so has the larger share of the two."""
    both = queue("q", {"cpu": {"default": "4"}, "memory": {"default": "10Gi"}}, preemption=LOWER)
    made = engine(flavor("default"), replace(both, by_namespace=True))
    made.apply(Reserve("b1", use("q", "default", cpu="2"), job("b1", "ns2", "2")))
    made.apply(Reserve("a1", use("q", "default", cpu="2"), job("a1", "ns1", "2")))
    made.apply(Submit(job("a2", "ns1", "1")))
    assert evicted(made.cycle(1)) == {}
    made.apply(Submit(replace(workload("b2", pods(memory="9Gi"), queue="q"), namespace="ns2")))
    plan = made.cycle(2)
    assert admitted(plan) == ["b2"]
    assert evicted(plan) == {"b1": "a2"}


def test_a_refused_workload_is_tried_again_when_its_namespace_has_shrunk() -> None:
    """ns1 has memory that is not contested; without it its share is the smaller one."""
    both = queue("q", {"cpu": {"default": "4"}, "memory": {"default": "10Gi"}}, preemption=LOWER)
    made = engine(flavor("default"), replace(both, by_namespace=True))
    made.apply(Reserve("b1", use("q", "default", cpu="2"), job("b1", "ns2", "2")))
    made.apply(Reserve("b2", use("q", "default", cpu="2"), job("b2", "ns2", "2")))
    mine = replace(workload("a1", pods(memory="9Gi"), queue="q"), namespace="ns1")
    made.apply(Reserve("a1", use("q", "default", memory="9Gi"), mine))
    made.apply(Submit(job("a2", "ns1", "1")))
    assert evicted(made.cycle(1)) == {}
    made.apply(Release("a1"))
    assert list(evicted(made.cycle(2)).values()) == ["a2"]


def test_the_own_namespace_may_give_together_with_another() -> None:
    """ns1 has 3 and asks for 5 with higher priority: its 3 and one of ns2 make both equal, at 5."""
    made = full(("a1", "ns1", "3", 0), *((f"b{n}", "ns2", "1", 0) for n in range(6)), cpus="10")
    made.apply(Submit(job("a2", "ns1", "5", priority=5)))
    assert sorted(evicted(made.cycle(9))) == ["a1", "b5"]


def test_in_a_strict_queue_another_head_is_tried_when_another_namespace_uses_more() -> None:
    made = engine(flavor("default"), shared("q", "10", Strategy.STRICT_FIFO))
    made.apply(Reserve("b1", use("q", "default", cpu="1"), job("b1", "ns2", "1")))
    made.apply(Submit(job("a1", "ns1", "12")))
    made.apply(Submit(job("b2", "ns2", "2")))
    assert admitted(made.cycle(1)) == []
    made.apply(Reserve("pod", use("q", "default", cpu="4"), namespace="ns1"))
    assert admitted(made.cycle(2)) == ["b2"]


def test_an_order_that_is_switched_on_and_off_leaves_no_workload_behind() -> None:
    made = engine(flavor("default"), shared("q", "2"))
    made.apply(Reserve("a", use("q", "default", cpu="2"), job("a", "ns1", "2")))
    made.apply(Submit(job("b", "ns1", "1")))
    made.apply(Submit(job("c", "ns2", "1", created=1)))
    strict = shared("q", "2", Strategy.STRICT_FIFO)
    for definition in (strict, shared("q", "2"), replace(strict, by_namespace=False), shared("q", "2")):
        made.cycle()
        made.apply(Define((definition,)))
    made.cycle()
    made.apply(Release("a"))
    assert admitted(made.cycle()) == ["b", "c"]


def test_a_pod_that_outlives_its_workload_counts_for_its_namespace() -> None:
    made = engine(flavor("default"), shared("q", "4"))
    made.apply(Reserve("pod", use("q", "default", cpu="2"), namespace="ns1"))
    made.apply(Submit(job("a", "ns1", "2")))
    made.apply(Submit(job("b", "ns2", "2", created=5)))
    assert admitted(made.cycle()) == ["b"]


@settings(max_examples=examples(100))
@given(
    cpus=st.integers(1, 20),
    demands=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 25)), min_size=1, max_size=5),
    early=st.integers(0, 4),
    preempts=st.booleans(),
)
def test_at_rest_shares_of_namespaces_that_want_more_differ_by_less_than_a_job(
    cpus: int, demands: list[tuple[int, int]], early: int, preempts: bool
) -> None:
    """One namespace may come before the others; only with preemption does that make no difference."""
    made = engine(flavor("default"), shared("q", str(cpus), preemption=LOWER if preempts else None))
    weighted(made, {f"ns{n}": weight for n, (weight, _) in enumerate(demands)})
    everybody = [w for n, (_, count) in enumerate(demands) for w in ones(f"ns{n}", count, "q")]
    running: dict[str, Workload] = {}
    for first in (True, False):
        for each in everybody:
            if (each.namespace == f"ns{early}" and preempts) is first:
                made.apply(Submit(each))
        settle(made, running)
    assert len(running) == min(cpus, len(everybody)), "nothing is left free that a workload wants"
    check_balance(made, running, everybody, "q")
