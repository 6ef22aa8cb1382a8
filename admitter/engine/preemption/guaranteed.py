"""Preempting up to the guaranteed share of what others leave unused (docs/design/elastic-quota.md).

What queues have and do not use is divided among all queues of the tree in proportion to their own
quota. A queue that stays within its own and its part of that may evict workloads of a queue that is
beyond both, as long as that one keeps its own. All of it is taken in the state after the plan: with
the state before it, the preemptor's own unused quota would count as left by others, and two queues
could evict each other for ever.
"""

from fractions import Fraction

from admitter.engine.model import FlavorResource, Usage
from admitter.engine.policy import Queue
from admitter.engine.preemption.borrow import spares
from admitter.engine.preemption.candidates import Candidate, PreemptionRule
from admitter.engine.preemption.reclaim import exceeds
from admitter.engine.quota.book import Book
from admitter.engine.quota.tree import Node, Tree


def entitlement(
    tree: Tree, book: Book, queue: str, key: FlavorResource, coming: tuple[str, int] = ("", 0)
) -> Fraction:
    """What a queue has of its own and is guaranteed on top, in the resource's unit.

    All queues of the tree take part with their minimum. The queue that is `coming` is going to use so much
    more than the book says.
    """
    total = spare = mine = 0
    for name in tree.members(tree.root(queue)):
        minimum = tree.minimum(name, key)
        total += minimum
        spare += max(0, minimum - book.cell(name, key).used - (coming[1] if name == coming[0] else 0))
        mine = minimum if name == queue else mine
    return mine + (Fraction(mine * spare, total) if total else Fraction(0))


def is_entitled(tree: Tree, book: Book, root: Node, queue: str, key: FlavorResource, amount: int) -> bool:
    """Whether a queue that used so much more would be within its own and its guaranteed part."""
    minimum, used = tree.minimum(queue, key), book.cell(queue, key).used
    spare = book.unused(root, key) - max(0, minimum - used) + max(0, minimum - used - amount)
    return not _beyond(minimum, used + amount, spare, tree.minimums(root, key))


def _beyond(minimum: int, used: int, spare: int, total: int) -> bool:
    """Whether a queue uses more than its own and its part of what is spare; `total` is what all have."""
    over = used - minimum
    return over > 0 and (not total or over * total > minimum * spare)


class GuaranteedSharing(PreemptionRule):
    """Both are beyond their own; the preemptor within its guaranteed part, the victim's queue beyond that."""

    def __init__(self, tree: Tree, book: Book, queue: Queue, usage: Usage) -> None:
        self._tree = tree
        self._book = book
        self._queue = queue.name
        self._usage = dict(usage)
        self._root = tree.root(queue.name)

    def may_go(self, candidate: Candidate) -> bool:
        """Whether its queue is beyond its guaranteed part in all that is contested, and keeps its own."""
        if candidate.pool.own:
            return True
        chains = candidate.contested()
        name = candidate.pool.queue
        return (
            exceeds(chain for chain, _ in chains)
            and spares(chains)
            and all(
                self._is_beyond(name, key, 0)
                for key, amount in candidate.reservation.usage
                if amount and key in candidate.pool.chains
            )
        )

    def holds(self) -> bool:
        """Whether the preemptor's queue, with it in, is within its own and its guaranteed part."""
        return not any(self._is_beyond(self._queue, key, amount) for key, amount in self._usage.items())

    def _is_beyond(self, queue: str, key: FlavorResource, more: int) -> bool:
        """Whether a queue, with so much more, uses more than its own and its guaranteed part.

        As `entitlement`, but without adding up all queues: a victim of this rule leaves its queue its own, so
        only the preemptor's queue changes what is unused.
        """
        own = self._tree.minimum(self._queue, key)
        before, now = self._book.used(self._queue).get(key, 0), self._book.cell(self._queue, key).used
        spare = self._book.unused(self._root, key) - max(0, own - before)
        spare += max(0, own - now - self._usage.get(key, 0))
        minimum = self._tree.minimum(queue, key)
        used = self._book.cell(queue, key).used + more
        return _beyond(minimum, used, spare, self._tree.minimums(self._root, key))

    def lacks(self, candidate: Candidate) -> bool:
        """Whether a candidate's queue, without it, would be within what it may take back by this rule."""
        pool, book = candidate.pool, self._book
        for key, amount in candidate.reservation.usage:
            if amount and key in pool.chains:
                coming = (self._queue, self._usage.get(key, 0))
                bound = entitlement(self._tree, book, pool.queue, key, coming)
                if book.cell(pool.queue, key).used - amount < bound:
                    return True
        return False
