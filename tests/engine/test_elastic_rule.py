"""Which workloads give way to which between elastic quotas.

Sources: docs/elastic-quota.md, docs/coming-from-nos.md, docs/coming-from-scheduler-plugins.md.
"""

import pytest

from admitter.engine.commands import Define, Release, Reserve, SetPods, Submit
from admitter.engine.cycle import Engine
from admitter.engine.model import Workload
from admitter.engine.policy import Queue
from admitter.engine.refusal import Reason
from tests.engine.builders import admitted, evicted, pods
from tests.engine.elastic import asks, gpus, over, quota, quotas, running, runs, settle, settling, used

HIGHEST = 10**9


def the_example() -> Engine:
    """Minimums of 40, 10 and 30; A uses 40, B 40 and C nothing, in workloads of 10."""
    made = quotas(gpus("a", 40), gpus("b", 10), gpus("c", 30))
    runs(made, "a", 10, 10, 10, 10)
    runs(made, "b", 10, 10, 10, 10)
    return made


def test_the_example_from_t1_to_t2() -> None:
    made = the_example()
    assert over(made, "b") == ["b-3", "b-2", "b-1"]
    asks(made, "a", 10, uid="first")
    asks(made, "a", 10, uid="second")
    settle(made)
    assert used(made) == {"a": 50, "b": 30, "c": 0}
    assert over(made, "a") == ["first"]
    assert over(made, "b") == ["b-2", "b-1"]
    assert made.waits("second"), "60 would be more than 40 + 15"
    assert made.waits("b-3"), "40 is more than 10 + 3.75"


@pytest.mark.parametrize("priorities", [(0, 0), (0, HIGHEST), (HIGHEST, 0)], ids=str)
def test_the_newest_that_is_over_goes_whatever_the_priorities(priorities: tuple[int, int]) -> None:
    made = quotas(gpus("a", 40), gpus("b", 10), gpus("c", 30))
    runs(made, "a", 40)
    runs(made, "b", 10, 10)
    for number, priority in enumerate(priorities, start=2):
        running(made, f"b-{number}", pods(gpu="10"), name="b", priority=priority, since=number)
    asks(made, "a", 10, priority=-HIGHEST)
    assert evicted(made.cycle(100)) == {"b-3": "asks"}


def test_the_newest_workload_is_the_one_with_the_newest_pod() -> None:
    made = the_example()
    made.apply(SetPods("b-0", ((5, "b-0"),)))
    for number, created in ((1, 20), (2, 30), (3, 10)):
        made.apply(SetPods(f"b-{number}", ((created, f"b-{number}"),)))
    asks(made, "a", 10)
    assert evicted(made.cycle(100)) == {"b-2": "asks"}, "admitted before b-3, but its pod came later"


def test_a_workload_within_its_quota_can_lose_its_place_by_a_new_pod() -> None:
    made = the_example()
    for number in range(4):
        made.apply(SetPods(f"b-{number}", ((number, f"b-{number}"),)))
    asks(made, "a", 10)
    made.apply(SetPods("b-0", ((50, "again"),)))
    assert over(made, "b") == ["b-0", "b-3", "b-2"]
    assert evicted(made.cycle(100)) == {"b-0": "asks"}


def test_newest_first_over_all_quotas_that_borrow() -> None:
    made = quotas(gpus("a", 30), gpus("b", 10), gpus("c", 10))
    for number, name in enumerate(["b", "c", "b", "c", "c"]):
        running(made, f"{name}-at-{number}", pods(gpu="10"), name=name, since=number)
    assert (over(made, "b"), over(made, "c")) == (["b-at-2"], ["c-at-4", "c-at-3"])
    asks(made, "a", 20)
    assert list(evicted(made.cycle(100))) == ["c-at-4", "c-at-3"]


@pytest.mark.parametrize("priority", [0, HIGHEST])
def test_a_quota_within_its_minimum_gives_nothing_even_to_the_highest_priority(priority: int) -> None:
    made = quotas(gpus("a", 10), gpus("b", 10))
    runs(made, "a", 10, priority=HIGHEST)
    runs(made, "b", 10, priority=-HIGHEST)
    asks(made, "a", 1, priority=priority)
    assert evicted(made.cycle(100)) == {}


def test_in_quota_workloads_of_a_quota_that_borrows_stay() -> None:
    made = quotas(gpus("a", 20), gpus("b", 10))
    runs(made, "b", 10, priority=-HIGHEST)
    running(made, "newer", pods(gpu="20"), name="b", priority=HIGHEST, since=9)
    asks(made, "a", 5)
    assert evicted(made.cycle(100)) == {"newer": "asks"}


