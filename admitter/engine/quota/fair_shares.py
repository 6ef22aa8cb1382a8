"""Weighted dominant shares: how much of what its tree can lend each queue and cohort has borrowed.

The share of a node: for each resource, what it uses beyond its own in all flavors together, in
proportion to the most that the cohort above it could ever have; of these ratios the largest, divided
by the node's weight. Exact fractions, so two equal shares are equal (docs/design/fair-sharing.md).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Final

from admitter.engine.model import Usage
from admitter.engine.quota.book import Book
from admitter.engine.quota.tree import Node, Tree

Share = tuple[bool, Fraction]
"""Whether it is endless (a queue of weight 0 that borrows), and how large it is else. Ordered."""

NO_SHARE: Final[Share] = (False, Fraction(0))
ENDLESS: Final[Share] = (True, Fraction(0))


class FairShares:
    """Shares in one book of use; what was worked out is kept until use is said to have changed."""

    def __init__(self, tree: Tree, book: Book) -> None:
        self._tree = tree
        self._book = book
        self._known: dict[Node, Share] = {}
        self._lendable: dict[Node, Mapping[str, int]] = {}

    def of(self, node: Node) -> Share:
        found = self._known.get(node)
        if found is None:
            found = self._known[node] = self._share(node)
        return found

    def changed(self, queue: str) -> None:
        """The use of a queue has changed."""
        for node in self._tree.path(("queue", queue)):
            self._known.pop(node, None)

    def with_added(self, queue: str, usage: Usage, nodes: Iterable[Node]) -> dict[Node, Share]:
        """The shares of nodes at or above a queue, if it used so much more."""
        moves = [(self._book.cell(queue, key), amount) for key, amount in usage]
        for cell, amount in moves:
            cell.add(amount)
        try:
            return {node: self._share(node) for node in nodes}
        finally:
            for cell, amount in moves:
                cell.add(-amount)

    def _share(self, node: Node) -> Share:
        above = self._tree.parents().get(node)
        borrowed: Counter[str] = Counter()
        for (_, resource), cell in self._book.cells(node).items():
            if cell.used > cell.subtree_quota:
                borrowed[resource] += cell.used - cell.subtree_quota
        if above is None or not borrowed:
            return NO_SHARE
        weight, lendable = self._tree.weight(node), self._most(above)
        if not weight or not all(lendable.get(resource) for resource in borrowed):
            return ENDLESS
        over, under = weight.denominator, weight.numerator
        return False, max(Fraction(amount * over, lendable[r] * under) for r, amount in borrowed.items())

    def _most(self, cohort: Node) -> Mapping[str, int]:
        """The most of each resource that a cohort could have, in all flavors together."""
        found = self._lendable.get(cohort)
        if found is None:
            *_, root = self._tree.path(cohort)
            sums: Counter[str] = Counter()
            for key in list(self._book.cells(root)):
                sums[key[1]] += self._book.at(cohort, key).potential_available()
            found = self._lendable[cohort] = sums
        return found
