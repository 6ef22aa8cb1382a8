"""Shares of what is borrowed, by weight: which goes first, which has to give, and that it comes to an end."""

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction

import pytest

from admitter.engine.commands import Define, Release, Reserve, Submit
from admitter.engine.cycle import Engine
from admitter.engine.policy import BorrowWithin, Cohort, PreemptionPolicy, Queue, Reclaim, WithinQueue
from admitter.engine.quota.fair_shares import ENDLESS, NO_SHARE, FairShares
from tests.engine.builders import admitted, cohort, engine, evicted, flavor, pods, queue, use, workload

ANY = PreemptionPolicy(reclaim=Reclaim.ANY)
NOTHING = {"cpu": {"f": "0"}}
F = flavor("f")


def tree(cpu: int, *queues: Queue) -> Engine:
    """Queues in a cohort that has some CPUs, which are shared by weight."""
    return engine(F, cohort("all", limits={"cpu": {"f": str(cpu)}}, fair=True), *queues)


def team(name: str, weight: Fraction | int = 1, minimum: str = "0", **settings: object) -> Queue:
    settings = {"preemption": ANY, "cohort": "all"} | settings
    return queue(name, {"cpu": {"f": minimum}}, weight=weight, **settings)  # type: ignore[arg-type]


def submit(made: Engine, name: str, count: int, cpu: str = "1", priority: int = 0, start: float = 0) -> None:
    for number in range(count):
        made.apply(
            Submit(
                workload(
                    f"{name}-{number:02}-{cpu}", pods(cpu=cpu), queue=name, priority=priority, created=start
                )
            )
        )


def settle(made: Engine, rounds: int = 100) -> Counter[str]:
    """Cycles with victims that leave at once and compete again, till nothing is evicted; the use by queue."""
    for now in range(1, rounds):
        plan = made.cycle(now)
        if not plan.evictions and not made.changed:
            break
        for eviction in plan.evictions:
            victim = eviction.victim.workload
            assert victim is not None
            made.apply(Release(victim.uid))
            made.apply(Submit(victim))
    else:
        raise AssertionError("they evict each other for ever")
    used = {name: made.ledger.used(name).get(("f", "cpu"), 0) // 1000 for name in made.tree.queues}
    return Counter(used)


@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        pytest.param((1, 1), (6, 6), id="equal"),
        pytest.param((1, 2), (4, 8), id="one-to-two"),
        pytest.param((1, 3), (3, 9), id="one-to-three"),
        pytest.param((Fraction(1, 2), 1), (4, 8), id="a-half"),
        pytest.param((0, 1), (0, 12), id="zero-yields-all"),
    ],
)
def test_what_one_borrowed_alone_is_shared_by_weight_when_another_comes(
    weights: tuple[Fraction, Fraction], shares: tuple[int, int]
) -> None:
    made = tree(12, team("a", weights[0]), team("b", weights[1]))
    submit(made, "a", 12)
    assert settle(made) == {"a": 12, "b": 0}
    submit(made, "b", 12)
    assert settle(made) == dict(zip("ab", shares, strict=True))


def test_heads_go_in_the_order_of_their_shares_with_them_in() -> None:
    made = tree(6, team("a"), team("b", 2))
    submit(made, "a", 6, priority=100)
    submit(made, "b", 6)
    order = [uid[0] for uid in admitted(made.cycle(1))]
    # Shares with one more in: a 1, 2, …; b 1/2, 1, 3/2, 2, …; of equal shares the higher priority.
    assert "".join(order) == "babbab"


def test_a_head_that_needs_no_borrowing_goes_before_a_smaller_share() -> None:
    made = tree(2, team("a", minimum="4"), team("b"))
    made.apply(Reserve("x", use("a", "f", cpu="1")))
    submit(made, "a", 5)
    submit(made, "b", 5, priority=100)
    order = [uid[0] for uid in admitted(made.cycle(1))]
    assert "".join(order) == "aaaba", "its own three, and one share each"


