"""The order of what waits in a queue where namespaces take turns (`namespaceOrdering: WeightedShare`).

Of the namespaces in which something may fit the one with the smallest share goes first, then the
workload by rank; after every decision it is asked anew. The order is kept in a heap, and its entries
may be too good: one that is not true any more is replaced by what is when it comes up.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable

from admitter.engine.model import Workload
from admitter.engine.policy import Queue, Strategy
from admitter.engine.queue.equivalence import EquivalenceClass, Rank, Shape
from admitter.engine.queue.pending import PendingQueue
from admitter.engine.quota.back_off import ReturnedReservations
from admitter.engine.quota.namespace_shares import NamespaceShare, Sharing

Turn = tuple[bool, NamespaceShare, Rank]
"""Whether it evicts nothing now, in a strict queue: then it is the last; then the share, and the rank."""


class PendingByNamespace(PendingQueue):
    """All that waits in one queue that namespaces share."""

    def __init__(
        self,
        queue: str,
        is_displaced: Callable[[str], bool],
        returned: ReturnedReservations,
        sharing: Sharing,
    ) -> None:
        super().__init__(queue, is_displaced, returned)
        self._sharing = sharing
        self._of_namespace: dict[str, dict[Shape, EquivalenceClass]] = {}
        self._heap: list[tuple[Turn, str]] = []
        self._strict = False
        self._touched: set[str] = set()

    def add(self, workload: Workload) -> EquivalenceClass:
        members = super().add(workload)
        namespace = workload.namespace
        self._of_namespace.setdefault(namespace, {})[members.shape] = members
        self._touched.add(namespace)
        return members

    def requeued(self, members: EquivalenceClass) -> None:
        self._touched.add(members.namespace)

    def remove(self, uid: str) -> None:
        workload = self.get(uid)
        members = self.class_of(workload)
        super().remove(uid)
        classes = self._of_namespace[workload.namespace]
        if not members.members:
            del classes[members.shape]
            if not classes:
                del self._of_namespace[workload.namespace]

    def claimant(
        self, strategy: Strategy, counts: Callable[[EquivalenceClass], bool]
    ) -> EquivalenceClass | None:
        """As for any queue, but in the order of namespaces, which changes with what they use."""
        ranked = [
            ((members.back_off is not None, self._sharing.of(namespace), head.rank), members)
            for namespace, classes in self._of_namespace.items()
            for members in classes.values()
            if (head := members.head()) is not None
        ]
        ranked.sort(key=lambda each: each[0])
        among = ranked[:1] if strategy is Strategy.STRICT_FIFO else ranked
        return next((members for _, members in among if counts(members)), None)

    def candidate(self, strategy: Strategy) -> Workload | None:
        first = self._head(strict=strategy is Strategy.STRICT_FIFO)
        return None if first is None or self.class_of(first).inadmissible is not None else first

    def forget_needs(self, may_evict: Callable[[Workload], bool]) -> bool:
        """Some namespaces use more than before: requeue classes that may take something from these.

        A class that preempts only within its namespace goes by rank: what comes later does not requeue it.
        """
        grown, self._sharing.grown = sorted(self._sharing.grown), set()
        for name in grown:
            for members in self._of_namespace.get(name, {}).values():
                if members.needs and (head := members.head()) is not None and may_evict(head):
                    members.needs = []
        refused = [
            m for classes in self._of_namespace.values() for m in classes.values() if m.refusal is not None
        ]
        return self._requeue(m for m in refused if any(self._sharing.could_give(n, m.giving) for n in grown))

    def requeue_shrunk(self) -> bool:
        """Requeue classes of namespaces that use less than before; returns whether there are any."""
        shrunk = sorted(self._sharing.shrunk & self._of_namespace.keys())
        self._sharing.shrunk.clear()
        return self._requeue(members for name in shrunk for members in self._of_namespace[name].values())

    @staticmethod
    def _requeue(classes: Iterable[EquivalenceClass]) -> bool:
        found = False
        for members in classes:
            members.needs = []
            if members.inadmissible is not None:
                members.requeue()
                found = True
        return found

    def in_order(self) -> list[Workload]:
        waiting = {
            namespace: sorted((w for c in classes.values() for w in c.members.values()), key=lambda w: w.rank)
            for namespace, classes in self._of_namespace.items()
        }
        taken: dict[str, Counter[str]] = {namespace: Counter() for namespace in waiting}
        heap = [((self._sharing.of(name), line[0].rank), name, 0) for name, line in waiting.items()]
        heapq.heapify(heap)
        found = []
        while heap:
            _, namespace, place = heapq.heappop(heap)
            line = waiting[namespace]
            found.append(line[place])
            taken[namespace].update(self._sharing.asked(line[place]))
            if place + 1 < len(line):
                share = self._sharing.with_(namespace, taken[namespace])
                heapq.heappush(heap, ((share, line[place + 1].rank), namespace, place + 1))
        return found

    def _shape(self, workload: Workload) -> Shape:
        return (workload.namespace, *super()._shape(workload))

    def _blocking_head(self, queue: Queue) -> Workload | None:
        return self._head(strict=True) if queue.strategy is Strategy.STRICT_FIFO else None

    def _head(self, *, strict: bool) -> Workload | None:
        """The first workload: of all if none may pass another one, else without inadmissible classes."""
        if self._strict != strict:
            self._strict = strict
            self._heap.clear()
            self._touched.update(self._of_namespace)
        for namespace in sorted(self._touched | self._sharing.changed):
            self._push(namespace)
        self._touched.clear()
        self._sharing.changed.clear()
        while self._heap:
            turn, namespace = self._heap[0]
            if turn == self._turn(namespace):
                return self._head_of(namespace)
            heapq.heappop(self._heap)
            self._push(namespace)
        return None

    def _push(self, namespace: str) -> None:
        turn = self._turn(namespace)
        if turn is not None:
            heapq.heappush(self._heap, (turn, namespace))
        if len(self._heap) > 2 * len(self._of_namespace) + 8:  # mostly entries that are not true any more
            self._heap = [(t, n) for n in self._of_namespace if (t := self._turn(n)) is not None]
            heapq.heapify(self._heap)

    def _turn(self, namespace: str) -> Turn | None:
        """When a namespace's first workload has its turn; None if none of it can be tried."""
        head = self._head_of(namespace)
        if head is None:
            return None
        set_back = self._strict and self.back_off(head) is not None
        return (set_back, self._sharing.of(namespace), head.rank)

    def _head_of(self, namespace: str) -> Workload | None:
        classes = self._of_namespace.get(namespace, {}).values()
        heads = [
            head
            for c in classes
            if (self._strict or c.inadmissible is None) and (head := c.head()) is not None
        ]
        return min(heads, key=lambda head: head.rank, default=None)
