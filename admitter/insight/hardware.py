"""The kinds of hardware that a cluster's nodes are, by their labels and taints: what flavors describe.

Next: `first_queues` divides them among teams.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final

from admitter.cache.node_views import parse_node
from admitter.convert.pod_requests import HUGE_PAGES, pod_requests
from admitter.engine.model import Taint
from admitter.names import NAMESPACE
from admitter.quantities.amounts import CPU, InvalidQuantityError, to_quantity
from admitter.quotas.nodes import NodeCapacity

Json = dict[str, Any]
Labels = tuple[tuple[str, str], ...]

TELLING: Final = (
    *("gpu.product", "gpu.product-name", "gke-accelerator", "accelerator", "instance-type", "machine-type"),
    *("capacity-type", "capacityType", "gke-spot", "gke-provisioning", "scalesetpriority", "arch"),
)
"""The last parts of labels that tell hardware, the most telling first."""
RETIRED: Final = "beta.kubernetes.io/"
CONTROL_PLANE: Final = {"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"}
PASSING: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""What taints of conditions begin with: they go with the condition."""
SYSTEM: Final = {"kube-system", NAMESPACE}
ENDED: Final = {"Succeeded", "Failed"}
EVERYWHERE: Final = (CPU, "memory", "ephemeral-storage")
_GPU_MEMORY: Final = re.compile(r"gpu\.memory$")


@dataclass(frozen=True, slots=True)
class Hardware:
    """Nodes with the same labels, as far as these tell hardware, and the same taints."""

    name: str  # of its flavor
    labels: Labels  # of all its nodes, as far as they tell it from other hardware
    taints: tuple[Taint, ...]  # those that keep pods away
    nodes: int  # how many of its nodes can be used
    offers: Mapping[str, int]  # what these can allocate to Jobs together, by resource
    gpu_memory: int | None  # of one GPU, in GB; None if the nodes do not say it
    notes: tuple[str, ...]

    @property
    def scarce(self) -> str | None:
        """The device of which its nodes have least, such as GPUs; None if they have none."""
        devices = [resource for resource in self.offers if "/" in resource]
        return min(devices, key=lambda resource: (self.offers[resource], resource), default=None)

    def __str__(self) -> str:
        """What it offers, in words."""
        amounts = [f"{to_quantity(resource, amount)} {resource}" for resource, amount in self.offers.items()]
        return f"{self.nodes} node{'' if self.nodes == 1 else 's'}: {', '.join(amounts)}"


