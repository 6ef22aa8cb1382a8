"""The quota tree: queues under cohorts of any depth, and what is free in each of its places.

At every node and for every flavor and resource the tree knows a few integers (`Cell`). Adding or
removing use changes those on the path from the queue to the root, and nothing else.

The rule (design §3, *Quota*): use that a node's own unlent quota does not cover is taken from the
node above; at the root nothing is above. A request fits if every part of it is covered in this way,
and no node on the path passes its `max`.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from fractions import Fraction
from typing import Final

from admitter.engine.model import FlavorResource
from admitter.engine.policy import NO_PATIENCE, BorrowWithin, Cohort, Patience, Queue, Quota

Node = tuple[str, str]
"""A place in the tree: `queue` or `cohort`, and its name."""

_NO_QUOTA: Final = Quota()


class Together:
    """One resource in all flavors of one queue that has a limit on that.

    Attributes:
        limit: the most that may be in use, in the resource's unit.
        used: what is.
    """

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0


class Cell:
    """One resource in one flavor at one node. All amounts are in the resource's unit.

    Attributes:
        parent: the same of the node above; None at the root.
        own: what the subtree has: the node's minimum, and what its children lend.
        kept: how much of `own` is not lent to the node above; at the root all of it.
        limit: the node's maximum; None: no such limit.
        used: use that reached this node: at a queue all of it, at a cohort what the children took from it.
        total: the use of the whole subtree.
        together: at a queue with a limit on all flavors together, what these use.
    """

    __slots__ = ("kept", "limit", "own", "parent", "together", "total", "used")

    def __init__(self, parent: "Cell | None", own: int, kept: int, limit: int | None) -> None:
        self.parent = parent
        self.own = own
        self.kept = kept
        self.limit = limit
        self.used = 0
        self.total = 0
        self.together: Together | None = None

    def add(self, amount: int) -> bool:
        """Add use, or remove it if negative, here and above.

        Returns:
            Whether a subtree borrows now that did not before.
        """
        if self.together is not None:
            self.together.used += amount
        cell: Cell | None = self
        passed = amount
        crossed = False
        while cell is not None:
            cell.total += amount
            if passed:
                before, kept = cell.used, cell.kept
                cell.used = after = before + passed
                crossed |= before <= cell.own < after
                passed = (after - kept if after > kept else 0) - (before - kept if before > kept else 0)
            cell = cell.parent
        return crossed

    def available(self) -> int:
        """The largest request that fits here now; not positive if none does."""
        free, together = self.in_flavor(), self.together
        return free if together is None else min(free, together.limit - together.used)

    def in_flavor(self) -> int:
        """As `available`, but for the limit on all flavors together."""
        cell: Cell | None = self
        free = 0
        room: int | None = None
        while cell is not None:
            if cell.limit is not None:
                left = cell.limit - cell.total
                if room is None or left < room:
                    room = left
            if cell.kept > cell.used:
                free += cell.kept - cell.used
            cell = cell.parent
        return free if room is None or free < room else room

    def ceiling(self) -> int:
        """The largest request that would fit if nothing were in use."""
        cell: Cell | None = self
        free = 0
        room = self.together.limit if self.together is not None else None
        while cell is not None:
            if cell.limit is not None and (room is None or cell.limit < room):
                room = cell.limit
            free += cell.kept
            cell = cell.parent
        return free if room is None or free < room else room

    def borrows(self, amount: int = 0) -> bool:
        """Whether this subtree uses more than its own, with so much added."""
        return self.used + amount > self.own


class Tree:
    """Who is below whom, and the quotas; the same for every book of use."""

    def __init__(self) -> None:
        self.queues: dict[str, Queue] = {}
        self.cohorts: dict[str, Cohort] = {}
        self.version = 0
        self._parents: dict[Node, Node | None] = {}
        self._below: dict[Node, list[str]] = {}
        self._beside: dict[Node, frozenset[str]] = {}
        self._minimums: dict[tuple[Node, FlavorResource], int] = {}
        self._paths: dict[Node, tuple[Node, ...]] = {}
        self._roots: dict[str, Node] = {}
        self._to_borrow: dict[tuple[Node, BorrowWithin], set[str]] = {}
        self._cycles: list[tuple[str, ...]] = []
        self._built = -1

    def set_queue(self, queue: Queue) -> None:
        """Define a queue, or change it."""
        self.queues[queue.name] = queue
        self.version += 1

    def remove_queue(self, name: str) -> None:
        """Remove a queue; what is used in it stays counted, in a tree of its own."""
        if self.queues.pop(name, None) is not None:
            self.version += 1

    def set_cohort(self, cohort: Cohort) -> None:
        """Define a cohort, or change it."""
        self.cohorts[cohort.name] = cohort
        self.version += 1

    def remove_cohort(self, name: str) -> None:
        """Remove a Cohort object; if queues still name it, it goes on as a name without quota."""
        if self.cohorts.pop(name, None) is not None:
            self.version += 1

    def cycles(self) -> list[tuple[str, ...]]:
        """Cohorts that are their own ancestors, each cycle from its first name on; each stands alone."""
        self._build()
        return self._cycles

    def root(self, queue: str) -> Node:
        """The root of the tree that a queue is in."""
        self._build()
        return self._roots.get(queue, ("queue", queue))

    def preempting_to_borrow(self, root: Node, policy: BorrowWithin) -> AbstractSet[str]:
        """The queues of a tree whose workloads may preempt in order to borrow, by some policy."""
        self._build()
        return self._to_borrow.get((root, policy), frozenset())

    def minimums(self, root: Node, key: FlavorResource) -> int:
        """What all queues of a tree are given together."""
        self._build()
        found = self._minimums.get((root, key))
        if found is None:
            found = self._minimums[root, key] = sum(self.minimum(n, key) for n in self.members(root))
        return found

    def minimum(self, queue: str, key: FlavorResource) -> int:
        """What a queue is given of its own."""
        definition = self.queues.get(queue)
        return definition.quotas.get(key, _NO_QUOTA).minimum if definition is not None else 0

    def patience(self, queue: str) -> Patience:
        """What a queue's workloads are granted before they are preempted: its own, capped from above."""
        definition = self.queues.get(queue)
        granted = definition.patience if definition is not None else NO_PATIENCE
        if granted != NO_PATIENCE:
            for kind, name in self.path(("queue", queue)):
                cohort = self.cohorts.get(name) if kind == "cohort" else None
                granted = granted.at_most(cohort.patience) if cohort is not None else granted
        return granted

    def members(self, root: Node) -> list[str]:
        """The queues of a tree, by name."""
        self._build()
        return self._below.get(root, [root[1]])

    def nodes(self, root: Node) -> list[Node]:
        """All nodes of a tree."""
        self._build()
        found = [node for node in self._parents if self.path(node)[-1] == root]
        return found or [root]

    def below(self, node: Node) -> list[str]:
        """The queues below a node, by name."""
        self._build()
        return self._below.get(node, [])

    def beside(self, side: Node) -> AbstractSet[str]:
        """The queues below the node above a node, and not below that one."""
        self._build()
        found = self._beside.get(side)
        if found is None:
            above = self._parents.get(side)
            found = frozenset(self.below(above)) - set(self.below(side)) if above else frozenset()
            self._beside[side] = found
        return found

    def path(self, node: Node) -> tuple[Node, ...]:
        """A node and all above it, upwards."""
        self._build()
        found = self._paths.get(node)
        if found is None:
            above = self._parents.get(node)
            found = self._paths[node] = (node, *(self.path(above) if above is not None else ()))
        return found

    def parents(self) -> Mapping[Node, Node | None]:
        """The node above each node."""
        self._build()
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
        """What is defined at a node."""
        kind, name = node
        definition = self.queues.get(name) if kind == "queue" else self.cohorts.get(name)
        return definition.quotas if definition is not None else {}

    def _build(self) -> None:
        if self._built == self.version:
            return
        self._built = self.version
        named = {queue.cohort for queue in self.queues.values()} - {""}
        named |= {cohort.parent for cohort in self.cohorts.values()} - {""} | self.cohorts.keys()
        above = {name: self.cohorts[name].parent if name in self.cohorts else "" for name in named}
        self._cycles = _cycles(above)
        for name in (name for cycle in self._cycles for name in cycle):
            above[name] = ""
        self._parents = {
            ("cohort", name): ("cohort", parent) if parent else None for name, parent in above.items()
        }
        for queue in self.queues.values():
            self._parents["queue", queue.name] = ("cohort", queue.cohort) if queue.cohort else None
        self._paths.clear()
        below = defaultdict(list)
        for name in sorted(self.queues):
            for node in self.path(("queue", name)):
                below[node].append(name)
        self._below = dict(below)
        self._beside.clear()
        self._minimums.clear()
        self._roots, to_borrow = {}, defaultdict(set)
        for name, queue in self.queues.items():
            *_, root = self.path(("queue", name))
            self._roots[name] = root
            to_borrow[root, queue.preemption.borrow].add(name)
        self._to_borrow = dict(to_borrow)