def test_of_its_own_quota_only_lower_priority_gives_way_over_quota_or_not() -> None:
    made = quotas(gpus("a", 20), gpus("b", 0))
    running(made, "low", pods(gpu="10"), name="a", priority=1, since=0)
    running(made, "equal", pods(gpu="10"), name="a", priority=2, since=1)
    asks(made, "a", 10, priority=2)
    assert over(made, "a") == []
    assert evicted(made.cycle(100)) == {"low": "asks"}
    made = quotas(gpus("a", 20), gpus("b", 0))
    runs(made, "a", 10, 10, priority=2)
    asks(made, "a", 10, priority=2)
    assert evicted(made.cycle(100)) == {}, "no workload of equal priority, however new"


def test_what_is_lent_is_taken_back_before_its_own_lose_anything() -> None:
    made = quotas(gpus("a", 20), gpus("b", 0))
    runs(made, "a", 10, priority=-1)
    runs(made, "b", 10, priority=9)
    asks(made, "a", 10)
    assert evicted(made.cycle(100)) == {"b-0": "asks"}


def test_beyond_its_minimum_and_its_part_it_takes_from_its_own_alone() -> None:
    made = quotas(gpus("a", 10), gpus("b", 10))
    runs(made, "a", 10, priority=-1)
    runs(made, "b", 5, 5)
    asks(made, "a", 5)
    assert evicted(made.cycle(100)) == {"a-0": "asks"}


def test_the_sum_of_all_minimums_is_never_passed() -> None:
    made = quotas(gpus("a", 7), gpus("b", 5), quota("c", most={"gpu": 100}))
    for number in range(9):
        for name in "abc":
            asks(made, name, 1 + number % 3, uid=f"{name}-{number}")
    for _ in settling(made):
        assert sum(used(made).values()) <= 12
    assert sum(used(made).values()) == 12


def test_without_a_maximum_a_quota_may_use_all_there_is() -> None:
    made = quotas(gpus("a", 3), gpus("b", 4, 5), gpus("c", 9))
    asks(made, "a", 16)
    asks(made, "b", 6, uid="too-much")
    plan = made.cycle(100)
    assert admitted(plan) == ["asks"]
    assert plan.refusals["too-much"].reason is Reason.NEVER_FITS, "its max is 5"


def test_without_a_minimum_all_of_it_is_borrowed() -> None:
    made = quotas(quota("a", most={"gpu": 5}), gpus("b", 5))
    asks(made, "a", 5)
    assert admitted(made.cycle(100)) == ["asks"]
    assert over(made, "a") == ["asks"]
    asks(made, "b", 1, uid="owner")
    assert evicted(made.cycle(100)) == {"asks": "owner"}


def test_what_a_quota_does_not_name_is_neither_limited_nor_counted() -> None:
    made = quotas(gpus("a", 2), quota("b", {"cpu": 2}))
    made.apply(Submit(Workload("much", "a", 0, 0, (pods(gpu="2", cpu="1000", memory="9Ti"),))))
    made.apply(Submit(Workload("nothing", "a", 0, 1, (pods(9, memory="9Ti"),))))
    made.apply(Submit(Workload("cores", "b", 0, 2, (pods(cpu="2"),))))
    assert set(admitted(made.cycle(100))) == {"much", "nothing", "cores"}
    assert used(made, "cpu") == {"a": 0, "b": 2000}
    assert used(made, "memory") == {"a": 0, "b": 0}


def crowded() -> Engine:
    """Minimums of 40, 10 and 30, all 80 used by B: seven workloads of 10, one of 7 and one of 3."""
    made = quotas(gpus("a", 40), gpus("b", 10), gpus("c", 30))
    runs(made, "b", 10, 10, 10, 10, 10, 10, 10, 7, 3)
    return made


def test_a_workload_that_asks_for_more_than_its_part_waits_and_nothing_loops() -> None:
    made = crowded()
    asks(made, "a", 70)
    plans = settle(made)
    assert [evicted(plan) for plan in plans] == [{}] * len(plans)
    assert plans[0].refusals["asks"].reason is Reason.INSUFFICIENT_QUOTA
    assert used(made) == {"a": 0, "b": 80, "c": 0}
    assert not made.changed


