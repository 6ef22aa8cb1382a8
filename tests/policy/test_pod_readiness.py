"""How many pods of a Workload are ready, by kind, and what is said of the others."""

from typing import Any

import pytest

from admitter.cache.job_resources import JobResource
from admitter.cache.pod_readiness import Cause, Trouble
from admitter.cache.pod_views import PodView, parse_pod
from admitter.cache.views import JobView, WorkloadView, parse_job, parse_workload
from admitter.cache.world import World
from admitter.policy.pod_readiness import (
    PodReadiness,
    has_default_limit,
    has_limit,
    in_words,
    readiness_of,
    troubles,
)

Json = dict[str, Any]

CREATED = "2026-01-01T00:00:00Z"
NO_NODE: Json = {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/6 nodes. x"}]}
READY: Json = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
DONE: Json = {"phase": "Succeeded"}
FAILED: Json = {"phase": "Failed", "message": "out of memory"}
PULLS: Json = {"containerStatuses": [{"image": "a:1", "state": {"waiting": {"reason": "ErrImagePull"}}}]}


def metadata(name: str, **more: Any) -> Json:
    made = {"name": name, "namespace": "team", "uid": f"uid-{name}", "resourceVersion": "1"}
    return made | {"creationTimestamp": CREATED} | more


def pod(number: int, status: Json) -> PodView:
    marks = {"labels": {"admitter.dev/workload": "w"}, "annotations": {"admitter.dev/workload-uid": "uid-w"}}
    spec: Json = {"containers": []} | ({} if status is NO_NODE else {"nodeName": "n"})
    return parse_pod({"metadata": metadata(f"pod-{number}", **marks), "spec": spec, "status": status})


def job(parallelism: int, completions: int, **status: int) -> JobView:
    template: Json = {"spec": {"containers": []}}
    spec = {"parallelism": parallelism, "completions": completions, "template": template}
    return parse_job({"metadata": metadata("a"), "spec": spec, "status": status})


def workload(count: int) -> WorkloadView:
    admission = {"clusterQueue": "q", "podSets": [{"name": "main", "count": count}]}
    spec: Json = {"queueName": "main", "podSets": []}
    return parse_workload({"metadata": metadata("w"), "spec": spec, "status": {"admission": admission}})


@pytest.mark.parametrize(
    ("parallelism", "completions", "admitted", "status", "found"),
    [
        (3, 3, 3, {"ready": 2}, PodReadiness(3, 2)),
        (3, 3, 3, {"ready": 3}, PodReadiness(3, 3)),
        (3, 3, 3, {"ready": 1, "succeeded": 2}, PodReadiness(1, 1)),
        (3, 3, 3, {"succeeded": 3}, PodReadiness(0, 0)),
        (2, 9, 2, {"ready": 2, "succeeded": 4}, PodReadiness(2, 2)),
        (4, 9, 2, {"ready": 2}, PodReadiness(2, 2)),  # it was admitted with fewer
    ],
)
def test_a_job_says_itself_how_many_of_its_pods_are_ready(
    parallelism: int, completions: int, admitted: int, status: dict[str, int], found: PodReadiness
) -> None:
    assert readiness_of(World(), job(parallelism, completions, **status), workload(admitted)) == found


@pytest.mark.parametrize(
    ("pods", "found", "ready"),
    [
        ((), PodReadiness(1, 0), False),
        ((READY, READY), PodReadiness(2, 2), True),
        ((READY, NO_NODE), PodReadiness(2, 1), False),
        ((DONE,), PodReadiness(0, 0), True),  # the pods of the next stage are not there yet
        ((DONE, NO_NODE), PodReadiness(1, 0), False),
        ((FAILED, READY), PodReadiness(1, 1), True),
    ],
)
def test_of_described_kinds_only_pods_that_are_there_count(
    pods: tuple[Json, ...], found: PodReadiness, ready: bool
) -> None:
    world = World()
    for number, status in enumerate(pods):
        world.pods.apply(pod(number, status))
    kind = JobResource("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets")
    plain = job(0, 0)
    fields = {name: getattr(plain, name) for name in JobView.__dataclass_fields__}
    described = JobView(**fields | {"resource": kind})
    assert readiness_of(world, described, workload(5)) == found
    assert found.all_ready is ready
    assert has_limit(world, described)
    assert not has_default_limit(described)


def test_only_jobs_have_a_limit_unless_a_queue_says_one() -> None:
    assert has_default_limit(job(1, 1))
    assert has_limit(World(), job(1, 1))
    assert not has_limit(World(), None)


def test_pods_are_counted_by_what_they_lack_with_their_own_doing_first() -> None:
    pods = [pod(n, status) for n, status in enumerate([NO_NODE, NO_NODE, PULLS, READY, FAILED])]
    found = troubles(pods, 8)
    assert found[0][0].cause.to_blame
    assert in_words(found, 8) == (
        "1 of 8 pods can't pull its image: ErrImagePull a:1; 1 of 8 pods has failed: out of memory; "
        "3 of 8 pods have not been made; 2 of 8 pods unschedulable: 0/6 nodes"
    )
    assert in_words(troubles(pods[:2], 2), 2) == "2 of 2 pods unschedulable: 0/6 nodes"


def test_a_failed_pod_with_another_in_its_place_is_no_trouble() -> None:
    assert troubles([pod(0, FAILED), pod(1, READY)], 1) == []
    assert troubles([], 2) == [(Trouble(Cause.MISSING), 2)]


def test_different_details_of_one_cause_are_one_sentence() -> None:
    found = [(Trouble(Cause.NO_NODE, "0/6 a"), 2), (Trouble(Cause.NO_NODE, "0/6 b"), 1)]
    assert in_words(found, 3) == "3 of 3 pods unschedulable: 0/6 a"
