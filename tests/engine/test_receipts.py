"""By which rule a victim is evicted for a preemptor, and what was compared."""

from dataclasses import replace

import pytest

from admitter.engine.commands import Release, Reserve, Submit
from admitter.engine.cycle import Engine
from admitter.engine.policy import BorrowWithin, PreemptionPolicy, Strategy, WithinQueue
from admitter.engine.tree_cycle import Plan, PlannedEviction
from admitter.policy.messages import passing_message, receipt_message, workload_title
from tests.engine.builders import cohort, engine, pods, queue, use, workload
from tests.engine.preempting import DEFAULT, LOWER, NEWER, RECLAIM, asks, cpus, running


def evictions(made: Engine) -> list[PlannedEviction]:
    """What the next cycle evicts; the test's engine is spent then."""
    plan = made.cycle(100)
    assert plan.evictions, "a victim has to go"
    return plan.evictions


def message(made: Engine) -> str:
    """Why the only one has to go."""
    (eviction,) = evictions(made)
    return receipt_message(eviction)


@pytest.mark.parametrize(
    ("policy", "priority", "expected"),
    [
        (LOWER, 5, "its priority 0 is lower than 5 (withinClusterQueue)"),
        (NEWER, 0, "it is the newer one of priority 0 (withinClusterQueue)"),
    ],
    ids=["lower", "newer"],
)
def test_in_its_own_queue_priority_and_age_are_compared(
    policy: PreemptionPolicy, priority: int, expected: str
) -> None:
    made = engine(DEFAULT, cpus("q", "4", policy))
    running(made, "victim", 4, "q", since=50)
    asks(made, "preemptor", 4, "q", priority=priority, created=10)
    assert message(made) == expected


def test_a_queue_takes_back_what_it_lent() -> None:
    made = engine(DEFAULT, cpus("a", "4", RECLAIM), cpus("b", "4"))
    running(made, "victim", 8, "b", priority=100)
    asks(made, "preemptor", 4, "a")
    assert message(made) == "ClusterQueue a takes back what it lent (reclaimWithinCohort)"


def test_a_queue_borrows_instead_of_lower_priority() -> None:
    borrows = PreemptionPolicy(borrow=BorrowWithin.LOWER_PRIORITY)
    made = engine(DEFAULT, cpus("a", "0", borrows), cpus("b", "0"), cpus("rest", "4"))
    running(made, "victim", 4, "b")
    asks(made, "preemptor", 4, "a", priority=3)
    expected = "its priority 0 is below 3; ClusterQueue a borrows instead (borrowWithinCohort)"
    assert message(made) == expected


def test_an_elastic_quota_takes_its_guaranteed_share() -> None:
    elastic = PreemptionPolicy(WithinQueue.LOWER_PRIORITY, borrow=BorrowWithin.GUARANTEED_SHARE)
    made = engine(DEFAULT, cpus("a", "4", elastic), cpus("b", "4", elastic), cpus("rest", "8", elastic))
    running(made, "own", 4, "a", priority=9)
    for number in range(6):
        running(made, f"lent-{number}", 2, "b", since=number)
    asks(made, "preemptor", 1, "a")
    expected = "ClusterQueue a takes its guaranteed share of what is unused (GuaranteedShare)"
    assert message(made) == expected


def test_shares_of_queues_are_told_as_they_were_and_as_they_are() -> None:
    top = cohort("c", limits={"cpu": {"default": "8"}}, fair=True)
    made = engine(DEFAULT, top, cpus("a", "0", RECLAIM), cpus("b", "0"))
    for number in range(4):
        running(made, f"b-{number}", 2, "b", since=number)
    asks(made, "preemptor", 2, "a")
    assert message(made) == (
        "ClusterQueue b had a weighted share of 1 of what can be lent, "
        "ClusterQueue a has a weighted share of 0.25 now (fairSharing)"
    )


def test_shares_are_compared_where_the_ways_to_the_root_part() -> None:
    top = cohort("c", limits={"cpu": {"default": "8"}}, fair=True)
    made = engine(DEFAULT, top, cohort("below", "c"), cpus("a", "0", RECLAIM), cpus("b", "0", parent="below"))
    for number in range(4):
        running(made, f"b-{number}", 2, "b", since=number)
    asks(made, "preemptor", 2, "a")
    (eviction,) = evictions(made)
    assert eviction.receipt.compared is not None
    assert eviction.receipt.compared.victim == ("cohort", "below")
    assert eviction.receipt.compared.preemptor == ("queue", "a")


