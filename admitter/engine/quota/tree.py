"""The quota tree: queues under cohorts of any depth, and what is free in each of its places.

At every node and for every flavor and resource the tree knows a few integers (`Cell`). Adding or
removing use changes those on the path from the queue to the root, and nothing else. So does a
changed definition: nothing is ever built anew, and what comes of any changes in whichever order is
what would have come of the last definitions alone.

The rule (docs/design/engine.md): use that a node's own unlent quota does not cover is taken from the
node above; at the root nothing is above. A request fits if every part of it is covered in this way,
and no node on the path passes its `max`.
"""

from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from fractions import Fraction
from typing import Final, Protocol, TypeVar

from admitter.engine.model import FlavorResource
from admitter.engine.policy import NO_TERMS, BorrowWithin, Cohort, EvictionLimit, Queue, Quota, VictimTerms
from admitter.engine.quota.cells import NO_QUOTA

Node = tuple[str, str]  # a place in the tree: `queue` or `cohort`, and its name

Given = Counter[tuple[str, FlavorResource]]  # sums of minimums, of queues and of cohorts


T = TypeVar("T")

_NONE: Final[frozenset[str]] = frozenset()


class Follower(Protocol):
    """Keeps something for every place in a tree: what is in use, for one."""

    def fit(self, node: Node) -> None:
        """A node was defined, or is below another one."""

    def drop(self, cohort: Node) -> None:
        """A cohort is gone: nothing was below it."""

    def lift(self, queue: str) -> None:
        """A queue is about to change."""

    def put(self, queue: str) -> None:
        """A queue has changed."""


