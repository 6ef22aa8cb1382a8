"""Shares of namespaces in one queue (004, *Namespace Compare*): who uses how much of it, by weight.

The share of a namespace: for each resource, what it uses of the queue in all flavors together, over the
most that the queue could ever have of it; of these ratios the largest, divided by the namespace's weight.
All of it as planned, like every decision; exact fractions, so two equal shares are equal.
"""

from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

from admitter.engine.fairness import ENDLESS, NO_SHARE, Share
from admitter.engine.model import Usage
from admitter.engine.quota import Book, Tree

NOTHING: Final[Mapping[str, int]] = {}


def by_resource(usage: Usage) -> Counter[str]:
    """Amounts by resource, in all flavors together."""
    sums: Counter[str] = Counter()
    for (_, resource), amount in usage:
        sums[resource] += amount
    return sums


class Sharing:
    """One queue that namespaces share.

    Attributes:
        changed: namespaces whose use has changed; whoever orders by shares takes them out.
        grown: namespaces that use more than before; whoever is told of that takes them out.
    """

    def __init__(self, queue: str, tree: Tree, book: Book, weights: Mapping[str, int]) -> None:
        """Prepare, with nothing in use.

        Args:
            queue: its name.
            tree: where it stands.
            book: what is planned.
            weights: of namespaces that have one; of others it is 1.
        """
        self.changed: set[str] = set()
        self.grown: set[str] = set()
        self._queue = queue
        self._tree = tree
        self._book = book
        self._weights = weights
        self._used: dict[str, Counter[str]] = {}
        self._known: dict[str, Share] = {}
        self._most: dict[str, int] = {}
        self._version = -1

    def add(self, namespace: str, usage: Usage, sign: int) -> None:
        """A namespace uses so much more, or with sign -1 less."""
        used = self._used.setdefault(namespace, Counter())
        for resource, amount in by_resource(usage).items():
            used[resource] += sign * amount
        if not any(used.values()):
            del self._used[namespace]
        self._known.pop(namespace, None)
        self.changed.add(namespace)
        if sign > 0:
            self.grown.add(namespace)

    def users(self) -> list[str]:
        """The namespaces that use anything of it, by name."""
        return sorted(self._used)

    def reweigh(self, namespace: str) -> None:
        """The weight of a namespace has changed."""
        self._known.pop(namespace, None)
        self.changed.add(namespace)

    def of(self, namespace: str) -> Share:
        """The share of a namespace now."""
        self._refresh()
        found = self._known.get(namespace)
        if found is None:
            found = self._known[namespace] = self.with_(namespace, NOTHING)
        return found

    def with_(self, namespace: str, more: Mapping[str, int]) -> Share:
        """The share of a namespace if it used so much more, or with negative amounts less."""
        self._refresh()
        used = self._used.get(namespace, NOTHING)
        share = NO_SHARE
        for resource in used.keys() | more.keys():
            amount = used.get(resource, 0) + more.get(resource, 0)
            if amount > 0:
                most = self._most_of(resource)
                if most <= 0:
                    return ENDLESS
                share = max(share, (False, Fraction(amount, most * self._weights.get(namespace, 1))))
        return share

    def _refresh(self) -> None:
        """Forget what was worked out before a definition changed."""
        if self._version != self._tree.version:
            self._version = self._tree.version
            self._known.clear()
            self._most.clear()

    def _most_of(self, resource: str) -> int:
        """The most of a resource that the queue could have, in all flavors together."""
        found = self._most.get(resource)
        if found is None:
            queue = self._tree.queues[self._queue]
            keys = {
                queue.key(f, r) for g in queue.groups for f in g.flavors for r in g.resources if r == resource
            }
            found = sum(self._book.cell(self._queue, key).ceiling() for key in keys)
            found = self._most[resource] = min(found, queue.limits.get(resource, found))
        return found
