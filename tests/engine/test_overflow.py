"""Which workloads to evict when less is left than is in use: 8 CPUs are left of 16, of the root's `max`."""

import pytest

from admitter.engine.commands import Define, Reserve, Submit
from admitter.engine.cycle import Engine
from admitter.engine.policy import Cohort
from tests.engine.builders import cohort, engine, flavor, pods, queue, use, workload


def shrunk(to: str = "8") -> Cohort:
    return cohort("root", "", {"cpu": {"default": f"12..{to}"}})


def busy(*held: tuple[str, str, str, int, float]) -> Engine:
    """UID, queue, CPUs, priority and time of admission of each; `a` has 4 CPUs of its own, `b` none."""
    made = engine(
        flavor("default"),
        cohort("root", "", {"cpu": {"default": "12..16"}}),
        queue("a", {"cpu": {"default": "4"}}, cohort="root"),
        queue("b", {"cpu": {"default": "0"}}, cohort="root"),
    )
    for uid, name, cpus, priority, since in held:
        asked = workload(uid, pods(cpu=cpus), queue=name, priority=priority)
        made.apply(Reserve(uid, use(name, "default", cpu=cpus), asked, since))
    return made


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        pytest.param([("a1", "a", "4", 0, 1), ("b1", "b", "4", 0, 2)], [], id="what-fits-stays"),
        pytest.param(
            [("a1", "a", "4", 0, 9), ("b1", "b", "4", 5, 1), ("b2", "b", "4", 5, 2)],
            ["b2"],
            id="borrowers-first-though-newer-and-of-lower-priority-others-do-not-borrow",
        ),
        pytest.param(
            [("b1", "b", "4", 1, 3), ("b2", "b", "4", 0, 1), ("b3", "b", "4", 1, 2)],
            ["b2"],
            id="lowest-priority-first",
        ),
        pytest.param(
            [("b1", "b", "4", 0, 1), ("b2", "b", "1", 0, 2), ("b3", "b", "4", 0, 3)],
            ["b3"],
            id="newest-first-and-no-more-than-needed",
        ),
        pytest.param(
            [("b1", "b", "8", 0, 1), ("b2", "b", "1", 0, 2), ("b3", "b", "2", 0, 3)],
            ["b3", "b2"],
            id="as-many-as-it-takes",
        ),
        pytest.param(
            [("b1", "b", "1", 0, 3), ("b2", "b", "7", 0, 2), ("b3", "b", "4", 0, 1)],
            ["b2"],
            id="who-turns-out-unneeded-stays",
        ),
        pytest.param(
            [("a1", "a", "2", 0, 1), ("a2", "a", "2", 0, 2), ("b1", "b", "6", 0, 3)],
            ["b1"],
            id="the-owner-keeps-its-own",
        ),
    ],
)
def test_victims(held: list[tuple[str, str, str, int, float]], expected: list[str]) -> None:
    made = busy(*held)
    made.apply(Define(cohorts=(shrunk(),)))
    assert made.overflow("root") == expected


def test_owners_go_too_if_even_what_is_theirs_is_gone() -> None:
    made = busy(("a1", "a", "2", 0, 1), ("a2", "a", "2", 0, 2), ("b1", "b", "2", 0, 3))
    made.apply(Define(cohorts=(shrunk("2"),)))
    assert made.overflow("root") == ["b1", "a2"]


def test_a_workload_with_a_started_eviction_counts_no_more() -> None:
    made = busy(("b1", "b", "4", 0, 1), ("b2", "b", "4", 0, 2), ("b3", "b", "4", 0, 3))
    made.apply(Define(cohorts=(shrunk(),)))
    assert made.overflow("root", {"b1"}) == []


def test_looking_changes_nothing_and_nothing_more_is_admitted() -> None:
    made = busy(("b1", "b", "6", 0, 1), ("b2", "b", "6", 0, 2))
    made.apply(Define(cohorts=(shrunk(),)))
    before = dict(made.ledger.planned.used("b"))
    assert made.overflow("root") == ["b2"]
    assert dict(made.ledger.planned.used("b")) == before
    made.apply(Submit(workload("b3", pods(cpu="1"), queue="b")))
    assert made.cycle(10).admissions == []


def test_pods_that_outlived_their_workload_are_no_reason_to_evict_others() -> None:
    made = busy(("b1", "b", "4", 0, 1), ("b2", "b", "4", 0, 2))
    made.apply(Reserve("pod", use("b", "default", cpu="4")))
    made.apply(Define(cohorts=(shrunk(),)))
    assert made.overflow("root") == []


def test_many_are_found_in_the_time_that_it_takes_to_look_at_each() -> None:
    """4,000 of 8,000 have to go: as many as it takes, newest first."""
    made = engine(
        flavor("default"),
        cohort("root", "", {"cpu": {"default": "8000"}}),
        queue("b", {"cpu": {"default": "0"}}, cohort="root"),
    )
    for number in range(8000):
        asked = workload(f"w{number:04}", pods(cpu="1"), queue="b")
        made.apply(Reserve(asked.uid, use("b", "default", cpu="1"), asked, float(number)))
    made.apply(Define(cohorts=(cohort("root", "", {"cpu": {"default": "0..4000"}}),)))
    assert made.overflow("root") == [f"w{number:04}" for number in range(7999, 3999, -1)]
