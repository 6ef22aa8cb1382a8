"""How the unused part of a resource is spread over nodes, and which pods that wait fit on none.

A pod runs on one node: 38 free GPUs are of no use to a pod of 8 if no node has more than 4 of them. Each
resource is looked at alone, and only as far as pods are followed: on a node there may be less.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from admitter.insight.listing import Row
from admitter.insight.occupancy import Flavors, Occupancy, UsedNode, pod_set_request
from admitter.quantities.amounts import CPU, counts_bytes

BINS: Final = 8
MOST_SINGLE: Final = 16
"""Devices of a node up to which each number of free ones is a bin of its own."""
GIB: Final = 2**30


@dataclass(frozen=True, slots=True)
class Bin:
    """Nodes that have about as much free."""

    least: int  # of what is free on them, in the resource's unit
    most: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Spread:
    """The free part of a resource on some nodes that take new pods. Amounts are in the resource's unit."""

    nodes: int
    total: int
    used: int
    free: int
    largest: int  # the most that is free on one node
    bins: tuple[Bin, ...]
    fits: tuple[tuple[int, int], ...]  # sizes of a pod, and how many pods of that size would fit now


class Fit(Enum):
    """Whether a pod fits on a node now, and if not, why."""

    FITS = "Fits"
    SPREAD = "Spread"  # enough is free, but on several nodes
    FULL = "Full"  # too little is free
    TOO_LARGE = "TooLarge"  # it asks for more than any node has


@dataclass(frozen=True, slots=True)
class WaitingPods:
    """Pods of one pod set that wait for quota."""

    row: Row  # of their Workload
    count: int
    size: int  # what each asks for, in the resource's unit
    fitting: int  # how many of them would fit now, if they came first
    fit: Fit


def free_on(occupancy: Occupancy, node: UsedNode, resource: str) -> int:
    """What pods that are followed leave of a node that takes new pods; 0 of another."""
    if not node.usable:
        return 0
    used = sum(part.amount for part in occupancy.parts(node.pods, resource)[0])
    return max(0, node.total(resource) - used)


def spread(totals: Sequence[int], frees: Sequence[int], resource: str) -> Spread:
    """The free part of nodes that take new pods, each given by what it has and what is free of that."""
    most = max(totals, default=0)
    return Spread(
        nodes=len(totals),
        total=sum(totals),
        used=sum(totals) - sum(frees),
        free=sum(frees),
        largest=max(frees, default=0),
        bins=tuple(_bins(frees, most, resource)),
        fits=tuple((size, sum(free // size for free in frees)) for size in sizes(most, resource)),
    )


def sizes(most: int, resource: str) -> list[int]:
    """Sizes of pods that are usual where the largest node has so much."""
    unit, factor = _unit(resource)
    found = []
    size = unit
    while size <= most:
        found.append(size)
        size *= factor
    return found


def _unit(resource: str) -> tuple[int, int]:
    """The smallest size of a pod that is looked at, and by what the next one is larger."""
    if resource == CPU:
        return 1000, 2
    return (GIB, 4) if counts_bytes(resource) else (1, 2)


def _bins(frees: Sequence[int], most: int, resource: str) -> Iterator[Bin]:
    """From nothing free to all of the largest node; nothing is a bin of its own."""
    if not most:
        return
    if resource != CPU and not counts_bytes(resource) and most <= MOST_SINGLE:
        edges = [*range(most + 1)]
    else:
        edges = [0, *(most * number // BINS for number in range(1, BINS + 1))]
    left = Counter(frees)
    below = -1
    for edge in edges:
        nodes = sum(count for free, count in left.items() if below < free <= edge)
        yield Bin(below + 1, edge, nodes)
        below = edge


class Fitting:
    """Which waiting pods fit where, by a resource."""

    def __init__(self, occupancy: Occupancy, resource: str) -> None:
        """Look at the nodes once; `Spread` and waiting pods are worked out on demand."""
        self.resource = resource
        self._occupancy = occupancy
        self._snapshot = occupancy.snapshot
        self._flavors = Flavors(self._snapshot)
        self.frees = [free_on(occupancy, node, resource) for node in occupancy.nodes]
        self._lists: dict[frozenset[str], tuple[list[int], int]] = {}
        self._known: dict[tuple[frozenset[str], int], tuple[int, Fit]] = {}

    def spread(self, counts: Callable[[UsedNode], bool]) -> Spread:
        """Of those nodes that count, have the resource and take new pods."""
        chosen = [
            (node.total(self.resource), free)
            for node, free in zip(self._occupancy.nodes, self.frees, strict=True)
            if node.usable and counts(node) and node.total(self.resource)
        ]
        return spread([total for total, _ in chosen], [free for _, free in chosen], self.resource)

    def waiting(self, rows: Iterable[Row]) -> Iterator[WaitingPods]:
        """The pods of those Workloads of a list that wait for quota and ask for the resource."""
        flavors: dict[str, frozenset[str]] = {}
        for row in rows:
            if row.workload.admission is None:
                if row.queue not in flavors:
                    flavors[row.queue] = self._flavors_of(row.queue)
                yield from self._of(row, flavors[row.queue])

    def _flavors_of(self, queue: str) -> frozenset[str]:
        known = self._snapshot.engine.tree.queues.get(queue)
        groups = known.groups if known is not None else ()
        return frozenset(
            name for group in groups if self.resource in group.resources for name in group.flavors
        )

    def _of(self, row: Row, flavors: frozenset[str]) -> Iterator[WaitingPods]:
        for pod_set in row.workload.spec.get("podSets") or ():
            size, count = pod_set_request(pod_set, self.resource), pod_set.get("count", 1)
            if size and isinstance(count, int):
                if (flavors, size) not in self._known:
                    frees, most = self._nodes_of(flavors)
                    self._known[flavors, size] = (sum(free // size for free in frees), fit(size, frees, most))
                fitting, how = self._known[flavors, size]
                yield WaitingPods(row, count, size, min(count, fitting), how)

    def _nodes_of(self, flavors: frozenset[str]) -> tuple[list[int], int]:
        """What is free on the nodes of some flavors, without zeros, and the most that one of them has.

        Without flavors, those of a queue that does not count the resource, all nodes count.
        """
        if flavors not in self._lists:
            frees, most = [], 0
            for node, free in zip(self._occupancy.nodes, self.frees, strict=True):
                names = {flavor.name for flavor in self._flavors.all_of(node.view.node)}
                if not flavors or names & flavors:
                    most = max(most, node.total(self.resource))
                    if free:
                        frees.append(free)
            self._lists[flavors] = (frees, most)
        return self._lists[flavors]


def fit(size: int, frees: Iterable[int], most: int) -> Fit:
    """Whether a pod of a size fits, where so much is free on each node and the largest node has `most`."""
    free = list(frees)
    if any(each >= size for each in free):
        return Fit.FITS
    if size > most:
        return Fit.TOO_LARGE
    return Fit.SPREAD if sum(free) >= size else Fit.FULL
