"""What is put into a Job's template at admission, and that the next admission leaves nothing of it."""

import copy
from typing import Any

import pytest

from admitter.cache.views import JobView, parse_job, parse_workload
from admitter.engine.model import Admission, Assignment, Flavor, Toleration
from admitter.policy.injection import original_template, start_patch

Json = dict[str, Any]

SPOT = Flavor("spot", (("type", "spot"),), tolerations=(Toleration("spot", "Exists"),))
ON_DEMAND = Flavor("on-demand", (("type", "on-demand"), ("zone", "a")))
OWN: Json = {"key": "own", "operator": "Exists"}


def merge(target: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386), as the API server applies it."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def raw_job(selector: Json | None = None, tolerations: list[Json] | None = None) -> Json:
    spec: Json = {"containers": [{"name": "main"}]}
    spec |= {"nodeSelector": selector} if selector else {}
    spec |= {"tolerations": tolerations} if tolerations else {}
    metadata = {
        "name": "job",
        "namespace": "team",
        "uid": "u",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {"metadata": metadata, "spec": {"suspend": True, "template": {"spec": spec}}}


def start(raw: Json, flavor: Flavor) -> tuple[Json, Json]:
    """The patch that starts a Job on a flavor, and the Job after it."""
    metadata = raw["metadata"] | {"name": "job-x"}
    workload = parse_workload({"metadata": metadata, "spec": {"queueName": "main", "podSets": []}})
    admission = Admission("total", (Assignment("main", 1, (("cpu", flavor.name),), (("cpu", 1000),)),))
    patch = start_patch(parse_job(raw), workload, admission, {flavor.name: flavor}, None)
    return patch, merge(copy.deepcopy(raw), patch)


def template(raw: Json) -> Json:
    spec: Json = raw["spec"]["template"]["spec"]
    return spec


def original(raw: Json) -> tuple[Json, list[Json]]:
    view: JobView = parse_job(raw)
    kept = original_template(view, view.sets[0])
    return kept.get("nodeSelector") or {}, list(kept.get("tolerations") or [])


def test_labels_tolerations_and_what_counts_the_pods_are_put_in() -> None:
    patch, job = start(raw_job(tolerations=[OWN]), SPOT)
    assert patch["metadata"]["resourceVersion"] == "7"
    assert job["spec"]["suspend"] is False
    assert template(job)["nodeSelector"] == {"type": "spot"}
    assert template(job)["tolerations"] == [OWN, {"key": "spot", "operator": "Exists"}]
    metadata = job["spec"]["template"]["metadata"]
    assert metadata["labels"] == {"admitter.dev/workload": "job-x", "admitter.dev/cluster-queue": "total"}
    assert metadata["annotations"] == {
        "admitter.dev/workload-uid": "u",
        "admitter.dev/flavors": '{"cpu":"spot"}',
    }


@pytest.mark.parametrize("selector", [None, {"disk": "fast"}, {"zone": "a"}], ids=str)
@pytest.mark.parametrize("tolerations", [None, [OWN], [{"key": "spot", "operator": "Exists"}]], ids=str)
def test_a_second_admission_leaves_nothing_of_the_first(
    selector: Json | None, tolerations: list[Json] | None
) -> None:
    raw = raw_job(selector, tolerations)
    _, first = start(raw, SPOT)
    assert original(first) == original(raw)
    _, second = start(merge(first, {"spec": {"suspend": True}}), ON_DEMAND)
    assert template(second)["nodeSelector"] == {**(selector or {}), "type": "on-demand", "zone": "a"}
    assert template(second).get("tolerations", []) == (tolerations or [])
    assert original(second) == original(raw)


def test_what_the_user_selects_stays_the_users() -> None:
    _, job = start(raw_job({"type": "spot"}), SPOT)
    assert original(job)[0] == {"type": "spot"}


def test_what_the_user_changed_after_an_admission_is_kept() -> None:
    _, job = start(raw_job(), SPOT)
    edited = merge(job, {"spec": {"template": {"spec": {"nodeSelector": {"type": "on-demand"}}}}})
    assert original(edited)[0] == {"type": "on-demand"}


@pytest.mark.parametrize(
    "record", ["no json", "[]", '{"nodeSelector": []}', '{"nodeSelector": {}}'], ids=repr
)
def test_an_overwritten_record_counts_as_none(record: str) -> None:
    _, job = start(raw_job(), SPOT)
    job["metadata"]["annotations"]["admitter.dev/injected"] = record
    assert original(job)[0] == {"type": "spot"}
