"""Which queues use which node: all nodes of a cluster, and the pods on each.

Only pods that admissions have labelled are followed: what others use is not known. Next: `fragmentation`
tells how the unused part is spread.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from admitter.cache.node_views import NodeView
from admitter.cache.pod_views import PodView
from admitter.cache.views import WorkloadView
from admitter.convert.gpus import GpuSettings
from admitter.engine.model import Flavor
from admitter.insight.hardware import PASSING
from admitter.insight.topology import Level, levels
from admitter.names import ANY_NODE
from admitter.policy.snapshot import Snapshot
from admitter.quantities.amounts import CPU, InvalidQuantityError, to_amount
from admitter.quotas.nodes import NodeCapacity, has_labels, is_open

EVERYWHERE: Final = (CPU, "memory")
_DIGITS: Final = re.compile(r"([0-9]+)")
LONGEST_NUMBER: Final = 9
"""Digits of a number in a name that is ordered by its value."""


@dataclass(frozen=True, slots=True)
class Part:
    """What the pods of one queue use of one resource of a node."""

    queue: str  # the engine's name; empty if no queue counts them
    amount: int  # in the resource's unit
    pods: int


@dataclass(frozen=True, slots=True)
class UsedNode:
    """A node, and the pods on it that have not ended."""

    view: NodeView
    flavor: str  # for which quota counts it; empty: for none
    place: tuple[str, ...]  # where it is, at each level; empty texts: it does not say
    pods: tuple[PodView, ...] = ()

    @property
    def usable(self) -> bool:
        """Whether it takes new pods."""
        return self.view.node.schedulable

    def total(self, resource: str) -> int:
        """What it can allocate to pods, in the resource's unit."""
        return self.view.node.allocatable.get(resource, 0)


@dataclass(slots=True)
class _Requests:
    """What pods request that their queue does not count, by the pod sets of their Workloads."""

    workloads: Mapping[tuple[str, str], WorkloadView]
    known: dict[tuple[str, str, str], int | None] = field(default_factory=dict)

    def of(self, pod: PodView, resource: str) -> int | None:
        """The amount; None if it is not known, since pod sets differ or there is no Workload any more."""
        key = (pod.namespace, pod.workload, resource)
        if key not in self.known:
            workload = self.workloads.get((pod.namespace, pod.workload))
            made_it = workload is not None and pod.is_of(workload)
            self.known[key] = _common(workload, resource) if workload is not None and made_it else None
        return self.known[key]


def _common(workload: WorkloadView, resource: str) -> int | None:
    """What each pod of a Workload requests of a resource; None if it differs or can't be read."""
    found = {pod_set_request(each, resource) for each in workload.spec.get("podSets") or ()}
    return found.pop() if len(found) == 1 else None


def pod_set_request(pod_set: Mapping[str, object], resource: str) -> int | None:
    """What one pod of a Workload's pod set requests, in the resource's unit; None if it can't be read."""
    requests = pod_set.get("requests") or {}
    if not isinstance(requests, dict):
        return None
    try:
        return to_amount(resource, requests.get(resource) or 0)
    except InvalidQuantityError:
        return None


