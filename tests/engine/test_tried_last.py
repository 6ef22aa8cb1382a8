"""Flavors that a workload tries last, since its pods were not ready on them."""

from dataclasses import replace

from admitter.engine.commands import Reserve, Submit
from admitter.engine.model import Workload
from tests.engine.builders import engine, flavor, flavors_of, pods, queue, use, workload

A, B, C = (flavor(name, kind=name) for name in "abc")
QUEUE = queue("q", {"cpu": {"a": "2", "b": "2", "c": "2"}})


def tries_last(*names: str, uid: str = "w", created: float = 0) -> Workload:
    return replace(workload(uid, pods(1, cpu="2"), created=created), tried_last=names)


def given(*workloads: Workload, used: str = "") -> dict[str, str]:
    """The flavor of each workload that is admitted in one cycle; the flavors in `used` are full."""
    made = engine(A, B, C, QUEUE)
    for name in used:
        made.apply(Reserve(f"on-{name}", use("q", name, cpu="2")))
    for each in workloads:
        made.apply(Submit(each))
    plan = made.cycle()
    return {each.uid: flavors_of(plan, each.uid)["main"]["cpu"] for each, _ in plan.admissions}


def test_a_flavor_that_is_tried_last_is_passed_over_for_the_next() -> None:
    assert given(tries_last()) == {"w": "a"}
    assert given(tries_last("a")) == {"w": "b"}
    assert given(tries_last("a", "b")) == {"w": "c"}
    assert given(tries_last("a", "b", "c")) == {"w": "a"}, "of all the listed order stays"
    assert given(tries_last("none-of-them")) == {"w": "a"}


def test_it_is_taken_where_no_other_would_do() -> None:
    assert given(tries_last("a"), used="bc") == {"w": "a"}
    assert given(tries_last("a"), used="b") == {"w": "c"}


def test_workloads_that_try_others_last_are_of_another_class() -> None:
    first, second = tries_last("a", uid="v"), tries_last(uid="w", created=1)
    assert given(first, second) == {"v": "b", "w": "a"}
