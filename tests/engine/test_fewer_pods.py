"""Preemption for as many pods as it makes room for (`minCount`), where it does not for all of them."""

import random

import pytest

from admitter.engine.commands import Release, Reserve, Submit
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, Workload
from admitter.engine.policy import PreemptionPolicy, Queue, Reclaim, WithinQueue
from admitter.engine.refusal import Reason
from tests.engine.builders import cohort, engine, evicted, flavor, pods, queue, use, workload
from tests.engine.preempting import DEFAULT, LOWER, NEWER, RECLAIM, cpus, running
from tests.scale import scaled


class Cluster:
    """A victim is gone at once, and competes again.

    Attributes:
        evictions: each victim and its preemptor, in order.
        counts: with how many pods of the first pod set everybody runs.
    """

    def __init__(self, made: Engine) -> None:
        self.engine = made
        self.evictions: list[tuple[str, str]] = []
        self.counts: dict[str, int] = {}
        self._now = 0.0

    def submit(self, made: Workload) -> None:
        self.engine.apply(Submit(made))
        self.settle()

    def settle(self) -> None:
        """Until nothing is decided any more."""
        for _ in range(200):
            self._now += 1
            plan = self.engine.cycle(self._now)
            for admitted, admission in plan.admissions:
                self._starts(admitted, admission)
            for eviction in plan.evictions:
                victim = eviction.victim.workload
                assert victim is not None
                self.evictions.append((victim.uid, eviction.preemptor.uid))
                del self.counts[victim.uid]
                self.engine.apply(Release(victim.uid))
                self.engine.apply(Submit(victim))
            if not self.engine.changed:
                return
        raise AssertionError("they preempt each other for ever")

    def _starts(self, made: Workload, admission: Admission) -> None:
        self.counts[made.uid] = admission.pod_sets[0].count


def five(name: str) -> Workload:
    """Up to five pods of 2 CPUs that can do with two."""
    return workload(f"j{name}", pods(5, cpu="2", min_count=2), queue=name)


def test_two_queues_come_to_rest_with_fewer_pods_each() -> None:
    limits = {"cpu": {"default": "5..10"}}
    names = [queue(name, limits, cohort="c", preemption=RECLAIM) for name in "ab"]
    cluster = Cluster(engine(DEFAULT, cohort("c", "", {"cpu": {"default": "1"}}), *names))
    cluster.submit(five("a"))
    assert cluster.counts == {"ja": 5}
    cluster.submit(five("b"))
    assert cluster.evictions == [("ja", "jb")]
    assert cluster.counts == {"jb": 2, "ja": 3}


def asks(made: Engine, count: int, least: int) -> tuple[int, dict[str, str]]:
    """With how many pods of 1 CPU a workload of q starts, now or once its victims are gone; and these."""
    made.apply(
        Submit(workload("asks", pods(count, cpu="1", min_count=least), queue="q", priority=5, created=9))
    )
    plan = made.cycle(9)
    victims = evicted(plan)
    for uid in victims:
        made.apply(Release(uid))
    plan = made.cycle(9) if victims else plan
    return plan.admissions[0][1].pod_sets[0].count if plan.admissions else 0, victims


@pytest.mark.parametrize(
    ("count", "least", "expected"),
    [
        pytest.param(2, 1, (2, {}), id="all of it fits"),
        pytest.param(6, 1, (6, {"low": "asks"}), id="all of it by preemption"),
        pytest.param(8, 1, (2, {}), id="as many as fit without an eviction, before more by preemption"),
        pytest.param(8, 3, (6, {"low": "asks"}), id="as many as preemption makes room for"),
        pytest.param(8, 7, (0, {}), id="preemption does not make room for the fewest"),
    ],
)
def test_the_ways_to_start_in_their_order(count: int, least: int, expected: tuple[int, object]) -> None:
    made = engine(DEFAULT, cpus("q", "8", LOWER))
    running(made, "low", 4, "q")
    running(made, "high", 2, "q", priority=9)
    assert asks(made, count, least) == expected


