"""Elastic quotas, GPU memory and time spans: which manifests are taken, and what is said of the others."""

from typing import Any

import pytest

from admitter.api import crds
from admitter.api.base import Resource, problems
from admitter.api.cluster_queue import ClusterQueue
from admitter.api.cohort import Cohort
from admitter.api.elastic_quota import CompositeElasticQuota, ElasticQuota
from admitter.api.resource_flavor import ResourceFlavor
from admitter.api.workload import Workload
from admitter.names import GPU_MEMORY, GPU_MEMORY_ALIASES
from admitter.quantities.durations import parse_duration

Json = dict[str, Any]

(ALIAS,) = GPU_MEMORY_ALIASES
SAME = f"{GPU_MEMORY} and {ALIAS} are two names of the same resource: use one of them"


def manifest(spec: Json) -> Json:
    return {"metadata": {"name": "name", "namespace": "team-a"}, "spec": spec}


def said(kind: type[Resource], spec: Json) -> list[str]:
    return [str(problem) for problem in problems(kind, manifest(spec))]


def quotas(**by_resource: Json) -> Json:
    """Resources with one flavor each; `memory` and `alias` stand for GPU memory."""
    names = {"memory": GPU_MEMORY, "alias": ALIAS}
    return {
        "resources": [
            {"name": names.get(name, name), "flavors": [{"name": f"{name}-flavor", "quota": quota}]}
            for name, quota in by_resource.items()
        ]
    }


def spec_schema(kind: type[Resource]) -> Json:
    (version,) = crds.definition(kind)["spec"]["versions"]
    schema: Json = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
    return schema


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        (ElasticQuota, {}),
        (
            ElasticQuota,
            {
                "min": {"cpu": "500m", GPU_MEMORY: 40},
                "max": {"cpu": 4, GPU_MEMORY: "80", "pods": 10},
                "flavors": ["h100", "t4"],
                "manageAllJobs": True,
                "manageAllPods": True,
                "preemption": {"gracePeriod": "1h30m", "minRuntime": 30},
            },
        ),
        (ElasticQuota, {"min": {ALIAS: 40}, "max": {ALIAS: 40}}),
        (CompositeElasticQuota, {"namespaces": ["a", "b"], "max": {"cpu": 0}}),
        (ClusterQueue, quotas(memory={"min": 40, "max": "80", "lendingLimit": 0})),
        (ClusterQueue, {"preemption": {"gracePeriod": "5m", "minRuntime": "1.5h"}}),
        (Cohort, {"preemption": {"gracePeriod": "5m"}, **quotas(alias={"min": "40"})}),
        (ResourceFlavor, {"gpuMemoryGB": 80}),
    ],
    ids=["empty", "all fields", "the alias", "composite", "ClusterQueue", "terms", "Cohort", "flavor"],
)
def test_valid_manifests(kind: type[Resource], spec: Json) -> None:
    assert said(kind, spec) == []


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"min": {"cpu": 4}, "max": {"cpu": "3"}}, "spec.max.cpu: max 3 is less than min 4"),
        ({"min": {"cpu": "1Gi"}, "max": {"cpu": "1G"}}, "spec.max.cpu: max 1G is less than min 1Gi"),
        ({"min": {"cpu": "-1"}}, "spec.min.cpu: '-1' is negative"),
        ({"max": {"cpu": "lots"}}, "spec.max.cpu: 'lots' is not a quantity"),
        ({"max": {"cpu": 0.5}}, "spec.max.cpu: must be a whole number, or a text in quotes"),
        ({"flavors": ["a", "b", "a"]}, "spec.flavors: a is listed twice"),
        ({"manageAllJobs": "perhaps"}, 'spec.manageAllJobs: Input should be a valid boolean, not "perhaps"'),
        ({"limits": {}}, "spec.limits: Extra inputs are not permitted"),
        ({"min": {GPU_MEMORY: 40}, "max": {ALIAS: 80}}, f"spec: {SAME}"),
        (
            {"preemption": {"gracePeriod": "soon"}},
            "spec.preemption.gracePeriod: 'soon' is not a duration such as 30, 500ms, 90s or 1h30m",
        ),
        (
            {"preemption": {"minRuntime": -1}},
            "spec.preemption.minRuntime: '-1' is not a duration such as 30, 500ms, 90s or 1h30m",
        ),
    ],
)
def test_what_is_wrong_is_said_of_both_kinds(spec: Json, problem: str) -> None:
    (found,) = said(ElasticQuota, spec)
    assert found.startswith(problem)
    assert said(CompositeElasticQuota, spec | {"namespaces": ["a"]}) == [found]


