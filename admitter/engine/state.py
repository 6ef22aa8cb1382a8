"""State of the engine between cycles: the tree, reservations, pending workloads, and what these wait for."""

from collections.abc import Iterable
from dataclasses import replace
from math import inf

from admitter.engine.flavors.assigner import Assigner
from admitter.engine.model import Flavor, Workload
from admitter.engine.policy import Strategy
from admitter.engine.preemption.context import PreemptionContext
from admitter.engine.preemption.search import Outlook
from admitter.engine.queue import events
from admitter.engine.queue.claim_blocked import ClaimBlocked
from admitter.engine.queue.claims import NOTHING_TAKEN, Claims, Taken
from admitter.engine.queue.inadmissible import InadmissibleClasses
from admitter.engine.queue.namespace_turns import PendingByNamespace
from admitter.engine.queue.pending import PendingQueue
from admitter.engine.queue.requeue import Requeue
from admitter.engine.queue.selection import Selection
from admitter.engine.quota.back_off import ReturnedReservations
from admitter.engine.quota.capacity import Capacity
from admitter.engine.quota.checkpoints import Checkpoints
from admitter.engine.quota.ledger import Ledger, Reservation
from admitter.engine.quota.reordered import Reordered
from admitter.engine.quota.tree import Node, Tree
from admitter.engine.refusal import Refusal


