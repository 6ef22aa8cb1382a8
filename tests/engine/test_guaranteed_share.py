"""`borrowWithinCohort: GuaranteedShare`. Sources: docs/design/preemption.md, docs/coming-from-nos.md."""

from fractions import Fraction

import pytest

from admitter.engine.commands import Release, Reserve, Submit
from admitter.engine.cycle import Engine
from admitter.engine.policy import BorrowWithin, PreemptionPolicy, Queue, Reclaim, WithinQueue
from admitter.engine.preemption.guaranteed import entitlement
from tests.engine.builders import (
    NO_PREEMPTION,
    admitted,
    cohort,
    engine,
    evicted,
    flavor,
    pods,
    queue,
    use,
    workload,
)

KEY = ("gpu", "memory")
ELASTIC = PreemptionPolicy(WithinQueue.LOWER_PRIORITY, Reclaim.ANY, BorrowWithin.GUARANTEED_SHARE)


def quota(name: str, minimum: int, preemption: PreemptionPolicy = ELASTIC, above: str = "all") -> Queue:
    return queue(name, {"memory": {"gpu": str(minimum)}}, cohort=above, preemption=preemption)


def running(made: Engine, name: str, *sizes: int, priority: int = 0) -> None:
    """Workloads of some sizes, the first one first."""
    for number, size in enumerate(sizes):
        uid = f"{name}-{number}"
        who = workload(uid, pods(memory=str(size)), queue=name, priority=priority, created=number)
        made.apply(Reserve(uid, use(name, "gpu", memory=str(size)), who, number))


def asks(made: Engine, name: str, size: int, uid: str = "asks", priority: int = 0) -> None:
    made.apply(Submit(workload(uid, pods(memory=str(size)), queue=name, priority=priority, created=99)))


def the_example() -> Engine:
    """Minimums of 40, 10 and 30; at t1 A uses 40, B 40 and C nothing, in workloads of 10."""
    made = engine(flavor("gpu"), quota("a", 40), quota("b", 10), quota("c", 30))
    running(made, "a", 10, 10, 10, 10)
    running(made, "b", 10, 10, 10, 10)
    return made


def test_the_guaranteed_parts_of_the_example() -> None:
    made = the_example()
    after = ("a", 10)
    assert entitlement(made.tree, made.ledger.planned, "a", KEY, after) == 40 + 15
    assert entitlement(made.tree, made.ledger.planned, "b", KEY, after) == 10 + Fraction(15, 4)
    assert entitlement(made.tree, made.ledger.planned, "c", KEY, after) == 30 + Fraction(45, 4)


def test_from_t1_to_t2() -> None:
    made = the_example()
    asks(made, "a", 10)
    plan = made.cycle()
    assert evicted(plan) == {"b-3": "asks"}
    made.apply(Release("b-3"))
    assert admitted(made.cycle()) == ["asks"]
    used = {name: made.ledger.used(name).get(KEY, 0) for name in "abc"}
    assert used == {"a": 50, "b": 30, "c": 0}


def test_the_victim_does_not_take_it_back_and_a_takes_no_second_one() -> None:
    made = the_example()
    asks(made, "a", 10)
    made.cycle()
    made.apply(Release("b-3"))
    made.cycle()
    asks(made, "b", 10, uid="back")
    asks(made, "a", 10, uid="second")
    assert evicted(made.cycle()) == {}, "10 + 3.75 < 40 for b, and 40 + 15 < 60 for a"


def test_a_asks_for_more_than_it_is_guaranteed_and_nothing_loops() -> None:
    made = engine(flavor("gpu"), quota("a", 40), quota("b", 10), quota("c", 30))
    running(made, "b", 10, 10, 10, 10, 10, 10, 10, 7, 3)
    asks(made, "a", 70)
    for _ in range(5):
        assert evicted(made.cycle()) == {}
    explanation = made.explain("asks")
    assert explanation is not None


def test_priority_plays_no_part() -> None:
    made = engine(flavor("gpu"), quota("a", 40), quota("b", 10), quota("c", 30))
    running(made, "a", 40)
    running(made, "b", *[10] * 4, priority=1000)
    asks(made, "a", 10)
    assert evicted(made.cycle()) == {"b-3": "asks"}


def test_no_queue_is_pushed_below_its_own() -> None:
    made = engine(flavor("gpu"), quota("a", 40), quota("b", 10), quota("c", 30))
    running(made, "a", 40)
    running(made, "b", 9, 31)
    asks(made, "a", 10)
    assert evicted(made.cycle()) == {}, "without the 31, b would have 9 of its 10"


def test_of_a_queue_within_its_guaranteed_part_nothing_is_taken() -> None:
    made = engine(flavor("gpu"), quota("a", 40), quota("b", 20), quota("c", 30), quota("d", 0))
    running(made, "a", 45)
    running(made, "b", 20, 5)
    running(made, "d", 20)
    asks(made, "a", 5)
    assert evicted(made.cycle()) == {"d-0": "asks"}, "30 unused: b is guaranteed 20 * 30 / 90, d nothing"


def test_within_its_own_a_queue_reclaims_whatever_is_guaranteed() -> None:
    made = engine(flavor("gpu"), quota("a", 40), quota("b", 10), quota("c", 30))
    running(made, "b", *[10] * 8)
    asks(made, "a", 40)
    assert set(evicted(made.cycle())) == {"b-4", "b-5", "b-6", "b-7"}