def test_priority_then_age_where_shares_are_equal() -> None:
    made = tree(1, team("a"), team("b"))
    submit(made, "a", 1, start=1)
    submit(made, "b", 1, start=0)
    assert admitted(made.cycle(1)) == ["b-00-1"]


def test_a_minimum_is_taken_back_whatever_the_shares() -> None:
    made = tree(8, team("a", minimum="4"), team("b", 100))
    made.apply(Reserve("x", use("a", "f", cpu="0")))
    submit(made, "b", 12)
    assert settle(made)["b"] == 12
    submit(made, "a", 6)
    used = settle(made)
    assert used == {"a": 4, "b": 8}, "its min of 4; of the rest b is worth a hundred times as much"


def test_priority_limits_the_candidates_of_a_share() -> None:
    lower = PreemptionPolicy(reclaim=Reclaim.LOWER_PRIORITY)
    made = tree(6, team("a"), team("b", preemption=lower))
    submit(made, "a", 3, priority=0)
    submit(made, "a", 3, cpu="1.0", priority=9)
    assert settle(made)["a"] == 6
    submit(made, "b", 6, priority=5)
    assert settle(made) == {"a": 3, "b": 3}


def test_borrowing_by_priority_follows_the_shares_too() -> None:
    lower = PreemptionPolicy(borrow=BorrowWithin.LOWER_PRIORITY, threshold=3)
    made = tree(6, team("a"), team("b", preemption=lower))
    submit(made, "a", 6, priority=3)
    settle(made)
    submit(made, "b", 6, priority=5)
    assert settle(made) == {"a": 3, "b": 3}, "priority alone would let b take all of it"


def test_without_fair_sharing_no_queue_gives_back_what_it_borrows() -> None:
    made = engine(F, cohort("all", limits={"cpu": {"f": "6"}}), team("a"), team("b", 9))
    submit(made, "a", 6)
    settle(made)
    submit(made, "b", 6)
    assert settle(made) == {"a": 6, "b": 0}


def test_only_the_root_says_whether_it_is_fair() -> None:
    made = engine(
        F,
        cohort("top", limits={"cpu": {"f": "6"}}),
        cohort("all", "top", fair=True),
        team("a"),
        team("b", 9),
    )
    submit(made, "a", 6)
    settle(made)
    submit(made, "b", 6)
    assert settle(made) == {"a": 6, "b": 0}


def test_two_of_weight_zero_do_not_fight_and_give_way_to_all_others() -> None:
    made = tree(6, team("a", 0), team("b", 0), team("c"))
    submit(made, "a", 4, cpu="3")
    assert settle(made)["a"] == 6
    submit(made, "b", 2, cpu="3", priority=100)
    assert settle(made) == {"a": 6, "b": 0, "c": 0}
    submit(made, "c", 1, cpu="4")
    assert settle(made) == {"a": 0, "b": 0, "c": 4}, "even the last one that a has"


def test_weight_zero_goes_last() -> None:
    made = tree(3, team("a", 0), team("b"))
    submit(made, "a", 3, priority=100)
    submit(made, "b", 3)
    assert [uid[0] for uid in admitted(made.cycle(1))] == ["b", "b", "b"]


def test_a_weight_of_zero_does_not_touch_its_own_minimum() -> None:
    made = tree(4, team("a", 0, minimum="2"), team("b"))
    submit(made, "b", 6)
    settle(made)
    submit(made, "a", 6)
    assert settle(made) == {"a": 2, "b": 4}


def departments(**weights: Fraction | int) -> Engine:
    """Two departments under a root with 12 CPUs: x with two queues, y with one."""
    return engine(
        F,
        cohort("root", limits={"cpu": {"f": "12"}}, fair=True),
        cohort("x", "root", weight=weights.get("x", 1)),
        cohort("y", "root", weight=weights.get("y", 1)),
        *(
            team(name, weights.get(name, 1), cohort=above)
            for name, above in (("a", "x"), ("b", "x"), ("c", "y"))
        ),
    )


