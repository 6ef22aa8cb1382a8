"""Taking back what was lent (design §3, *Preemption*: `reclaimWithinCohort`).

A subtree that stays within its own quota may take back from its siblings what they borrow. For a
queue under a cohort without quota of its own the subtree is the queue.
"""

from collections.abc import Iterable, Mapping

from admitter.engine.model import FlavorResource, Workload
from admitter.engine.policy import Reclaim
from admitter.engine.quota import Book, Node, Tree


def allows(policy: Reclaim, preemptor: Workload, victim: Workload) -> bool:
    """Whether a workload may preempt one of another queue, if that queue borrows."""
    match policy:
        case Reclaim.NEVER:
            return False
        case Reclaim.LOWER_PRIORITY:
            return victim.priority < preemptor.priority
        case Reclaim.ANY:
            return True


def entitled(book: Book, subtree: Node, usage: Mapping[FlavorResource, int]) -> bool:
    """Whether a subtree has so much of its own, on top of what it uses."""
    return not any(book.at(subtree, key).borrows(amount) for key, amount in usage.items())


def exceeds(book: Book, tree: Tree, queue: str, below: Node, keys: Iterable[FlavorResource]) -> bool:
    """Whether a queue, and every subtree between it and a node above, uses more than its own.

    It must do so in one of some flavors and resources, the same at every level.
    """
    nodes = []
    for node in tree.path(("queue", queue)):
        if node == below:
            break
        nodes.append(node)
    return any(all(book.at(node, key).borrows() for node in nodes) for key in keys)