def test_namespaces_give_way_by_their_shares() -> None:
    shared = replace(cpus("q", "4", LOWER), by_namespace=True)
    made = engine(DEFAULT, shared)
    for number in range(4):
        who = replace(workload(f"v-{number}", pods(cpu="1"), queue="q", priority=9), namespace="much")
        made.apply(Reserve(who.uid, use("q", "default", cpu="1"), who, float(number), "much"))
    made.apply(Submit(replace(workload("preemptor", pods(cpu="1"), queue="q"), namespace="little")))
    expected = "another namespace has a smaller share of ClusterQueue q (namespaceOrdering)"
    assert message(made) == expected


def test_victims_of_one_decision_have_each_their_own_receipt() -> None:
    both = PreemptionPolicy(within=WithinQueue.LOWER_PRIORITY, reclaim=RECLAIM.reclaim)
    made = engine(DEFAULT, cpus("a", "4", both), cpus("b", "4"))
    running(made, "own", 2, "a")
    running(made, "other", 6, "b", priority=50)
    asks(made, "preemptor", 4, "a", priority=1)
    told = {each.victim.holder: receipt_message(each) for each in evictions(made)}
    assert told == {
        "other": "ClusterQueue a takes back what it lent (reclaimWithinCohort)",
        "own": "its priority 0 is lower than 1 (withinClusterQueue)",
    }


def test_a_queue_without_a_weight_is_said_to_have_all() -> None:
    top = cohort("c", limits={"cpu": {"default": "4"}}, fair=True)
    idle = queue("b", {"cpu": {"default": "0"}}, cohort="c", weight=0)
    made = engine(DEFAULT, top, cpus("a", "0", RECLAIM), idle)
    running(made, "victim", 4, "b")
    asks(made, "preemptor", 1, "a")
    assert message(made).startswith("ClusterQueue b had without a weight all of what can be lent")


def passing(plan: Plan) -> dict[str, str]:
    """Which workload is admitted out of order, and what its status says."""
    return {
        uid: passing_message(each, workload_title("ns", each.workload.uid, "ns"))
        for uid, each in plan.passed.items()
    }


def test_a_workload_that_passes_one_that_does_not_fit_says_so() -> None:
    made = engine(DEFAULT, cpus("q", "4"))
    running(made, "runs", 2, "q")
    asks(made, "large", 4, "q", priority=5)
    asks(made, "larger", 4, "q", priority=4)
    asks(made, "small", 1, "q")
    asks(made, "smallest", 1, "q", created=5)
    words = "ahead of Workload ns/large, which does not fit: ClusterQueue q is BestEffortFIFO"
    assert passing(made.cycle()) == {"small": words, "smallest": words}


def test_a_workload_in_order_passes_none() -> None:
    made = engine(DEFAULT, cpus("q", "4"))
    asks(made, "first", 2, "q", priority=1)
    asks(made, "second", 2, "q")
    asks(made, "third", 2, "q", created=5)
    assert passing(made.cycle()) == {}


def test_namespaces_take_turns() -> None:
    made = engine(DEFAULT, replace(cpus("q", "4"), by_namespace=True))
    for number, namespace in enumerate(("one", "one", "one", "two")):
        asked = replace(
            workload(f"{namespace}-{number}", pods(1, cpu="2"), created=number), namespace=namespace
        )
        made.apply(Submit(asked))
    plan = made.cycle()
    assert [each.uid for each, _ in plan.admissions] == ["one-0", "two-3"]
    words = (
        "ahead of Workload ns/one-1, of a namespace with a larger share of ClusterQueue q (namespaceOrdering)"
    )
    assert passing(plan) == {"two-3": words}


def test_a_pending_reservation_is_not_given_to_a_later_workload() -> None:
    made = engine(DEFAULT, replace(cpus("q", "4", LOWER), strategy=Strategy.STRICT_FIFO))
    running(made, "victim", 4, "q")
    asks(made, "preemptor", 4, "q", priority=3)
    assert evictions(made)
    asks(made, "later", 4, "q", priority=9)
    made.apply(Release("victim"))
    words = "ahead of Workload ns/later, for which the place was not kept: others were evicted before it came"
    assert passing(made.cycle(101)) == {"preemptor": words}
