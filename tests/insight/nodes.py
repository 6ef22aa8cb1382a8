"""Nodes with pods on them, for snapshots of clusters that never were."""

from collections.abc import Mapping
from itertools import count
from typing import Any

import orjson

from admitter.names import (
    CLUSTER_QUEUE_LABEL,
    FLAVORS_ANNOTATION,
    WORKLOAD_LABEL,
    WORKLOAD_UID_ANNOTATION,
)
from tests.insight.states import State, moment

Json = dict[str, Any]

GPU = "nvidia.com/gpu"
ZONE, RACK = "topology.kubernetes.io/zone", "cloud.provider.com/topology-rack"
LOST = "Kubelet stopped posting node status."

_serial = count()


def node(
    state: State,
    name: str,
    flavor: str,
    has: Mapping[str, str],
    *,
    ready: bool = True,
    cordoned: bool = False,
    since: float = -3600.0,
    taints: list[Json] | None = None,
    **labels: str,
) -> Json:
    """A node of a flavor; labels are given by `zone` and `rack`."""
    keys = {"zone": ZONE, "rack": RACK}
    said = {"type": "Ready", "status": "True" if ready else "Unknown", "lastTransitionTime": moment(since)}
    return state.put(
        "nodes",
        name,
        metadata={"labels": {"kind": flavor} | {keys[key]: value for key, value in labels.items()}},
        spec={"taints": taints or []} | ({"unschedulable": True} if cordoned else {}),
        status={
            "allocatable": dict(has),
            "conditions": [said if ready else {**said, "message": LOST}],
        },
    )


def pods(
    state: State,
    workload: Json,
    on: str,
    requests: Mapping[str, str],
    *,
    number: int = 1,
    queue: str = "",
    counted: tuple[str, ...] = (),
    status: Json | None = None,
) -> None:
    """Pods of a Workload on a node, or on none; its queue counts some resources, without names all."""
    metadata, admission = workload["metadata"], workload.get("status", {}).get("admission") or {}
    flavors = dict.fromkeys(counted or requests, "default")
    annotations = {FLAVORS_ANNOTATION: orjson.dumps(flavors).decode()}
    labels = {
        WORKLOAD_LABEL: metadata["name"],
        CLUSTER_QUEUE_LABEL: queue or str(admission.get("clusterQueue", "")),
    }
    running = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    for _ in range(number):
        state.put(
            "pods",
            f"pod-{next(_serial):06}",
            metadata["namespace"],
            metadata={
                "labels": labels,
                "annotations": annotations | {WORKLOAD_UID_ANNOTATION: metadata["uid"]},
            },
            spec={"containers": [{"resources": {"requests": dict(requests)}}]}
            | ({"nodeName": on} if on else {}),
            status=status or (running if on else {"phase": "Pending"}),
        )


def park() -> State:
    """Six nodes with 8 GPUs in two zones and three racks, of which two can't be used, and two without GPUs.

    Of 32 GPUs that can be used 13 are free, at most 5 on one node.
    """
    state = State("a100", "cpu")
    state.put("cohorts", "research", spec={})
    for name, team in (("vision", "a"), ("speech", "b")):
        quota = {
            GPU: {"a100": {"min": "24"}, "cpu": {"min": "0"}},
            "cpu": {"a100": {"min": "500"}, "cpu": {"min": "100"}},
        }
        state.queue(name, quota, "research")
        state.namespace(f"team-{team}", name)
    large, small = {GPU: "8", "cpu": "64", "memory": "512Gi"}, {"cpu": "32", "memory": "128Gi"}
    for number, (zone, rack) in enumerate(
        (("a", "a1"), ("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b1"), ("b", "b1"))
    ):
        name, ready, cordoned = f"gpu-{number}", number != 4, number == 5
        node(state, name, "a100", large, ready=ready, cordoned=cordoned, zone=zone, rack=rack)
    for number in range(2):
        node(state, f"cpu-{number}", "cpu", small, zone="a", rack="a1")
    train = state.holds("team-a", "train", {GPU: ("16", "a100")}, cluster_queue="vision")
    decode = state.holds("team-b", "decode", {GPU: ("7", "a100")}, cluster_queue="speech")
    for name, gpus, number in (("gpu-0", "4", 2), ("gpu-1", "3", 1), ("gpu-2", "1", 3), ("gpu-4", "8", 1)):
        pods(state, train, name, {GPU: gpus, "cpu": "4"}, number=number)
    pods(state, decode, "gpu-1", {GPU: "1", "cpu": "4"}, number=1)
    pods(state, decode, "gpu-3", {GPU: "2", "cpu": "4"}, number=2)
    pods(state, decode, "cpu-0", {"cpu": "8"}, counted=(GPU, "cpu"))
    pods(state, decode, "gpu-0", {GPU: "8"}, status={"phase": "Succeeded"})
    return state
