"""What a pod uses that an admission has labelled, by its labels and annotations alone."""

from typing import Any

import pytest

from admitter.controllers.pod_views import parse_pod, usage_of
from admitter.controllers.views import parse_job
from admitter.names import CLUSTER_QUEUE_LABEL, COUNTED_ANNOTATION, FLAVORS_ANNOTATION, WORKLOAD_LABEL

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
        pytest.param("spoilt", "", {}, id="spoilt"),
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