@pytest.mark.parametrize(
    ("weights", "shares"),
    [
        pytest.param({}, (3, 3, 6), id="departments-are-equal-not-queues"),
        pytest.param({"x": 2}, (4, 4, 4), id="twice-the-department"),
        pytest.param({"x": 2, "b": 3}, (2, 6, 4), id="and-within-it-by-its-queues"),
        pytest.param({"y": 0}, (6, 6, 0), id="a-department-of-weight-zero"),
        pytest.param({"a": 0}, (0, 6, 6), id="a-queue-of-weight-zero"),
    ],
)
def test_shares_count_at_every_level(weights: Mapping[str, int], shares: tuple[int, int, int]) -> None:
    for first in "abc":
        made = departments(**weights)
        submit(made, first, 12)
        settle(made)
        for name in "abc".replace(first, ""):
            submit(made, name, 12)
        assert settle(made) == dict(zip("abc", shares, strict=True)), f"{first} came first"


def test_the_largest_of_all_ratios_counts() -> None:
    limits = {"cpu": {"f": "0"}, "gpu": {"f": "0"}}
    root = cohort("all", limits={"cpu": {"f": "100"}, "gpu": {"f": "10"}}, fair=True)
    made = engine(F, root, queue("a", limits, cohort="all"), queue("b", limits, cohort="all", weight=2))
    made.apply(Reserve("x", use("a", "f", cpu="30", gpu="2")))
    made.apply(Reserve("y", use("b", "f", cpu="30", gpu="5")))
    shares = FairShares(made.tree, made.ledger.planned)
    assert shares.of(("queue", "a")) == (False, Fraction(3, 10)), "cpu"
    assert shares.of(("queue", "b")) == (False, Fraction(1, 4)), "gpu, at twice the weight"
    assert shares.of(("cohort", "all")) == NO_SHARE


def test_flavors_of_a_resource_count_together_and_only_what_is_borrowed() -> None:
    limits = {"cpu": {"f": "2", "g": "3"}}
    root = cohort("all", limits={"cpu": {"f": "5", "g": "10"}}, fair=True)
    made = engine(
        F, flavor("g"), root, queue("a", limits, cohort="all"), queue("z", limits, cohort="all", weight=0)
    )
    shares = FairShares(made.tree, made.ledger.planned)
    made.apply(Reserve("x", use("a", "f", cpu="4")))
    made.apply(Reserve("y", use("a", "g", cpu="4")))
    made.apply(Reserve("z", use("z", "g", cpu="3")))
    assert shares.of(("queue", "a")) == (False, Fraction(3, 25)), "2 + 1, of 2 + 3 + 2 + 3 + 15"
    assert shares.of(("queue", "z")) == NO_SHARE, "within its own"
    made.apply(Reserve("z", use("z", "g", cpu="4")))
    shares.changed("z")
    assert shares.of(("queue", "z")) == ENDLESS


def test_a_large_one_does_not_go_for_a_small_one_that_it_would_evict_again() -> None:
    """Compared before the eviction these would go round for ever: 4 < 5, then 5 < 10, then 4 < 5."""
    made = tree(6, team("r", Fraction(1, 2)), team("q"))
    made.apply(Submit(workload("q-5", pods(cpu="5"), queue="q")))
    made.apply(Submit(workload("r-1", pods(cpu="1"), queue="r")))
    made.cycle(0)
    made.apply(Submit(workload("r-2", pods(cpu="1"), queue="r")))
    made.apply(Submit(workload("r-3", pods(cpu="3"), queue="r")))
    assert settle(made) == {"r": 1, "q": 5}


def test_a_department_does_not_evict_within_itself_what_others_would_fill() -> None:
    """A small workload for a large one of the same department: the rest would be lost to the other one."""
    made = departments()
    made.apply(Submit(workload("large", pods(cpu="6"), queue="a")))
    submit(made, "c", 6)
    settle(made)
    submit(made, "c", 2, cpu="1.0")
    made.apply(Submit(workload("small", pods(cpu="1"), queue="b")))
    assert settle(made)["a"] == 6


