"""JobKinds and objects for tests."""

import copy
from functools import cache
from pathlib import Path
from typing import Any

from admitter.documents import documents
from admitter.kinds.compiled import CompiledKind, FoundPodSet
from admitter.kinds.registry import Kinds

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples" / "kinds"


@cache
def shipped() -> Kinds:
    return Kinds([each for _, each in documents([str(ROOT / "manifests" / "kinds")])], {})


def kind_of(manifest: Json) -> CompiledKind:
    found = shipped().find(manifest["apiVersion"], manifest["kind"])
    assert found is not None, shipped().defects
    return found


@cache
def _read(file: str) -> list[Json]:
    return [each for _, each in documents([str(EXAMPLES / f"{file}.yaml")])]


def example(kind: str, file: str = "") -> Json:
    """The first object of a kind in the examples of the pages."""
    return copy.deepcopy(next(each for each in _read(file or kind.lower()) if each["kind"] == kind))


def related(_version: str, kind: str, name: str) -> Json | None:
    """The runtimes in the examples."""
    made = example("ClusterTrainingRuntime", "trainjob")
    return made if (kind, name) == (made["kind"], made["metadata"]["name"]) else None


def pod_sets(manifest: Json) -> list[FoundPodSet]:
    return kind_of(manifest).pod_sets(manifest, related, shipped().embedded)


def counts(manifest: Json) -> dict[str, int]:
    return {each.name: each.count for each in pod_sets(manifest)}


def experiment(**changed: Any) -> Json:
    """A JobKind of one's own: two pod templates."""
    spec: Json = {
        "resource": {
            "group": "lab.example.com",
            "version": "v1",
            "kind": "Experiment",
            "plural": "experiments",
        },
        "suspend": {"path": "spec.paused"},
        "podSets": [
            {"name": "control", "template": "spec.control"},
            {
                "name": "probes",
                "template": "spec.probe.template",
                "count": "object.spec.probe.copies",
            },
        ],
        "active": "has(object.status) && object.status.pods > 0",
        "finished": {"succeeded": "has(object.status) && object.status.phase == 'Done'", "failed": "false"},
    }
    return {
        "apiVersion": "admitter.dev/v1alpha1",
        "kind": "JobKind",
        "metadata": {"name": "experiment"},
        "spec": spec | changed,
    }


def template(cpu: str = "1") -> Json:
    return {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}


def trial(name: str = "trial", copies: object = 2) -> Json:
    """An object of that kind."""
    return {
        "apiVersion": "lab.example.com/v1",
        "kind": "Experiment",
        "metadata": {"name": name, "namespace": "team", "labels": {"admitter.dev/queue-name": "main"}},
        "spec": {"control": template(), "probe": {"copies": copies, "template": template("2")}},
    }


def definition() -> Json:
    """The CustomResourceDefinition of that kind."""
    anything: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    probe: Json = {"type": "object", "properties": {"copies": {"type": "integer"}, "template": anything}}
    status: Json = {"pods": {"type": "integer"}, "phase": {"type": "string"}}
    spec: Json = {"paused": {"type": "boolean"}, "control": anything, "probe": probe}
    schema: Json = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "properties": status},
        },
    }
    scale = {"specReplicasPath": ".spec.probe.copies", "statusReplicasPath": ".status.pods"}
    version: Json = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}, "scale": scale},
        "schema": {"openAPIV3Schema": schema},
    }
    names = {"kind": "Experiment", "plural": "experiments"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "experiments.lab.example.com"},
        "spec": {"group": "lab.example.com", "names": names, "scope": "Namespaced", "versions": [version]},
    }
