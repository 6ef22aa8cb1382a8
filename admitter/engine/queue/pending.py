"""The order of what waits in one queue."""

import heapq
from collections.abc import Callable, Iterator

from admitter.engine.model import Workload
from admitter.engine.policy import Queue, Strategy
from admitter.engine.queue.equivalence import EquivalenceClass, Rank, Shape, requeue_all
from admitter.engine.quota.back_off import BackOff, ReturnedReservations
from admitter.engine.quota.fair_shares import Share
from admitter.engine.refusal import HOPELESS, Reason, Refusal


class _Heads:
    """Classes in the order of their heads; if wanted, without inadmissible ones.

    An entry may be too good: its head is gone, or its class counts no longer. It is corrected when it comes
    up, so that nothing is searched for when a class comes, goes or becomes inadmissible.
    """

    def __init__(self, *, admissible: bool = False) -> None:
        self._heap: list[tuple[Rank, int, EquivalenceClass]] = []
        self._ranks: dict[EquivalenceClass, Rank] = {}
        self._serial = 0
        self._most = 64
        self._only_admissible = admissible

    def put(self, members: EquivalenceClass) -> None:
        """A class counts, or has got another head."""
        head, known = members.head(), self._ranks.get(members)
        if head is not None and (known is None or head.rank < known):
            self._ranks[members] = head.rank
            self._serial += 1
            heapq.heappush(self._heap, (head.rank, self._serial, members))
            if len(self._heap) > self._most:
                self._clean()

    def _clean(self) -> None:
        """Drop what would be dropped when it comes up, which may be much later."""
        self._ranks = {members: rank for members, rank in self._ranks.items() if members.members}
        self._heap = [entry for entry in self._heap if self._ranks.get(entry[2]) == entry[0]]
        heapq.heapify(self._heap)
        self._most = 2 * len(self._heap) + 64

    def first(self, counts: Callable[[EquivalenceClass], bool] | None = None) -> Workload | None:
        """The first head of those that count; a class that does not must be put in again once it does."""
        heap, ranks = self._heap, self._ranks
        while heap:
            rank, serial, members = heap[0]
            if self._only_admissible and members.inadmissible is not None:
                head = None
            elif counts is None:
                head = members.head()
                if head is not None and head.rank is rank:
                    return head  # most often nothing has changed
            else:
                head = members.head() if counts(members) else None
            if head is None or ranks.get(members) != rank:
                heapq.heappop(heap)
                if ranks.get(members) == rank:
                    del ranks[members]
            elif head.rank == rank:
                return head
            else:
                ranks[members] = head.rank
                heapq.heapreplace(heap, (head.rank, serial, members))
        return None


