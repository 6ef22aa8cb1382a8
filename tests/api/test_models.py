"""What manifests must look like, and how it is said when they do not."""

from typing import Any

import pytest

from admitter.api.base import Resource, problems
from admitter.api.cluster_queue import ClusterQueue, LocalQueue
from admitter.api.cohort import Cohort
from admitter.api.kinds import KINDS
from admitter.api.resource_flavor import ResourceFlavor
from admitter.api.workload import Workload

Json = dict[str, Any]


def manifest(spec: Json, name: str = "name") -> Json:
    return {"metadata": {"name": name, "labels": {"any": "thing"}}, "spec": spec}


def resource(name: str, **flavors: Json) -> Json:
    return {"name": name, "flavors": [{"name": f.replace("_", "-"), "quota": q} for f, q in flavors.items()]}


def queue(*resources: Json, **spec: Any) -> Json:
    return manifest({"resources": list(resources), **spec})


def pod_set(**fields: Any) -> Json:
    return manifest({"queueName": "main", "podSets": [{"name": "main", "count": 1, **fields}]})


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (ResourceFlavor, manifest({})),
        (
            ResourceFlavor,
            manifest(
                {
                    "nodeLabels": {"instance-type": "spot", "example.com/zone": ""},
                    "nodeTaints": [{"key": "spot", "value": "true", "effect": "NoSchedule"}],
                    "tolerations": [{"key": "spot", "operator": "Exists"}],
                }
            ),
        ),
        (ClusterQueue, manifest({})),
        (
            ClusterQueue,
            queue(
                resource("cpu", spot={"min": 18}, on_demand={"min": 9, "max": "12"}),
                resource("memory", spot={"min": "72Gi"}, on_demand={"min": "36Gi"}),
                resource("nvidia.com/gpu", vendor1={"min": 10}, vendor2={"min": 0}),
                namespaceSelector={"matchExpressions": [{"key": "team", "operator": "In", "values": ["a"]}]},
            ),
        ),
        (ClusterQueue, queue(resource("cpu", a={"min": "1E"}))),
        (LocalQueue, manifest({"clusterQueue": "total", "stopPolicy": "HoldAndDrain"})),
        (Workload, pod_set(requests={"cpu": "100m", "nvidia.com/gpu": 1})),
    ],
    ids=[
        "empty flavor",
        "flavor",
        "empty queue",
        "the documents' queue",
        "1E is exa",
        "local queue",
        "workload",
    ],
)
def test_valid_manifests(kind: type[Resource], raw: Json) -> None:
    assert problems(kind, raw) == []


@pytest.mark.parametrize(
    ("kind", "raw", "field", "words"),
    [
        (
            ClusterQueue,
            queue(resource("cpu", a={"min": 9, "max": 3})),
            "spec.resources[0].flavors[0].quota",
            "max 3 is less than min 9",
        ),
        (
            ClusterQueue,
            queue(resource("cpu", a={"min": "-1"})),
            "spec.resources[0].flavors[0].quota.min",
            "'-1' is negative",
        ),
        (
            ClusterQueue,
            queue(resource("cpu", a={"min": 1}, b={"min": "1e400"})),
            "spec.resources[0].flavors[1].quota.min",
            "larger than 2^63-1",
        ),
        (
            ClusterQueue,
            queue(resource("cpu", a={"min": ""})),
            "spec.resources[0].flavors[0].quota.min",
            "empty",
        ),
        (
            ClusterQueue,
            queue(
                resource("cpu", a={"min": 1}, b={"min": 1}), resource("memory", b={"min": 1}, a={"min": 1})
            ),
            "spec",
            "cpu and memory share flavor a, so they must list the same flavors in the same order",
        ),
        (
            ClusterQueue,
            queue(resource("cpu", a={"min": 1}, b={"min": 1}), resource("memory", b={"min": 1})),
            "spec",
            "cpu and memory share flavor b",
        ),
        (
            ClusterQueue,
            queue({"name": "cpu", "flavors": [{"name": "a", "quota": {"min": 1}}] * 2}),
            "spec",
            "cpu lists a flavor twice",
        ),
        (
            ClusterQueue,
            queue(resource("cpu", a={"min": 1}), resource("cpu", b={"min": 1})),
            "spec",
            "a resource is listed twice",
        ),
        (ClusterQueue, queue(resource("cpu")), "spec.resources[0].flavors", "at least 1 item"),
        (
            ClusterQueue,
            queue(queueingStrategy="LIFO"),
            "spec.queueingStrategy",
            "'BestEffortFIFO' or 'StrictFIFO'",
        ),
        (ClusterQueue, queue(cohorts="all"), "spec.cohorts", "not permitted"),
        (Cohort, manifest({"parent": "Not A Name"}), "spec.parent", "match pattern"),
        (ClusterQueue, manifest({}, "x" * 253), "metadata.name", "at most 63 characters"),
        (LocalQueue, manifest({}), "spec.clusterQueue", "is missing"),
        (
            ClusterQueue,
            queue(fairSharing={"weight": 0.3}),
            "spec.fairSharing.weight",
            "must be a whole number, or a text in quotes",
        ),
        (
            ResourceFlavor,
            manifest({"nodeLabels": {"a b": "c"}}),
            "spec.nodeLabels.a b.[key]",
            "match pattern",
        ),
        (
            ResourceFlavor,
            manifest({"nodeTaints": [{"key": "a", "effect": "Never"}]}),
            "spec.nodeTaints[0].effect",
            "match pattern",
        ),
        (Workload, pod_set(count=-1), "spec.podSets[0].count", "greater than or equal to 0"),
        (
            Workload,
            pod_set(requests={"cpu": "lots"}),
            "spec.podSets[0].requests.cpu",
            "'lots' is not a quantity",
        ),
    ],
)
def test_problems_name_the_field_and_the_reason(
    kind: type[Resource], raw: Json, field: str, words: str
) -> None:
    (found,) = {problem.field: problem for problem in problems(kind, raw)}.values()
    assert found.field == field
    assert words in found.message


def test_every_kind_is_named_by_a_short_name_of_its_own() -> None:
    assert sorted(kind.short_name for kind in KINDS if kind.short_name) == [
        "ceq",
        "cq",
        "eq",
        "jk",
        "lq",
        "pp",
        "rf",
        "wl",
        "wpc",
    ]