def _cycles(above: Mapping[str, str]) -> list[tuple[str, ...]]:
    """The cycles of a map from name to the name above it; empty: nothing above."""
    found = []
    done: set[str] = set()
    for start in sorted(above):
        trail: dict[str, None] = {}
        name = start
        while name and name not in done and name not in trail:
            trail[name] = None
            name = above[name]
        if name in trail:
            cycle = list(trail)[list(trail).index(name) :]
            first = cycle.index(min(cycle))
            found.append((*cycle[first:], *cycle[:first]))
        done |= trail.keys()
    return found


class Book:
    """The use of a tree: sums by queue, and a cell for each place that they reach.

    Sums are kept by queue whether or not it is defined, so a change of definitions loses nothing:
    the cells are made anew from them.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._used: defaultdict[str, dict[FlavorResource, int]] = defaultdict(dict)
        self._cells: dict[tuple[str, FlavorResource], Cell] = {}
        self._nodes: defaultdict[Node, dict[FlavorResource, Cell]] = defaultdict(dict)
        self._borrowers: defaultdict[tuple[Node, FlavorResource], set[str]] = defaultdict(set)
        self._unused: dict[tuple[Node, FlavorResource], int] = {}
        self._together: dict[tuple[str, str], Together] = {}
        self._version = -1

    def used(self, queue: str) -> Mapping[FlavorResource, int]:
        """The use of a queue; what is missing is 0."""
        return self._used.get(queue, {})

    def add(
        self, queue: str, usage: Iterable[tuple[FlavorResource, int]], sign: int = 1
    ) -> list[FlavorResource]:
        """Add use to a queue, or remove it with sign -1.

        Returns:
            Where a subtree borrows now that did not before.
        """
        self.refresh()
        used = self._used[queue]
        crossed = []
        for key, amount in usage:
            if self.cell(queue, key).add(sign * amount):
                crossed.append(key)
            self._note(queue, key)
            before = used.get(key, 0)
            used[key] = before + sign * amount
            if self._unused:
                self._note_unused(queue, key, before, used[key])
            if not used[key]:
                del used[key]
        if not used:
            del self._used[queue]
        return crossed

    def borrowers(self, root: Node, key: FlavorResource) -> set[str]:
        """The queues of a tree that use more than their own."""
        self.refresh()
        return self._borrowers.get((root, key), set())

    def unused(self, root: Node, key: FlavorResource) -> int:
        """What the queues of a tree have of their own and do not use: added up once, then kept up."""
        self.refresh()
        found = self._unused.get((root, key))
        if found is None:
            members = self._tree.members(root)
            found = sum(
                max(0, self._tree.minimum(name, key) - self.used(name).get(key, 0)) for name in members
            )
            self._unused[root, key] = found
        return found

    def _note_unused(self, queue: str, key: FlavorResource, before: int, after: int) -> None:
        place = (self._tree.root(queue), key)
        if place in self._unused:
            minimum = self._tree.minimum(queue, key)
            self._unused[place] += max(0, minimum - after) - max(0, minimum - before)

    def _note(self, queue: str, key: FlavorResource) -> None:
        borrowers = self._borrowers[self._tree.root(queue), key]
        if self.cell(queue, key).borrows():
            borrowers.add(queue)
        else:
            borrowers.discard(queue)

    def cell(self, queue: str, key: FlavorResource) -> Cell:
        """The cell of a queue."""
        self.refresh()
        found = self._cells.get((queue, key))
        if found is None:
            found = self._cells[queue, key] = self.at(("queue", queue), key)
            found.together = self._limit_together(queue, key[1])
        return found

    def fits(self, queue: str, usage: Iterable[tuple[FlavorResource, int]]) -> bool:
        """Whether so much is free; nothing fits everywhere."""
        wanted = [(self.cell(queue, key), amount) for key, amount in usage if amount]
        if not all(amount <= cell.available() for cell, amount in wanted):
            return False
        together: Counter[Together] = Counter()
        for cell, amount in wanted:
            if cell.together is not None:
                together[cell.together] += amount
        return all(amount <= limited.limit - limited.used for limited, amount in together.items())

    def _limit_together(self, queue: str, resource: str) -> Together | None:
        definition = self._tree.queues.get(queue)
        limit = definition.limits.get(resource) if definition is not None else None
        if limit is None:
            return None
        return self._together.setdefault((queue, resource), Together(limit))

    def at(self, node: Node, key: FlavorResource) -> Cell:
        """The cell of any node."""
        self.refresh()
        found = self._nodes[node].get(key)
        return self._make(node, key) if found is None else found

    def cells(self, node: Node) -> Mapping[FlavorResource, Cell]:
        """All cells of a node in which anything was ever defined or used."""
        self.refresh()
        return self._nodes[node]

    def refresh(self) -> None:
        """Make all cells anew if a definition has changed."""
        if self._version == self._tree.version:
            return
        self._version = self._tree.version
        self._cells.clear()
        self._nodes.clear()
        self._borrowers.clear()
        self._unused.clear()
        self._together.clear()
        children: defaultdict[Node, list[Node]] = defaultdict(list)
        parents = self._tree.parents()
        for node, parent in parents.items():
            if parent is not None:
                children[parent].append(node)
        for node, parent in parents.items():
            if parent is None:
                self._plant(node, children)
        for queue, used in self._used.items():
            for key, amount in used.items():
                self.cell(queue, key).add(amount)
                self._note(queue, key)

    def _plant(self, root: Node, children: Mapping[Node, list[Node]]) -> None:
        """Make the cells of a tree: what subtrees have from below, links to parents from above."""
        order = [root]
        for node in order:
            order.extend(children.get(node, ()))
        own: dict[Node, defaultdict[FlavorResource, int]] = {node: defaultdict(int) for node in order}
        kept: dict[tuple[Node, FlavorResource], int] = {}
        parents = self._tree.parents()
        for node in reversed(order):
            quotas, parent = self._tree.quotas(node), parents[node]
            for key, quota in quotas.items():
                own[node][key] += quota.minimum
            for key, amount in own[node].items():
                lending = quotas.get(key, _NO_QUOTA).lending_limit
                if parent is None:
                    kept[node, key] = amount
                else:
                    kept[node, key] = 0 if lending is None else max(0, amount - lending)
                    own[parent][key] += amount - kept[node, key]
        for node in order:
            quotas, parent = self._tree.quotas(node), parents[node]
            for key, amount in own[node].items():
                limit = quotas.get(key, _NO_QUOTA).maximum
                above = self._nodes[parent][key] if parent is not None else None
                self._nodes[node][key] = Cell(above, amount, kept[node, key], limit)

    def _make(self, node: Node, key: FlavorResource) -> Cell:
        """A cell where nothing is defined: use that its definition no longer covers."""
        parent = self._tree.parents().get(node)
        limit = self._tree.quotas(node).get(key, _NO_QUOTA).maximum
        cell = Cell(self.at(parent, key) if parent is not None else None, 0, 0, limit)
        self._nodes[node][key] = cell
        return cell
