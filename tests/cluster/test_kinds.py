"""The API server evaluates the expressions of the shipped kinds to the same values as the library does."""

import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from admitter.kinds.compiled import Around, CompiledKind
from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.objects import Json
from tests.cluster.waiting import eventually
from tests.kinds.described import example, kind_of, pod_sets, related

pytestmark = pytest.mark.cluster

GROUP = f"kinds-{uuid4().hex[:6]}.example.com"  # each worker has a kind of its own
API, ALL = "admissionregistration.k8s.io/v1", {"x-kubernetes-preserve-unknown-fields": True}
KINDS = (
    *("JobSet", "TrainJob", "PyTorchJob", "TFJob", "XGBoostJob", "MPIJob"),
    *("RayCluster", "RayJob", "AppWrapper", "SparkApplication"),
)
STATUS: Json = {
    "active": 1,
    "conditions": [
        {"type": kind, "status": "True", "message": "m"}
        for kind in (
            "Complete",
            "Completed",
            "Succeeded",
            "Failed",
            "Running",
            "ResourcesDeployed",
            "PodsReady",
        )
    ],
    "replicatedJobsStatus": [{"name": "a", "active": 1, "ready": 1}],
    "jobsStatus": [{"name": "a", "active": 1, "ready": 0}],
    "replicaStatuses": {"Worker": {"active": 1}},
    "state": "ready",
    "jobDeploymentStatus": "Complete",
    "jobStatus": "FAILED",
    "message": "no",
    "phase": "Failed",
    "applicationState": {"state": "FAILED", "errorMessage": "lost"},
}
AROUND = ("item", "key", "index", "runtime", "variables")


@pytest.fixture(scope="module")
def probes(control_plane: Cluster) -> Iterator[Cluster]:
    """A cluster with a kind of objects that may have any fields."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", **ALL}},
    }
    names = {"kind": "Probe", "plural": "probes"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"probes.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Cluster", "versions": [version]},
    }
    control_plane.run_kubectl("apply", "-f-", content=json.dumps(definition))
    control_plane.await_definitions(f"probes.{GROUP}")
    yield control_plane
    policies = "validatingadmissionpolicybindings,validatingadmissionpolicies"
    control_plane.run_kubectl("delete", policies, f"--selector={GROUP}=probe")
    control_plane.run_kubectl("delete", "crd", f"probes.{GROUP}", "--wait=false")


def evaluations(manifest: Json, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, Json, Any]]:
    """Each expression that counting an object evaluates: field, source, variables and value."""
    found: list[tuple[str, str, Json, Any]] = []
    given, outer = CompiledKind.given, kind_of(manifest)

    def noted(kind: CompiledKind, field: str, around: Around) -> Any:
        value = given(kind, field, around)
        if kind is outer and value is not None:  # an object in another one is not the object of the policy
            found.append((field, kind._expressions[field]._program.source, dict(around.variables), value))
        return value

    with monkeypatch.context() as patched:
        patched.setattr(CompiledKind, "given", noted)
        outer.priority_class(manifest, pod_sets(manifest), related)
        outer.state(manifest)
    return found


def bound(source: str, number: int) -> str:
    """An expression about the probe that holds if the source gives what the case of that number expects."""
    made = f"({source}) == object.cases[{number}].expected"
    for name in AROUND:
        if re.search(rf"(?<![.\w]){name}\b", source):
            made = f"[object.cases[{number}].{name}].all({name}, {made})"
    return made


def policy(name: str, cases: list[tuple[str, str, Json, Any]]) -> list[Json]:
    validations = [
        {"expression": bound(source, number), "message": field}
        for number, (field, source, _, _) in enumerate(cases)
    ]
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": ["v1"],
        "resources": ["probes"],
        "operations": ["CREATE"],
        "resourceNames": [name],
    }
    canary = {"expression": "!has(object.canary)", "message": "the policy is at work"}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [canary, *validations],
    }
    binding = {"policyName": name, "validationActions": ["Deny"]}
    metadata = {"name": name, "labels": {GROUP: "probe"}}
    return [
        {"apiVersion": API, "kind": f"ValidatingAdmissionPolicy{kind}", "metadata": metadata, "spec": each}
        for kind, each in (("", spec), ("Binding", binding))
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("status", [None, STATUS], ids=["new", "with a status"])
def test_the_api_server_gives_the_same_values(
    probes: Cluster, monkeypatch: pytest.MonkeyPatch, kind: str, status: Json | None
) -> None:
    manifest = example(kind) | ({"status": status} if status is not None else {})
    cases = evaluations(manifest, monkeypatch)
    assert len(cases) > 3
    name = f"{kind.lower()}-{'new' if status is None else 'old'}"
    content = json.dumps({"apiVersion": "v1", "kind": "List", "items": policy(name, cases)})
    probes.run_kubectl("apply", "-f-", content=content)
    probe: Json = {
        **{field: manifest[field] for field in ("spec", "status") if field in manifest},
        "apiVersion": f"{GROUP}/v1",
        "kind": "Probe",
        "metadata": {"name": name},
        "cases": [
            {"expected": value, **{key: around[key] for key in AROUND if key in around}}
            for _, _, around, value in cases
        ],
    }

    def is_at_work() -> bool:
        return "the policy is at work" in answer(probes, probe | {"canary": True})

    eventually(is_at_work, what="the policy")
    assert answer(probes, probe) == ""


def answer(cluster: Cluster, manifest: Json) -> str:
    """Why the API server would refuse an object; empty if it would not."""
    try:
        cluster.run_kubectl("create", "--dry-run=server", "-f-", content=json.dumps(manifest))
    except KubectlError as error:
        return str(error)
    return ""
