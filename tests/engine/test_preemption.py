"""Who is evicted for whom. Source: design §3, *Preemption*."""

import pytest

from admitter.engine.cycle import Engine
from admitter.engine.explain import Reason
from admitter.engine.policy import (
    BorrowWithin,
    Cohort,
    Fungibility,
    Preemption,
    Queue,
    Reclaim,
    Strategy,
    WithinQueue,
)
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

DEFAULT = flavor("default")
LOWER = Preemption(within=WithinQueue.LOWER_PRIORITY)
NEWER = Preemption(within=WithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY)
RECLAIM = Preemption(reclaim=Reclaim.ANY)


def cpus(name: str, limits: str, preemption: Preemption | None = None, parent: str = "c") -> Queue:
    return queue(name, {"cpu": {"default": limits}}, cohort=parent, preemption=preemption or Preemption())


def running(made: Engine, uid: str, cpu: int, name: str, *, priority: int = 0, since: float = 0) -> None:
    """Something that was admitted some time ago."""
    who = workload(uid, pods(cpu=str(cpu)), queue=name, priority=priority, created=since)
    made.reserve(uid, use(name, "default", cpu=str(cpu)), who, since)


def asks(made: Engine, uid: str, cpu: int, name: str, *, priority: int = 0, created: float = 99) -> None:
    made.submit(workload(uid, pods(cpu=str(cpu)), queue=name, priority=priority, created=created))


def test_nothing_is_preempted_unless_a_queue_says_so() -> None:
    made = engine(DEFAULT, cpus("q", "4"))
    running(made, "low", 4, "q")
    asks(made, "high", 1, "q", priority=9)
    plan = made.cycle()
    assert evicted(plan) == {}
    assert plan.refusals["high"].reason is Reason.INSUFFICIENT_QUOTA


@pytest.mark.parametrize(
    ("policy", "priority", "created", "expected"),
    [
        (LOWER, 1, 99, True),
        (LOWER, 0, 0, False),
        (NEWER, 1, 99, True),
        (NEWER, 0, 0, True),
        (NEWER, 0, 99, False),
        (NEWER, -1, 0, False),
    ],
    ids=[
        "LowerPriority, higher",
        "LowerPriority, equal",
        "LowerOrNewer, higher",
        "LowerOrNewer, older equal",
        "LowerOrNewer, newer equal",
        "LowerOrNewer, lower",
    ],
)
def test_within_a_queue(policy: Preemption, priority: int, created: float, *, expected: bool) -> None:
    made = engine(DEFAULT, cpus("q", "4", policy))
    running(made, "victim", 4, "q", since=50)
    asks(made, "asks", 1, "q", priority=priority, created=created)
    assert evicted(made.cycle()) == ({"victim": "asks"} if expected else {})


def test_the_preemptor_is_admitted_when_its_victim_has_gone() -> None:
    made = engine(DEFAULT, cpus("q", "4", LOWER))
    running(made, "low", 4, "q")
    asks(made, "high", 3, "q", priority=1)
    plan = made.cycle()
    assert evicted(plan) == {"low": "high"}
    assert admitted(plan) == []
    assert plan.refusals["high"].reason is Reason.PREEMPTING
    made.release("low")
    assert admitted(made.cycle()) == ["high"]


def test_nobody_else_takes_the_hole() -> None:
    made = engine(DEFAULT, cpus("q", "4", LOWER))
    running(made, "low", 3, "q")
    asks(made, "high", 4, "q", priority=1)
    made.cycle()
    asks(made, "sneaks", 1, "q")  # 1 CPU is free all the time
    asks(made, "important", 1, "q", priority=0)
    assert admitted(made.cycle()) == []
    made.release("low")
    assert admitted(made.cycle()) == ["high"]


def test_what_the_plan_leaves_over_is_used_but_not_before_it_is_free() -> None:
    made = engine(DEFAULT, cpus("q", "4", LOWER))
    running(made, "low", 4, "q")
    asks(made, "high", 3, "q", priority=1)
    made.cycle()
    asks(made, "small", 1, "q")
    assert admitted(made.cycle()) == [], "the victim still runs"
    made.release("low")
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