def system_use(pods: Iterable[Json]) -> dict[str, Counter[str]]:
    """What pods of DaemonSets, of the node itself and of system namespaces request, by node and resource."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pod in pods:
        metadata, node = pod["metadata"], pod["spec"].get("nodeName")
        owners = {owner["kind"] for owner in metadata.get("ownerReferences") or ()}
        system = owners & {"DaemonSet", "Node"} or metadata.get("namespace") in SYSTEM
        if node and system and (pod.get("status") or {}).get("phase") not in ENDED:
            try:
                found[node].update(pod_requests(pod["spec"]))
            except InvalidQuantityError:  # an API server would not have taken it
                continue
    return dict(found)


def hardware(
    nodes: Iterable[Json], held: Mapping[str, Mapping[str, int]], telling: Sequence[str] = ()
) -> list[Hardware]:
    """The hardware of all nodes but those of the control plane; that with devices comes last.

    Jobs take the first flavor that fits: so Jobs without GPUs leave the nodes that have some to others. What
    is `held`, by node and resource, is not for Jobs; `telling` labels tell hardware beside those known to.
    """
    known = [(name, node) for name, node in map(_node, nodes) if not _is_control_plane(node)]
    usable = [node for _, node in known if node.schedulable]
    keys = _telling_keys(usable, telling)
    groups: defaultdict[tuple[Labels, tuple[Taint, ...]], list[tuple[str, NodeCapacity]]] = defaultdict(list)
    for name, node in known:
        groups[_labels(node, keys), _lasting(node)].append((name, node))
    numbers: defaultdict[str, Iterator[int]] = defaultdict(lambda: count(2))
    taken: set[str] = set()
    found = []
    for (labels, taints), members in sorted(
        groups.items(), key=lambda group: (group[0][0], str(group[0][1]))
    ):
        name = common = _name(labels)
        while name in taken:
            name = f"{common}-{next(numbers[common])}"
        taken.add(name)
        found.append(_described(name, labels, taints, members, held))
    found = [each for each in found if each.nodes]
    return sorted(
        (_with_neighbours(each, found) for each in found),
        key=lambda each: (each.scarce is not None, each.name),
    )


def _node(raw: Json) -> tuple[str, NodeCapacity]:
    """A node by its name; a manifest has no UID and no version."""
    metadata = {"uid": "", "resourceVersion": "0", **raw["metadata"]}
    return metadata["name"], parse_node({**raw, "metadata": metadata}).node


def _is_control_plane(node: NodeCapacity) -> bool:
    return any(taint.key in CONTROL_PLANE for taint in node.taints)


def _lasting(node: NodeCapacity) -> tuple[Taint, ...]:
    taints = (taint for taint in node.taints if not taint.key.startswith(PASSING))
    return tuple(sorted(taints, key=str))


def _telling_keys(nodes: Sequence[NodeCapacity], given: Sequence[str]) -> list[str]:
    """The labels that tell hardware: those `given`, and those known to that divide the nodes further."""
    there = {key for node in nodes for key in node.labels if not key.startswith(RETIRED)}
    ends = {end: place for place, end in enumerate(TELLING)}
    known = sorted(
        (key for key in there if key.rpartition("/")[2] in ends),
        key=lambda key: (ends[key.rpartition("/")[2]], key),
    )
    chosen = [key for key in given if key in there]
    for key in known:
        kinds = {_labels(node, chosen) for node in nodes}
        divides = len({_labels(node, [*chosen, key]) for node in nodes}) > len(kinds)
        if key not in chosen and (divides or (not chosen and not key.endswith("arch"))):
            chosen.append(key)
    return sorted(chosen)


def _labels(node: NodeCapacity, keys: Iterable[str]) -> Labels:
    return tuple((key, node.labels[key]) for key in keys if key in node.labels)


def _name(labels: Labels) -> str:
    """A flavor's name from the values of its labels."""
    words = re.sub(r"[^-a-z0-9]+", "-", "-".join(value for _, value in labels).lower())
    return words[:60].strip("-") or "default"


def _described(
    name: str,
    labels: Labels,
    taints: tuple[Taint, ...],
    members: Sequence[tuple[str, NodeCapacity]],
    held: Mapping[str, Mapping[str, int]],
) -> Hardware:
    usable = [(each, node) for each, node in members if node.schedulable]
    offers: Counter[str] = Counter()
    for each, node in usable:
        for resource, amount in node.allocatable.items():
            if resource in EVERYWHERE or "/" in resource or resource.startswith(HUGE_PAGES):
                offers[resource] += max(0, amount - held.get(each, {}).get(resource, 0))
    ordered = sorted(offers, key=lambda r: (EVERYWHERE.index(r) if r in EVERYWHERE else len(EVERYWHERE), r))
    notes = []
    for resource in (resource for resource in ordered if "/" in resource and offers[resource]):
        having = sum(bool(node.allocatable.get(resource)) for _, node in usable)
        if having < len(usable):
            words = (
                f"only {having} of its {len(usable)} nodes have {resource}: give these a label of their own"
            )
            notes.append(f"{words}, and name it by --label")
    memory = {
        round(int(value) / 1024)
        for _, node in usable
        for key, value in node.labels.items()
        if _GPU_MEMORY.search(key) and value.isdecimal() and len(value) < 10
    }
    there = {resource: offers[resource] for resource in ordered if offers[resource]}
    return Hardware(
        name, labels, taints, len(usable), there, memory.pop() if len(memory) == 1 else None, tuple(notes)
    )


def _with_neighbours(one: Hardware, found: Iterable[Hardware]) -> Hardware:
    """With a note on others with all of its labels: its pods may be placed on their nodes too."""
    names = [
        other.name
        for other in found
        if other is not one and {*one.labels} <= {*other.labels} and {*other.taints} <= {*one.taints}
    ]
    if not names:
        return one
    note = f"its pods may also be placed on nodes of {', '.join(sorted(names))}, which have its labels too"
    return replace(one, notes=(*one.notes, note))
