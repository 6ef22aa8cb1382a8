"""What the API server refuses, and in which words. docs/bad-input.md shows the same rows."""

import json
from typing import Any

import pytest

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.objects import ADMITTER, Json, cluster_queue

pytestmark = pytest.mark.cluster


def refused(cluster: Cluster, manifest: Json) -> str:
    """Why the API server does not take a manifest."""
    with pytest.raises(KubectlError) as caught:
        cluster.run_kubectl("create", "--dry-run=server", "--filename=-", content=json.dumps(manifest))
    return str(caught.value)


def quota(minimum: Any, **more: Any) -> Json:
    """A ClusterQueue with one quota."""
    manifest = cluster_queue("tried", {"cpu": {"default": "0"}})
    manifest["spec"]["resources"][0]["flavors"][0]["quota"] = {"min": minimum, **more}
    return manifest


BY_SHARE: Json = {"policy": "GuaranteedShare"}
MIN = "spec.resources[0].flavors[0].quota.min"


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (
            cluster_queue("tried", {"cpu": {"a": "1", "b": "1"}, "memory": {"b": "1", "a": "1"}}),
            ["resources cpu and memory share flavor a, so they must list the same flavors in the same order"],
        ),
        (
            cluster_queue("tried", {"cpu": {"a": "1", "b": "1"}, "memory": {"b": "1"}}),
            ["resources cpu and memory share flavor b"],
        ),
        (quota("9", max="3"), ["resource cpu, flavor default: quota.max 3 is less than quota.min 9"]),
        (quota("1Gi", max="1G"), ["quota.max 1G is less than quota.min 1Gi"]),
        (quota(9, max=3), ["quota.max 3 is less than quota.min 9"]),
        (quota(-1), [MIN, "greater than or equal to 0"]),
        (quota("-1"), [MIN, '"-1"', "should match"]),
        (quota("1e400"), [MIN, '"1e400"', "should match"]),
        (quota(""), [MIN, "should match"]),
        (quota("lots"), [MIN, '"lots"', "should match"]),
        (quota("1", least="1"), ['unknown field "spec.resources[0].flavors[0].quota.least"']),
        (cluster_queue("tried", {}, queueingStrategy="LIFO"), ["spec.queueingStrategy", "BestEffortFIFO"]),
        (cluster_queue("x" * 253, {}), ["metadata.name", "at most 63 characters"]),
        (
            cluster_queue("tried", {}, fairSharing={"weight": "-1"}),
            ["spec.fairSharing.weight", '"-1"', "should match"],
        ),
        (
            cluster_queue(
                "tried", {}, preemption={"borrowWithinCohort": BY_SHARE | {"maxPriorityThreshold": 3}}
            ),
            ["maxPriorityThreshold means nothing with GuaranteedShare"],
        ),
        (
            {
                "apiVersion": ADMITTER,
                "kind": "ResourceFlavor",
                "metadata": {"name": "tried"},
                "spec": {"nodeTaints": [{"key": "a", "effect": "Never"}]},
            },
            ["spec.nodeTaints[0].effect", '"Never"'],
        ),
    ],
    ids=[
        "flavors in different order",
        "flavors in part the same",
        "max under min",
        "max under min by its unit",
        "max under min as numbers",
        "a negative number",
        "a negative text",
        "an absurd exponent",
        "empty",
        "a word",
        "an unknown field",
        "an unknown strategy",
        "a name of 253 characters",
        "a negative weight",
        "a threshold of priority where it is ignored",
        "an unknown taint effect",
    ],
)
def test_refused(installed: Cluster, manifest: Json, words: list[str]) -> None:
    answer = refused(installed, manifest)
    for word in words:
        assert word in answer


def test_a_flavor_listed_twice(installed: Cluster) -> None:
    manifest = quota("1")
    manifest["spec"]["resources"][0]["flavors"] *= 2
    assert 'spec.resources[0].flavors[1]: Duplicate value: {"name":"default"}' in refused(installed, manifest)


def test_a_resource_listed_twice(installed: Cluster) -> None:
    manifest = quota("1")
    manifest["spec"]["resources"] *= 2
    assert 'spec.resources[1]: Duplicate value: {"name":"cpu"}' in refused(installed, manifest)


@pytest.mark.parametrize("quantity", ["1E", "0", 7, "1.5", "250m", "1e3", "2Ei"])
def test_quantities_that_kubernetes_has_are_taken(installed: Cluster, quantity: str | int) -> None:
    content = json.dumps(quota(quantity, max=quantity))
    assert "tried" in installed.run_kubectl("create", "--dry-run=server", "-f-", content=content)


def test_a_queue_that_breaks_a_rule_is_refused_on_update_too(installed: Cluster, namespace: str) -> None:
    installed.run_kubectl("create", "-f-", content=json.dumps(cluster_queue(namespace, {"cpu": {"a": "1"}})))
    broken = cluster_queue(namespace, {"cpu": {"a": "1", "b": "1"}, "memory": {"b": "1", "a": "1"}})
    with pytest.raises(KubectlError, match="share flavor a"):
        installed.run_kubectl("patch", "cq", namespace, "--type=merge", f"--patch={json.dumps(broken)}")
    installed.run_kubectl("delete", "cq", namespace)


@pytest.mark.parametrize(
    "spec",
    [
        None,
        {},
        {"fairSharing": {"enabled": True, "weight": 2}},
        {"fairSharing": {"weight": "500m"}},
    ],
    ids=["no spec", "empty", "a number", "a text"],
)
def test_cohorts_that_are_taken(installed: Cluster, spec: Json | None) -> None:
    manifest: Json = {"apiVersion": ADMITTER, "kind": "Cohort", "metadata": {"name": "tried"}}
    content = json.dumps(manifest if spec is None else manifest | {"spec": spec})
    assert "tried" in installed.run_kubectl("create", "--dry-run=server", "-f-", content=content)


def test_a_threshold_of_priority_is_taken_where_it_counts(installed: Cluster) -> None:
    borrowing = {"policy": "LowerPriority", "maxPriorityThreshold": 3}
    content = json.dumps(cluster_queue("tried", {}, preemption={"borrowWithinCohort": borrowing}))
    assert "tried" in installed.run_kubectl("create", "--dry-run=server", "-f-", content=content)