def test_who_is_not_needed_is_put_back() -> None:
    made = engine(DEFAULT, cpus("q", "6", LOWER))
    running(made, "small", 1, "q", since=9)
    running(made, "large", 5, "q", since=1)
    asks(made, "asks", 5, "q", priority=1)
    assert evicted(made.cycle()) == {"large": "asks"}


def test_a_queue_takes_back_what_it_lent() -> None:
    made = engine(DEFAULT, cpus("a", "4", RECLAIM), cpus("b", "4"))
    running(made, "own", 4, "b", priority=9, since=1)
    running(made, "borrowed", 3, "b", priority=9, since=2)
    asks(made, "asks", 4, "a")
    assert evicted(made.cycle()) == {"borrowed": "asks"}


def test_but_not_in_order_to_borrow() -> None:
    made = engine(DEFAULT, cpus("a", "4", RECLAIM), cpus("b", "4"))
    running(made, "borrowed", 8, "b")
    asks(made, "asks", 5, "a", priority=9)
    assert evicted(made.cycle()) == {}


def test_and_not_from_a_queue_within_its_own() -> None:
    made = engine(DEFAULT, cpus("a", "4", RECLAIM), cpus("b", "4"), cpus("c", "0"))
    running(made, "lent-of-a", 4, "c", since=1)
    running(made, "within", 4, "b", since=2)
    asks(made, "asks", 4, "a")
    assert evicted(made.cycle()) == {"lent-of-a": "asks"}


@pytest.mark.parametrize(("priority", "expected"), [(0, False), (1, True)])
def test_reclaim_of_lower_priority_only(priority: int, *, expected: bool) -> None:
    made = engine(DEFAULT, cpus("a", "4", Preemption(reclaim=Reclaim.LOWER_PRIORITY)), cpus("b", "4"))
    running(made, "borrows", 8, "b")
    asks(made, "asks", 4, "a", priority=priority)
    assert evicted(made.cycle()) == ({"borrows": "asks"} if expected else {})


@pytest.mark.parametrize(
    ("threshold", "victim", "expected"),
    [(None, 4, True), (None, 5, False), (3, 3, True), (3, 4, False)],
    ids=["lower", "equal", "at the threshold", "above the threshold"],
)
def test_preempting_in_order_to_borrow(threshold: int | None, victim: int, *, expected: bool) -> None:
    policy = Preemption(borrow=BorrowWithin.LOWER_PRIORITY, threshold=threshold)
    made = engine(DEFAULT, cpus("a", "2", policy), cpus("b", "4"), cpus("c", "2"))
    running(made, "borrows", 8, "b", priority=victim)
    asks(made, "asks", 3, "a", priority=5)
    assert evicted(made.cycle()) == ({"borrows": "asks"} if expected else {})


def test_a_borrower_does_not_preempt_who_is_within_its_own() -> None:
    policy = Preemption(borrow=BorrowWithin.LOWER_PRIORITY)
    made = engine(DEFAULT, cpus("a", "2", policy), cpus("b", "4"))
    running(made, "within", 4, "b")
    running(made, "mine", 2, "a", priority=9)
    asks(made, "asks", 1, "a", priority=5)
    assert evicted(made.cycle()) == {}


def test_two_that_borrow_different_things_do_not_evict_each_other_for_ever() -> None:
    """A owns what is contested and borrows the rest; B, more important, has it the other way round."""
    everything = Preemption(reclaim=Reclaim.ANY, borrow=BorrowWithin.LOWER_PRIORITY)
    made = engine(
        DEFAULT,
        queue("a", {"cpu": {"default": "2"}, "gpu": {"default": "0"}}, cohort="c", preemption=everything),
        queue("b", {"cpu": {"default": "0"}, "gpu": {"default": "0"}}, cohort="c", preemption=everything),
        queue("lender", {"cpu": {"default": "0"}, "gpu": {"default": "2"}}, cohort="c"),
    )
    shape = pods(cpu="2", gpu="2")
    a, b = workload("a", shape, queue="a"), workload("b", shape, queue="b", priority=9)
    made.reserve("b", use("b", "default", cpu="2", gpu="2"), b)
    made.submit(a)
    evictions = []
    for _ in range(5):
        plan = made.cycle()
        for victim in evicted(plan):
            evictions.append(victim)
            made.release(victim)
            made.submit(b if victim == "b" else a)
    assert len(evictions) <= 1