def test_within_a_queue_shares_play_no_part() -> None:
    made = tree(4, team("a", preemption=PreemptionPolicy(WithinQueue.LOWER_PRIORITY)))
    submit(made, "a", 1, cpu="4")
    settle(made)
    made.apply(Submit(workload("urgent", pods(cpu="1"), queue="a", priority=1)))
    plan = made.cycle(9)
    assert evicted(plan) == {"a-00-4": "urgent"}


def test_a_workload_that_others_lose_nothing_by_is_admitted_whatever_its_share() -> None:
    made = tree(9, team("a", Fraction(1, 1000)), team("b", 1000))
    submit(made, "a", 8)
    submit(made, "b", 1)
    assert settle(made) == {"a": 8, "b": 1}


def test_pending_workloads_see_a_change_of_weight() -> None:
    made = tree(8, team("a"), team("b"))
    submit(made, "a", 8)
    submit(made, "b", 8)
    assert settle(made) == {"a": 4, "b": 4}
    made.apply(Define((team("b", 3),)))
    assert settle(made) == {"a": 2, "b": 6}
    made.apply(Define(cohorts=(Cohort("all", "", {}),)))
    assert settle(made) == {"a": 2, "b": 6}, "no workload is evicted because a quota was cut"


def test_a_queue_keeps_its_min_whatever_its_weight() -> None:
    made = tree(2, team("x"), team("y", 0, minimum="4", preemption=PreemptionPolicy()))
    submit(made, "y", 1, cpu="6")
    settle(made)
    submit(made, "x", 1, cpu="6")
    assert settle(made) == {"x": 0, "y": 6}, "without its one workload y would have less than its own"


def test_one_resource_is_not_taken_below_min_because_of_a_share_by_another() -> None:
    limits = {"cpu": {"f": "0"}, "memory": {"f": "0"}}
    own = {"cpu": {"f": "4"}, "memory": {"f": "0"}}
    made = engine(
        F,
        cohort("all", limits={"cpu": {"f": "2"}, "memory": {"f": "10"}}, fair=True),
        queue("x", limits, cohort="all", preemption=ANY),
        queue("y", own, cohort="all"),
    )
    made.apply(Reserve("large", use("y", "f", cpu="6"), workload("large", queue="y")))
    made.apply(Reserve("memory", use("y", "f", memory="10"), workload("memory", queue="y")))
    made.apply(Submit(workload("asks", pods(cpu="6"), queue="x")))
    assert evicted(made.cycle()) == {}


@pytest.mark.parametrize("levels", [2, 3])
def test_shares_within_a_cohort_that_stays_within_its_own_are_watched_too(levels: int) -> None:
    """a's share grows by memory; then b may take CPUs from it."""
    limits = {"cpu": {"f": "0"}, "memory": {"f": "0"}}
    own = {"cpu": {"f": "10"}, "memory": {"f": "10"}}
    top = cohort("s", "top" if levels == 3 else "", limits=own, fair=True)
    queues = [queue(name, limits, cohort="s", preemption=ANY) for name in "ab"]
    made = engine(F, cohort("top", fair=True), top, *queues)
    for number in range(5):
        uid = f"a-{number}"
        made.apply(Reserve(uid, use("a", "f", cpu="2"), workload(uid, queue="a", created=number), number))
    made.apply(Submit(workload("asks", pods(cpu="6"), queue="b", created=50)))
    made.apply(Reserve("b", use("b", "f", memory="1"), workload("b", queue="b")))
    assert set(evicted(made.cycle())) == set(), "6/10 is more than what a would keep"
    made.apply(Submit(workload("memory", pods(memory="9"), queue="a", created=60)))
    plan = made.cycle()
    assert admitted(plan) == ["memory"]
    assert set(evicted(plan)) == {"a-4", "a-3", "a-2"}