@pytest.mark.parametrize(
    ("size", "victims"),
    [
        pytest.param(3, {"b-8"}, id="the newest is enough"),
        pytest.param(4, {"b-7"}, id="the next newest alone is enough"),
        pytest.param(10, {"b-7", "b-8"}, id="both"),
        pytest.param(40, {"b-8", "b-7", "b-6", "b-5", "b-4"}, id="all that it is guaranteed"),
        pytest.param(41, {"b-8", "b-6", "b-5", "b-4", "b-3"}, id="and a part of what is unused"),
        pytest.param(55, {"b-7", "b-6", "b-5", "b-4", "b-3", "b-2"}, id="40 and all of its part: 15"),
        pytest.param(56, set(), id="more than that"),
        pytest.param(80, set(), id="all there is"),
    ],
)
def test_what_it_takes_there(size: int, victims: set[str]) -> None:
    made = crowded()
    asks(made, "a", size)
    assert set(evicted(made.cycle(100))) == victims
    for _ in settling(made):
        assert sum(used(made).values()) <= 80
    assert made.ledger.held("asks") is not None or not victims


def test_a_gang_takes_its_places_wherever_they_are() -> None:
    made = quotas(gpus("a", 20), gpus("b", 2), gpus("c", 2))
    runs(made, "b", 2, *[1] * 10)
    runs(made, "c", 2, *[1] * 10)
    made.apply(Submit(Workload("gang", "a", 0, 99, (pods(5, gpu="4"),))))
    assert len(evicted(made.cycle(100))) == 20
    settle(made)
    assert made.ledger.held("gang") is not None
    assert used(made) == {"a": 20, "b": 2, "c": 2}


def test_a_gang_goes_as_a_whole_though_only_its_last_pod_is_over() -> None:
    made = quotas(gpus("a", 5), gpus("b", 5))
    running(made, "gang", pods(6, gpu="1"), name="b")
    made.apply(SetPods("gang", tuple((float(n), f"p{n}") for n in range(6))))
    assert [excess.pods for excess in made.capacity.real("b").excesses] == [frozenset({"p5"})]
    asks(made, "a", 5)
    assert evicted(made.cycle(100)) == {"gang": "asks"}
    settle(made)
    assert used(made) == {"a": 5, "b": 0}, "all six do not fit beside it"


def test_if_all_candidates_are_not_enough_none_is_evicted() -> None:
    made = quotas(gpus("a", 40), gpus("b", 10), gpus("c", 30))
    runs(made, "a", 45)
    runs(made, "b", 10, 10)
    runs(made, "c", 15)
    asks(made, "a", 10)
    assert evicted(made.cycle(100)) == {}, "55 would be more than 40 + 40 * 15 / 80"
    asks(made, "a", 2, uid="less")
    assert evicted(made.cycle(100)) == {"b-1": "less"}


def test_a_victim_does_not_come_back_by_evicting_its_preemptor() -> None:
    made = quotas(gpus("a", 10), gpus("b", 10))
    runs(made, "b", 10, 5, 5, priority=HIGHEST)
    asks(made, "a", 10)
    plans = settle(made)
    assert [victim for plan in plans for victim in evicted(plan)] == ["b-2", "b-1"]
    assert used(made) == {"a": 10, "b": 10}


def test_two_resources_are_taken_back_together() -> None:
    made = quotas(quota("a", {"cpu": 4, "gpu": 4}), quota("b", {"cpu": 1, "gpu": 1}))
    for number in range(5):
        running(made, f"b-{number}", pods(cpu="1", gpu="1"), name="b", since=number)
    made.apply(Submit(Workload("asks", "a", 0, 99, (pods(cpu="2", gpu="3"),))))
    assert list(evicted(made.cycle(100))) == ["b-4", "b-3", "b-2"]


def test_over_quota_in_one_resource_gives_nothing_of_another() -> None:
    made = quotas(quota("a", {"cpu": 4, "gpu": 4}), quota("b", {"cpu": 1, "gpu": 4}))
    running(made, "old", pods(cpu="1", gpu="2"), name="b", since=0)
    running(made, "over", pods(cpu="1", gpu="2"), name="b", since=1)
    runs(made, "a", 3)
    assert over(made, "b") == ["over"], "by its CPU"
    asks(made, "a", 2)
    assert evicted(made.cycle(100)) == {}, "of GPUs b uses no more than its own"


def test_a_quota_that_goes_leaves_its_workloads_over_quota() -> None:
    made = quotas(gpus("a", 10), gpus("b", 10))
    runs(made, "b", 10)
    made.apply(Define(gone=("b",)))
    asks(made, "a", 10)
    assert evicted(made.cycle(100)) == {"b-0": "asks"}, "there are 10 in all now, and they are a's"


