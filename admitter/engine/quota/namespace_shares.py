"""Shares of namespaces in one queue: how much each uses of it, by weight.

The share of a namespace: for each resource, what it uses of the queue in all flavors together, over the
most that the queue could ever have of it; of these ratios the largest, divided by the namespace's weight.
All of it as planned, like every decision. Shares are whole numbers on one scale a queue, the least on which
they all are whole: so two equal shares are equal, and to compare them costs next to nothing
(docs/design/namespace-fairness.md).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import lcm
from typing import Final

from admitter.engine.model import Usage, Workload
from admitter.engine.quota.book import Book
from admitter.engine.quota.tree import Tree
from admitter.names import PODS

NamespaceShare = tuple[bool, int]
"""Whether it is endless (use of what the queue has nothing of), and how large it is else. Ordered."""

NO_SHARE: Final[NamespaceShare] = (False, 0)
ENDLESS: Final[NamespaceShare] = (True, 0)
NOTHING: Final[Mapping[str, int]] = {}


def by_resource(usage: Usage) -> Counter[str]:
    """Amounts by resource, in all flavors together."""
    sums: Counter[str] = Counter()
    for (_, resource), amount in usage:
        sums[resource] += amount
    return sums


class Sharing:
    """One queue that namespaces share."""

    def __init__(self, queue: str, tree: Tree, book: Book, weights: Mapping[str, int]) -> None:
        """Begin with nothing in use of what is planned; a namespace without a weight has 1."""
        self.changed: set[str] = set()  # namespaces with changed use; what orders by shares takes them out
        # namespaces that use more than before; what requeues for that takes them out
        self.grown: set[str] = set()
        self.shrunk: set[str] = set()  # those that use less, likewise
        self._queue = queue
        self._tree = tree
        self._book = book
        self._weights = weights
        self._used: dict[str, Counter[str]] = {}
        self._shapes: dict[str, Counter[Usage]] = {}
        self._without_least: dict[str, NamespaceShare] = {}
        self._known: dict[str, NamespaceShare] = {}
        self._units: dict[str, int] = {}
        self._scale = 1  # the share of a namespace of weight 1 that uses all there is of something
        self._version = -1

    def add(self, namespace: str, usage: Usage, sign: int) -> None:
        """A namespace uses so much more, or with sign -1 less."""
        used = self._used.setdefault(namespace, Counter())
        for resource, amount in by_resource(usage).items():
            used[resource] += sign * amount
        shapes = self._shapes.setdefault(namespace, Counter())
        shapes[usage] += sign
        if not shapes[usage]:
            del shapes[usage]
        if not shapes:
            del self._used[namespace], self._shapes[namespace]
        self._known.pop(namespace, None)
        self._without_least.pop(namespace, None)
        self.changed.add(namespace)
        (self.grown if sign > 0 else self.shrunk).add(namespace)

    def could_give(self, namespace: str, share: NamespaceShare) -> bool:
        """Whether a namespace would keep so large a share if it gave what changes it least."""
        self._refresh()
        kept = self._without_least.get(namespace)
        if kept is None:
            kept = self._without_least[namespace] = self.with_(namespace, self.least(namespace, -1))
        return kept >= share

    def least(self, namespace: str, sign: int) -> Counter[str]:
        """No place of a namespace uses less of anything than this."""
        shapes = [by_resource(usage) for usage in self._shapes.get(namespace, ())]
        return Counter({r: sign * min(shape[r] for shape in shapes) for r in (shapes[0] if shapes else ())})

    def users(self) -> Iterable[str]:
        """The namespaces that use anything of it."""
        return self._used

    def asked(self, workload: Workload) -> Counter[str]:
        """What a workload asks of what the queue counts; but for GPU memory, which depends on the flavor."""
        self._refresh()
        found: Counter[str] = Counter()
        for pod_set in workload.pod_sets:
            found.update({r: amount * pod_set.count for r, amount in pod_set.requests if r in self._units})
            if PODS in self._units:
                found[PODS] += pod_set.count
        return found

    def reweigh(self, namespace: str) -> None:
        """The weight of a namespace has changed; with it the scale may, so all have to be compared anew."""
        self._version = -1
        self.changed.add(namespace)
        self.changed.update(self._used)

    def of(self, namespace: str) -> NamespaceShare:
        self._refresh()
        found = self._known.get(namespace)
        if found is None:
            found = self._known[namespace] = self.with_(namespace, NOTHING)
        return found

    def with_(self, namespace: str, more: Mapping[str, int]) -> NamespaceShare:
        """The share of a namespace if it used so much more, or with negative amounts less."""
        self._refresh()
        used = self._used.get(namespace, NOTHING)
        largest = 0
        for resource in used.keys() | more.keys():
            amount = used.get(resource, 0) + more.get(resource, 0)
            if amount > 0:
                unit = self._units.get(resource)
                if unit is None:
                    return ENDLESS
                largest = max(largest, amount * unit)
        return (False, largest // self._weights.get(namespace, 1))

    def _refresh(self) -> None:
        """Find the scale again if a definition or a weight has changed."""
        if self._version == self._tree.version:
            return
        self._version = self._tree.version
        self._known.clear()
        self._without_least.clear()
        queue = self._tree.queues[self._queue]
        most: Counter[str] = Counter()
        counted = queue.keys()
        for key in counted:
            most[key[1]] += self._book.cell(self._queue, key).potential_available()
        for resource, limit in queue.limits.items():
            most[resource] = min(most[resource], limit)
        self._scale = lcm(*(amount for amount in most.values() if amount > 0), 1) * lcm(
            *set(self._weights.values()), 1
        )
        self._units = {resource: self._scale // amount for resource, amount in most.items() if amount > 0}
