"""Where others are over elastic quotas than before, or in another order, since pods have come and gone.

What is over quota is evicted newest first, over all queues of a tree. So what may be evicted for a workload
that waits also depends on which of two queues has the newer pod (docs/design/elastic-quota.md).
"""

from bisect import bisect_left, bisect_right

from admitter.engine.quota.capacity import Age, Capacity, Standing
from admitter.engine.quota.tree import Node, Tree


class Reordered:
    """Queues with other pods than at the last comparison, and what was over quota in them then."""

    def __init__(self, tree: Tree, capacity: Capacity) -> None:
        self._tree = tree
        self._capacity = capacity
        self._before: dict[str, Standing] = {}

    def __bool__(self) -> bool:
        return bool(self._before)

    def note(self, queue: str) -> None:
        """The pods of a queue are about to be others."""
        if queue not in self._before:
            self._before[queue] = self._capacity.planned(queue)

    def compare(self) -> list[str]:
        """The queues of which others are over quota than before, or sooner or later than those of others."""
        ages: dict[Node, list[tuple[Age, str]]] = {}
        differing: list[str] = []
        for queue, before in sorted(self._before.items()):
            now = self._capacity.planned(queue)
            if before.holders() != now.holders():
                differing.append(queue)
                continue
            moved = [
                sorted((old.newest, new.newest))
                for old, new in zip(before.excesses, now.excesses, strict=True)
                if old.newest != new.newest
            ]
            if moved:
                root = self._tree.root(queue)
                if root not in ages:
                    ages[root] = self._ages(root)
                if any(_others_between(ages[root], queue, *interval) for interval in moved):
                    differing.append(queue)
        self._before.clear()
        return differing

    def _ages(self, root: Node) -> list[tuple[Age, str]]:
        """The ages of all that is, or was, over quota in a tree, with its queue: oldest first."""
        return sorted(
            (excess.newest, name)
            for name in self._tree.members(root)
            if name in self._tree.queues and self._tree.queues[name].pool
            for standing in (self._capacity.planned(name), self._before.get(name, Standing()))
            for excess in standing.excesses
        )


def _others_between(ages: list[tuple[Age, str]], queue: str, first: Age, last: Age) -> bool:
    """Whether a workload of another queue is between two ages."""
    begin = bisect_left(ages, first, key=lambda each: each[0])
    end = bisect_right(ages, last, key=lambda each: each[0])
    return any(name != queue for _, name in ages[begin:end])