POOLED = Preemption(reclaim=Reclaim.ANY)


@pytest.mark.parametrize("pooled", [True, False], ids=["in the cohort", "by another queue"])
def test_taking_back_one_resource_while_borrowing_another(*, pooled: bool) -> None:
    """GPUs are contested; CPUs are free, but owned by nobody or by somebody who could claim them."""
    made = engine(
        DEFAULT,
        cohort("c", limits={"cpu": {"default": "8" if pooled else "0"}, "gpu": {"default": "0"}}),
        queue("a", {"cpu": {"default": "0"}, "gpu": {"default": "2"}}, cohort="c", preemption=POOLED),
        queue("b", {"cpu": {"default": "0" if pooled else "8"}, "gpu": {"default": "0"}}, cohort="c"),
    )
    borrowed = workload("borrowed", pods(gpu="2", cpu="1"), queue="b")
    made.reserve("borrowed", use("b", "default", gpu="2", cpu="1"), borrowed)
    made.submit(workload("asks", pods(gpu="2", cpu="1"), queue="a", created=9))
    assert evicted(made.cycle()) == ({"borrowed": "asks"} if pooled else {})


def test_four_that_evict_each_other_in_turns_by_two_flavors() -> None:
    policy = Preemption(WithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY, Reclaim.ANY)
    made = engine(
        flavor("a"),
        flavor("b"),
        queue("q0", {"cpu": {"a": "1"}, "gpu": {"b": "3"}}, cohort="c", preemption=policy),
        queue("q2", {"cpu": {"a": "3"}, "gpu": {"b": "4"}}, cohort="c", preemption=policy),
    )
    asking = [
        workload("w4", pods(gpu="5"), queue="q0", priority=2),
        workload("w5", pods(gpu="4", cpu="1"), queue="q0", priority=1),
        workload("w6", pods(gpu="3", cpu="1"), queue="q2"),
        workload("w7", pods(cpu="3"), queue="q2", priority=1),
    ]
    for each in asking:
        made.submit(each)
    by_uid = {each.uid: each for each in asking}
    for _ in range(20):
        victims = list(evicted(made.cycle()))
        for uid in victims:
            made.release(uid)
            made.submit(by_uid[uid])
    assert not evicted(made.cycle()), "it comes to rest"


def test_who_borrows_takes_only_what_others_borrow_if_they_could_take_it_back() -> None:
    borrows = Preemption(borrow=BorrowWithin.LOWER_PRIORITY)
    made = engine(DEFAULT, cpus("a", "2", borrows), cpus("b", "4", RECLAIM), cpus("c", "2"))
    running(made, "first", 3, "b", since=1)
    running(made, "second", 5, "b", since=2)
    asks(made, "small", 3, "a", priority=5)
    asks(made, "large", 6, "a", priority=4)
    plan = made.cycle()
    assert evicted(plan) == {"first": "small"}, "5 of the 4 that b has are left"
    assert plan.refusals["large"].reason is Reason.INSUFFICIENT_QUOTA


def hierarchy(*more: Queue | Cohort) -> Engine:
    """Left has 4 of its own in one queue and 2 in the cohort, right has 6; all under top."""
    return engine(
        DEFAULT,
        cohort("left", "top", {"cpu": {"default": "2"}}),
        cohort("right", "top"),
        cpus("left-1", "4", RECLAIM, "left"),
        cpus("left-2", "0", RECLAIM, "left"),
        cpus("right-1", "6", None, "right"),
        cpus("right-2", "0", None, "right"),
        *more,
    )


def test_a_subtree_takes_back_what_it_lent_to_another_subtree() -> None:
    made = hierarchy()
    running(made, "right", 6, "right-1", since=1)
    running(made, "over", 6, "right-2", since=2)
    asks(made, "asks", 2, "left-2")
    assert evicted(made.cycle()) == {"over": "asks"}, "left has 6, of which 2 belong to no queue"


