"""Users of queued pods are part of a plan, and what groups promise can be found broken."""

from random import Random
from typing import Any

import pytest

from tests.faults.api import Api
from tests.faults.plan import plan
from tests.faults.pods import GROUNDS, SIZES, Course, PodCrowd, PodTask, manifest, planned_pods
from tests.faults.tenants import OTHERS


def test_a_seed_means_the_same_tasks_by_single_pods_and_by_groups() -> None:
    tasks = planned_pods(1, 200.0)
    assert tasks == plan(1, 200.0, 300, 28, 2).pods
    assert tasks != planned_pods(2, 200.0)
    assert {task.size for task in tasks} == {0, *SIZES}
    assert {task.namespace for task in tasks} == {ground.namespace for ground in GROUNDS}
    assert all(0 <= task.at <= 200.0 for task in tasks)


def test_the_ledger_is_not_told_of_them() -> None:
    pod = manifest(planned_pods(1, 75.0)[0], 0, 0)
    pod["metadata"] |= {"namespace": "pods-a", "uid": "1", "creationTimestamp": "1"}
    pod["metadata"]["labels"]["admitter.dev/workload"] = "w"
    assert OTHERS.parse("pods", pod) is None
    pod["metadata"]["namespace"] = "real-a"
    assert OTHERS.parse("pods", pod) is not None


@pytest.fixture
def course() -> Course:
    return Course(PodTask(0.0, "pods-a", "tune", 2, 1, "low"))


def look(api: Api, course: Course, *phases: str) -> list[str]:
    """What is found when there are pods with these phases, `Gated` for one that waits."""
    crowd = PodCrowd(api, Random(1), (course.task,))
    for number, phase in enumerate(phases):
        pod: dict[str, Any] = manifest(course.task, course.life, number)
        if phase == "Gated":
            pod["spec"]["schedulingGates"] = [{"name": "admitter.dev/admission"}]
        else:
            pod["spec"]["nodeName"] = "node"
            pod["status"] = {"phase": phase}
        course.seen[pod["metadata"]["name"]] = pod
    crowd.check(course)
    return crowd.findings


@pytest.mark.parametrize(
    ("made", "phases", "found"),
    [
        (1, ("Gated",), ""),
        (1, ("Running",), "a group started when 1 of its pods had been made"),
        (2, ("Running", "Gated"), ""),
        (3, ("Running", "Failed", "Running"), ""),
        (3, ("Running", "Pending", "Running"), "3 pods of a group run"),
        (3, ("Running", "Gated", "Running"), ""),
    ],
)
def test_a_group_starts_with_all_of_its_pods_and_no_more_run(
    course: Course, made: int, phases: tuple[str, ...], found: str
) -> None:
    course.made = course.of_life = made
    findings = look(Api.__new__(Api), course, *phases)
    assert bool(findings) is bool(found)
    assert found in "".join(findings)
