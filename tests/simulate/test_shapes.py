"""Fields that an API server would refuse are named, and what is null is absent."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.objects import Json
from tests.commands import admitter
from tests.simulate.test_simulate import QUEUES, annotate, asks, simulate, states, workload

POD = ("spec", "template", "spec")


def changed(manifest: Json, path: tuple[str | int, ...], value: Any) -> Json:
    """A manifest with another value in one place."""
    place: Any = manifest
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return manifest


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        (("metadata", "name"), 5, "metadata.name"),
        (("metadata", "namespace"), 7, "metadata.namespace"),
        (("metadata", "labels"), ["a"], "metadata.labels"),
        (("metadata", "annotations"), ["a"], "metadata.annotations"),
        (("spec",), 3, "spec"),
        (("spec", "parallelism"), "two", "spec.parallelism"),
        (("spec", "completions"), -1, "spec.completions"),
        (("spec", "template"), {}, "spec.template.spec"),
        (("spec", "template", "metadata"), "x", "spec.template.metadata"),
        ((*POD, "containers"), [], "spec.template.spec.containers"),
        ((*POD, "containers"), ["x"], "spec.template.spec.containers[0]"),
        (
            (*POD, "containers", 0, "resources", "requests"),
            ["cpu"],
            "spec.template.spec.containers[0].resources.requests",
        ),
        (
            (*POD, "containers", 0, "resources", "requests"),
            {"cpu": "much"},
            "requests.cpu: 'much' is not a quantity",
        ),
        ((*POD, "tolerations"), ["x"], "spec.template.spec.tolerations[0]"),
        (
            (*POD, "affinity"),
            {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchExpressions": [{"key": "a"}]}]
                    }
                }
            },
            "nodeSelectorTerms[0].matchExpressions[0].operator",
        ),
    ],
)
def test_a_wrong_field_of_a_job_is_named(
    tmp_path: Path, path: tuple[str | int, ...], value: object, field: str
) -> None:
    wrong = changed(asks("wrong", 1), path, value)
    result = simulate(tmp_path, *QUEUES, wrong, asks("good", 1), exit_code=1)
    (error,) = result["errors"]
    assert error["object"].startswith("Job ")
    assert field in error["message"]
    assert "_" not in error["message"].split(":")[-1], "no name of ours"
    assert states(result) == {"good": "Admitted"}, "the others are simulated all the same"


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "p"}},
            "value: is missing",
        ),
        (
            changed(workload("w", "1"), ("status", "admission", "podSets", 0, "flavors"), {}),
            "status.admission.podSets[0]: usage of cpu is in no flavor: flavors does not name it",
        ),
        (
            annotate(asks("long", 1), "simulated-runtime", "999999999999d"),
            "metadata.annotations[admitter.dev/simulated-runtime]: '999999999999d' is longer than 1000 years",
        ),
    ],
    ids=["priority class", "admission", "duration"],
)
def test_wrong_fields_of_other_kinds(tmp_path: Path, manifest: Json, message: str) -> None:
    result = simulate(tmp_path, *QUEUES, manifest, exit_code=1)
    assert [e["message"] for e in result["errors"]] == [message]


@pytest.mark.parametrize(
    "path",
    [
        ("spec", "parallelism"),
        ("metadata", "annotations"),
        (*POD, "tolerations"),
        (*POD, "affinity"),
        ("status",),
    ],
    ids=".".join,
)
def test_what_is_null_is_absent(tmp_path: Path, path: tuple[str, ...]) -> None:
    result = simulate(tmp_path, *QUEUES, changed(asks("job", 1), path, None))
    assert states(result) == {"job": "Admitted"}


def test_lists_of_something_else_are_empty() -> None:
    answer = admitter("simulate", "-", "-o", "json", content=json.dumps({"kind": "List", "items": 5}))
    assert (answer.returncode, json.loads(answer.stdout)["workloads"]) == (0, [])


def test_time_does_not_end_with_the_calendar(tmp_path: Path) -> None:
    result = simulate(tmp_path, *QUEUES, asks("job", 1, created="9999-12-31T00:00:00Z", lasts="900d"))
    assert result["events"][-1]["time"] == "9999-12-31T23:59:59Z"
