"""What a pod uses that an admission has labelled, by its labels and annotations alone."""

from typing import Any

import orjson
import pytest

from admitter.cache.pod_views import loose_usage, parse_pod, usage_of
from admitter.cache.views import JobView, parse_job, parse_workload
from admitter.names import (
    CLUSTER_QUEUE_LABEL,
    COUNTED_ANNOTATION,
    FLAVORS_ANNOTATION,
    GPU_MEMORY,
    WORKLOAD_LABEL,
    WORKLOAD_UID_ANNOTATION,
)

Json = dict[str, Any]


def metadata(flavors: str, counted: str = "") -> Json:
    annotations = {FLAVORS_ANNOTATION: flavors} | ({COUNTED_ANNOTATION: counted} if counted else {})
    return {
        "name": "a",
        "namespace": "team",
        "uid": "u",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {WORKLOAD_LABEL: "job-a", CLUSTER_QUEUE_LABEL: "q"},
        "annotations": annotations,
    }


SPEC: Json = {"containers": [{"resources": {"requests": {"cpu": "2", "memory": "1Gi"}}}]}


@pytest.mark.parametrize(
    ("flavors", "counted", "usage"),
    [
        pytest.param('{"cpu":"a"}', "", {("a", "cpu"): 2000}, id="only what its queue counted"),
        pytest.param('{"cpu":"a","pods":"a"}', "", {("a", "cpu"): 2000, ("a", "pods"): 1}, id="pods too"),
        pytest.param('{"pods":"any_node"}', '{"pool":"p"}', {("p", "pods"): 1}, id="pods of a pool"),
        pytest.param("invalid", "", {}, id="invalid"),
    ],
)
def test_a_pod_uses_what_was_counted_at_its_admission(
    flavors: str, counted: str, usage: dict[tuple[str, str], int]
) -> None:
    marks = metadata(flavors, counted)
    pod = parse_pod({"metadata": marks, "spec": SPEC, "status": {"phase": "Running"}})
    assert dict(pod.usage.usage) == usage
    template = {"metadata": {"labels": marks["labels"], "annotations": marks["annotations"]}, "spec": SPEC}
    job = {"metadata": marks, "spec": {"parallelism": 3, "completions": 9, "template": template}}
    assert dict(usage_of(parse_job(job)).usage) == {key: 3 * amount for key, amount in usage.items()}


@pytest.mark.parametrize("memory", ["9" * 5000, "٩", "-1", "1.5", ""])
def test_gpu_memory_that_no_controller_can_have_written_is_none(memory: str) -> None:
    marks = metadata('{"admitter.dev/gpu-memory":"a"}', orjson.dumps({GPU_MEMORY: memory}).decode())
    pod = parse_pod({"metadata": marks, "spec": SPEC, "status": {"phase": "Running"}})
    assert dict(pod.usage.usage) == {}


@pytest.mark.parametrize(
    ("said", "is_of_it"),
    [
        pytest.param("w1", True, id="its Workload"),
        pytest.param("w0", False, id="another one that is gone"),
        pytest.param("", False, id="none: an operator has copied the label alone"),
    ],
)
def test_a_pod_is_of_the_workload_with_the_admission_that_made_it(said: str, *, is_of_it: bool) -> None:
    marks = metadata('{"cpu":"a"}')
    marks["annotations"] |= {WORKLOAD_UID_ANNOTATION: said} if said else {}
    pod = parse_pod({"metadata": marks, "spec": SPEC})
    workload = {
        "name": "job-a",
        "namespace": "team",
        "uid": "w1",
        "resourceVersion": "1",
        "creationTimestamp": "2025-12-31T00:00:00Z",
    }
    spec = {"queueName": "main", "podSets": [{"name": "main", "count": 1, "requests": {"cpu": "2"}}]}
    assert pod.is_of(parse_workload({"metadata": workload, "spec": spec})) is is_of_it


def test_a_started_job_with_an_overwritten_template_is_counted_by_its_pods() -> None:
    """Two containers ask for more together than a quantity can be."""
    marks = metadata('{"cpu":"a"}')
    giant = {"resources": {"requests": {"cpu": "9E"}}}

    def started(spec: Json) -> JobView:
        template = {"metadata": marks, "spec": spec}
        raw = {"metadata": marks, "spec": {"suspend": True, "template": template}}
        return parse_job(raw | {"status": {"terminating": 1}})

    marks["labels"] = marks["labels"] | {WORKLOAD_LABEL: started(SPEC).workload}
    assert loose_usage(started(SPEC), None) is not None
    assert loose_usage(started({"containers": [giant, giant]}), None) is None


def test_a_halted_job_is_counted_by_its_pods_and_not_by_a_template_that_may_change() -> None:
    marks = metadata('{"cpu":"a"}')
    conditions = [{"type": "Suspended", "status": "True"}]

    def suspended(status: Json) -> JobView:
        raw = {"metadata": marks, "spec": {"suspend": True, "template": {"metadata": marks, "spec": SPEC}}}
        return parse_job(raw | {"status": status})

    marks["labels"] = marks["labels"] | {WORKLOAD_LABEL: suspended({}).workload}
    assert loose_usage(suspended({"active": 1}), None) is not None
    assert loose_usage(suspended({"terminating": 1, "conditions": conditions}), None) is None


@pytest.mark.parametrize(
    ("spec", "node"), [(SPEC, ""), (SPEC | {"nodeName": ""}, ""), (SPEC | {"nodeName": "n"}, "n")]
)
def test_a_pod_is_on_the_node_that_it_is_bound_to(spec: Json, node: str) -> None:
    assert parse_pod({"metadata": metadata("{}"), "spec": spec, "status": {}}).node == node
