"""Taking back what was lent: `reclaimWithinCohort` (docs/design/preemption.md).

A subtree that stays within its own quota may take back from its siblings what they borrow: the
preemptor's queue, or a cohort above it. Sides of several levels may each take a part.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from admitter.engine.model import FlavorResource, Usage, Workload
from admitter.engine.policy import Queue, Reclaim
from admitter.engine.preemption.candidates import Candidate, PreemptionRule
from admitter.engine.quota.book import Book
from admitter.engine.quota.cells import Cell
from admitter.engine.quota.lines import ANY_RANK, NO_RANK, Lesser
from admitter.engine.quota.tree import Node, Tree


def lesser(policy: Reclaim, preemptor: Workload) -> Lesser:
    """Which workloads of other queues a workload may preempt, if those queues borrow."""
    match policy:
        case Reclaim.NEVER:
            return NO_RANK
        case Reclaim.LOWER_PRIORITY:
            return Lesser(preemptor.priority)
        case Reclaim.ANY:
            return ANY_RANK


def exceeds(chains: Iterable[Sequence[Cell]]) -> bool:
    """Whether a queue, and every subtree between it and some node above, uses more than its own.

    It must do so in every flavor and resource that the chains stand for: what it has of its own in one
    no other queue takes for another's sake. Else two workloads could evict each other for ever, each by
    what the other borrows.
    """
    for cells in chains:
        for cell in cells:
            if cell.used <= cell.subtree_quota:
                return False
    return True


class Reclaiming(PreemptionRule):
    """Each side that takes something back must stay within its own quota of what is contested."""

    def __init__(
        self, tree: Tree, book: Book, queue: Queue, usage: Usage, contested: frozenset[FlavorResource]
    ) -> None:
        """Of `usage`, what is `contested` is not free."""
        self._tree = tree
        self._book = book
        self._queue = queue
        self._contested = [(key, amount) for key, amount in usage if key in contested]
        self._rest = [(key, amount) for key, amount in usage if key not in contested]
        self._out: Counter[Node] = Counter()

    def may_go(self, candidate: Candidate) -> bool:
        """Whether its queue, and every subtree up to the common ancestor, still borrows."""
        return candidate.pool.own or exceeds(chain for chain, _ in candidate.contested())

    def moved(self, candidate: Candidate, sign: int) -> None:
        if not candidate.pool.own:
            self._out[candidate.pool.side] -= sign

    def holds(self) -> bool:
        """Whether every side that takes has so much of its own, on top of what it uses."""
        return not any(
            self._borrows(side, key, amount)
            for side, taken in self._out.items()
            if taken
            for key, amount in self._contested
        )

    def could_hold(self, side: Node, freed: Mapping[FlavorResource, int]) -> bool:
        """Whether a side could, if so much were taken out inside of it."""
        return not any(self._borrows(side, key, amount, freed.get(key, 0)) for key, amount in self._contested)

    def borrows_besides(self, side: Node) -> bool:
        """Whether a side would borrow anything that is not contested."""
        return any(self._borrows(side, key, amount) for key, amount in self._rest)

    def _borrows(self, side: Node, key: FlavorResource, amount: int, freed: int = 0) -> bool:
        """Whether a side would use more than its own, with so much added in the preemptor's queue.

        What a queue, or a cohort on the way up, has and does not lend covers a part: that part never
        reaches the side. Inside the side so much is `freed` at the same time.
        """
        cell, top = self._book.cell(self._queue.name, key), self._book.at(side, key)
        while cell is not top:
            amount = cell.rising(amount)
            assert cell.parent is not None, "a side is above the preemptor's queue"
            cell = cell.parent
        return amount > freed and top.borrows(amount - freed)

    def borrows_only_the_unowned(self, side: Node) -> bool:
        """Whether what it would borrow besides is quota that no queue has for itself.

        Else the owner would take that back, and what was reclaimed here would be lost again: so three or
        more could evict each other in turns.
        """
        return all(
            not self._borrows(side, key, amount) or self._unowned(key, amount) for key, amount in self._rest
        )

    def _unowned(self, key: FlavorResource, amount: int) -> bool:
        """Whether so much more fits beside all that the queues of the tree have, used or not."""
        root = self._tree.root(self._queue.name)
        claimed = 0
        for name in self._tree.members(root):
            cell = self._book.cell(name, key)
            claimed += max(cell.subtree_quota, cell.used + (amount if name == self._queue.name else 0))
        return claimed <= self._book.at(root, key).subtree_quota