class Tree:
    """What is below each cohort, and the quotas; the same for every book of use."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}  # as they are defined, by name
        # as they are defined, by name; a cohort that is only named is not among them
        self.cohorts: dict[str, Cohort] = {}
        self.version = 0  # changes with every definition, of flavors too
        # the queues in which more than priority and rank decides what of them may be evicted
        self.apart: set[str] = set()
        # how many of the workloads of a queue, or of all queues below a cohort, may be evicted
        self.eviction_limits: dict[Node, EvictionLimit] = {}
        self._books: list[Follower] = []
        self._parents: dict[Node, Node | None] = {}
        self._paths: dict[Node, tuple[Node, ...]] = {}
        self._named: Counter[str] = Counter()  # how many definitions a cohort is named by, its own included
        self._cycles: dict[str, tuple[str, ...]] = {}
        # Of each cohort the queues below it, by name, and what all of these and all of its cohorts are given.
        self._below: dict[Node, list[str]] = {}
        self._given: dict[Node, Given] = {}
        self._holders: dict[Node, frozenset[Node | None]] = {}
        self._to_borrow: defaultdict[tuple[Node, BorrowWithin], set[str]] = defaultdict(set)
        self._preempting: defaultdict[Node, set[str]] = defaultdict(set)

    def follow(self, book: Follower) -> None:
        """Keep a book's cells as the definitions want them, from now on."""
        self._books.append(book)
        for node in self._parents:
            book.fit(node)

    def set_queue(self, queue: Queue) -> None:
        node, before = ("queue", queue.name), self.queues.get(queue.name)
        with self._lifted({queue.name}):
            self._count(node, -1)
            self.queues[queue.name] = queue
            if before is None or before.cohort != queue.cohort:
                self._name(queue.cohort)
                self._link(node, ("cohort", queue.cohort) if queue.cohort else None)
                self._unname(before.cohort if before is not None else "")
            self._count(node, 1)
            self._limit(node, queue.max_evictions)

    def remove_queue(self, name: str) -> None:
        """Remove a queue; what is used in it stays counted, in a tree of its own."""
        if name in self.queues:
            node = ("queue", name)
            with self._lifted({name}):
                self._count(node, -1)
                self._link(node, None)
                gone = self.queues.pop(name)
                del self._parents[node]
                self._paths.pop(node, None)
                self._unname(gone.cohort)
                self._limit(node, None)

    def set_cohort(self, cohort: Cohort) -> None:
        before = self.cohorts.get(cohort.name)
        self._name(cohort.name if before is None else "")
        self._redefine(cohort.name, cohort)

    def remove_cohort(self, name: str) -> None:
        """Remove a Cohort object; if queues still name it, it goes on as a name without quota."""
        if name in self.cohorts:
            self._redefine(name, None)
            self._unname(name)

    def _redefine(self, name: str, cohort: Cohort | None) -> None:
        """Put a Cohort object in the place of what was."""
        self.version += 1
        node, before = ("cohort", name), self._above(name)
        self._count(node, -1)
        if cohort is not None:
            self.cohorts[name] = cohort
        else:
            del self.cohorts[name]
        self._limit(node, cohort.max_evictions if cohort is not None else None)
        above = self._above(name)
        if above != before:
            self._name(above)
            self._move(name)
            self._unname(before)
        self._count(node, 1)
        for book in self._books:
            book.fit(node)

    def _limit(self, node: Node, limit: EvictionLimit | None) -> None:
        self.eviction_limits.pop(node, None)
        if limit is not None:
            self.eviction_limits[node] = limit

    def limiting(self, queue: str) -> tuple[Node, ...]:
        """A queue and the cohorts above it, those that limit how many of its workloads may be evicted."""
        if not self.eviction_limits:
            return ()
        return tuple(node for node in self.path(("queue", queue)) if node in self.eviction_limits)

    def _move(self, name: str) -> None:
        """A cohort names another one above it: cycles may go by that, or come."""
        broken = self._cycles.get(name, ())
        for each in broken:
            del self._cycles[each]
        closed = self._cycle(name)
        self._cycles.update(dict.fromkeys(closed, closed))
        moved = dict.fromkeys((name, *broken, *closed))
        with self._lifted({queue for each in moved for queue in self.below(("cohort", each))}):
            above = {each: self._above(each) if each not in self._cycles else "" for each in moved}
            for each in moved:  # first all are taken out, so that at no time one is its own ancestor
                self._link(("cohort", each), None)
            for each, parent in above.items():
                self._link(("cohort", each), ("cohort", parent) if parent else None)

    def _above(self, cohort: str) -> str:
        """The cohort that a cohort says is above it; empty for none."""
        return self.cohorts[cohort].parent if cohort in self.cohorts else ""

    def _cycle(self, cohort: str) -> tuple[str, ...]:
        """The cycle that a cohort closes, from its first name on; empty: none."""
        trail: dict[str, None] = {}
        name = cohort
        while name and name not in trail:
            trail[name] = None
            name = self._above(name)
        if name != cohort:
            return ()
        cycle = list(trail)
        first = cycle.index(min(cycle))
        return (*cycle[first:], *cycle[:first])

    @contextmanager
    def _lifted(self, queues: set[str]) -> Iterator[None]:
        """Take what is kept of queues by their tree out of it, and put it in again where they are then."""
        self.version += 1
        for name in queues:
            if name in self.queues:
                root = self.root(name)
                discard(self._to_borrow, (root, self.queues[name].preemption.borrow), name)
                discard(self._preempting, root, name)
                self.apart.discard(name)
            for book in self._books:
                book.lift(name)
        yield
        for name in queues:
            if name in self.queues:
                definition = self.queues[name]
                if definition.preemption.borrow is not BorrowWithin.NEVER:
                    self._to_borrow[self.root(name), definition.preemption.borrow].add(name)
                if definition.preemption.allowed:
                    self._preempting[self.root(name)].add(name)
                if _is_apart(definition):
                    self.apart.add(name)
            for book in self._books:
                book.put(name)

    def _name(self, cohort: str) -> None:
        """A definition names a cohort; the first one makes it."""
        if cohort:
            self._named[cohort] += 1
            node = ("cohort", cohort)
            if node not in self._parents:
                self._parents[node] = None
                self._below[node] = []
                self._given[node] = Counter()

    def _unname(self, cohort: str) -> None:
        """A definition names a cohort no longer; with the last one it goes, and nothing is below it then."""
        if cohort:
            self._named[cohort] -= 1
            if not self._named[cohort]:
                node = ("cohort", cohort)
                del self._named[cohort], self._parents[node], self._below[node], self._given[node]
                self._paths.pop(node, None)
                self._holders.pop(node, None)
                for book in self._books:
                    book.drop(node)

    def _count(self, node: Node, sign: int) -> None:
        """Count what a node is given, there and above."""
        given = {(node[0], key): quota.minimum for key, quota in self.quotas(node).items() if quota.minimum}
        for place in self.path(node) if given else ():
            if place in self._given:
                _add(self._given[place], given, sign)

    def _link(self, node: Node, parent: Node | None) -> None:
        """Move a node, with all that is below it."""
        if node in self._parents and self._parents[node] == parent:
            return
        names, given = self.members(node), self._given.get(node, Counter())
        for place in self.path(node)[1:]:
            for name in names:
                del self._below[place][bisect_left(self._below[place], name)]
            _add(self._given[place], given, -1)
            self._holders.pop(place, None)
        self._parents[node] = parent
        if node[0] == "cohort":
            self._paths.clear()
        self._paths.pop(node, None)
        for place in self.path(node)[1:]:
            for name in names:
                insort(self._below[place], name)
            _add(self._given[place], given, 1)
            self._holders.pop(place, None)
        for book in self._books:
            book.fit(node)

    def cycle(self, cohort: str) -> tuple[str, ...]:
        """The cycle that a cohort is in, from the first name on; each of it stands alone. Empty: none."""
        return self._cycles.get(cohort, ())

    def root(self, queue: str) -> Node:
        """The root of the tree that a queue is in."""
        path = self._paths.get(("queue", queue))
        return path[-1] if path is not None else self.path(("queue", queue))[-1]

    def roots(self, queues: Iterable[str], cohorts: Iterable[str] = ()) -> set[Node]:
        """The roots of the trees of some queues and cohorts.

        What is below a cohort of a cycle has another root, once one of that cycle names another parent.
        """
        linked = {each for name in cohorts for each in (name, *self.cycle(name))}
        return {self.path(("cohort", name))[-1] for name in linked} | {self.root(name) for name in queues}

    def concerned(
        self, names: Mapping[str, object], queues: AbstractSet[str], roots: AbstractSet[Node]
    ) -> list[str]:
        """The queues among `names` that are in `queues`, or in a tree with a root in `roots`."""
        if not roots:
            return [name for name in queues if name in names]
        return [name for name in names if name in queues or self.root(name) in roots]

    def relatives(self, queue: str) -> list[str]:
        """The queues that share a cohort with a queue that is not the whole tree, and that queue."""
        nodes = self.path(("queue", queue))[:-1] or (("queue", queue),)
        return self.below(nodes[-1])

    def preempting(self, root: Node) -> AbstractSet[str]:
        """The queues of a tree that let workloads preempt, by any policy."""
        return self._preempting.get(root, _NONE)

    def preempting_to_borrow(self, root: Node, policy: BorrowWithin) -> AbstractSet[str]:
        """The queues of a tree that let workloads preempt in order to borrow, by some policy."""
        return self._to_borrow.get((root, policy), _NONE) if self._to_borrow else _NONE

    def minimums(self, root: Node, key: FlavorResource) -> int:
        """What all queues of a tree are given together."""
        kind, name = root
        return self.minimum(name, key) if kind == "queue" else self._given.get(root, Counter())["queue", key]

    def given(self, cohort: Node) -> dict[FlavorResource, int]:
        """What a cohort and all queues and cohorts below it are given; what is missing is 0."""
        sums: Counter[FlavorResource] = Counter()
        for (_, key), amount in self._given.get(cohort, {}).items():
            sums[key] += amount
        return sums

    def minimum(self, queue: str, key: FlavorResource) -> int:
        """What a queue is given of its own."""
        definition = self.queues.get(queue)
        return definition.quotas.get(key, NO_QUOTA).minimum if definition is not None else 0

    def victim_terms(self, queue: str) -> VictimTerms:
        """What a queue's workloads are granted before they are preempted: its own, capped from above."""
        definition = self.queues.get(queue)
        granted = definition.victim_terms if definition is not None else NO_TERMS
        if granted != NO_TERMS:
            for kind, name in self.path(("queue", queue)):
                cohort = self.cohorts.get(name) if kind == "cohort" else None
                granted = granted.at_most(cohort.victim_terms) if cohort is not None else granted
        return granted

    def members(self, root: Node) -> list[str]:
        """The queues of a tree, by name."""
        kind, name = root
        return [name] if kind == "queue" else self.below(root)

    def nodes(self, root: Node) -> list[Node]:
        cohorts = [node for node in self._below if self.path(node)[-1] == root]
        return [*cohorts, *(("queue", name) for name in self.members(root))]

    def below(self, node: Node) -> list[str]:
        """The queues below a node, by name."""
        kind, name = node
        if kind == "queue":
            return [name] if name in self.queues else []
        return self._below.get(node, [])

    def holders(self, cohort: Node) -> AbstractSet[Node | None]:
        """The cohorts right above the queues below a cohort."""
        if cohort not in self._holders:
            self._holders[cohort] = frozenset(self._parents["queue", name] for name in self.below(cohort))
        return self._holders[cohort]

    def path(self, node: Node) -> tuple[Node, ...]:
        """A node and all above it, upwards."""
        found = self._paths.get(node)
        if found is None:
            if node not in self._parents:
                return (node,)
            way = [node]
            while (above := self._parents[way[-1]]) is not None:
                way.append(above)
            found = self._paths[node] = tuple(way)
        return found

    def parents(self) -> Mapping[Node, Node | None]:
        """The node above each node."""
        return self._parents

    def fair(self, root: Node) -> bool:
        """Whether what is borrowed in a tree is shared by weight."""
        kind, name = root
        return kind == "cohort" and name in self.cohorts and self.cohorts[name].fair

    def weight(self, node: Node) -> Fraction:
        """How much a node's borrowing counts for; 1 if nothing is said."""
        kind, name = node
        definition = self.queues.get(name) if kind == "queue" else self.cohorts.get(name)
        return definition.weight if definition is not None else Fraction(1)

    def quotas(self, node: Node) -> Mapping[FlavorResource, Quota]:
        kind, name = node
        definition = self.queues.get(name) if kind == "queue" else self.cohorts.get(name)
        return definition.quotas if definition is not None else {}


def _add(sums: Given, more: Mapping[tuple[str, FlavorResource], int], sign: int) -> None:
    """Add to sums; what comes to nothing is left out."""
    for key, amount in more.items():
        sums[key] += sign * amount
        if not sums[key]:
            del sums[key]


def discard(names: defaultdict[T, set[str]], key: T, name: str) -> None:
    """Take a name out of the set of a key; an empty set goes."""
    names[key].discard(name)
    if not names[key]:
        del names[key]


def _is_apart(queue: Queue) -> bool:
    """Whether more than priority and rank decides which of a queue's workloads may be evicted."""
    by_time = queue.victim_terms.runtime or queue.eviction_limit is not None
    return bool(queue.pool or by_time or queue.by_namespace)
