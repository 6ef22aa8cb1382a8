"""Namespaces that bring their own quota: their annotations, and what may be wrong (docs/namespaces.md)."""

import json

import pytest

from admitter.api.base import problems
from admitter.api.cluster_queue import ClusterQueue, LocalQueue
from admitter.api.conditions import ActiveReason
from admitter.quotas.namespaces import (
    AnnotationError,
    Json,
    cluster_queue,
    cohort_name,
    held,
    local_queue,
)

QUOTA = "admitter.dev/namespace.quota"
PARENT = "admitter.dev/parent-queue"
YUNIKORN_QUOTA = "yunikorn.apache.org/namespace.quota"
YUNIKORN_PARENT = "yunikorn.apache.org/parentqueue"
MAX_CPU = "yunikorn.apache.org/namespace.max.cpu"
MAX_MEMORY = "yunikorn.apache.org/namespace.max.memory"

GPU_MEMORY = ("admitter.dev/gpu-memory", "nos.nebuly.com/gpu-memory")


def asked(annotations: dict[str, str]) -> Json | None:
    """The spec that namespace `finance` asks for where there is one Cohort, `production`."""
    return cluster_queue("finance", annotations, lambda cohort: cohort == "production")


@pytest.mark.parametrize(
    ("annotations", "cohort", "limits"),
    [
        pytest.param(
            {YUNIKORN_QUOTA: '{"cpu": "64", "memory": "100G", "nvidia.com/gpu": "1"}'},
            "root",
            {"cpu": "64", "memory": "100G", "nvidia.com/gpu": "1"},
            id="Namespace quota: 64 CPUs, 100GB memory and 1 nvidia.com/gpu",
        ),
        pytest.param(
            {MAX_CPU: "64", MAX_MEMORY: "100Gi"},
            "root",
            {"cpu": "64", "memory": "100Gi"},
            id="Namespace quota: the deprecated annotations",
        ),
        pytest.param(
            {YUNIKORN_PARENT: "root.production"},
            "production",
            None,
            id="Namespace parent queue: no quota, so no limits",
        ),
        pytest.param({YUNIKORN_PARENT: "production"}, "production", None, id="root. can be omitted"),
        pytest.param({PARENT: "root"}, "root", None, id="the root need not be there"),
        pytest.param({PARENT: "root.root"}, "root", None, id="the root by its full name"),
        pytest.param(
            {QUOTA: '{"cpu": "1"}', YUNIKORN_QUOTA: '{"cpu": "2"}', MAX_CPU: "3"},
            "root",
            {"cpu": "1"},
            id="ours before yunikorn's",
        ),
        pytest.param(
            {YUNIKORN_QUOTA: '{"cpu": "2"}', MAX_CPU: "3", MAX_MEMORY: "4"},
            "root",
            {"cpu": "2"},
            id="the present annotation before the deprecated ones",
        ),
        pytest.param(
            {PARENT: "production", YUNIKORN_PARENT: "research"},
            "production",
            None,
            id="of parents too ours comes first, and what it hides is not looked at",
        ),
        pytest.param({QUOTA: "{}"}, "root", None, id="an empty quota limits nothing"),
        pytest.param(
            {QUOTA: '{"cpu": 64, "memory": 1.5e9, "example.com/licence": "0"}'},
            "root",
            {"cpu": "64", "memory": "1.5e9", "example.com/licence": "0"},
            id="numbers are texts in the same words",
        ),
        pytest.param(
            {QUOTA: '{"ephemeral-storage": "1Ti", "hugepages-1Gi": "4Gi"}'},
            "root",
            {"ephemeral-storage": "1Ti", "hugepages-1Gi": "4Gi"},
            id="what pods can request without a domain",
        ),
        pytest.param({QUOTA: '{"pods": 10}'}, "root", {"pods": "10"}, id="a number of pods"),
        pytest.param(
            {QUOTA: '{"nos.nebuly.com/gpu-memory": 40}'},
            "root",
            {"nos.nebuly.com/gpu-memory": "40"},
            id="memory of GPUs in whole GB",
        ),
    ],
)
def test_annotations_ask_for(annotations: dict[str, str], cohort: str, limits: Json | None) -> None:
    spec = asked(annotations)
    assert spec is not None
    assert (spec["cohort"], spec.get("limits")) == (cohort, limits)
    assert spec["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "finance"}}
    assert "resources" not in spec
    assert problems(ClusterQueue, {"metadata": {"name": "finance"}, "spec": spec}) == []


@pytest.mark.parametrize(
    "annotations",
    [{}, {"admitter.dev/user": "ada"}, {"yunikorn.apache.org/namespace.max.gpu": "1"}],
    ids=["none", "another one", "none that is known"],
)
def test_other_annotations_ask_for_nothing(annotations: dict[str, str]) -> None:
    assert asked(annotations) is None


def test_equal_quotas_give_equal_bytes_whatever_their_order() -> None:
    one = asked({QUOTA: '{"memory": "1Gi", "cpu": 2}', PARENT: "root.production"})
    other = asked({PARENT: "production", QUOTA: ' {"cpu":"2","memory":"1Gi"} '})
    assert json.dumps(one) == json.dumps(other)


def test_the_specs_are_valid_and_say_their_defaults() -> None:
    """The API server would fill them in: what it has stored is then what was asked for."""
    for spec in (asked({QUOTA: '{"cpu": 1}'}), held("finance")):
        assert spec is not None
        model = ClusterQueue.model_validate({"metadata": {"name": "finance"}, "spec": spec})
        assert {"queueingStrategy", "namespaceOrdering", "stopPolicy"} <= spec.keys()
        assert model.spec.model_dump(mode="json", by_alias=True, exclude_unset=True) == spec
    assert held("finance")["stopPolicy"] == "Hold"
    leads = {"metadata": {"name": "finance"}, "spec": local_queue("finance")}
    assert problems(LocalQueue, leads) == []
    assert leads["spec"] == {"clusterQueue": "finance", "stopPolicy": "None"}


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        pytest.param(
            {QUOTA: '{"cpu": "64"'},
            f"{QUOTA}: is no JSON: Expecting ',' delimiter at character 13",
            id="bad JSON",
        ),
        pytest.param({QUOTA: ""}, f"{QUOTA}: is no JSON: Expecting value at character 1", id="nothing"),
        pytest.param({QUOTA: "[" * 100_000}, f"{QUOTA}: is no JSON of quantities by resource", id="depth"),
        pytest.param(
            {YUNIKORN_QUOTA: '[["cpu", "1"]]'},
            f'{YUNIKORN_QUOTA}: is no JSON object of quantities by resource, such as {{"cpu": "64"}}',
            id="a list, by the name that was used",
        ),
        pytest.param({QUOTA: '{"cpu": "many"}'}, f"{QUOTA}: cpu: 'many' is not a quantity", id="a word"),
        pytest.param(
            {QUOTA: '{"cpu": null}'}, f"{QUOTA}: cpu: is no quantity, such as 64, 500m or 100G", id="null"
        ),
        pytest.param(
            {QUOTA: '{"cpu": {"max": 1}}'},
            f"{QUOTA}: cpu: is no quantity, such as 64, 500m or 100G",
            id="an object",
        ),
        pytest.param({QUOTA: '{"cpu": NaN}'}, f"{QUOTA}: cpu: 'NaN' is not a quantity", id="NaN"),
        pytest.param({QUOTA: '{"cpu": ""}'}, f"{QUOTA}: cpu: a quantity is empty", id="an empty text"),
        pytest.param({QUOTA: '{"memory": "-1"}'}, f"{QUOTA}: memory: '-1' is negative", id="negative"),
        pytest.param({QUOTA: '{"memory": -1}'}, f"{QUOTA}: memory: '-1' is negative", id="negative number"),
        pytest.param({MAX_CPU: "-1"}, f"{MAX_CPU}: '-1' is negative", id="negative, deprecated"),
        pytest.param(
            {MAX_MEMORY: "100 Gi"}, f"{MAX_MEMORY}: '100 Gi' is not a quantity", id="a space, deprecated"
        ),
        pytest.param(
            {QUOTA: '{"memory": "16Ei"}'},
            f"{QUOTA}: memory: '16Ei' is larger than 2^63-1, the most Kubernetes represents",
            id="too much",
        ),
        pytest.param(
            {QUOTA: '{"cpu": "0.12345678901"}'},
            f"{QUOTA}: cpu: '0.12345678901' has more digits than a limit can have",
            id="more digits than the API server takes",
        ),
        pytest.param(
            {QUOTA: '{"vcore": "1"}'},
            f"{QUOTA}: 'vcore' is no resource that a pod can use: cpu, memory, ephemeral-storage, "
            "hugepages-..., pods or a name with a domain",
            id="a name that no resource has",
        ),
        pytest.param(
            {QUOTA: '{"nvidia.com/": "1"}'},
            f"{QUOTA}: 'nvidia.com/' is no resource that a pod can use: cpu, memory, ephemeral-storage, "
            "hugepages-..., pods or a name with a domain",
            id="half a name",
        ),
        pytest.param({QUOTA: '{"cpu": 1, "cpu": 2}'}, f"{QUOTA}: cpu is there twice", id="twice"),
        pytest.param(
            {QUOTA: json.dumps(dict.fromkeys(GPU_MEMORY, 1))},
            f"{QUOTA}: {' and '.join(GPU_MEMORY)} are two names of the same resource: use one of them",
            id="two names of one resource",
        ),
        pytest.param(
            {QUOTA: '{"admitter.dev/gpu-memory": "40Gi"}'},
            f"{QUOTA}: admitter.dev/gpu-memory: is in whole GB: write a number like 40, not 40Gi",
            id="memory of GPUs in parts",
        ),
        pytest.param(
            {QUOTA: json.dumps({f"example.com/r{number}": 1 for number in range(65)})},
            f"{QUOTA}: limits 65 resources, more than 64",
            id="more than a queue can limit",
        ),
        pytest.param({PARENT: ""}, f"{PARENT}: '' can't be the name of a Cohort", id="no parent's name"),
        pytest.param(
            {YUNIKORN_PARENT: "root.Production"},
            f"{YUNIKORN_PARENT}: 'root.Production' can't be the name of a Cohort",
            id="a name that no object can have",
        ),
    ],
)
def test_what_is_wrong_is_named_with_annotation_resource_and_reason(
    annotations: dict[str, str], message: str
) -> None:
    with pytest.raises(AnnotationError) as refused:
        asked(annotations)
    assert str(refused.value) == f"annotation {message}"
    assert refused.value.reason is ActiveReason.INVALID_ANNOTATION


def test_a_parent_that_does_not_exist() -> None:
    with pytest.raises(AnnotationError, match="parent-queue: Cohort research does not exist") as refused:
        asked({PARENT: "root.research", QUOTA: '{"cpu": 1}'})
    assert refused.value.reason is ActiveReason.PARENT_NOT_FOUND


def test_only_the_first_root_says_nothing() -> None:
    assert [cohort_name(path) for path in ("a", "root.a", "root.root.a", "rooted")] == [
        *("a", "a", "root.a", "rooted")
    ]