class EngineState:
    """Changed in place by events and by decisions."""

    def __init__(self) -> None:
        self.tree = Tree()
        self.ledger = Ledger(self.tree)
        self.flavors: dict[str, Flavor] = {}
        # what waits, by queue; queues in which nothing waits are not in it
        self.pending: dict[str, PendingQueue] = {}
        self.put_off: set[str] = set()  # changed queues in trees that another process decides about
        self.capacity = Capacity(self.tree, self.ledger)
        self.preemption = PreemptionContext(self.tree, self.ledger, self.capacity)
        self.assigner = Assigner(self.ledger.planned, self.flavors, self.preemption.giving)
        # what waiting workloads own, and others may not newly borrow
        self.claims = Claims(self.tree, self.ledger, self.assigner)
        self.claim_blocked = ClaimBlocked(self.preemption)
        self.inadmissible = InadmissibleClasses(self.tree, self.ledger, self.assigner, self.claim_blocked)
        selection = Selection(self.tree, self.ledger, self.pending, self.inadmissible, self.claims)
        self.requeue = Requeue(selection, self.ledger.extras)  # is told what happens, and tries again
        self.changed = selection.changed  # queues in which something could be decided
        # for which queues and namespaces nothing is evicted for a while
        self.returned = ReturnedReservations(self.ledger)
        self.checkpoints = Checkpoints()
        self.timers: dict[str, float] = {}  # when what waits in a queue has to be tried again
        self.doubtful: set[str] = set()  # queues in which a decision made elsewhere has changed the plan
        # queues with other pods than before
        self.reordered = Reordered(self.tree, self.ledger, self.capacity)
        self._queue_of: dict[str, str] = {}
        self._taken_up: set[str] = set()
        # UIDs of workloads that are displaced no longer though their places are still held
        self.restored: list[str] = []

    def waiting(self, uid: str) -> Workload | None:
        queue = self._queue_of.get(uid)
        return self.pending[queue].get(uid) if queue is not None else None

    def enqueue(self, workload: Workload) -> None:
        self.claims.mark(workload.queue)
        self._queue_of[workload.uid] = workload.queue
        self._line(workload.queue).add(workload)
        self.requeue(events.Arrived(workload.queue, workload))

    def _line(self, queue: str) -> PendingQueue:
        found = self.pending.get(queue)
        if found is None:
            sharing = self.ledger.sharing.get(queue)
            known = self.ledger.is_displaced, self.returned
            found = PendingByNamespace(queue, *known, sharing) if sharing else PendingQueue(queue, *known)
            self.pending[queue] = found
        return found

    def redefined(self, queue: str) -> None:
        """A queue has got another definition, or none: namespaces may take turns in it now, or no longer."""
        definition = self.tree.queues.get(queue)
        shared = definition is not None and definition.by_namespace
        if shared == (queue in self.ledger.sharing):
            return
        self.ledger.share_out(queue, shared=shared)
        before = self.pending.pop(queue, None)
        if before is not None:
            before.requeue()  # so that its classes are found in no place any more
            for workload in before.workloads():
                self._line(queue).add(workload)

    def reweigh(self, namespace: str, weight: int) -> None:
        if weight == 1:
            self.ledger.weights.pop(namespace, None)
        else:
            self.ledger.weights[namespace] = weight
        for queue, sharing in self.ledger.sharing.items():
            sharing.reweigh(namespace)
            self.requeue(events.TermsChanged(queue))

    def dequeue(self, uid: str) -> str | None:
        """Let a workload wait no longer; returns the queue in which it did."""
        queue = self._queue_of.pop(uid, None)
        if queue is not None:
            self.claims.mark(queue)
            pending = self.pending[queue]
            pending.remove(uid)
            if not len(pending):
                del self.pending[queue]
        return queue

    def settled(self, uid: str) -> None:
        """A workload has got a reservation: what it displaced may evict less than before."""
        self._sort_in(self._displaced_by(uid))

    def left(self, uid: str) -> None:
        """A workload has left for good, or competes anew: what it displaced may evict again what it could."""
        displaced = self._displaced_by(uid)
        for each in displaced:
            self.ledger.displacements.end(each)
        self._sort_in(displaced)

    def _displaced_by(self, uid: str) -> list[str]:
        return self.ledger.displacements.displaced_by(uid, self.ledger.pending_reservations.__contains__)

    def take_up(self, victim: str, preemptor: str) -> None:
        """A workload that is gone was evicted for another one before this engine lived."""
        self.ledger.displacements.make(victim, preemptor)
        self._taken_up.add(victim)

    def restore(self, queues: Iterable[str]) -> None:
        """Something ended, or was defined anew: what waits displaced in these queues may evict as before."""
        for name in queues:
            pending = self.pending.get(name)
            for uid in pending.displaced if pending is not None else ():
                self.ledger.displacements.end(uid)
                self.restored.append(uid)
                self._sort_in([uid])

    def check_taken_up(self) -> None:
        """End displacements that were taken up, if no preemptor has the place any more."""
        if not self._taken_up:
            return
        taken_up, self._taken_up = sorted(self._taken_up), set()
        spent = [uid for uid in taken_up if not self.ledger.is_displaced(uid)]
        for uid in spent:
            self.ledger.displacements.end(uid)
        self._sort_in(taken_up)

    def _sort_in(self, uids: Iterable[str]) -> None:
        for uid in uids:
            queue = self._queue_of.get(uid)
            if queue is not None and self.pending[queue].sort_in(uid):
                self.requeue(events.NextMayDiffer(queue))  # it is of another class now

    def mark_inadmissible(self, head: Workload, refusal: Refusal, outlook: Outlook) -> None:
        """Do not try the class of its head again before something changes that its refusal depends on."""
        if outlook.due < self.timers.get(head.queue, inf):
            self.timers[head.queue] = outlook.due
        self.inadmissible.mark(self.pending[head.queue].class_of(head), head, refusal, outlook)

    def renew_claims(self, root: Node, taken: Taken = NOTHING_TAKEN) -> set[str]:
        """Let what waits in a tree claim what it owns, as of now; `taken` is as for `Claims.refresh`.

        Where less is claimed than before, classes are requeued: returns their queues.
        """
        lessened = []
        for queue in self.claims.stale(root):
            definition = self.tree.queues.get(queue)
            strict = definition is not None and definition.strategy is Strategy.STRICT_FIFO
            awaited = strict and bool(self.ledger.pending_in(queue))
            less = self.claims.refresh(queue, self.pending.get(queue), awaited=awaited, taken=taken)
            if less:
                lessened.append(events.ClaimsLessened(queue, less.items()))
        names: set[str] = set()
        if root in self.claim_blocked:  # beside all claims as they are now
            names.update(*(self.requeue(event) for event in lessened))
        return names

    def amend(self, before: Reservation, made: Reservation) -> bool:
        """Another workload, or another time, may be known of what a holder has reserved; returns whether."""
        if before == made:
            return False
        if before.since != made.since:
            self.reorder(made.queue)
        self.ledger.amend(made)
        if made.queue in self.ledger.sharing:
            self.requeue(events.NextMayDiffer(made.queue))  # another namespace may be first
        if made.workload != before.workload or made.unsaved_since != before.unsaved_since:
            # it may be evicted now for another one, or sooner than others
            self.requeue(events.UsageGrew(made.queue, [key for key, _ in made.usage]))
            self.requeue(events.TermsChanged(made.queue))
        return True

    def reorder(self, queue: str) -> None:
        """The pods of a queue are about to be others: by their age others may be over quota."""
        self.reordered.note(queue)

    def compare(self) -> None:
        """Where others are over quota, or in another order, others may be evicted: try preemptors again."""
        for queue in self.reordered.compare():
            self.requeue(events.UsageGrew(queue, self.ledger.planned.used(queue).keys()))

    def requeue_due(self, now: float) -> None:
        """Time has passed: timers are due, back-offs begin and end, and checkpoints begin to count.

        And some may grow now. Limits count other evictions than before.
        """
        self.ledger.extras.turn(now)
        history = self.ledger.evictions
        for event, noted in ((events.FewerEvictions, history.fewer), (events.EvictionsMoved, history.moved)):
            for queue in sorted(noted):
                self.requeue(event(queue))
            noted.clear()
        for holder, checkpoint in self.checkpoints.turn(now):
            held = self.ledger.held(holder)
            if held is not None:
                self.amend(held, replace(held, checkpoint=checkpoint))
        for queue, namespace in sorted(self.returned.turn(now)):
            if queue in self.pending:
                self.pending[queue].sort_out(namespace)
            self.requeue(events.BackOffTurned(queue))
        for queue in [queue for queue, due in self.timers.items() if due <= now]:
            del self.timers[queue]
            self.requeue(events.TimerDue(queue))