def test_within_a_subtree_a_queue_without_quota_takes_nothing_from_its_sibling() -> None:
    made = hierarchy()
    running(made, "right", 6, "right-1")
    running(made, "sibling", 6, "left-1")
    asks(made, "asks", 1, "left-2", priority=9)
    assert evicted(made.cycle()) == {}


def test_a_queue_that_borrows_inside_of_a_subtree_within_its_own_is_safe_from_outside() -> None:
    made = hierarchy(cpus("other", "3", RECLAIM, "top"), cpus("greedy", "0", None, "top"))
    running(made, "inside", 6, "right-2", since=9)
    running(made, "outside", 3, "greedy", since=1)
    running(made, "left", 6, "left-1", since=5)
    asks(made, "asks", 3, "other")
    assert evicted(made.cycle()) == {"outside": "asks"}, "right as a whole uses 6 of its 6"


FIRST_OR_NEXT = {"cpu": {"spot": "4", "on-demand": "4"}}


@pytest.mark.parametrize("preempt", [False, True], ids=["TryNextFlavor", "Preempt"])
def test_preempting_in_the_first_flavor_or_taking_the_next(*, preempt: bool) -> None:
    made = engine(
        flavor("spot"),
        flavor("on-demand"),
        queue("q", FIRST_OR_NEXT, preemption=LOWER, fungibility=Fungibility(preempt=preempt)),
    )
    low = workload("low", pods(cpu="4"))
    made.reserve("low", use("q", "spot", cpu="4"), low)
    made.submit(workload("high", pods(cpu="2"), priority=1, created=9))
    plan = made.cycle()
    if preempt:
        assert evicted(plan) == {"low": "high"}
        made.release("low")
        assert flavors_of(made.cycle(), "high") == {"main": {"cpu": "spot"}}
    else:
        assert flavors_of(plan, "high") == {"main": {"cpu": "on-demand"}}


def test_a_flavor_without_allowed_victims_is_passed_for_one_that_has_some() -> None:
    made = engine(flavor("spot"), flavor("on-demand"), queue("q", FIRST_OR_NEXT, preemption=LOWER))
    made.reserve("high", use("q", "spot", cpu="4"), workload("high", pods(cpu="4"), priority=9))
    made.reserve("low", use("q", "on-demand", cpu="4"), workload("low", pods(cpu="4")))
    made.submit(workload("asks", pods(cpu="2"), priority=1, created=9))
    assert evicted(made.cycle()) == {"low": "asks"}


def test_a_strict_queue_waits_for_its_preempting_head() -> None:
    strict = queue("q", {"cpu": {"default": "4"}}, Strategy.STRICT_FIFO, preemption=LOWER)
    made = engine(DEFAULT, strict)
    running(made, "low", 3, "q")
    asks(made, "head", 2, "q", priority=1)
    made.cycle()
    asks(made, "small", 1, "q")
    assert admitted(made.cycle()) == []
    made.release("low")
    assert admitted(made.cycle()) == ["head", "small"]


@pytest.mark.parametrize("end", ["withdrawn", "spared", "resized"])
def test_a_place_is_kept_no_longer_than_it_is_wanted(end: str) -> None:
    made = engine(DEFAULT, cpus("q", "4", LOWER))
    running(made, "low", 4, "q")
    asks(made, "high", 4, "q", priority=1)
    made.cycle()
    if end == "withdrawn":
        made.withdraw("high")
    elif end == "spared":
        made.spare("low")
    else:
        asks(made, "high", 9, "q", priority=1)
    made.release("low")
    asks(made, "next", 4, "q", priority=0)
    assert admitted(made.cycle()) == (["high"] if end == "spared" else ["next"])


def test_a_place_survives_a_restart() -> None:
    made = engine(DEFAULT, cpus("q", "4", LOWER))
    running(made, "low", 4, "q")
    high = workload("high", pods(cpu="3"), queue="q", priority=1, created=99)
    made.evict("low", high, use("q", "default", cpu="3"))
    made.submit(high)
    asks(made, "early", 3, "q", created=0, priority=5)
    assert admitted(made.cycle()) == []
    made.release("low")
    assert admitted(made.cycle()) == ["high"]
