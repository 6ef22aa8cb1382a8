"""Elastic quotas: what design §3 asks for and the engine does not do yet."""

import pytest

from admitter.engine.cycle import Engine
from admitter.engine.model import Workload
from admitter.engine.policy import Queue
from tests.engine.builders import admitted, engine, evicted, flavor, pods, queue, use, workload
from tests.engine.elastic import asks, gpus, over, quota, quotas, running, used
from tests.engine.preempting import RECLAIM


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
    made.submit(Workload("asks", "a", 0, 99, (pods(gpu="4", cpu="9"),)))
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
def test_a_resource_that_is_limited_from_now_on_counts_for_who_has_a_place(
    before: Queue, after: Queue
) -> None:
    made = quotas(before)
    running(made, "low", pods(gpu="2"), name="a")
    made.submit(Workload("high", "a", 9, 1, (pods(gpu="2", cpu="4"),)))
    assert evicted(made.cycle(2)) == {"low": "high"}
    made.set_queue(after)
    made.release("low")
    plan = made.cycle(3)
    fits = after.quotas["elastic_quota", "cpu"].maximum == 5000
    assert admitted(plan) == (["high"] if fits else [])
    assert used(made, "cpu") == {"a": 4000 if fits else 0}


def heads_of_two_resources(*, parked: bool) -> Engine:
    """One of memory is free. X and Y wait in q1, Z in q2; neither Y nor Z has to borrow, and Y is older."""
    made = engine(
        flavor("f"),
        *(
            queue(n, {"cpu": {"f": c}, "memory": {"f": c}}, cohort="all")
            for n, c in (("q1", "4"), ("q2", "4"), ("q3", "0"))
        ),
    )
    for uid, name, memory in (("r1", "q1", "3"), ("r2", "q2", "3"), ("r3", "q3", "1"), ("r4", "q3", "1")):
        if parked or uid != "r4":
            made.reserve(uid, use(name, "f", cpu="1", memory=memory))
    for uid, name, size, created in (("x", "q1", 5, 0), ("y", "q1", 1, 1), ("z", "q2", 1, 2)):
        made.submit(workload(uid, pods(cpu=str(size), memory=str(size)), queue=name, created=created))
    if parked:
        assert admitted(made.cycle()) == []
        made.release("r4")
    return made


@pytest.mark.parametrize("parked", [False, True], ids=["learnt at once", "after a wait"])
def test_a_head_that_can_not_fit_does_not_hide_who_stands_behind_it(*, parked: bool) -> None:
    assert admitted(heads_of_two_resources(parked=parked).cycle()) == ["y"]


@pytest.mark.parametrize("order", [("u1", "u2"), ("u2", "u1")], ids="-".join)
def test_pods_of_one_name_in_two_namespaces_have_an_order(order: tuple[str, str]) -> None:
    """A composite quota has pods of several namespaces, and names are unique in each of these only."""
    made = quotas(gpus("q", 5))
    for uid in order:
        running(made, uid, pods(gpu="5"), name="q")
        made.set_pods(uid, ((7.0, "worker-0"),))
    assert over(made, "q") == ["u2"]


def test_the_next_pod_of_a_job_that_is_over_in_part_is_in_quota() -> None:
    made = quotas(gpus("q", 10))
    running(made, "gang", pods(4, gpu="4"), name="q")
    (excess,) = made.capacity.real("q").excesses
    assert not excess.coming, "two of its pods are within 10, and the next one is the first"


def test_what_a_quota_that_is_gone_leaves_behind_goes_newest_first() -> None:
    made = quotas(gpus("a", 10), gpus("b", 10))
    running(made, "old", pods(gpu="5"), name="b", priority=-1, since=1)
    running(made, "new", pods(gpu="5"), name="b", priority=9, since=2)
    made.remove_queue("b")
    asks(made, "a", 5)
    assert evicted(made.cycle(100)) == {"new": "asks"}, "whatever the priority"


def test_what_was_granted_stays_granted_when_the_quota_goes() -> None:
    made = quotas(gpus("a", 10), gpus("b", 0, preemption={"gracePeriod": "5m"}))
    running(made, "runs", pods(gpu="10"), name="b")
    made.remove_queue("b")
    asks(made, "a", 5)
    assert [eviction.grace for eviction in made.cycle(100).evictions] == [300]


def test_who_is_admitted_later_than_was_thought_changes_who_is_over() -> None:
    """The API server has another time of admission than the engine: by it the small one is the newer one."""
    made = quotas(gpus("a", 40), gpus("b", 10), gpus("c", 30))
    running(made, "a-0", pods(gpu="40"), name="a")
    small = running(made, "small", pods(gpu="8"), name="b", since=10)
    running(made, "large", pods(gpu="32"), name="b", since=10)
    asks(made, "a", 8)
    assert evicted(made.cycle(100)) == {}, "the large one is over, and without it B would have 8 of its 10"
    held = made.ledger.held("small")
    assert held is not None
    made.reserve("small", held.admission, small, since=12)
    assert over(made, "b") == ["small", "large"]
    assert evicted(made.cycle(101)) == {"small": "asks"}


def test_one_that_may_go_alone_is_found_behind_several_that_are_of_no_use() -> None:
    """A is guaranteed 55. Without b-1, B keeps 12 of its 10; with either small one gone too it would not."""
    made = quotas(gpus("a", 40), gpus("b", 10), gpus("c", 30))
    running(made, "a-0", pods(gpu="40"), name="a")
    for number, size in enumerate((4, 28, 4, 4)):
        running(made, f"b-{number}", pods(gpu=str(size)), name="b", since=number)
    assert over(made, "b") == ["b-3", "b-2", "b-1"]
    asks(made, "a", 10)
    assert evicted(made.cycle(100)) == {"b-1": "asks"}


def test_what_a_victim_uses_besides_may_be_less_than_its_quota_has() -> None:
    """Memory is contested; of GPUs 9 are left to B by its max, and A uses 3 of its 10."""
    made = quotas(quota("a", {"gpu": 10, "memory": 3}), quota("b", {"gpu": 12, "memory": 10}, {"gpu": 13}))
    running(made, "own", pods(gpu="4", memory="1"), name="b", since=3)
    for number in range(3):
        running(made, f"a-{number}", pods(gpu="1", memory="4"), name="a", since=number)
    made.submit(Workload("asks", "b", 0, 99, (pods(gpu="4", memory="1"),)))
    assert evicted(made.cycle(100)) == {"a-2": "asks"}


def test_the_same_in_queues_written_by_hand() -> None:
    made = engine(
        flavor("f"),
        queue("a", {"cpu": {"f": "10"}, "memory": {"f": "0"}}, cohort="c"),
        queue("b", {"cpu": {"f": "4..4"}, "memory": {"f": "4"}}, cohort="c", preemption=RECLAIM),
    )
    runs = workload("runs", pods(cpu="1", memory="4"), queue="a")
    made.reserve("runs", use("a", "f", cpu="1", memory="4"), runs)
    made.submit(workload("asks", pods(cpu="4", memory="4"), queue="b", created=9))
    assert evicted(made.cycle(1)) == {"runs": "asks"}
