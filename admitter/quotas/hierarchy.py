"""Trees of Cohorts: what follows from them for the queues below (docs/design/hierarchy.md).

Whatever is declared is counted as it is: the tightest `max` on the way up rules by itself. This module
finds what a ClusterQueue without `resources` has instead, and numbers that contradict those above.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from admitter.api.cluster_queue import ResourceQuota
from admitter.api.cohort import CapacityFrom, CohortSpec, OnShrink
from admitter.api.lifecycle import Lifecycle
from admitter.convert import definitions
from admitter.engine.model import FlavorResource
from admitter.engine.policy import Cohort, Group, Queue, Quota
from admitter.engine.quota.book import Book
from admitter.engine.quota.tree import Tree
from admitter.names import ANY_NODE, PODS
from admitter.quantities.amounts import display
from admitter.quantities.durations import parse_duration

NO_LIFECYCLE: Final = Lifecycle()

Named = tuple[tuple[str, str], ...]  # where flavors are named: a field, and the flavor that it names


@dataclass(frozen=True, slots=True)
class Branch:
    """A Cohort as it is declared."""

    rules: Cohort  # what the engine gets of it
    # what queues below it have that list no resources; empty: it lists none itself
    groups: tuple[Group, ...] = ()
    named: Named = ()  # the flavors in them
    overlap: str = ""  # why these resources can't be had by a queue; empty if they can
    from_nodes: bool = False  # whether nodes say how much there is in its tree
    # for how many seconds more may be in use in it than there is; None: for ever
    evict_after: float | None = None
    lifecycle: Lifecycle = NO_LIFECYCLE  # for the queues below it


@dataclass(frozen=True, slots=True)
class Leaf:
    """What a ClusterQueue has in effect: its definition, and the flavors that it has from a Cohort.

    `problem` is why it can't work; empty if it can.
    """

    queue: Queue
    named: Named = ()
    problem: str = ""


def branch(name: str, spec: CohortSpec) -> Branch:
    from_nodes = spec.capacity_from is CapacityFrom.NODES
    evicts = from_nodes and spec.on_shrink is OnShrink.EVICT
    return Branch(
        definitions.cohort(name, spec),
        definitions.groups(spec.resources),
        named(spec.resources, f"Cohort {name}: "),
        _overlap(spec.resources),
        from_nodes,
        parse_duration(str(spec.evict_after)) if evicts else None,
        spec.lifecycle or NO_LIFECYCLE,
    )


def named(resources: list[ResourceQuota], prefix: str = "") -> Named:
    """The flavors that a spec names."""
    return tuple(
        (f"{prefix}spec.resources[{number}].flavors names {flavor.name}", flavor.name)
        for number, resource in enumerate(resources)
        for flavor in resource.flavors
    )


def _overlap(resources: list[ResourceQuota]) -> str:
    """Which resources share a flavor, but not all: a pod set could not get one flavor for all of them."""
    lists = [(resource.name, [flavor.name for flavor in resource.flavors]) for resource in resources]
    for number, (resource, flavors) in enumerate(lists):
        for other, others in lists[:number]:
            shared = sorted(set(flavors) & set(others))
            if flavors != others and shared:
                return f"{other} and {resource} share flavor {shared[0]}, but do not list the same flavors"
    return ""


_NOTHING: Final = Branch(Cohort(""))
_FREE: Final = Quota()


class Hierarchy:
    """The parent of each Cohort, at one moment."""

    def __init__(self, branches: Mapping[str, Branch] | None = None) -> None:
        """Take the Cohorts by name; it must not change afterwards."""
        self.branches = branches or {}
        self._above: dict[str, tuple[str, ...]] = {}

    def above(self, cohort: str) -> tuple[str, ...]:
        """A cohort and all above it, upwards; one that is its own ancestor stands alone."""
        found = self._above.get(cohort)
        if found is None:
            way: list[str] = []
            name = cohort
            while name and name not in way:
                way.append(name)
                name = self._branch(name).rules.parent
            found = self._above[cohort] = tuple(way[: way.index(name) + 1] if name else way)
        return found

    def lifecycles(self, cohort: str) -> Iterator[tuple[str, Lifecycle]]:
        """What a cohort and those above it say of the lifecycle of Workloads, upwards, with their titles."""
        return ((f"Cohort {name}", self._branch(name).lifecycle) for name in self.above(cohort))

    def leaf(self, written: Queue) -> Leaf:
        """What a queue has in effect.

        Without resources of its own it has those of the nearest Cohort that lists any. What it limits and no
        Cohort lists is counted beside these. Where it lists resources itself, that is so with a limit on pods
        alone: what requests another resource is not admitted there.
        """
        branches = map(self._branch, self.above(written.cohort))
        source = next((branch for branch in branches if branch.groups), None)
        if written.groups:
            uncounted = written.limits.keys() & {PODS} - {*written.covered()}
            return Leaf(self._counting(written, written.groups, {r: written.limits[r] for r in uncounted}))
        if source is None:
            return Leaf(_limited(written, (ANY_NODE,), (), written.limits))
        if source.overlap:
            words = f"it has the resources of Cohort {source.rules.name}: {source.overlap}"
            return Leaf(replace(written, admits=False), problem=words)
        listed = {resource for group in source.groups for resource in group.resources}
        more = {name: most for name, most in written.limits.items() if name not in listed}
        return Leaf(self._counting(written, source.groups, more), source.named)

    def _counting(self, written: Queue, groups: tuple[Group, ...], more: Mapping[str, int]) -> Queue:
        """A queue with groups, its own or a Cohort's, that counts what it limits besides (`more`).

        Nodes say how much there is of that, or else the limits do.
        """
        first, *others = groups
        if not more:
            return replace(written, groups=groups)
        if any(self._branch(root).from_nodes for root in self.above(written.cohort)[-1:]):
            return replace(written, groups=(_with(first, more), *others))
        return _limited(written, first.flavors, groups, more)

    def excess(self, title: str, quotas: Mapping[FlavorResource, Quota], cohort: str) -> str | None:
        """Which number of an object in a cohort is more than the `max` of a Cohort above."""
        for (flavor, resource), quota in quotas.items():
            for name in self.above(cohort):
                most = self._branch(name).rules.quotas.get((flavor, resource), _FREE).maximum
                for word, amount in (("min", quota.minimum), ("max", quota.maximum)):
                    if most is not None and amount is not None and amount > most:
                        what = f"the {word} of {title} for {resource} of {flavor}"
                        return _more(what, resource, amount, most, name)
        return None

    def excessive_limit(self, title: str, queue: Queue) -> str | None:
        """Which limit of a queue is more than the `max` of a Cohort above leaves to its flavors together."""
        for resource, limit in queue.limits.items():
            flavors = [f for group in queue.groups if resource in group.resources for f in group.flavors]
            for name in self.above(queue.cohort):
                quotas = self._branch(name).rules.quotas
                caps = [quotas.get((flavor, resource), _FREE).maximum for flavor in flavors]
                most = sum(cap for cap in caps if cap is not None)
                if caps and None not in caps and limit > most:
                    return _more(f"the limit of {title} for {resource}", resource, limit, most, name)
        return None

    def _branch(self, name: str) -> Branch:
        return self.branches.get(name, _NOTHING)


def _more(what: str, resource: str, amount: int, most: int, cohort: str) -> str:
    own, less = display(resource, amount), display(resource, most)
    return f"{what} is {own}, more than the max {less} of Cohort {cohort}, which counts"


class QuotaUse(NamedTuple):
    """One resource of one flavor in a whole subtree; amounts in the resource's unit."""

    total: int  # what all `min` in it come to, at most its `max`
    used: int  # what is in use in it
    borrowed: int  # how much of that comes from above


def cohort_use(tree: Tree, book: Book, cohort: str) -> dict[FlavorResource, QuotaUse]:
    """What there is below a Cohort, and what is used of it; what is neither there nor used is left out."""
    node = ("cohort", cohort)
    given, found = tree.given(node), {}
    for key, cell in book.cells(node).items():
        minimums = given.get(key, 0)
        total = minimums if cell.limit is None else min(minimums, cell.limit)
        if total or cell.total:
            found[key] = QuotaUse(total, cell.total, max(0, cell.used - cell.subtree_quota))
    return found


def _with(group: Group, more: Iterable[str]) -> Group:
    return Group((*group.resources, *more), group.flavors)


def _limited(
    written: Queue, flavors: tuple[str, ...], groups: tuple[Group, ...], limits: Mapping[str, int]
) -> Queue:
    """A queue with limits on resources that no other queue counts; none of that is for others."""
    first, *others = groups or (Group((), flavors),)
    quotas = {(flavor, name): Quota(most, most, 0) for name, most in limits.items() for flavor in flavors}
    counted = (_with(first, limits), *others) if limits else groups
    return replace(written, groups=counted, quotas={**written.quotas, **quotas})