def test_all_pods_are_managed_by_a_namespaces_own_quota_alone() -> None:
    spec = {"manageAllPods": "perhaps"}
    assert said(ElasticQuota, spec) == ['spec.manageAllPods: Input should be a valid boolean, not "perhaps"']
    composite = {"manageAllPods": True, "namespaces": ["a"]}
    assert said(CompositeElasticQuota, composite) == ["spec.manageAllPods: Extra inputs are not permitted"]


def test_every_wrong_limit_is_named() -> None:
    spec = {"min": {"cpu": 4, "pods": 2}, "max": {"cpu": 3, "pods": 1, "memory": 1}}
    assert said(ElasticQuota, spec) == [
        "spec.max.cpu: max 3 is less than min 4",
        "spec.max.pods: max 1 is less than min 2",
    ]


@pytest.mark.parametrize("name", [GPU_MEMORY, ALIAS])
@pytest.mark.parametrize("quantity", ["40Gi", "40G", "40e9", "0.5", "40.0", "1k", "500m"])
def test_gpu_memory_is_in_whole_gigabytes(name: str, quantity: str) -> None:
    why = f"{name} is in whole GB: write a number like 40, not {quantity}"
    assert said(ElasticQuota, {"min": {name: quantity}, "max": {name: 1}}) == [f"spec.min.{name}: {why}"]
    assert said(ElasticQuota, {"max": {name: quantity}}) == [f"spec.max.{name}: {why}"]
    for field in ("min", "max", "lendingLimit"):
        flavor = {"name": "a", "quota": {"min": 2, "max": 1, field: quantity}}
        resource = {"name": name, "flavors": [{"name": "b", "quota": {"min": 1}}, flavor]}
        for kind in (ClusterQueue, Cohort):
            assert said(kind, {"resources": [resource]}) == [
                f"spec.resources[0].flavors[1].quota.{field}: {why}"
            ]


def test_other_resources_have_suffixes() -> None:
    assert said(ElasticQuota, {"min": {"memory": "40Gi", "example.com/gpu-memory": "40Gi"}}) == []


def test_gpu_memory_by_two_names() -> None:
    spec = quotas(memory={"min": 1}, cpu={"min": 1}, alias={"min": 1})
    assert said(ClusterQueue, spec) == [f"spec: resources: {SAME}"]
    assert said(Cohort, spec) == [f"spec: resources: {SAME}"]


@pytest.mark.parametrize(
    ("namespaces", "problem"),
    [
        (None, "spec.namespaces: is missing"),
        ([], "spec.namespaces: List should have at least 1 item"),
        ([f"n{n}" for n in range(1025)], "spec.namespaces: List should have at most 1024 items"),
        (["a", "b", "b"], "spec.namespaces: b is listed twice"),
        (["a", "Not A Name"], "spec.namespaces[1]: String should match pattern"),
    ],
    ids=["none", "empty", "too many", "twice", "no name"],
)
def test_namespaces(namespaces: list[str] | None, problem: str) -> None:
    (found,) = said(CompositeElasticQuota, {} if namespaces is None else {"namespaces": namespaces})
    assert found.startswith(problem)


@pytest.mark.parametrize("field", ["min", "max"])
def test_a_quota_names_at_most_64_resources(field: str) -> None:
    (found,) = said(ElasticQuota, {field: {f"example.com/r{n}": 1 for n in range(65)}})
    assert found.startswith(f"spec.{field}: Dictionary should have at most 64 items")


