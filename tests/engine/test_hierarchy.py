"""docs/hierarchy.md at the engine: 900 for a parent, children with none, 750 and 750; static queues."""

from collections import Counter
from collections.abc import Iterable

import pytest

from admitter.engine.commands import Submit
from admitter.engine.cycle import Engine
from admitter.engine.policy import PreemptionPolicy, Reclaim
from tests.engine.builders import cohort, engine, evicted, flavor, pods, queue, workload

CHILDREN = ("child1", "child2", "child3")


def parent_and_children() -> Engine:
    """The cluster has 2,000; the parent's queues together no more than 900."""
    return engine(
        flavor("default"),
        cohort("root", "", {"cpu": {"default": "2000"}}),
        cohort("parent", "root", {"cpu": {"default": "0..900"}}),
        queue("child1", {"cpu": {"default": "0"}}, cohort="parent"),
        queue("child2", {"cpu": {"default": "0..750"}}, cohort="parent"),
        queue("child3", {"cpu": {"default": "0..750"}}, cohort="parent"),
    )


def demand(made: Engine, names: Iterable[str], cpus: str = "50", count: int = 21) -> Counter[str]:
    """Submit more than 1,000 CPUs to each queue, one queue after the other; what runs in each."""
    for age, name in enumerate(names):
        for number in range(count):
            made.apply(Submit(workload(f"{name}-{number:02}", pods(cpu=cpus), queue=name, created=age)))
    started = Counter(w.queue for w, _ in made.cycle().admissions)
    return Counter({name: int(cpus) * many for name, many in started.items()})


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        pytest.param(("child1", "child2", "child3"), {"child1": 900}, id="all-900-used-by-the-first"),
        pytest.param(
            ("child2", "child3", "child1"), {"child2": 750, "child3": 150}, id="750-and-the-150-left-over"
        ),
        pytest.param(
            ("child3", "child2", "child1"), {"child3": 750, "child2": 150}, id="the-same-the-other-way-round"
        ),
    ],
)
def test_the_parents_900_go_to_the_first_queue(order: tuple[str, ...], expected: dict[str, int]) -> None:
    made = parent_and_children()
    assert demand(made, order) == Counter(expected)
    cell = made.ledger.real.at(("cohort", "parent"), ("default", "cpu"))
    assert cell.total == 900_000


def test_of_equal_age_they_get_what_fits_and_never_more_than_900() -> None:
    made = parent_and_children()
    for number in range(21):
        for name in CHILDREN:
            made.apply(Submit(workload(f"{number:02}-{name}", pods(cpu="50"), queue=name)))
    assert Counter(w.queue for w, _ in made.cycle().admissions) == dict.fromkeys(CHILDREN, 6)


def test_what_waits_uses_nothing() -> None:
    made = parent_and_children()
    made.apply(Submit(workload("huge", pods(cpu="901"), queue="child1")))
    made.apply(Submit(workload("large", pods(cpu="900"), queue="child1", created=1)))
    assert [w.uid for w, _ in made.cycle().admissions] == ["large"]


def static_queues() -> Engine:
    """Guaranteed and maximum CPUs of the three static queues; the cluster has 100."""
    takes_back = PreemptionPolicy(reclaim=Reclaim.ANY)
    return engine(
        flavor("default"),
        cohort("root", "", {"cpu": {"default": "0..100"}}),
        queue("advertisement", {"cpu": {"default": "50..80"}}, cohort="root", preemption=takes_back),
        queue("search", {"cpu": {"default": "40..60"}}, cohort="root", preemption=takes_back),
        queue("sandbox", {"cpu": {"default": "10..10"}}, cohort="root", preemption=takes_back),
    )


@pytest.mark.parametrize(("name", "most"), [("advertisement", 80), ("search", 60), ("sandbox", 10)])
def test_a_static_queue_alone_gets_its_maximum(name: str, most: int) -> None:
    assert demand(static_queues(), [name], "10") == Counter({name: most})


def test_a_static_queue_takes_back_what_is_guaranteed_to_it() -> None:
    made = static_queues()
    assert demand(made, ["advertisement"], "10") == Counter({"advertisement": 80})
    for number in range(4):
        made.apply(Submit(workload(f"s{number}", pods(cpu="10"), queue="search")))
    plan = made.cycle(1)
    assert [w.uid for w, _ in plan.admissions] == ["s0", "s1"], "100 there are"
    assert sorted(evicted(plan).values()) == ["s2", "s3"]
