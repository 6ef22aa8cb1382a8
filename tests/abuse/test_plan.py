"""Operations of tenants: the same for the same seed, of all kinds, and understood as they are meant."""

from itertools import permutations
from random import Random

import pytest

from tests.abuse.operations import (
    UPDATE,
    Operation,
    Pause,
    Reference,
    copied,
    copy,
    create,
    delete,
    merged,
    patch,
    references,
    resolved,
)
from tests.abuse.plan import THEMES, WEIGHTS, Course, digest, plan
from tests.abuse.pods import ODDITIES, queued_pod
from tests.abuse.scene import GROUNDS, tenants
from tests.abuse.shapes import TWISTS, drawn_job
from tests.abuse.themes import title

OPERATIONS = 5_000


@pytest.fixture(scope="module")
def courses() -> list[Course]:
    return plan(1, OPERATIONS, tenants())


def test_a_seed_means_the_same_operations_and_another_seed_others(courses: list[Course]) -> None:
    assert digest(plan(1, OPERATIONS, tenants())) == digest(courses)
    assert digest(plan(2, OPERATIONS, tenants())) != digest(courses)


def test_there_are_as_many_operations_as_were_asked_for_and_all_tenants_have_some(
    courses: list[Course],
) -> None:
    assert sum(course.operations for course in courses) == OPERATIONS
    assert len(courses) == len(tenants())
    assert min(course.operations for course in courses) == OPERATIONS // len(courses)
    assert sum(course.operations for course in plan(3, 7, tenants())) == 7


def test_every_attack_comes_and_single_operations_between(courses: list[Course]) -> None:
    operations = [step for course in courses for step in course.steps if isinstance(step, Operation)]
    assert {operation.theme for operation in operations} == {title(theme) for theme in THEMES} | {""}
    assert {operation.method for operation in operations} == {"POST", "PATCH", "PUT", "DELETE"}
    assert any(isinstance(step, Pause) for course in courses for step in course.steps)
    assert len(WEIGHTS) >= 15


@pytest.mark.parametrize("twist", TWISTS, ids=lambda twist: twist.__name__.strip("_"))
def test_every_oddity_changes_a_job(twist: object) -> None:
    for ground in GROUNDS[:5]:
        plain = drawn_job(Random("plain"), ground, "work")
        odd = drawn_job(Random("plain"), ground, "work")
        assert odd == plain
        for attempt in range(5):  # one that is drawn may be what was there
            twist(Random(attempt), odd)  # type: ignore[operator]  # a function of both
        assert odd != plain


def test_oddities_come_together_in_any_order() -> None:
    for ground in GROUNDS:
        for first, second in permutations(TWISTS, 2):
            made = drawn_job(Random("plain"), ground, "work")
            first(Random(1), made)
            second(Random(2), made)


def test_what_only_the_api_server_knows_is_looked_up() -> None:
    text = "/pods/@pod/t0-a/3@ and @uid/t0-b@ and @workload/t0-a@"
    assert references(text) == {
        "@pod/t0-a/3@": Reference("pod", "t0-a", 3),
        "@uid/t0-b@": Reference("uid", "t0-b", 0),
        "@workload/t0-a@": Reference("workload", "t0-a", 0),
    }
    assert references("@workload/any/3@") == {"@workload/any/3@": Reference("workload", "any", 3)}
    assert resolved(text, {"@pod/t0-a/3@": "t0-a-x", "@uid/t0-b@": "7"}) == "/pods/t0-a-x and 7 and nothing"


def test_an_operation_tells_which_jobs_it_is_about() -> None:
    made = create("open-a", "jobs", {"kind": "Job", "metadata": {"name": "t0-a"}})
    assert made.jobs == {"t0-a"}
    assert patch("open-a", "jobs", "t0-b", {}, content=UPDATE).jobs == {"t0-b"}
    assert delete("open-a", "pods", "@pod/t0-c/0@").jobs == {"t0-c"}
    assert delete("open-a", "experiments", "x-t0-a").jobs == {"x-t0-a"}
    assert delete("open-a", "pods", "@pod/experiment.x-t0-c/0@").jobs == {"x-t0-c"}
    assert delete("open-a", "workloads").jobs == set()
    assert delete("open-a", "workloads").sweeps
    assert not delete("open-a", "workloads", "one").sweeps


def test_a_copy_has_all_marks_of_a_pod_and_is_another_object() -> None:
    marks = {"labels": {"admitter.dev/workload": "w"}, "annotations": {"admitter.dev/user": "ada"}}
    whole = {
        "kind": "Pod",
        "metadata": {"name": "one", "uid": "u", "resourceVersion": "7", **marks},
        "spec": {"nodeName": "node", "containers": []},
        "status": {"phase": "Running"},
    }
    made = copied(whole, {"metadata": {"name": "two"}, "spec": {"nodeName": None}})
    assert made == {
        "kind": "Pod",
        "metadata": {"name": "two", **marks},
        "spec": {"containers": []},
        "status": {},
    }
    assert copy("open-a", "pods", "one", {}).path == "/api/v1/namespaces/open-a/pods/one"


@pytest.mark.parametrize("oddity", ODDITIES, ids=lambda oddity: oddity.__name__.strip("_"))
def test_every_oddity_changes_a_queued_pod(oddity: object) -> None:
    for ground in GROUNDS[:5]:
        plain, odd = (queued_pod(Random("plain"), ground, "one") for _ in range(2))
        for attempt in range(5):
            oddity(Random(attempt), odd)  # type: ignore[operator]  # a function of both
        assert odd != plain


def test_a_merge_patch_in_an_object() -> None:
    whole = {"a": 1, "b": {"c": 2, "d": 3}, "e": [1]}
    assert merged(whole, {"a": None, "b": {"c": 4, "f": {"g": None}}, "e": [2]}) == {
        "b": {"c": 4, "d": 3, "f": {}},
        "e": [2],
    }