@pytest.mark.parametrize("size", [0, -80, "much"])
def test_a_gpu_has_some_memory(size: int | str) -> None:
    (found,) = said(ResourceFlavor, {"gpuMemoryGB": size})
    assert found.startswith("spec.gpuMemoryGB: ")


@pytest.mark.parametrize(
    ("kind", "spec"), [(ClusterQueue, {}), (Cohort, {}), (CompositeElasticQuota, {"namespaces": ["a"]})]
)
@pytest.mark.parametrize("field", ["gracePeriod", "minRuntime"])
def test_time_spans_of_every_kind(kind: type[Resource], spec: Json, field: str) -> None:
    for value in (0, 90, "0", "30s", "5m", "1h30m", "500ms", "2d"):
        assert said(kind, spec | {"preemption": {field: value}}) == []
    wrong: list[Any] = ["", "5 minutes", "5M", "-5m", "1h30", "9999999999d", 1.5, {}]
    for value in wrong:
        assert said(kind, spec | {"preemption": {field: value}}) != [], value


def test_terms_that_are_absent() -> None:
    quota = ElasticQuota.model_validate(manifest({}))
    assert parse_duration(str(quota.spec.preemption.grace_period)) == 0
    assert Cohort.model_validate(manifest({})).spec.preemption.min_runtime is None


def test_a_workloads_status_has_names_that_no_object_has() -> None:
    admission = {
        "clusterQueue": "eq_team-a_quota",
        "pool": "elastic-quota",
        "podSets": [{"name": "main", "count": 1, "flavors": {"cpu": "any_node"}, "usage": {"cpu": "1"}}],
    }
    preemption = {"namespace": "a", "name": "b", "uid": "c", "admission": admission}
    status = {"admission": admission, "preemption": preemption | {"evictAt": "2026-01-01T00:00:00Z"}}
    spec = {"queueName": "elastic-quota", "podSets": [{"name": "main", "count": 1}]}
    read = Workload.model_validate(manifest(spec) | {"status": status})
    assert read.status is not None
    assert read.status.admission is not None
    assert read.status.admission.pool == "elastic-quota"


def test_no_queue_or_flavor_that_a_user_names_has_an_underscore() -> None:
    (found,) = said(ElasticQuota, {"flavors": ["any_node"]})
    assert found.startswith("spec.flavors[0]: String should match pattern")


@pytest.mark.parametrize("kind", [ElasticQuota, CompositeElasticQuota])
def test_the_definition(kind: type[Resource]) -> None:
    properties = spec_schema(kind)["properties"]
    assert properties["min"]["maxProperties"] == 64
    assert properties["max"]["additionalProperties"]["x-kubernetes-int-or-string"] is True
    assert (properties["flavors"]["maxItems"], properties["flavors"]["x-kubernetes-list-type"]) == (64, "set")
    assert properties["manageAllJobs"]["default"] is False
    period = properties["preemption"]["properties"]["gracePeriod"]
    assert period["x-kubernetes-int-or-string"] is True
    assert (period["default"], period["minimum"], period["maxLength"]) == (0, 0, 40)
    names = crds.definition(kind)["spec"]
    assert names["scope"] == "Namespaced"
    (version,) = names["versions"]
    columns = [column["name"] for column in version["additionalPrinterColumns"] if "priority" not in column]
    assert columns[-6:] == ["Used", "Min", "Max", "Active", "Reason", "Age"]


def test_the_definition_of_what_only_some_have() -> None:
    composite = spec_schema(CompositeElasticQuota)
    namespaces = composite["properties"]["namespaces"]
    assert composite["required"] == ["namespaces"]
    assert (namespaces["minItems"], namespaces["maxItems"]) == (1, 1024)
    assert namespaces["x-kubernetes-list-type"] == "set"
    assert spec_schema(ResourceFlavor)["properties"]["gpuMemoryGB"]["minimum"] == 1
    assert "default" not in spec_schema(Cohort)["properties"]["preemption"]["properties"]["gracePeriod"]