class PendingQueue:
    """All that waits in one queue."""

    def __init__(
        self, queue: str, is_displaced: Callable[[str], bool], returned: ReturnedReservations
    ) -> None:
        """`is_displaced` says by its UID whether a workload is: it may evict less than others."""
        self._queue = queue
        self._is_displaced = is_displaced
        self._returned = returned
        self._classes: dict[Shape, EquivalenceClass] = {}
        self._class_of: dict[str, EquivalenceClass] = {}
        self._heads = _Heads()
        self._set_back = _Heads()  # those that evict nothing now: in a strict queue their turn is the last
        self._admissible = _Heads(admissible=True)
        self._claiming: _Heads | None = None  # those that may count as claimants, once that is asked
        self._displaced: dict[str, None] = {}

    def __len__(self) -> int:
        return len(self._class_of)

    def get(self, uid: str) -> Workload:
        return self._class_of[uid].members[uid]

    def add(self, workload: Workload) -> EquivalenceClass:
        """Let a workload wait; returns its class."""
        shape = self._shape(workload)
        members = self._classes.get(shape)
        if members is None:
            members = self._classes[shape] = EquivalenceClass(
                self.requeued, self._queue, workload.namespace, shape, self.back_off(workload)
            )
        self._class_of[workload.uid] = members
        members.add(workload)
        if self._is_displaced(workload.uid):
            self._displaced[workload.uid] = None
        if members.head() is workload:
            (self._heads if members.back_off is None else self._set_back).put(members)
            if self._claiming is not None:
                self._claiming.put(members)
            if members.inadmissible is None:
                self.requeued(members)
        return members

    def requeued(self, members: EquivalenceClass) -> None:
        """A class is to be tried again, or for the first time."""
        self._admissible.put(members)

    def remove(self, uid: str) -> None:
        members = self._class_of.pop(uid)
        self._displaced.pop(uid, None)
        members.remove(uid)
        if not members.members:
            members.requeue()
            del self._classes[members.shape]

    @property
    def displaced(self) -> list[str]:
        """UIDs of those that wait displaced."""
        return list(self._displaced)

    def sort_in(self, uid: str) -> bool:
        """A workload may be displaced now, or no longer; returns whether that is so."""
        workload = self.get(uid)
        changed = self._class_of[uid].shape != self._shape(workload)
        if changed:
            self.remove(uid)
            self.add(workload)
        return changed

    def workloads(self) -> list[Workload]:
        return [members.members[uid] for uid, members in self._class_of.items()]

    def requeue(self) -> None:
        """Something that any inadmissible class may depend on has changed."""
        requeue_all(self._classes.values())

    def requeue_matching(self, counts: Callable[[Workload], bool]) -> bool:
        """Requeue the classes with heads that count; returns whether there are any."""
        return requeue_all([m for m in self._classes.values() if (head := m.head()) and counts(head)])

    def requeue_refused_by(self, reason: Reason) -> bool:
        """Requeue the classes that are refused for a reason; returns whether there are any."""
        refused = ((members, members.inadmissible) for members in self._classes.values())
        return requeue_all([m for m, refusal in refused if refusal and refusal.reason is reason])

    def requeue_above(self, priority: int) -> bool:
        """Requeue the classes with a higher priority; returns whether there are any."""
        first = self._first_head()
        if first is None or first.priority <= priority:
            return False
        return self.requeue_matching(lambda head: head.priority > priority)

    def tell_anew(self) -> None:
        """Report all reasons again, also those that were reported."""
        for members in self._classes.values():
            members.tell_anew()

    def forget_needs(self, may_evict: Callable[[Workload], bool]) -> bool:
        """The queue uses more than before; returns whether any class was requeued for that.

        None is: what came later makes no room for what was refused before, since rank decides in the queue.
        But what is free alone no longer tells whether a class fits if its first `may_evict` some of that use.
        """
        for members in self._classes.values():
            if members.needs and (head := members.head()) is not None and may_evict(head):
                members.needs = []
        return False

    @property
    def unsure(self) -> bool:
        """Whether it is not known of all what they need."""
        return not all(members.needs for members in self._classes.values())

    def requeue_entitled(self, entitled: Callable[[EquivalenceClass], bool]) -> bool:
        """Try the classes again that are entitled to what they need, or if that is unknown.

        Returns whether any class is to be tried, those included that were admissible.
        """
        found = False
        for members in self._classes.values():
            if members.inadmissible is None:
                found = True
            elif not members.needs or entitled(members):
                members.retry_as_known()
                found = True
        return found

    def requeue_by_share(self, share: Share) -> bool:
        """Requeue classes that a queue of some share might have to give to; returns whether there are any."""
        return requeue_all([members for members in self._classes.values() if members.share <= share])

    def class_of(self, workload: Workload) -> EquivalenceClass:
        return self._class_of[workload.uid]

    def in_order(self) -> list[Workload]:
        """All that wait, in the order in which they would go if all fitted."""
        return sorted(self.workloads(), key=lambda workload: workload.rank)

    def never_fits(self, workload: Workload) -> bool:
        """Whether it was found that a workload can't fit, whatever ends."""
        refusal = self._class_of[workload.uid].inadmissible
        return refusal is not None and refusal.reason in HOPELESS

    def _shape(self, workload: Workload) -> Shape:
        back_off = self.back_off(workload)
        apart = (workload.namespace, back_off) if back_off is not None else None
        asked = workload.pod_sets, workload.tried_last
        return (workload.priority, *asked, self._is_displaced(workload.uid), apart)

    def back_off(self, workload: Workload) -> BackOff | None:
        """Until when nothing is evicted for a workload of the queue; None: something may be."""
        return self._returned.of(self._queue, workload.namespace)

    def sort_out(self, namespace: str) -> None:
        """A back-off of a namespace has begun or is over: what waits of it is of other classes now."""
        for workload in self.workloads():
            if workload.namespace == namespace:
                self.sort_in(workload.uid)

    def _first_head(self) -> Workload | None:
        """The first of all that wait; what evicts nothing now comes after all others."""
        return self._heads.first() or self._set_back.first()

    def reconsider(self) -> None:
        """What did not count as a claimant may count by now."""
        self._claiming = None

    def claimant(
        self, strategy: Strategy, counts: Callable[[EquivalenceClass], bool]
    ) -> EquivalenceClass | None:
        """The first class that counts, of those that may have their turn, inadmissible ones too; else None.

        Of a strict queue only the first class may have its turn. Those that did not count are not looked at
        again before `reconsider`.
        """
        if strategy is Strategy.STRICT_FIFO:
            first = self._first_head()
            return self.class_of(first) if first is not None and counts(self.class_of(first)) else None
        if self._claiming is None:
            self._claiming = _Heads()
            for members in self._classes.values():
                self._claiming.put(members)
        first = self._claiming.first(counts)
        return self.class_of(first) if first is not None else None

    def candidate(self, strategy: Strategy) -> Workload | None:
        """The workload to be tried next; None if there is none."""
        if strategy is Strategy.STRICT_FIFO:
            first = self._first_head()
            return None if first is None or self._class_of[first.uid].inadmissible is not None else first
        return self._admissible.first()

    def ahead_of(self, workload: Workload) -> Workload | None:
        """The first that still waits of those that came before a workload, or are more important."""
        first = self._first_head()
        return first if first is not None and first.rank < workload.rank else None

    def refusal(self, workload: Workload, queue: Queue, *, awaited: bool) -> Refusal | None:
        """What stops a workload; None if that has to be found out.

        In a `StrictFIFO` queue only the class of the head has its own refusal; others are `BehindHead`. So is
        that one if another workload is `awaited`: it has a pending reservation.
        """
        members = self._class_of[workload.uid]
        return self._refusal(members, queue, self._blocking_head(queue), awaited=awaited)

    def refusals(self, queue: Queue, *, awaited: bool) -> Iterator[tuple[str, Refusal]]:
        """UIDs with reasons; `awaited` is as for `refusal`."""
        for members, refusal in self._refusals(queue, awaited=awaited):
            yield from dict.fromkeys(members.members, refusal).items()

    def unreported_refusals(self, queue: Queue, *, awaited: bool) -> Iterator[tuple[str, Refusal]]:
        """As `refusals`, those that were not reported before."""
        for members, refusal in self._refusals(queue, awaited=awaited):
            yield from dict.fromkeys(members.newly_told(refusal), refusal).items()

    def refused_by(self, reason: Reason) -> int:
        """How many workloads are inadmissible for a reason."""
        refused = ((members.inadmissible, len(members.members)) for members in self._classes.values())
        return sum(count for refusal, count in refused if refusal is not None and refusal.reason is reason)

    def _refusals(self, queue: Queue, *, awaited: bool) -> Iterator[tuple[EquivalenceClass, Refusal]]:
        first = self._blocking_head(queue)
        for members in self._classes.values():
            refusal = self._refusal(members, queue, first, awaited=awaited)
            if refusal is not None:
                yield members, refusal

    def _blocking_head(self, queue: Queue) -> Workload | None:
        """The head of a `StrictFIFO` queue, which blocks the other classes; None in other queues."""
        if queue.strategy is not Strategy.STRICT_FIFO:
            return None
        return self._first_head()

    @staticmethod
    def _refusal(
        members: EquivalenceClass, queue: Queue, first: Workload | None, *, awaited: bool
    ) -> Refusal | None:
        blocked = first is not None and (awaited or members.head() is not first)
        if not blocked:
            return members.inadmissible
        reason = Reason.BEHIND_HEAD if members.back_off is None else Reason.PREEMPTION_BACKED_OFF
        return Refusal(reason, queue.name, back_off=members.back_off)