def test_what_is_unused_shrinks_when_its_owner_comes() -> None:
    made = the_example()
    asks(made, "c", 30)
    assert set(evicted(made.cycle())) == {"b-1", "b-2", "b-3"}
    asks(made, "a", 10)
    assert evicted(made.cycle()) == {}, "nothing is unused now"


@pytest.mark.parametrize(
    "ends", [pytest.param("a-1", id="it uses less itself"), pytest.param("d-0", id="more becomes unused")]
)
def test_it_is_tried_again_when_shares_change(ends: str) -> None:
    made = engine(flavor("gpu"), quota("a", 40), quota("b", 10), quota("c", 30), quota("d", 20))
    running(made, "a", 40, 5)
    running(made, "b", *[10] * 4, 5)
    running(made, "d", 10)
    asks(made, "a", 15)
    assert evicted(made.cycle()) == {}, "40 are unused: 45 + 15 is more than 40 + 40 * 40 / 100"
    made.apply(Release(ends))
    plan = made.cycle()
    if ends == "a-1":
        assert evicted(plan) == {"b-3": "asks"}, "40 + 15 is not, and 5 are free"
    else:
        assert evicted(plan) == {"b-4": "asks"}, "45 + 15 is 40 + 40 * 50 / 100, and 10 are free"


def test_cohorts_above_take_part_with_all_queues_of_the_tree() -> None:
    made = engine(
        flavor("gpu"),
        cohort("left", "top"),
        cohort("right", "top"),
        quota("a", 40, above="left"),
        quota("b", 10, above="right"),
        quota("c", 30, above="left"),
    )
    running(made, "a", *[10] * 4)
    running(made, "b", *[10] * 4)
    asks(made, "a", 10)
    assert evicted(made.cycle()) == {"b-3": "asks"}


def test_a_workload_that_borrows_by_priority_leaves_what_is_guaranteed() -> None:
    lower = PreemptionPolicy(borrow=BorrowWithin.LOWER_PRIORITY)
    made = engine(flavor("gpu"), quota("a", 40), quota("b", 10, lower), quota("c", 30))
    running(made, "a", 50)
    running(made, "b", 30)
    asks(made, "b", 10, priority=9)
    assert evicted(made.cycle()) == {}, "a is entitled to 55, and would take it back"


def test_where_it_is_shared_by_weight_it_means_nothing() -> None:
    never = PreemptionPolicy(borrow=BorrowWithin.GUARANTEED_SHARE)
    made = engine(
        flavor("gpu"), cohort("all", fair=True), quota("a", 40, never), quota("b", 10), quota("c", 30)
    )
    running(made, "a", 40)
    running(made, "b", *[10] * 4)
    asks(made, "a", 10)
    assert evicted(made.cycle()) == {}


def three(name: str, preemption: PreemptionPolicy = NO_PREEMPTION, **own: str) -> Queue:
    """A queue that counts three resources together, and has as much of them of its own as is said."""
    limits = {resource: {"gpu": own.get(resource, "0")} for resource in ("cpu", "gpu", "memory")}
    return queue(name, limits, cohort="all", preemption=preemption)


@pytest.mark.parametrize("after", [False, True], ids=["known", "just-come"])
@pytest.mark.parametrize(("first", "second"), [("r1", "r2"), ("r2", "r1")])
def test_a_workload_that_an_eviction_lets_in_competes_in_its_order(
    first: str, second: str, *, after: bool
) -> None:
    """Two victims make room for `w`, and one of them for `b` too, which is more important than `c`.

    `a`, which is awake, would compete for `q` already, if only one of the victims had been looked at.
    """
    share = PreemptionPolicy(reclaim=Reclaim.ANY, borrow=BorrowWithin.GUARANTEED_SHARE)
    made = engine(
        flavor("gpu"),
        three("q", share, gpu="2", memory="2"),
        three(first, memory="2"),
        three(second, gpu="4"),
        three("s", cpu="4"),
    )
    for uid, priority, asked, held in (
        ("x1", 0, pods(memory="4"), use(first, "gpu", memory="4")),
        ("x2", 0, pods(gpu="6"), use(second, "gpu", gpu="6")),
        ("z1", 9, pods(cpu="2"), use("s", "gpu", cpu="2")),
        ("z2", 9, pods(cpu="2"), use("s", "gpu", cpu="2")),
    ):
        made.apply(Reserve(uid, held, workload(uid, asked, queue=held.queue, priority=priority)))
    little = workload("a", pods(cpu="2"), created=1)
    if not after:
        made.apply(Submit(little))
    made.apply(Submit(workload("b", pods(gpu="3"), priority=5, created=2)))
    made.apply(Submit(workload("c", pods(gpu="4"), queue="s", priority=2, created=3)))
    made.cycle(1)
    made.apply(Release("z1"))
    if after:
        made.apply(Submit(little))
    made.apply(Submit(workload("w", pods(gpu="1", memory="1"), priority=3, created=4)))
    plan = made.cycle(2)
    assert admitted(plan) == ["a"]
    assert evicted(plan) == {"x1": "w", "x2": "w"}
    assert list(plan.planned) == ["w", "b"], "and not c"