class Occupancy:
    """All nodes at one moment, with what runs on them."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Work out everything but amounts, which are asked for by resource."""
        world = snapshot.world
        self.snapshot = snapshot
        self._requests = _Requests({view.key: view for view in world.workloads})
        self._flavors = Flavors(snapshot)
        on: defaultdict[str, list[PodView]] = defaultdict(list)
        for pod in world.pods:
            if pod.live:
                on[pod.node].append(pod)
        self.without_node = on.pop("", [])  # admitted, and a scheduler has not found a node
        self.levels: list[Level] = levels(view.node.labels for view in world.nodes)
        found = (self._used(view, on.pop(view.name, [])) for view in world.nodes)
        self.nodes = sorted(found, key=_order)
        self.elsewhere = sum(map(len, on.values()))  # pods on nodes that are gone

    def _used(self, view: NodeView, pods: list[PodView]) -> UsedNode:
        place = tuple(level.place(view.node.labels) for level in self.levels)
        return UsedNode(view, self._flavors.of(view.node), place, tuple(pods))

    def resources(self, nodes: Iterable[UsedNode]) -> list[str]:
        """What nodes have of which use can be shown: GPUs first, then other devices, CPUs and memory."""
        totals: defaultdict[str, int] = defaultdict(int)
        for node in nodes:
            for resource, amount in node.view.node.allocatable.items():
                if "/" in resource or resource in EVERYWHERE:
                    totals[resource] += amount
        gpus = self.snapshot.settings.gpus
        devices = [resource for resource, total in totals.items() if "/" in resource and total]
        devices.sort(key=lambda each: (not is_gpu(each, gpus), -totals[each], each))
        return [*devices, *(each for each in EVERYWHERE if each in totals)]

    def amount(self, pod: PodView, resource: str) -> int | None:
        """What a pod requests of a resource; None if that is not known: its queue does not count it."""
        for assignment in pod.usage.pod_sets:
            if any(name == resource for name, _ in assignment.flavors):  # its queue counts it
                return sum(amount for name, amount in assignment.usage if name == resource)
        return self._requests.of(pod, resource)

    def parts(self, pods: Iterable[PodView], resource: str) -> tuple[list[Part], int]:
        """What pods use of a resource by queue, most first, and of how many pods that is not known."""
        sums: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        unknown = 0
        for pod in pods:
            amount = self.amount(pod, resource)
            unknown += amount is None
            if amount:
                known = sums[pod.usage.queue]
                known[0] += amount
                known[1] += 1
        parts = [Part(queue, amount, pods) for queue, (amount, pods) in sums.items()]
        return sorted(parts, key=lambda part: (-part.amount, part.queue)), unknown


def _order(node: UsedNode) -> tuple[bool, str, tuple[object, ...], object]:
    """By flavor, place and name; what is of no flavor of its own comes last."""
    place = tuple(natural(each) for each in node.place)
    return (node.flavor in {"", ANY_NODE}, node.flavor, place, natural(node.view.name))


def is_gpu(resource: str, gpus: GpuSettings) -> bool:
    """Whether units of a resource are GPUs or parts of them."""
    return bool(gpus.gpus({resource: 1}).resources)


def natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """An order of names by which node-2 is before node-10."""
    parts = _DIGITS.split(name)
    return tuple(
        (False, int(part), part) if part.isdecimal() and len(part) <= LONGEST_NUMBER else (True, 0, part)
        for part in parts
        if part
    )


class Flavors:
    """Which flavors a node is of, whether or not it can be used at the moment."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Know the flavors that a snapshot has, and that of all nodes."""
        names = [*(view.name for view in snapshot.world.flavors), ANY_NODE]
        known = [flavor for name in names if (flavor := snapshot.catalog.flavor(name)) is not None]
        # the order by which quota counts a node for one of them
        self._ordered = sorted(known, key=lambda f: (-len(f.labels), f.name == ANY_NODE, f.name))
        self._keys = {key for flavor in known for key, _ in flavor.labels}
        self._known: dict[object, tuple[Flavor, ...]] = {}

    def of(self, node: NodeCapacity) -> str:
        """The flavor for which quota counts a node; empty if for none."""
        return next((flavor.name for flavor in self.all_of(node)), "")

    def all_of(self, node: NodeCapacity) -> tuple[Flavor, ...]:
        """The flavors of which it takes pods, once it is ready and not cordoned."""
        lasting = tuple(taint for taint in node.taints if not taint.key.startswith(PASSING))
        key = (tuple((k, node.labels[k]) for k in sorted(self._keys & node.labels.keys())), lasting)
        if key not in self._known:
            usual = replace(node, taints=lasting, schedulable=True)
            found = (
                flavor for flavor in self._ordered if has_labels(usual, flavor) and is_open(usual, flavor)
            )
            self._known[key] = tuple(found)
        return self._known[key]
