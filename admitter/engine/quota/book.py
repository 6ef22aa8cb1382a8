"""What is in use of a quota tree, queue by queue, and what is free in each of its places."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

from admitter.engine.model import FlavorResource
from admitter.engine.quota.cells import NO_QUOTA, Cell, FlavorsTogether, Renewal
from admitter.engine.quota.tree import Node, Tree, discard


class Book:
    """The use of a tree: sums by queue, and a cell for each place that they reach.

    Sums are kept by queue whether or not it is defined. The tree says when a node has changed.
    """

    def __init__(self, tree: Tree) -> None:
        self.renewal = Renewal()  # of the claims on what is not in use
        self._tree = tree
        self._used: defaultdict[str, dict[FlavorResource, int]] = defaultdict(dict)
        self._cells: dict[tuple[str, FlavorResource], Cell] = {}
        self._nodes: defaultdict[Node, dict[FlavorResource, Cell]] = defaultdict(dict)
        self._borrowers: defaultdict[tuple[Node, FlavorResource], set[str]] = defaultdict(set)
        self._unused: defaultdict[Node, dict[FlavorResource, int]] = defaultdict(dict)
        self._together: defaultdict[str, dict[str, FlavorsTogether]] = defaultdict(dict)
        tree.follow(self)

    def used(self, queue: str) -> Mapping[FlavorResource, int]:
        """The use of a queue; what is missing is 0."""
        return self._used.get(queue, {})

    def add(
        self, queue: str, usage: Iterable[tuple[FlavorResource, int]], sign: int = 1
    ) -> list[FlavorResource]:
        """Add use to a queue, or remove it with sign -1; returns where a subtree borrows more than before."""
        used = self._used[queue]
        more = []
        for key, amount in usage:
            cell = self.cell(queue, key)
            borrowed = cell.used > cell.subtree_quota
            if cell.add(sign * amount):
                more.append(key)
            if (cell.used > cell.subtree_quota) is not borrowed:
                self._note(queue, self._tree.root(queue), key)
            before = used.get(key, 0)
            used[key] = before + sign * amount
            if self._unused:
                self._note_unused(queue, self._tree.root(queue), key, before, used[key])
            if not used[key]:
                del used[key]
        if not used:
            del self._used[queue]
        return more

    def borrowers(self, root: Node, key: FlavorResource) -> set[str]:
        """The queues of a tree that use more than their own."""
        return self._borrowers.get((root, key), set())

    def unused(self, root: Node, key: FlavorResource) -> int:
        """What the queues of a tree have of their own and do not use: added up once, then kept up."""
        known = self._unused[root]
        if key not in known:
            known[key] = sum(self._left(name, key) for name in self._tree.members(root))
        return known[key]

    def _left(self, queue: str, key: FlavorResource) -> int:
        """What a queue has of its own and does not use."""
        return max(0, self._tree.minimum(queue, key) - self.used(queue).get(key, 0))

    def _note_unused(self, queue: str, root: Node, key: FlavorResource, before: int, after: int) -> None:
        known = self._unused.get(root)
        if known is not None and key in known:
            minimum = self._tree.minimum(queue, key)
            known[key] += max(0, minimum - after) - max(0, minimum - before)

    def _note(self, queue: str, root: Node, key: FlavorResource) -> None:
        if self.cell(queue, key).borrows():
            self._borrowers[root, key].add(queue)
        else:
            discard(self._borrowers, (root, key), queue)

    def cell(self, queue: str, key: FlavorResource) -> Cell:
        found = self._cells.get((queue, key))
        if found is None:
            found = self._cells[queue, key] = self.at(("queue", queue), key)
            found.together = self._limit_together(queue, key[1])
        return found

    def fits(
        self,
        queue: str,
        usage: Iterable[tuple[FlavorResource, int]],
        room: Callable[[Cell, int], bool] = Cell.fits,
    ) -> bool:
        """Whether so much is free in a queue: `room` says so of each cell; nothing fits everywhere."""
        together: dict[FlavorsTogether, int] = {}
        for key, amount in usage:
            if amount:
                cell = self.cell(queue, key)
                if not room(cell, amount):
                    return False
                if cell.together is not None:
                    together[cell.together] = together.get(cell.together, 0) + amount
        return all(amount <= limited.limit - limited.used for limited, amount in together.items())

    def _limit_together(self, queue: str, resource: str) -> FlavorsTogether | None:
        definition = self._tree.queues.get(queue)
        limit = definition.limits.get(resource) if definition is not None else None
        return None if limit is None else self._together[queue].setdefault(resource, FlavorsTogether(limit))

    def at(self, node: Node, key: FlavorResource) -> Cell:
        found = self._nodes[node].get(key)
        if found is None:
            for place in reversed(self._tree.path(node)):  # from the root on: each hangs below the last one
                if key not in self._nodes[place]:
                    self._nodes[place][key] = Cell(self.renewal)
                    self._fit(place, key)
            found = self._nodes[node][key]
        return found

    def cells(self, node: Node) -> Mapping[FlavorResource, Cell]:
        """All cells of a node in which anything was ever defined or used."""
        return self._nodes.get(node, {})

    def fit(self, node: Node) -> None:
        """A node was defined, or is below another one: its cells are to be what that says."""
        for key in {**self._nodes.get(node, {}), **self._tree.quotas(node)}:
            self.at(node, key)
            self._fit(node, key)

    def _fit(self, node: Node, key: FlavorResource) -> None:
        cell, parent = self._nodes[node][key], self._tree.parents().get(node)
        cell.hang(self.at(parent, key) if parent is not None else None)
        cell.define(self._tree.quotas(node).get(key, NO_QUOTA))

    def drop(self, cohort: Node) -> None:
        self._nodes.pop(cohort, None)
        self._unused.pop(cohort, None)

    def lift(self, queue: str) -> None:
        """A queue is about to change: nothing of it is kept by its tree until it is put there again."""
        root = self._tree.root(queue)
        for key in self._nodes.get(("queue", queue), ()):
            discard(self._borrowers, (root, key), queue)
        for key in self._unused.get(root, ()):
            self._unused[root][key] -= self._left(queue, key)

    def put(self, queue: str) -> None:
        """A queue has changed: its cells are as it says, and its tree knows of it."""
        node, root = ("queue", queue), self._tree.root(queue)
        self.fit(node)
        self._together.pop(queue, None)
        quotas = self._tree.quotas(node)
        for key, cell in list(self.cells(node).items()):
            if not cell.total and key not in quotas:
                cell.hang(None)
                del self._nodes[node][key]
                self._cells.pop((queue, key), None)
                continue
            cell.together = self._limit_together(queue, key[1])
            if cell.together is not None:
                cell.together.used += cell.total
            self._note(queue, root, key)
        for key in self._unused.get(root, ()):
            self._unused[root][key] += self._left(queue, key)