def test_a_minimum_that_shrinks_evicts_no_workload_by_itself() -> None:
    made = quotas(gpus("a", 10), gpus("b", 10))
    runs(made, "b", 5, 5)
    made.apply(Define((gpus("b", 5),)))
    assert evicted(made.cycle(100)) == {}
    assert over(made, "b") == ["b-1"]
    asks(made, "a", 6)
    assert evicted(made.cycle(100)) == {"b-1": "asks"}


def test_one_that_may_go_alone_is_found_behind_a_newer_one_that_is_of_no_use() -> None:
    """A is guaranteed 55. Without b-1, B keeps 12 of its 10; without b-2 first, b-1 would leave it 4."""
    made = quotas(gpus("a", 40), gpus("b", 10), gpus("c", 30))
    running(made, "a-0", pods(gpu="40"), name="a")
    for number, size in enumerate((4, 28, 8)):
        running(made, f"b-{number}", pods(gpu=str(size)), name="b", since=number)
    assert over(made, "b") == ["b-2", "b-1"]
    asks(made, "a", 10)
    assert evicted(made.cycle(100)) == {"b-1": "asks"}


def test_a_minimum_is_given_back_though_a_newer_one_is_of_no_use() -> None:
    """A asks for what is its own. B exceeds in both by b-1 alone; without b-2 it exceeds in CPU only."""
    made = quotas(quota("a", {"gpu": 4, "cpu": 10}), quota("b", {"gpu": 3, "cpu": 1}))
    running(made, "b-1", pods(gpu="3", cpu="9"), name="b", since=1)
    running(made, "b-2", pods(gpu="1", cpu="1"), name="b", since=2)
    assert over(made, "b") == ["b-2", "b-1"]
    made.apply(Submit(Workload("asks", "a", 0, 99, (pods(gpu="4", cpu="9"),))))
    assert evicted(made.cycle(100)) == {"b-1": "asks"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(gpus("a", 2), quota("a", {"gpu": 2}, {"gpu": 2, "cpu": 1}), id="elastic"),
        pytest.param(
            gpus("a", 2),
            quota("a", {"gpu": 2, "cpu": 5}, {"gpu": 2, "cpu": 5}),
            id="elastic, and it would fit",
        ),
    ],
)
def test_a_resource_that_is_limited_from_now_on_counts_for_a_pending_reservation(
    before: Queue, after: Queue
) -> None:
    made = quotas(before)
    running(made, "low", pods(gpu="2"), name="a")
    made.apply(Submit(Workload("high", "a", 9, 1, (pods(gpu="2", cpu="4"),))))
    assert evicted(made.cycle(2)) == {"low": "high"}
    made.apply(Define((after,)))
    made.apply(Release("low"))
    plan = made.cycle(3)
    fits = after.quotas["elastic_quota", "cpu"].maximum == 5000
    assert admitted(plan) == (["high"] if fits else [])
    assert used(made, "cpu") == {"a": 4000 if fits else 0}


def test_what_a_quota_that_is_gone_leaves_behind_goes_newest_first() -> None:
    made = quotas(gpus("a", 10), gpus("b", 10))
    running(made, "old", pods(gpu="5"), name="b", priority=-1, since=1)
    running(made, "new", pods(gpu="5"), name="b", priority=9, since=2)
    made.apply(Define(gone=("b",)))
    asks(made, "a", 5)
    assert evicted(made.cycle(100)) == {"new": "asks"}, "whatever the priority"


def test_what_was_granted_stays_granted_when_the_quota_goes() -> None:
    made = quotas(gpus("a", 10), gpus("b", 0, preemption={"gracePeriod": "5m"}))
    running(made, "runs", pods(gpu="10"), name="b")
    made.apply(Define(gone=("b",)))
    asks(made, "a", 5)
    assert [eviction.grace for eviction in made.cycle(100).evictions] == [300]


def test_a_later_admission_than_planned_changes_which_workloads_are_over_quota() -> None:
    """The API server has another time of admission than the engine: by it the small one is the newer one."""
    made = quotas(gpus("a", 40), gpus("b", 10), gpus("c", 30))
    running(made, "a-0", pods(gpu="40"), name="a")
    small = running(made, "small", pods(gpu="8"), name="b", since=10)
    running(made, "large", pods(gpu="32"), name="b", since=10)
    asks(made, "a", 8)
    assert evicted(made.cycle(100)) == {}, "the large one is over, and without it B would have 8 of its 10"
    held = made.ledger.held("small")
    assert held is not None
    made.apply(Reserve("small", held.admission, small, since=12))
    assert over(made, "b") == ["small", "large"]
    assert evicted(made.cycle(101)) == {"small": "asks"}
