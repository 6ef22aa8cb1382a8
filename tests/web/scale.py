"""A made-up cluster of any size: queues in Cohorts, nodes in racks, Workloads that run on them and wait."""

from typing import Any, Final

from admitter.names import (
    CLUSTER_QUEUE_LABEL,
    FLAVORS_ANNOTATION,
    WORKLOAD_LABEL,
    WORKLOAD_UID_ANNOTATION,
)
from tests.insight.states import State, moment

Json = dict[str, Any]

GPU: Final = "nvidia.com/gpu"
GPUS_OF_A_NODE: Final = 8
NODES_OF_A_RACK: Final = 8
RACKS_OF_A_ZONE: Final = 25
RUNNING: Final = 0.2
"""The part of the Workloads that run, as far as there are GPUs."""
FLAVORS: Final = ("a100", "h100")
_SIZES: Final = (1, 2, 4, 8)


PLACES: Final = {
    "overview": "overview",
    "map": "map",
    "quota": "quota",
    "workloads": "workloads",
    "timeline": "timeline",
    "my jobs": "my",
    "queue": "queue/queue-0000",
    "workload": "workload/ns-0000/{waiting}",
}
"""Addresses of all views of a big cluster; the last is of a Workload that waits in its first queue."""


def big_cluster(queues: int = 1000, workloads: int = 20_000, nodes: int = 2000) -> State:
    """A cluster with so many queues, unfinished Workloads and nodes; the same each time.

    Ten queues share a Cohort, and ten Cohorts a Cohort above. Every 50th node is not ready.
    """
    state = State(*FLAVORS)
    _tree(state, queues, nodes * GPUS_OF_A_NODE)
    room = _nodes(state, nodes)
    running = 0
    for number in range(int(workloads * RUNNING)):
        gpus = _SIZES[number % len(_SIZES)]
        node = next((name for name, free in reversed(room.items()) if free >= gpus), None)
        if node is None:
            break
        room[node] -= gpus
        if not room[node]:
            del room[node]
        _running(state, number % queues, number, gpus, node)
        running += 1
    for number in range(running, workloads):
        name, gpus = f"job-{number:05}", _SIZES[number % len(_SIZES)]
        queue = number % queues
        state.waits(f"ns-{queue:04}", name, {GPU: str(gpus)}, created=(number - workloads) / 10)
    return state


def _tree(state: State, queues: int, gpus: int) -> None:
    for number in range(queues):
        if number % 100 == 0:
            state.put("cohorts", f"division-{number // 100:02}", spec={})
        if number % 10 == 0:
            above = f"division-{number // 100:02}"
            state.put("cohorts", f"cohort-{number // 10:03}", spec={"parent": above})
        name = f"queue-{number:04}"
        own = {flavor: {"min": str(gpus // queues // len(FLAVORS))} for flavor in FLAVORS}
        state.queue(name, {GPU: own}, f"cohort-{number // 10:03}")
        state.namespace(f"ns-{number:04}", name)


def _nodes(state: State, nodes: int) -> dict[str, int]:
    """The nodes, and the GPUs that are free on those that are ready."""
    room = {}
    for number in range(nodes):
        ready, rack = number % 50 != 7, number // NODES_OF_A_RACK
        labels = {
            "kind": FLAVORS[number % len(FLAVORS)],
            "kubernetes.io/hostname": f"node-{number:04}",
            "topology.kubernetes.io/zone": f"zone-{rack // RACKS_OF_A_ZONE}",
            "topology.kubernetes.io/rack": f"rack-{rack:03}",
        }
        told = {"type": "Ready", "status": "True" if ready else "Unknown", "reason": "NodeStatusUnknown"}
        told["lastTransitionTime"] = moment(-900)
        amounts = {"cpu": "96", "memory": "768Gi", "pods": "110", GPU: str(GPUS_OF_A_NODE)}
        state.put(
            "nodes",
            f"node-{number:04}",
            metadata={"labels": labels},
            spec={},
            status={"allocatable": amounts, "capacity": amounts, "conditions": [told]},
        )
        if ready:
            room[f"node-{number:04}"] = GPUS_OF_A_NODE
    return room


def _running(state: State, queue: int, number: int, gpus: int, node: str) -> None:
    """A Workload that runs with one pod on a node."""
    namespace, name = f"ns-{queue:04}", f"run-{number:05}"
    flavor = FLAVORS[int(node[-4:]) % len(FLAVORS)]
    holds = state.holds(
        namespace,
        name,
        {GPU: (str(gpus), flavor)},
        cluster_queue=f"queue-{queue:04}",
        since=-60.0 * (number % 300) - 60,
    )
    labels = {WORKLOAD_LABEL: name, CLUSTER_QUEUE_LABEL: f"queue-{queue:04}"}
    notes = {WORKLOAD_UID_ANNOTATION: holds["metadata"]["uid"], FLAVORS_ANNOTATION: f'{{"{GPU}":"{flavor}"}}'}
    conditions = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Ready")]
    state.put(
        "pods",
        f"{name}-x7k2p",
        namespace,
        metadata={"labels": labels, "annotations": notes},
        spec={"nodeName": node, "containers": [{"resources": {"requests": {GPU: str(gpus)}}}]},
        status={"phase": "Running", "conditions": conditions},
    )
