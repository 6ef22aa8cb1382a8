"""Preempting in order to borrow (design §3, *Preemption*: `borrowWithinCohort`)."""

from collections.abc import Iterable, Sequence

from admitter.engine.model import Workload
from admitter.engine.policy import BorrowWithin, Preemption
from admitter.engine.quota import Cell


def allows(policy: Preemption, preemptor: Workload, victim: Workload) -> bool:
    """Whether a workload whose queue borrows may preempt one of another queue that borrows too."""
    match policy.borrow:
        case BorrowWithin.NEVER:
            return False
        case BorrowWithin.LOWER_PRIORITY:
            tolerable = policy.threshold is None or victim.priority <= policy.threshold
            return tolerable and victim.priority < preemptor.priority


def spares(chains: Iterable[tuple[Sequence[Cell], int]]) -> bool:
    """Whether a queue, and every subtree between it and some node above, would keep its own.

    Who borrows takes only what others borrow, if those could take it back: they would.

    Args:
        chains: the cells of each flavor and resource, and how much of it is to be taken.
    """
    return all(cell.used - amount >= cell.own for chain, amount in chains for cell in chain)
