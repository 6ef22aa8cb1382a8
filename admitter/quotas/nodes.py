"""The quota that nodes give to a tree with a root that follows them (docs/design/hierarchy.md)."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from admitter.api.base import own_name
from admitter.convert.gpus import GpuSettings
from admitter.engine.model import Flavor, FlavorResource, NodeShape, Taint
from admitter.engine.policy import Cohort, Group, Quota
from admitter.names import ANY_NODE, GPU_MEMORY
from admitter.quantities.amounts import CPU, Amounts, InvalidQuantityError, to_amount
from admitter.quotas.hierarchy import Branch

EVERYWHERE: Final = (CPU, "memory")  # what every node has: queues count it even while there is no node


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """A node as quota sees it, with the taints that repel; schedulable if it is ready and not cordoned."""

    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    schedulable: bool = True
    allocatable: Mapping[str, int] = field(default_factory=dict)


def amounts(allocatable: Mapping[str, str | int]) -> Amounts:
    """What a node can allocate; what is no quantity is left out."""
    found = {}
    for name, quantity in allocatable.items():
        with suppress(InvalidQuantityError):
            found[own_name(name)] = to_amount(name, quantity)
    return found


def totals(
    nodes: Iterable[NodeCapacity], flavors: Iterable[Flavor], gpus: GpuSettings
) -> dict[FlavorResource, int]:
    """What the nodes that can be used give, by flavor and resource; each node counts for one flavor or none.

    Of the flavors that are a node's, it counts for the one with the most labels, then for one that a
    ResourceFlavor defines, then for the first by name.
    """
    ordered = sorted(flavors, key=lambda flavor: (-len(flavor.labels), flavor.name == ANY_NODE, flavor.name))
    found: Counter[FlavorResource] = Counter()
    for node in nodes:
        flavor = next((each for each in ordered if has_labels(node, each) and is_open(node, each)), None)
        if flavor is not None:
            for resource, amount in _counted(node, flavor, gpus).items():
                found[flavor.name, resource] += amount
    return dict(found)


def largest(nodes: Iterable[NodeCapacity], flavors: Collection[Flavor]) -> dict[str, tuple[NodeShape, ...]]:
    """The shapes of each flavor's nodes, by its name, but for those that others exceed in everything.

    Nodes that are cordoned, not ready or tainted count: they may be used again. One without CPUs does not: it
    has not said yet what it has.
    """
    keys = {key for flavor in flavors for key, _ in flavor.labels}
    shapes = {
        NodeShape(
            tuple(sorted((key, value) for key, value in node.labels.items() if key in keys)),
            tuple(sorted(node.allocatable.items())),
        )
        for node in nodes
        if node.allocatable.get(CPU)
    }
    return {
        flavor.name: _undominated(shape for shape in shapes if {*shape.labels} >= {*flavor.labels})
        for flavor in flavors
    }


def _undominated(shapes: Iterable[NodeShape]) -> tuple[NodeShape, ...]:
    """Those that no other of the same labels exceeds in everything."""
    kept: list[NodeShape] = []
    for shape in sorted(shapes, key=lambda shape: (shape.labels, shape.allocatable), reverse=True):
        if not any(_exceeds(other, shape) for other in kept):
            kept = [*(other for other in kept if not _exceeds(shape, other)), shape]
    return tuple(kept)


def _exceeds(shape: NodeShape, other: NodeShape) -> bool:
    has = dict(shape.allocatable)
    return shape.labels == other.labels and all(
        has.get(resource, 0) >= amount for resource, amount in other.allocatable
    )


def has_labels(node: NodeCapacity, flavor: Flavor) -> bool:
    return all(node.labels.get(key) == value for key, value in flavor.labels)


def is_open(node: NodeCapacity, *flavors: Flavor) -> bool:
    """Whether a node takes pods admitted to these flavors: usable, and all taints known or tolerated."""
    return node.schedulable and all(
        any(
            taint in flavor.taints or any(toleration.tolerates(taint) for toleration in flavor.tolerations)
            for flavor in flavors
        )
        for taint in node.taints
    )


def _counted(node: NodeCapacity, flavor: Flavor, gpus: GpuSettings) -> Amounts:
    """What a node can allocate, memory of its GPUs included."""
    found = dict(node.allocatable)
    try:
        devices = gpus.gpus(found)
    except InvalidQuantityError:  # it says itself how much memory its devices have
        return found
    memory = devices.whole * flavor.gpu_memory + devices.sliced
    return found | {GPU_MEMORY: memory} if memory else found


def everything(branch: Branch, flavors: Iterable[str], found: Iterable[FlavorResource]) -> Branch:
    """A root that lists no resources: it has all that nodes can allocate.

    What the nodes of flavors have that are named below it counts as theirs, all else on any node.
    """
    more = sorted({resource for _, resource in found} - {*EVERYWHERE})
    return replace(branch, groups=(Group((*EVERYWHERE, *more), (*sorted(flavors), ANY_NODE)),))


@dataclass(slots=True)
class Demand:
    """What queues and Cohorts name, and what they are given, added up."""

    # how many of them name a resource in a flavor
    named: Counter[FlavorResource] = field(default_factory=Counter)
    # their `min` of it together, in the resource's unit
    minimums: Counter[FlavorResource] = field(default_factory=Counter)

    def add(
        self, quotas: Mapping[FlavorResource, Quota], groups: Iterable[Group] = (), sign: int = 1
    ) -> None:
        """Count a queue or a Cohort in, or with sign -1 out again."""
        for key in {*quotas, *_keys(groups)}:
            self.named[key] += sign
            if not self.named[key]:
                del self.named[key]
        for key, quota in quotas.items():
            self.minimums[key] += sign * quota.minimum

    def include(self, other: "Demand") -> None:
        self.named.update(other.named)
        self.minimums.update(other.minimums)


def root(branch: Branch, found: Mapping[FlavorResource, int], below: Demand) -> Cohort:
    """What a root has of its own: what nodes have beyond the `min` of those below; never more than they have.

    The groups of the root and the queues below it are those that are in effect.
    """
    own = {}
    for key in sorted({*branch.rules.quotas, *below.named, *_keys(branch.groups)}):
        there, declared = found.get(key, 0), branch.rules.quotas.get(key, _NOTHING).maximum
        most = there if declared is None else min(declared, there)
        own[key] = Quota(max(0, there - below.minimums[key]), most)
    return replace(branch.rules, quotas=own)


def _keys(groups: Iterable[Group]) -> Iterator[FlavorResource]:
    return ((f, r) for group in groups for r in group.resources for f in group.flavors)


_NOTHING: Final = Quota()
