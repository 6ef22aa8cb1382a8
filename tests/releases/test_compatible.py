"""Definitions change so that all that was stored under an earlier release stays valid."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from admitter.api import weights
from admitter.api.base import problems
from admitter.api.kinds import KINDS
from tests.releases.compatible import CURRENT, breaks, definitions, missing, objects, releases, schemas

Schema = dict[str, Any]

RELEASED = [pytest.param(release, id=release.name) for release in releases()]
MODELS = {kind.__name__: kind for kind in KINDS}
QUEUES = "clusterqueues.admitter.dev"


NODE_TERMS = "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
NO_LARGER_NUMBERS = {
    f"v1alpha1.{path}: maximum is 2147483647 instead of None"
    for path in (
        "spec.podSets[].minCount",
        "status.admission.podSets[].count",
        "status.preemption.admission.podSets[].count",
    )
}
"""Numbers of pods larger than any Job can have."""

NO_LONGER_AFFINITY = {
    f"v1alpha1.spec.podSets[].affinity.nodeAffinity.{NODE_TERMS}{rest}"
    for rest in (
        ": maxItems is 16 instead of 64",
        "[].matchExpressions: maxItems is 16 instead of 64",
        "[].matchFields: maxItems is 16 instead of 64",
        "[].matchFields[].values: maxItems is 4 instead of 256",
        "[].matchFields[].values[]: maxLength is 253 instead of None",
    )
}
"""Affinity longer than scheduling has a use for: a field of a node has one value, its name of at most 253."""

NO_HEAVIER_POD_SETS = {f"v1alpha1.spec: has the new rule {weights.RULE}"}
"""Pod sets of more than 32,768 characters, which a few objects would fill the controller's memory with."""

NEVER_STORED = NO_LARGER_NUMBERS | NO_LONGER_AFFINITY | NO_HEAVIER_POD_SETS
"""What is stricter, on purpose. A stored object beyond it stays, and its status is written: the API server
checks on update only what the update changes."""


def test_there_is_a_release_to_compare_with() -> None:
    assert "0.1.0" in [release.name for release in releases()]


@pytest.mark.parametrize("release", RELEASED)
def test_nothing_is_gone_and_nothing_stricter_than_in(release: Path) -> None:
    current = definitions(CURRENT)
    for name, old in definitions(release / "crds").items():
        assert name in current
        assert set(breaks(old, current[name])) <= NEVER_STORED, name


@pytest.mark.parametrize("release", RELEASED)
def test_the_objects_have_every_field_of(release: Path) -> None:
    stored = objects(release)
    for definition in definitions(release / "crds").values():
        kind = definition["spec"]["names"]["kind"]
        found = [each for each in stored if each["kind"] == kind]
        for schema in schemas(definition).values():
            assert list(missing(schema, found)) == [], kind


@pytest.mark.parametrize("release", RELEASED)
def test_the_models_of_today_take_the_objects_of(release: Path) -> None:
    for each in objects(release):
        if each["kind"] in MODELS:
            assert problems(MODELS[each["kind"]], each) == [], each["kind"]


def spec_of(definition: Schema) -> Schema:
    (version,) = definition["spec"]["versions"]
    found: Schema = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return found


def change(path: str, **changed: Any) -> Callable[[Schema], None]:
    def apply(definition: Schema) -> None:
        field = spec_of(definition)["properties"][path] if path else spec_of(definition)
        field.update(changed)

    return apply


def remove(field: str) -> Callable[[Schema], None]:
    return lambda definition: spec_of(definition)["properties"].pop(field)


def allow(*values: str) -> Callable[[Schema], None]:
    return lambda definition: spec_of(definition)["properties"]["stopPolicy"].update(enum=list(values))


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (remove("cohort"), ["v1alpha1.spec.cohort: is gone"]),
        (change("cohort", type="integer"), ["v1alpha1.spec.cohort: type is integer instead of string"]),
        (change("cohort", maxLength=9), ["v1alpha1.spec.cohort: maxLength is 9 instead of 63"]),
        (change("cohort", minLength=3), ["v1alpha1.spec.cohort: minLength is 3 instead of 1"]),
        (change("cohort", enum=["a"]), ["v1alpha1.spec.cohort: has an enum now"]),
        (change("", required=["cohort"]), ["v1alpha1.spec.cohort: is required now"]),
        (allow("None", "Hold"), ["v1alpha1.spec.stopPolicy: HoldAndDrain is not allowed any more"]),
        (
            change("cohort", **{"x-kubernetes-validations": [{"rule": "false"}]}),
            ["v1alpha1.spec.cohort: has the new rule false"],
        ),
        (
            lambda definition: definition["spec"].update(scope="Namespaced"),
            ["scope is Namespaced instead of Cluster"],
        ),
        (
            lambda definition: definition["spec"]["versions"][0].update(served=False),
            ["version v1alpha1 is not served"],
        ),
        (allow("None", "Hold", "HoldAndDrain", "More"), []),
        (change("cohort", maxLength=99), []),
    ],
)
def test_what_breaks_is_found_and_what_widens_is_not(
    edit: Callable[[Schema], Any], expected: list[str]
) -> None:
    old = definitions(CURRENT)[QUEUES]
    new = deepcopy(old)
    edit(new)
    assert list(breaks(old, new)) == expected


def test_a_new_field_breaks_nothing() -> None:
    old = definitions(CURRENT)[QUEUES]
    new = deepcopy(old)
    spec_of(new)["properties"]["more"] = {"type": "string"}
    assert list(breaks(old, new)) == []


def test_a_field_that_no_object_has_is_found() -> None:
    schema: Schema = {"properties": {"a": {"items": {"properties": {"b": {}, "c": {}}}}, "d": {}}}
    assert list(missing(schema, [{"a": [{"b": 1}]}])) == [".a[].c", ".d"]
