"""Stories and cases of capacity scheduling, with numbers. Source: docs/coming-from-scheduler-plugins.md.

Each quota is a queue of one common cohort; numbers are GPUs, or CPUs where the document has those.
"""

import pytest

from admitter.engine.commands import Release, Reserve, Submit
from admitter.engine.cycle import Engine
from admitter.engine.policy import PreemptionPolicy, Queue, Reclaim, WithinQueue
from tests.engine.builders import admitted, engine, evicted, flavor, pods, queue, use, workload

CAPACITY = PreemptionPolicy(WithinQueue.LOWER_PRIORITY, Reclaim.ANY)


def quota(name: str, limits: str) -> Queue:
    return queue(name, {"gpu": {"f": limits}}, cohort="all", preemption=CAPACITY)


def story(*limits: str) -> Engine:
    """Quotas a, b and so on, each as `min..max`."""
    return engine(flavor("f"), *(quota(name, each) for name, each in zip("abc", limits, strict=False)))


def runs(made: Engine, name: str, *sizes: int, priority: int = 0) -> None:
    """Pods of some sizes, the first one first."""
    begun = len(made.ledger.reservations(name))
    for number, size in enumerate(sizes, start=begun):
        uid = f"{name}-{number}"
        who = workload(uid, pods(gpu=str(size)), queue=name, priority=priority, created=number)
        made.apply(Reserve(uid, use(name, "f", gpu=str(size)), who, number))


def asks(made: Engine, name: str, size: int, uid: str = "asks", priority: int = 0) -> None:
    made.apply(Submit(workload(uid, pods(gpu=str(size)), queue=name, priority=priority, created=99)))


def used(made: Engine) -> list[int]:
    return [made.ledger.used(name).get(("f", "gpu"), 0) for name in made.tree.queues]


def test_story_1() -> None:
    made = story("4..6", "6..8")
    runs(made, "a", 1, 1)
    runs(made, "b", 1, 1, 1)
    for number in range(5):  # first to its min of 4, then for three more
        asks(made, "a", 1, uid=f"more-{number}")
    assert len(admitted(made.cycle())) == 4
    assert used(made) == [6, 3], "its max is 6, and 2 of that are b's"
    asks(made, "b", 3, uid="back")
    victims = evicted(made.cycle())
    assert len(victims) == 2
    assert set(victims.values()) == {"back"}
    for victim in victims:
        made.apply(Release(victim))
    assert admitted(made.cycle()) == ["back"]
    assert used(made) == [4, 6]


def test_story_2_a_quota_within_its_min_takes_from_one_beyond_its_min() -> None:
    made = story("3..4", "4..6", "3..4")
    runs(made, "a", 2, 1, 1)
    runs(made, "b", 2, 1)
    runs(made, "c", 2, 1)
    asks(made, "b", 1)
    assert evicted(made.cycle()) == {"a-2": "asks"}, "a uses 4 of 3, c 3 of 3"


def test_story_2_a_quota_beyond_its_min_takes_from_its_own() -> None:
    made = story("3..4", "4..6", "3..4")
    runs(made, "a", 2)
    runs(made, "b", 2, 3)
    runs(made, "c", 3)
    asks(made, "b", 1, uid="pod-c", priority=1)
    assert evicted(made.cycle()) == {"b-1": "pod-c"}
    made = story("3..4", "4..6", "3..4")
    runs(made, "a", 2)
    runs(made, "b", 2, 3)
    runs(made, "c", 3)
    asks(made, "b", 1, uid="pod-c")
    assert evicted(made.cycle()) == {}, "not of equal priority"


def test_nothing_passes_a_max_and_nothing_the_sum_of_all_min() -> None:
    made = story("1..9", "2..2")
    runs(made, "b", 1)
    for number in range(4):
        asks(made, "a", 1, uid=f"a-{number}")
        asks(made, "b", 1, uid=f"b-more-{number}")
    made.cycle()
    assert used(made) == [1, 2]
    made.apply(Release("b-0"))
    made.cycle()
    assert sum(used(made)) == 3


@pytest.mark.parametrize(
    ("own", "others", "request_", "priority", "victims"),
    [
        pytest.param(1, (4, 1), 1, 0, {"b-0"}, id="within min: from one beyond its min"),
        pytest.param(1, (3, 2), 1, 10**9, {"c-0"}, id="within min: never from one within its min"),
        pytest.param(2, (4, 0), 1, 10**9, {"a-1"}, id="beyond min: lower priority of its own"),
        pytest.param(2, (4, 0), 1, 0, set(), id="beyond min: none of equal priority"),
    ],
)
def test_the_four_cases_of_preemption(
    own: int, others: tuple[int, int], request_: int, priority: int, victims: set[str]
) -> None:
    """Minimums of 2, 3 and 1 GPU; b and c as given."""
    made = story("2", "3", "1")
    runs(made, "a", *[1] * own)
    runs(made, "b", *filter(None, [others[0]]))
    runs(made, "c", *filter(None, [others[1]]))
    asks(made, "a", request_, priority=priority)
    assert set(evicted(made.cycle())) == victims


def test_the_example_of_a_high_priority_beyond_its_min() -> None:
    """nginx of quota1 borrows the one CPU of quota3; high priority of quota2 can't take it."""
    made = story("0..2", "0..2", "1..2")
    asks(made, "a", 1, uid="nginx")
    assert admitted(made.cycle()) == ["nginx"]
    asks(made, "b", 1, uid="important", priority=1_000_000)
    assert evicted(made.cycle()) == {}
    asks(made, "c", 1, uid="owner")
    assert evicted(made.cycle()) == {"nginx": "owner"}


def test_victims_may_be_anywhere() -> None:
    """One workload takes the place of several small ones; on which nodes these ran does not matter."""
    made = story("0..2", "2..2")
    runs(made, "a", 1, 1)
    asks(made, "b", 2, uid="whole")
    assert set(evicted(made.cycle())) == {"a-0", "a-1"}