def test_no_more_go_than_the_larger_form_needs() -> None:
    made = engine(DEFAULT, cpus("q", "8", LOWER))
    for number in range(4):
        running(made, f"low-{number}", 1, "q", since=number)
    running(made, "high", 4, "q", priority=9)
    assert asks(made, 8, 3) == (4, {f"low-{number}": "asks" for number in range(4)})


def test_of_several_flavors_the_one_in_which_most_pods_start() -> None:
    flavors = {"cpu": {"a": "4", "b": "4"}}
    made = engine(*(flavor(name) for name in "ab"), queue("q", flavors, preemption=LOWER))
    for name, low in (("a", "2"), ("b", "3")):
        made.apply(Reserve(f"low-{name}", use("q", name, cpu=low), workload(f"low-{name}")))
        rest = str(4 - int(low))
        made.apply(Reserve(f"high-{name}", use("q", name, cpu=rest), workload(f"high-{name}", priority=9)))
    assert asks(made, 6, 1) == (3, {"low-b": "asks"})


def test_a_refused_workload_is_tried_again_when_a_victim_is_enough_for_fewer_pods() -> None:
    made = engine(DEFAULT, cpus("q", "4", LOWER))
    running(made, "high", 4, "q", priority=9)
    assert asks(made, 8, 2) == (0, {})
    made.apply(Release("high"))
    running(made, "low", 3, "q")
    running(made, "other", 1, "q", priority=9)
    plan = made.cycle(10)
    assert evicted(plan) == {"low": "asks"}
    assert plan.planned["asks"].pod_sets[0].count == 3


def test_what_can_start_with_fewer_pods_is_not_told_that_it_never_can() -> None:
    made = engine(DEFAULT, cpus("q", "4", LOWER))
    running(made, "high", 4, "q", priority=9)
    made.apply(Submit(workload("asks", pods(8, cpu="1", min_count=2), queue="q", priority=5)))
    assert made.cycle().refusals["asks"].reason is Reason.INSUFFICIENT_QUOTA
    made.apply(Submit(workload("never", pods(8, cpu="1", min_count=5), queue="q", priority=4)))
    assert made.cycle().refusals["never"].reason is Reason.NEVER_FITS


def test_candidates_for_the_fewest_pods_are_named() -> None:
    made = engine(DEFAULT, cpus("q", "8", LOWER))
    running(made, "low", 3, "q")
    running(made, "high", 5, "q", priority=9)
    made.apply(Submit(workload("asks", pods(9, cpu="1", min_count=4), queue="q", priority=5)))
    made.cycle()
    explanation = made.explain("asks")
    assert explanation is not None
    assert explanation.evictable == ("low",)


POLICIES = (
    RECLAIM,
    LOWER,
    NEWER,
    PreemptionPolicy(WithinQueue.LOWER_PRIORITY, Reclaim.ANY),
    PreemptionPolicy(),
)


@pytest.mark.parametrize("seed", range(scaled(30, 3000)))
def test_random_workloads_that_can_do_with_fewer_pods_come_to_rest(seed: int) -> None:
    chance = random.Random(seed)
    names = [f"q{number}" for number in range(chance.randint(2, 4))]
    queues: list[Queue] = []
    for name in names:
        least = chance.randint(0, 6)
        limits = {"cpu": {"default": f"{least}..{least + chance.randint(0, 8)}"}}
        queues.append(queue(name, limits, cohort="c", preemption=chance.choice(POLICIES)))
    spare = {"cpu": {"default": str(chance.randint(0, 3))}}
    cluster = Cluster(engine(DEFAULT, cohort("c", "", spare), *queues))
    arrivals = chance.randint(3, 9)
    for number in range(arrivals):
        count = chance.randint(1, 6)
        asked = pods(count, cpu=str(chance.randint(1, 3)), min_count=chance.randint(1, count))
        priority = chance.randint(0, 2)
        cluster.submit(
            workload(f"w{number}", asked, queue=chance.choice(names), priority=priority, created=number)
        )
    assert len(cluster.evictions) <= 3 * arrivals
