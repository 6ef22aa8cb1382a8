"""At a glance: evictions that can't make room, without a search for victims.

A queue of many flavors is full in most of them: to search each costs much more than to add up what could go.
"""

from typing import NamedTuple

from admitter.engine.flavors.attempt import Wanted
from admitter.engine.model import FlavorResource, Workload
from admitter.engine.policy import BorrowWithin, Queue, Reclaim
from admitter.engine.preemption import within_queue
from admitter.engine.preemption.context import PreemptionContext
from admitter.engine.quota.lines import ANY_RANK


class InVain(NamedTuple):
    """What a search would find that comes to nothing; shares, times and claims make no difference to it.

    Both are as in `SearchResult`.
    """

    evictable: dict[FlavorResource, int]
    barred: bool


class Glance:
    """Looks for what a search would find to be in vain."""

    def __init__(self, scene: PreemptionContext, queue: Queue, preemptor: Workload) -> None:
        self._scene = scene
        self._queue = queue
        self._preemptor = preemptor
        self._book = scene.ledger.planned
        self._root = scene.tree.root(queue.name)
        self._tells: bool | None = None  # whether a glance tells; None: that is not looked up yet
        self._lesser = ANY_RANK

    def _look_up(self) -> bool:
        """Whether a glance tells; where shares decide, or time, or what came back, a search must.

        Likewise where one cohort is below another. Most workloads fit, so it is looked up once it is asked.
        """
        tree, queue = self._scene.tree, self._queue
        self._lesser = within_queue.lesser(queue.preemption.within, self._preemptor)
        plain = queue.preemption.allowed and queue.name not in tree.apart and not tree.fair(self._root)
        near = len(tree.path(("queue", queue.name))) <= 2
        return plain and near and not self._scene.ledger.is_displaced(self._preemptor.uid)

    def at(self, wanted: Wanted) -> InVain | None:
        """Why all that may go would not make room, whatever others claim; None if that is not sure."""
        if self._tells is None:
            self._tells = self._look_up()
        if not self._tells:
            return None
        enough, own = True, {}
        lines, lesser = self._scene.ledger.lines.of(self._queue.name), self._lesser
        for key, amount in wanted:
            cell = self._book.cell(self._queue.name, key)
            if cell.together is not None:
                return None
            line = lines.get(key)
            own[key] = line.amount(lesser) if line is not None else 0
            if amount > cell.vacant() + own[key]:
                enough &= bool(self._book.borrowers(self._root, key) - {self._queue.name})
        if enough:
            return None
        barred = len(wanted) == 1 and not any(own.values())
        return InVain(own, barred) if not barred or self._bars(wanted) else None

    def _bars(self, wanted: Wanted) -> bool:
        """Whether it is for what the own queue uses that it may take nothing from others."""
        ((key, amount),) = wanted
        policy = self._queue.preemption
        borrows = self._book.cell(self._queue.name, key).borrows(amount)
        return policy.borrow is BorrowWithin.NEVER and (policy.reclaim is Reclaim.NEVER or borrows)
