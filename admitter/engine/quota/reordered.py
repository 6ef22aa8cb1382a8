"""Where others are over elastic quotas than before, or in another order, since pods have come and gone.

What is over quota is evicted newest first, over all queues of a tree. So what may be evicted for a workload
that waits also depends on which of two queues has the newer pod (docs/design/elastic-quota.md).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import itemgetter

from admitter.engine.quota.capacity import Age, Capacity, Standing
from admitter.engine.quota.ledger import Ledger
from admitter.engine.quota.tree import Node, Tree

Ages = list[tuple[Age, str]]
"""Of what is over quota its age and its queue, oldest first."""


@dataclass(slots=True)
class _Order:
    """What is over quota in a tree by the plan, as it was when it was last asked for."""

    revisions: dict[str, int]  # of its elastic queues
    ages: Ages = field(default_factory=list)


class Reordered:
    """Queues with other pods than at the last comparison, and what was over quota in them then."""

    def __init__(self, tree: Tree, ledger: Ledger, capacity: Capacity) -> None:
        self._tree = tree
        self._ledger = ledger
        self._capacity = capacity
        self._before: dict[str, Standing] = {}
        self._orders: dict[Node, _Order] = {}
        self._version = tree.version  # of the definitions that these hold for

    def __bool__(self) -> bool:
        return bool(self._before)

    def note(self, queue: str) -> None:
        """The pods of a queue are about to be others: what is over quota may be, if its quota is elastic."""
        if queue not in self._before and self._is_elastic(queue):
            self._before[queue] = self._capacity.planned(queue)

    def compare(self) -> list[str]:
        """The queues of which others are over quota than before, or sooner or later than those of others."""
        before, self._before = self._before, {}
        earlier = _ages(before.items())
        differing: list[str] = []
        for queue, then in sorted(before.items()):
            now = self._capacity.planned(queue)
            moved = [
                sorted((old.newest, new.newest))
                for old, new in zip(then.excesses, now.excesses, strict=False)
                if old.newest != new.newest
            ]
            if then.holders() != now.holders() or any(
                _others_between(ages, queue, first, last)
                for first, last in moved
                for ages in (self._order(self._tree.root(queue)), earlier)
            ):
                differing.append(queue)
        return differing

    def _order(self, root: Node) -> Ages:
        """What is over quota in a tree now. Sorted queue by queue: most are as they were."""
        if self._version != self._tree.version:
            self._version = self._tree.version
            self._orders.clear()
        kept = self._orders.get(root)
        if kept is None:
            elastic = filter(self._is_elastic, self._tree.members(root))
            kept = self._orders[root] = _Order(dict.fromkeys(elastic, -1))
        revisions = self._ledger.revisions
        changed = {name for name, known in kept.revisions.items() if revisions[name] != known}
        if changed:
            kept.revisions.update((name, revisions[name]) for name in changed)
            kept.ages = [each for each in kept.ages if each[1] not in changed]
            kept.ages += _ages((name, self._capacity.planned(name)) for name in changed)
            kept.ages.sort()
        return kept.ages

    def _is_elastic(self, queue: str) -> bool:
        definition = self._tree.queues.get(queue)
        return definition is not None and bool(definition.pool)


def _ages(standings: Iterable[tuple[str, Standing]]) -> Ages:
    return sorted((excess.newest, name) for name, standing in standings for excess in standing.excesses)


def _others_between(ages: Ages, queue: str, first: Age, last: Age) -> bool:
    """Whether a workload of another queue is between two ages."""
    begin = bisect_left(ages, first, key=itemgetter(0))
    end = bisect_right(ages, last, key=itemgetter(0))
    return any(name != queue for _, name in ages[begin:end])
