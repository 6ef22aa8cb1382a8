"""Taking back what was lent (design §3, *Preemption*: `reclaimWithinCohort`).

A subtree that stays within its own quota may take back from its siblings what they borrow. For a
queue under a cohort without quota of its own the subtree is the queue.
"""

from collections.abc import Iterable, Sequence

from admitter.engine.ledger import Usage
from admitter.engine.model import FlavorResource, Workload
from admitter.engine.policy import Queue, Reclaim
from admitter.engine.preemption.candidates import Candidate, Simple
from admitter.engine.quota import Book, Cell, Node, Tree


def allows(policy: Reclaim, preemptor: Workload, victim: Workload) -> bool:
    """Whether a workload may preempt one of another queue, if that queue borrows."""
    match policy:
        case Reclaim.NEVER:
            return False
        case Reclaim.LOWER_PRIORITY:
            return victim.priority < preemptor.priority
        case Reclaim.ANY:
            return True


def exceeds(chains: Iterable[Sequence[Cell]]) -> bool:
    """Whether a queue, and every subtree between it and some node above, uses more than its own.

    It must do so in every flavor and resource that the chains stand for: what it has of its own in one
    nobody else takes for another's sake. Else two workloads could evict each other for ever, each by
    what the other borrows.
    """
    for cells in chains:
        for cell in cells:
            if cell.used <= cell.own:
                return False
    return True


class Reclaiming(Simple):
    """A subtree of the preemptor must stay within its own quota of what is contested."""

    def __init__(
        self,
        tree: Tree,
        book: Book,
        queue: Queue,
        subtree: Node,
        usage: Usage,
        contested: frozenset[FlavorResource],
    ) -> None:
        """Prepare.

        Args:
            tree: the quota tree.
            book: what is in use.
            queue: the preemptor's queue.
            subtree: that queue, or a cohort above it.
            usage: what the preemptor would use.
            contested: what of it is not free.
        """
        self._tree = tree
        self._book = book
        self._queue = queue
        shares = [(key, book.at(subtree, key), amount) for key, amount in usage]
        self._contested = [(key, cell, amount) for key, cell, amount in shares if key in contested]
        self._rest = [(key, cell, amount) for key, cell, amount in shares if key not in contested]

    def may_go(self, candidate: Candidate) -> bool:
        """Whether its queue, and every subtree up to the common ancestor, still borrows."""
        return candidate.pool.own or exceeds(chain for chain, _ in candidate.contested())

    def holds(self) -> bool:
        """Whether the subtree has so much of its own, on top of what it uses."""
        return not any(cell.borrows(amount) for _, cell, amount in self._contested)

    def could_hold(self, freed: dict[FlavorResource, int]) -> bool:
        """Whether it could, if so much of the preemptor's own queue were taken out."""
        return all(
            amount <= freed.get(key, 0) or not cell.borrows(amount - freed.get(key, 0))
            for key, cell, amount in self._contested
        )

    def borrows_only_the_unowned(self) -> bool:
        """Whether what it uses besides is of its own too, or quota that no queue has for itself.

        Else the owner would take that back, and what was reclaimed here would be lost again: so three or
        more could evict each other in turns.
        """
        return all(not cell.borrows(amount) or self._unowned(key, amount) for key, cell, amount in self._rest)

    def _unowned(self, key: FlavorResource, amount: int) -> bool:
        """Whether so much more fits beside all that the queues of the tree have, used or not."""
        root = self._tree.root(self._queue.name)
        claimed = 0
        for name in self._tree.members(root):
            cell = self._book.cell(name, key)
            claimed += max(cell.own, cell.used + (amount if name == self._queue.name else 0))
        return claimed <= self._book.at(root, key).own


def chain_of(book: Book, tree: Tree, queue: str, below: Node, key: FlavorResource) -> list[Cell]:
    """The cells of a queue, and of the subtrees between it and a node above."""
    cells = []
    for node in tree.path(("queue", queue)):
        if node == below:
            break
        cells.append(book.at(node, key))
    return cells
