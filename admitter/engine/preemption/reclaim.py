"""Taking back what was lent (design §3, *Preemption*: `reclaimWithinCohort`).

A subtree that stays within its own quota may take back from its siblings what they borrow. For a
queue under a cohort without quota of its own the subtree is the queue.
"""

from collections.abc import Iterable, Sequence

from admitter.engine.model import FlavorResource, Workload
from admitter.engine.policy import Reclaim
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


def entitled(shares: Iterable[tuple[Cell, int]]) -> bool:
    """Whether a subtree has so much of its own, on top of what it uses."""
    return not any(cell.borrows(amount) for cell, amount in shares)


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


def chain_of(book: Book, tree: Tree, queue: str, below: Node, key: FlavorResource) -> list[Cell]:
    """The cells of a queue, and of the subtrees between it and a node above."""
    cells = []
    for node in tree.path(("queue", queue)):
        if node == below:
            break
        cells.append(book.at(node, key))
    return cells
