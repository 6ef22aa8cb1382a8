"""Which kinds of hardware nodes are, and what of it is for Jobs."""

from typing import Any

import pytest

from admitter.engine.model import Taint
from admitter.insight.hardware import hardware, system_use
from tests.cluster.objects import Json

TYPE = "node.kubernetes.io/instance-type"
PRODUCT = "nvidia.com/gpu.product"
GPU = "nvidia.com/gpu"


def node(name: str, labels: dict[str, str], *taints: str, ready: bool = True, **has: str) -> Json:
    """A node with taints of the effect NoSchedule."""
    return {
        "metadata": {"name": name, "labels": labels | {"kubernetes.io/hostname": name}},
        "spec": {"taints": [{"key": key, "effect": "NoSchedule"} for key in taints]},
        "status": {
            "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110", **has},
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


def gpu_node(name: str, labels: dict[str, str], *taints: str, gpus: str = "8") -> Json:
    return node(name, labels, *taints) | {
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", GPU: gpus, "hugepages-1Gi": "0"}}
    }


def pod(node_name: str, owner: str = "", namespace: str = "kube-system", cpu: str = "1", **more: Any) -> Json:
    owners = [{"kind": owner, "name": "its", "uid": "1"}] if owner else []
    requests = {"resources": {"requests": {"cpu": cpu}}}
    return {
        "metadata": {"name": "p", "namespace": namespace, "ownerReferences": owners},
        "spec": {"nodeName": node_name, "containers": [requests]},
        **more,
    }


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([node("a", {}), node("b", {})], {"default": {}}, id="nothing-tells-them-apart"),
        pytest.param(
            [
                node("a", {TYPE: "M5.large", "beta.kubernetes.io/instance-type": "M5.large", "zone": "1"}),
                node("b", {TYPE: "M5.large"}),
            ],
            {"m5-large": {TYPE: "M5.large"}},
            id="one-instance-type",
        ),
        pytest.param(
            [gpu_node("a", {TYPE: "p4", PRODUCT: "A100"}), gpu_node("b", {TYPE: "p5", PRODUCT: "H100"})],
            {"a100": {PRODUCT: "A100"}, "h100": {PRODUCT: "H100"}},
            id="labels-that-tell-the-same-are-needed-once",
        ),
        pytest.param(
            [node("a", {"kubernetes.io/arch": "amd64"}), node("b", {"kubernetes.io/arch": "arm64"})],
            {"amd64": {"kubernetes.io/arch": "amd64"}, "arm64": {"kubernetes.io/arch": "arm64"}},
            id="architectures",
        ),
        pytest.param([node("a", {"kubernetes.io/arch": "amd64"})], {"default": {}}, id="one-architecture"),
        pytest.param(
            [node("a", {TYPE: "m5"}), node("b", {TYPE: "m5"}, "dedicated")],
            {"m5": {TYPE: "m5"}, "m5-2": {TYPE: "m5"}},
            id="taints-tell-them-apart",
        ),
        pytest.param(
            [node("a", {TYPE: "m5"}), node("b", {TYPE: "m5"}, "dedicated"), node("c", {TYPE: "m5-2"})],
            {"m5": {TYPE: "m5"}, "m5-2": {TYPE: "m5"}, "m5-2-2": {TYPE: "m5-2"}},
            id="a-number-that-another-is-called-by",
        ),
        pytest.param(
            [
                node("a", {TYPE: "m5"}),
                node("b", {TYPE: "m5"}, "node.kubernetes.io/unreachable", ready=False),
                node("c", {TYPE: "c5"}, "node-role.kubernetes.io/control-plane"),
                node("d", {TYPE: "r5"}, ready=False),
            ],
            {"m5": {TYPE: "m5"}},
            id="what-no-job-can-use",
        ),
    ],
)
def test_nodes_are_grouped_by_what_tells_hardware(nodes: list[Json], expected: dict[str, Json]) -> None:
    assert {each.name: dict(each.labels) for each in hardware(nodes, {})} == expected


def test_a_label_of_ones_own_tells_too() -> None:
    nodes = [node("a", {"rack": "1"}), node("b", {"rack": "2"})]
    assert [each.name for each in hardware(nodes, {}, ["rack", "unknown"])] == ["1", "2"]


def test_what_has_devices_comes_last_with_its_memory() -> None:
    labels = {PRODUCT: "A100", "nvidia.com/gpu.memory": "81559"}
    cpus, gpus = hardware([gpu_node("a", labels, GPU), node("b", {TYPE: "m5"}, ephemeral="1")], {})
    assert (cpus.scarce, gpus.scarce) == (None, GPU)
    assert gpus.gpu_memory == 80
    assert gpus.taints == (Taint(GPU, "", "NoSchedule"),)
    assert str(gpus) == "1 node: 4 cpu, 8Gi memory, 8 nvidia.com/gpu"
    assert "pods" not in cpus.offers


@pytest.mark.parametrize("memory", ["9" * 400, "1" + "0" * 9, "much", "-1", ""])
def test_memory_that_no_gpu_has_is_not_known(memory: str) -> None:
    (found,) = hardware([gpu_node("a", {"nvidia.com/gpu.memory": memory})], {})
    assert found.gpu_memory is None


def test_what_daemon_sets_and_system_pods_request_is_not_for_jobs() -> None:
    held = system_use(
        [
            pod("a", "DaemonSet", "monitoring"),
            pod("a", "Node", cpu="500m"),
            pod("a", "ReplicaSet", cpu="200m"),
            pod("a", "ReplicaSet", "web"),
            pod("a", "DaemonSet", status={"phase": "Failed"}),
            pod("a", "DaemonSet", cpu="much"),
            pod("", "DaemonSet"),
            pod("b", "DaemonSet", cpu="9"),
        ]
    )
    (found,) = hardware([node("a", {}), node("b", {}), node("c", {})], held)
    assert found.offers["cpu"] == (4000 - 1700) + 0 + 4000


def test_what_is_to_be_known_is_noted() -> None:
    nodes = [node("a", {}), gpu_node("b", {}), gpu_node("c", {TYPE: "p4"})]
    plain, special = sorted(hardware(nodes, {}), key=lambda each: each.name)
    assert plain.notes == (
        "only 1 of its 2 nodes have nvidia.com/gpu: give these a label of their own, and name it by --label",
        "its pods may also be placed on nodes of p4, which have its labels too",
    )
    assert special.notes == ()
