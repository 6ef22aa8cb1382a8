"""Objects that are as large, as deep and as odd as the API server takes them: they harm no other object."""

import json
from typing import Any

import pytest

from admitter.sandbox.cluster import KubectlError
from tests.cluster.abuse import Attacker
from tests.cluster.objects import Json, job
from tests.cluster.team import Team
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

MEGABYTE = 10**6
DEEP = "[" * 100_000
ODD = "\u202e\u0000\ufeff\U0001f4a3 'quoted\" \\ {{.}} $(x) \x1b[31m"
WIDEST = "w" * 63


def changed(manifest: Json, path: str, value: Any) -> Json:
    """A Job with a value put at a path of its keys."""
    *before, last = path.split("/")
    place = manifest
    for key in before:
        place = place.setdefault(key, {}) if isinstance(place, dict) else place[int(key)]
    place[last] = value
    return manifest


def tolerations(number: int) -> list[Json]:
    return [{"key": f"{'k' * 50}-{i}", "operator": "Exists", "effect": "NoSchedule"} for i in range(number)]


def terms(number: int) -> Json:
    """A node affinity with that many terms, each of which matches nothing."""
    values = [f"{'v' * 50}-{i}" for i in range(100)]
    expressions = [{"key": "instance-type", "operator": "In", "values": values}]
    required = {"nodeSelectorTerms": [{"matchExpressions": expressions}] * number}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


POD = "spec/template/spec"
ANNOTATIONS = "metadata/annotations"
POISON: dict[str, tuple[str, Any]] = {
    "large-arguments": (f"{POD}/containers/0/args", ["a" * MEGABYTE]),
    "many-tolerations": (f"{POD}/tolerations", tolerations(6_000)),
    "large-affinity": (f"{POD}/affinity", terms(150)),
    "deep-record": (ANNOTATIONS, {"admitter.dev/injected": DEEP}),
    "spoilt-record": (ANNOTATIONS, {"admitter.dev/injected": '{"nodeSelector": [], "tolerations": 1}'}),
    "nulls-in-record": (
        ANNOTATIONS,
        {"admitter.dev/injected": '{"nodeSelector": {"a": null}, "tolerations": [null]}'},
    ),
    "odd-record": (ANNOTATIONS, {"admitter.dev/injected": ODD, "admitter.dev/placed-in": ODD}),
    "deep-user": (ANNOTATIONS, {"yunikorn.apache.org/user.info": DEEP}),
    "odd-user": (ANNOTATIONS, {"yunikorn.apache.org/user.info": json.dumps({"user": ODD, "groups": [ODD]})}),
    "odd-template": (
        "spec/template/metadata/annotations",
        {"example.com/deep": DEEP, "example.com/odd": ODD},
    ),
    "full-annotations": (ANNOTATIONS, {"example.com/large": "x" * 250_000}),
    "long-label": ("metadata/labels", {"admitter.dev/queue-name": WIDEST}),
    "x" * 63: ("spec/backoffLimit", 0),
}
REFUSED = {
    "counted": {"admitter.dev/counted": DEEP},
    "flavors": {"admitter.dev/flavors": ODD},
}
"""Annotations of a pod template that no user may write."""


def test_poisoned_jobs_harm_no_other(team: Team, attacker: Attacker) -> None:
    team.offers({"cpu": {"on-demand": "40"}})
    for name, (path, value) in POISON.items():
        attacker.create(changed(job(team.namespace, name, seconds=None), path, value))
    attacker.create(job(team.namespace, "sound"))
    attacker.undone(lambda: team.state("sound") == "Finished", "a sound Job beside poisoned ones")
    for name, annotations in REFUSED.items():
        forged = changed(job(team.namespace, name), "spec/template/metadata/annotations", annotations)
        with attacker.refused("put into pod templates"):
            attacker.create(forged)
    for name in POISON:
        attacker.kubectl("delete", "job", name)
    attacker.undone(lambda: set(team.workloads()) <= {"sound"}, "deleted Jobs and their Workloads")
    # Its admission says it: whether nodes have room for its pods depends on other tests.
    attacker.create(job(team.namespace, "whole", pods=4, requests={"cpu": "10"}))
    attacker.undone(
        lambda: "admission" in team.workload("whole").get("status", {}), "all quota is free again"
    )


def test_a_job_that_can_not_be_started_gives_its_quota_back(team: Team, attacker: Attacker) -> None:
    """A policy of another administrator keeps it suspended; the Job behind it runs."""
    team.offers({"cpu": {"on-demand": "1"}})
    team.apply(*keeping_suspended(team))
    probe = job(team.namespace, "probe", queue=None)
    attacker.create(probe)
    eventually(lambda: refuses_the_start_of(attacker, "probe"), what="API server that knows the policy")
    kept = job(team.namespace, "kept", seconds=None)
    attacker.create(changed(kept, ANNOTATIONS, {"example.com/keep": "yes"}))
    attacker.undone(lambda: team.reason("kept") == "NotStarted", "quota that is not used")
    told = team.condition("kept", "Evicted")
    assert (told["reason"], "kept by another policy" in told["message"]) == ("NotStarted", True)
    eventually(lambda: "admission" not in team.workload("kept")["status"], what="the quota to be free")
    attacker.create(job(team.namespace, "sound"))
    attacker.undone(lambda: team.state("sound") == "Finished", "a sound Job behind one that can't be started")
    attacker.patch("job", "kept", {"metadata": {"annotations": {"example.com/keep": None}}})
    team.runs("kept")


def keeping_suspended(team: Team) -> tuple[Json, Json]:
    """A policy of another administrator: Jobs with an annotation, and those called probe, don't start."""
    kind = {"apiVersion": "admissionregistration.k8s.io/v1"}
    name = {"name": f"{team.namespace}-keeps"}
    rule = {"apiGroups": ["batch"], "apiVersions": ["v1"], "resources": ["jobs"], "operations": ["UPDATE"]}
    kept = "object.metadata.name == 'probe' || object.metadata.?annotations[?'example.com/keep'].hasValue()"
    policy = {
        "matchConstraints": {
            "resourceRules": [rule],
            "namespaceSelector": {"matchLabels": {"team": team.namespace}},
        },
        "validations": [
            {"expression": f"object.spec.suspend || !({kept})", "message": "kept by another policy"}
        ],
    }
    binding = {"policyName": name["name"], "validationActions": ["Deny"]}
    return (
        {**kind, "kind": "ValidatingAdmissionPolicy", "metadata": name, "spec": policy},
        {**kind, "kind": "ValidatingAdmissionPolicyBinding", "metadata": name, "spec": binding},
    )


def refuses_the_start_of(attacker: Attacker, name: str) -> bool:
    try:
        attacker.patch("job", name, {"spec": {"suspend": False}}, "--dry-run=server")
    except KubectlError:
        return True
    return False
