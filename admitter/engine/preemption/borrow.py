"""Preempting in order to borrow: `borrowWithinCohort` (docs/design/preemption.md)."""

from collections.abc import Callable, Iterable, Sequence
from math import inf

from admitter.engine.model import Workload
from admitter.engine.policy import BorrowWithin, PreemptionPolicy, Reclaim
from admitter.engine.preemption.candidates import Candidate, PreemptionRule
from admitter.engine.preemption.reclaim import exceeds
from admitter.engine.quota.cells import Cell
from admitter.engine.quota.lines import NO_RANK, Lesser
from admitter.engine.quota.tree import Tree


def lesser(policy: PreemptionPolicy, preemptor: Workload) -> Lesser:
    """Victims by priority in other queues that borrow, for a preemptor in a queue that borrows too."""
    match policy.borrow:
        case BorrowWithin.NEVER | BorrowWithin.GUARANTEED_SHARE:
            return NO_RANK
        case BorrowWithin.LOWER_PRIORITY:
            tolerable = inf if policy.threshold is None else policy.threshold + 1
            return Lesser(min(tolerable, preemptor.priority))


def spares(chains: Iterable[tuple[Sequence[Cell], int]]) -> bool:
    """Whether a queue, and every subtree between it and some node above, would keep its own.

    A borrower takes only what others borrow, if those could take it back: they would. There is a chain of
    cells for each flavor and resource, with how much of it is to be taken.
    """
    for chain, amount in chains:
        leaving = amount
        for cell in chain:
            if cell.used - leaving < cell.subtree_quota:
                return False
            leaving = -cell.rising(-leaving)  # of what is not lent nothing comes from above
    return True


class Borrowing(PreemptionRule):
    """Both borrow; priority decides."""

    def __init__(self, tree: Tree, lacks: Callable[[Candidate], bool]) -> None:
        """`lacks`: whether a candidate's queue would have less without it than its guaranteed share."""
        self._tree = tree
        self._lacks = lacks

    def may_go(self, candidate: Candidate) -> bool:
        """Whether its queue borrows, and has no right to take back what it would lose."""
        if candidate.pool.own:
            return True
        chains = candidate.contested()
        if not exceeds(chain for chain, _ in chains):
            return False
        owner = self._tree.queues.get(candidate.pool.queue)
        if owner is not None and owner.preemption.reclaim is Reclaim.ANY and not spares(chains):
            return False
        by_share = owner is not None and owner.preemption.borrow is BorrowWithin.GUARANTEED_SHARE
        return not (by_share and self._lacks(candidate))
