"""At a glance: evictions that can't make room, without a search for victims.

A queue of many flavors is full in most of them: to search each costs much more than to add up what could go.
"""

from math import inf
from typing import Final

from admitter.engine.attempt import Wanted
from admitter.engine.fairness import ENDLESS
from admitter.engine.model import FlavorResource, Usage, Workload
from admitter.engine.namespaces import ENDLESS as NOBODY_GIVES
from admitter.engine.policy import BorrowWithin, Queue, Reclaim
from admitter.engine.preemption import within_queue
from admitter.engine.preemption.search import Scene


class Glance:
    """Looks for what a search would find to be in vain.

    Attributes:
        evictable: as of a search, for what was looked at last.
        barred: likewise.
        share: likewise; it is only asked for where a glance says nothing.
        giving: likewise.
        due: likewise.
        withheld: likewise.
        bound: likewise.
    """

    share: Final = ENDLESS
    giving: Final = NOBODY_GIVES
    due: Final = inf
    withheld: Final[Usage] = ()
    bound: Final = False

    def __init__(self, scene: Scene, queue: Queue, preemptor: Workload) -> None:
        """Prepare.

        Args:
            scene: what victims would be looked for in.
            queue: the preemptor's queue.
            preemptor: what wants to be admitted.
        """
        path = scene.tree.path(("queue", queue.name))
        self._queue = queue
        self._book = scene.ledger.planned
        self._root = path[-1]
        # Where shares decide, or time, or what came back, or one cohort is below another, a search must tell.
        displaced = scene.ledger.is_displaced(preemptor.uid)
        plain = queue.preemption.allowed and queue.name not in scene.tree.apart and not displaced
        self._tells = plain and len(path) <= 2 and not scene.tree.fair(self._root)
        self._lines = scene.ledger.lines.of(queue.name) if self._tells else {}
        self._lesser = within_queue.lesser(queue.preemption.within, preemptor)
        self.evictable: dict[FlavorResource, int] = {}
        self.barred = False

    def in_vain(self, wanted: Wanted) -> bool:
        """Whether all that may go would not make room, whatever others claim; False if that is not sure."""
        if not self._tells:
            return False
        enough, own = True, {}
        for key, amount in wanted:
            cell = self._book.cell(self._queue.name, key)
            if cell.together is not None:
                return False
            line = self._lines.get(key)
            own[key] = line.amount(self._lesser) if line is not None else 0
            if amount > cell.vacant() + own[key] and not self._others_borrow(key):
                enough = False
        if enough:
            return False
        self.evictable = own
        self.barred = len(wanted) == 1 and not any(own.values())
        return not self.barred or self._bars(wanted)

    def _others_borrow(self, key: FlavorResource) -> bool:
        return bool(self._book.borrowers(self._root, key) - {self._queue.name})

    def _bars(self, wanted: Wanted) -> bool:
        """Whether it is for what the own queue uses that it may take nothing from others."""
        ((key, amount),) = wanted
        policy = self._queue.preemption
        borrows = self._book.cell(self._queue.name, key).borrows(amount)
        return policy.borrow is BorrowWithin.NEVER and (policy.reclaim is Reclaim.NEVER or borrows)
