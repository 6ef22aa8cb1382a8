"""The made-up cluster's nodes and flavors."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from admitter.simulate.objects import timestamp

Json = dict[str, Any]

GPU: Final = "nvidia.com/gpu"
HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "topology.kubernetes.io/zone"
RACK: Final = "topology.kubernetes.io/rack"
ACCELERATOR: Final = "accelerator"
NODES_OF_A_RACK: Final = 8


class Hardware(NamedTuple):
    """Nodes that are alike: one flavor."""

    flavor: str
    nodes: int
    instance: str  # what is called the type of such a machine
    cpu: int  # cores of a node
    memory: int  # GiB of a node
    gpus: int  # of a node
    gpu_memory: int  # GB of a GPU; 0: it has none


HARDWARE: Final = (
    Hardware("h100", 64, "gpu-8x-h100", 192, 2048, 8, 80),
    Hardware("a100", 80, "gpu-8x-a100", 96, 1152, 8, 40),
    Hardware("t4", 32, "gpu-8x-t4", 96, 384, 8, 16),
    Hardware("cpu", 64, "general-64", 64, 256, 0, 0),
)
ZONES: Final = ("eu-north-1a", "eu-north-1b")
NOT_READY: Final = {
    "a100-r04-3": (2400.0, "NodeStatusUnknown", "Kubelet stopped posting node status."),
    "h100-r06-6": (9100.0, "KubeletNotReady", "container runtime is down, PLEG is not healthy"),
}
"""Nodes that are not ready: for how many seconds before now, and the reason and the words of that."""
CORDONED: Final = "t4-r02-1"
"""A node that takes no new pods because an administrator said so."""


def flavors() -> Iterator[Json]:
    for each in HARDWARE:
        spec: Json = {"nodeLabels": {ACCELERATOR: each.flavor}}
        if each.gpu_memory:
            spec["gpuMemoryGB"] = each.gpu_memory
        yield {"kind": "ResourceFlavor", "metadata": {"name": each.flavor}, "spec": spec}


def nodes(now: float, since: float) -> Iterator[Json]:
    """All nodes as they are `now`; they have been there for longer than `since`, both since the epoch."""
    for each in HARDWARE:
        for number in range(each.nodes):
            rack, place = divmod(number, NODES_OF_A_RACK)
            name = f"{each.flavor}-r{rack + 1:02}-{place + 1}"
            yield {
                "kind": "Node",
                "metadata": {"name": name, "labels": _labels(each, name, rack)},
                "spec": {"unschedulable": True} if name == CORDONED else {},
                "status": {"allocatable": _amounts(each), "conditions": [_ready(name, now, since)]},
            }


def _labels(kind: Hardware, name: str, rack: int) -> Json:
    zone = ZONES[rack * NODES_OF_A_RACK * len(ZONES) // kind.nodes]
    return {
        ACCELERATOR: kind.flavor,
        HOSTNAME: name,
        "node.kubernetes.io/instance-type": kind.instance,
        ZONE: zone,
        RACK: f"{kind.flavor}-r{rack + 1:02}",
    }


def _amounts(kind: Hardware) -> Json:
    amounts = {"cpu": str(kind.cpu), "memory": f"{kind.memory}Gi", "pods": "110"}
    return amounts | ({GPU: str(kind.gpus)} if kind.gpus else {})


def _ready(name: str, now: float, since: float) -> Json:
    if name not in NOT_READY:
        words = {"reason": "KubeletReady", "message": "kubelet is posting ready status"}
        return {"type": "Ready", "status": "True", "lastTransitionTime": timestamp(since), **words}
    ago, reason, message = NOT_READY[name]
    state = "Unknown" if reason == "NodeStatusUnknown" else "False"
    told = {"type": "Ready", "status": state, "lastTransitionTime": timestamp(float(int(now - ago)))}
    return told | {"reason": reason, "message": message}
