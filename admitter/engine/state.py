"""State of the engine between cycles: the tree, reservations, pending workloads, and what these wait for."""

from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from enum import Enum, auto
from functools import partial
from math import inf

from admitter.engine.flavors.assigner import Assigner
from admitter.engine.flavors.partial_admission import fewest
from admitter.engine.model import Flavor, FlavorResource, Workload
from admitter.engine.policy import BorrowWithin, Queue, Reclaim, Strategy, WithinQueue
from admitter.engine.preemption import guaranteed, within_queue
from admitter.engine.preemption.back_off import ReturnedReservations
from admitter.engine.preemption.context import PreemptionContext
from admitter.engine.preemption.outlook import Outlook
from admitter.engine.queue.claim_blocked import ClaimBlocked
from admitter.engine.queue.equivalence import EquivalenceClass, InadmissibleClasses, Need
from admitter.engine.queue.namespace_turns import PendingByNamespace
from admitter.engine.queue.pending import PendingQueue
from admitter.engine.quota.capacity import Capacity
from admitter.engine.quota.claims import NOTHING_TAKEN, Claims, Taken
from admitter.engine.quota.fair_shares import ENDLESS, NO_SHARE, FairShares, Share
from admitter.engine.quota.ledger import Ledger, Reservation
from admitter.engine.quota.tree import Node, Tree
from admitter.engine.refusal import Reason, Refusal


class Look(Enum):
    """What a glance at an equivalence class says."""

    SHORT = auto()
    """Nothing that it needs is free."""
    FITS = auto()
    """Something is free, and perhaps within the queue's own."""
    BORROWS = auto()
    """What is free would be borrowed."""
    UNSURE = auto()
    """Only a nomination tells."""


class EngineState:
    """Changed in place by events and by decisions.

    Attributes:
        tree: queues, cohorts and their quotas.
        ledger: what each workload holds.
        flavors: by name.
        assigner: finds flavors on what is planned.
        pending: what waits, by queue; queues in which nothing waits are not in it.
        changed: queues in which something could be decided.
        put_off: those of them in trees that another process decides about.
        claims: what waiting workloads own, and others may not newly borrow.
        capacity: which workloads are over quota.
        preemption: what victims are looked for in.
        claim_blocked: what has room but for claims.
        returned: for which queues and namespaces nothing is evicted for a while.
        timers: when what waits in a queue has to be tried again.
        doubtful: queues in which a decision made elsewhere has changed the plan.
        restored: UIDs of workloads that are displaced no longer though their places are still held.
        reordered: queues with other pods than before, and the UIDs that were over quota then.
    """

    def __init__(self) -> None:
        self.tree = Tree()
        self.ledger = Ledger(self.tree)
        self.flavors: dict[str, Flavor] = {}
        self.pending: dict[str, PendingQueue] = {}
        self.changed: set[str] = set()
        self.put_off: set[str] = set()
        self.capacity = Capacity(self.tree, self.ledger)
        self.preemption = PreemptionContext(self.tree, self.ledger, self.capacity)
        self.assigner = Assigner(self.ledger.planned, self.flavors, self.preemption.giving)
        self.claims = Claims(self.tree, self.ledger, self.assigner)
        self.claim_blocked = ClaimBlocked(self.preemption)
        self.returned = ReturnedReservations(self.ledger)
        self.timers: dict[str, float] = {}
        self.doubtful: set[str] = set()
        self.reordered: dict[str, list[str]] = {}
        self._waiters = InadmissibleClasses()
        self._queue_of: dict[str, str] = {}
        self._taken_up: set[str] = set()
        self.restored: list[str] = []

    def waiting(self, uid: str) -> Workload | None:
        """A workload that waits in a queue."""
        queue = self._queue_of.get(uid)
        return self.pending[queue].get(uid) if queue is not None else None

    def enqueue(self, workload: Workload) -> None:
        """Let a workload wait that does not."""
        self.claims.mark(workload.queue)
        self._queue_of[workload.uid] = workload.queue
        members = self._line(workload.queue).add(workload)
        queue = self.tree.queues.get(workload.queue)
        age_counts = (
            queue is not None and queue.preemption.within is WithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY
        )
        if age_counts and members.head() is workload:
            members.requeue()  # it is older than those that found no victims
        self.changed.add(workload.queue)

    def _line(self, queue: str) -> PendingQueue:
        """What waits in a queue."""
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
        """A namespace has got another weight."""
        if weight == 1:
            self.ledger.weights.pop(namespace, None)
        else:
            self.ledger.weights[namespace] = weight
        for queue, sharing in self.ledger.sharing.items():
            sharing.reweigh(namespace)
            self.requeue(queue)

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
        """Something ended, or was defined anew: what waits displaced may evict what it could before.

        Args:
            queues: in which that may make a difference to workloads.
        """
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
                self.changed.add(queue)

    def mark_inadmissible(self, workload: Workload, refusal: Refusal, outlook: Outlook) -> None:
        """Do not try a class again before something changes that its refusal depends on.

        Args:
            workload: the head of the class.
            refusal: why it does not fit.
            outlook: what evictions could have done for it.
        """
        queue = self.tree.queues[workload.queue]
        members = self.pending[workload.queue].class_of(workload)
        uncovered = refusal.reason is Reason.RESOURCE_NOT_COVERED  # nothing that is freed helps
        least = fewest(workload) or workload
        keys = {} if uncovered else self.assigner.interests(least, queue)
        members.needs, members.share, members.giving = [], NO_SHARE, outlook.giving
        if outlook.due < self.timers.get(queue.name, inf):
            self.timers[queue.name] = outlook.due
        if self._simple(workload):
            needs = [Need(*need, self.ledger.planned.cell(queue.name, need[0])) for need in keys.items()]
            shortfalls = self._shortfalls(needs, outlook.evictable)
            members.share = outlook.share
            if outlook.barred and len({resource for (_, resource), _, _ in needs}) == 1:
                members.needs = needs  # of each flavor the same: with one of them it may fit
        else:
            shortfalls = [(key, 1) for key in keys]
        self._waiters.mark_inadmissible(members, refusal, self.tree.root(queue.name), shortfalls)
        self.claim_blocked.track(members, tuple(outlook.withheld), keys if outlook.bound else ())
        never = refusal.reason is Reason.NEVER_FITS
        if not never and self.claim_blocked.is_kept(workload.queue, keys, each=self._simple(workload)):
            self.claim_blocked.keep(members)

    def _simple(self, workload: Workload) -> bool:
        """Whether it is known what has to change for a workload to fit.

        With several pod sets, or cohorts under cohorts, anything may help. What can do with fewer pods needs
        what the fewest need.
        """
        return len(workload.pod_sets) == 1 and len(self.tree.path(("queue", workload.queue))) <= 2

    @staticmethod
    def _shortfalls(
        needs: Iterable[Need], evictable: Mapping[FlavorResource, int]
    ) -> list[tuple[FlavorResource, int]]:
        """How much of each flavor and resource has to be freed at least."""
        return [(key, max(1, cell.lacking(amount)[0] - evictable.get(key, 0))) for key, amount, cell in needs]

    def look(self, members: EquivalenceClass) -> Look:
        """Whether the first of a class may fit, at a glance; if not, the class is marked inadmissible again.

        That it need not borrow may turn out to be wrong, that it has to can't.
        """
        needs = members.needs
        if not needs:
            return Look.UNSURE
        lacking, kept, found = [], False, Look.SHORT
        for _, amount, cell in needs:
            more, claimed = cell.lacking(amount)
            if more > 0:
                lacking.append(more)
                kept |= claimed
            elif found is not Look.FITS:
                found = Look.BORROWS if cell.borrows(amount) else Look.FITS
        if lacking and self._is_entitled(members.queue, needs):
            return Look.UNSURE
        if found is Look.SHORT:
            members.mark_inadmissible_again(lacking)
            if kept:
                self.claim_blocked.keep(members)
        return found

    def _is_entitled(self, queue: str, needs: Iterable[Need]) -> bool:
        """Whether with some of what is needed a queue would be within what it may take from others."""
        policy = self.tree.queues[queue].preemption
        if policy.borrow is BorrowWithin.GUARANTEED_SHARE:
            book, root = self.ledger.planned, self.tree.root(queue)
            return any(
                guaranteed.is_entitled(self.tree, book, root, queue, key, amount) for key, amount, _ in needs
            )
        if policy.reclaim is Reclaim.NEVER:
            return False
        return any(not cell.borrows(amount) for _, amount, cell in needs)

    def _uses_less_than_its_own(self, queue: str, usage: Iterable[tuple[FlavorResource, int]]) -> bool:
        used = self.ledger.planned.used(queue)
        return any(used.get(key, 0) < self.tree.minimum(queue, key) for key, _ in usage)

    def usage_shrank(self, queue: str, usage: Iterable[tuple[FlavorResource, int]]) -> set[str]:
        """Planned use shrank: requeue what may fit now.

        In a queue that preempts that is all that waits: it may be entitled now to take back what it lent.

        Returns:
            The queues in which a class was requeued.
        """
        names = self._released(queue, usage)
        root = self.tree.root(queue)
        pending = self.pending.get(queue)
        if pending is not None and self._preempts(queue) and self._requeue_entitled(queue, pending):
            names.add(queue)
        if self.tree.fair(root):
            names |= self._requeue_by_share(
                self.tree.below(self._side(queue)), ENDLESS
            )  # its share is smaller now
        else:
            names |= self._guaranteed(root, lambda: self._uses_less_than_its_own(queue, usage))
        self.changed |= names
        self.changed.add(queue)
        return names

    def renew_claims(self, root: Node, taken: Taken = NOTHING_TAKEN) -> set[str]:
        """Let what waits in a tree claim what it owns, as of now; `taken` is as for `Claims.refresh`.

        Returns:
            The queues in which a class was requeued, since less is claimed than before.
        """
        lessened = []
        for queue in self.claims.stale(root):
            definition = self.tree.queues.get(queue)
            strict = definition is not None and definition.strategy is Strategy.STRICT_FIFO
            awaited = strict and bool(self.ledger.pending_in(queue))
            less = self.claims.refresh(queue, self.pending.get(queue), awaited=awaited, taken=taken)
            if less:
                lessened.append((queue, less))
        names: set[str] = set()
        if root in self.claim_blocked:  # beside all claims as they are now
            names.update(*(self._released(queue, less.items()) for queue, less in lessened))
        self.changed |= names
        return names

    def _released(self, queue: str, usage: Iterable[tuple[FlavorResource, int]]) -> set[str]:
        """So much may be had again in the tree of a queue: try what may fit; returns the queues of that."""
        found = self._waiters.freed(self.tree.root(queue), self._felt(queue, usage))
        may_fit = [members for members in found if self.look(members) is not Look.SHORT]
        for members in may_fit:
            members.retry_as_known()
        return {members.queue for members in may_fit}

    def _requeue_entitled(self, queue: str, pending: PendingQueue) -> bool:
        """Requeue classes of a queue that uses less, if that may entitle them to more; whether any is."""
        policy = self.tree.queues[queue].preemption
        takes = policy.reclaim is not Reclaim.NEVER or policy.borrow is not BorrowWithin.NEVER
        if not isinstance(pending, PendingByNamespace):
            # In their own queue rank decides, whatever it uses.
            return takes and pending.requeue_entitled(partial(self._is_entitled, queue))
        if takes:
            pending.requeue()
            return True
        return pending.requeue_shrunk()

    def _felt(
        self, queue: str, usage: Iterable[tuple[FlavorResource, int]]
    ) -> list[tuple[FlavorResource, int]]:
        """Where it is felt that a queue has freed something: with a limit on all flavors, in all of them."""
        felt, owner = list(usage), self.tree.queues.get(queue)
        if owner is None or not owner.limits:
            return felt
        for (flavor, resource), amount in list(felt):
            if resource in owner.limits:
                others = {f for g in owner.groups if resource in g.resources for f in g.flavors} - {flavor}
                felt += [((other, resource), amount) for other in sorted(others)]
        return felt

    def usage_grew(
        self, queue: str, keys: Iterable[FlavorResource], newcomer: Workload | None = None
    ) -> set[str]:
        """A queue uses more than before, and borrows some of it that it did not before.

        Something may be preempted now that could not be before: what preempts is to be tried again.

        Args:
            queue: its name.
            keys: what it borrows that it did not before.
            newcomer: what uses more; None: anything of the queue.

        Returns:
            The queues in which a class was requeued.
        """
        requeued = self._forget_needs(queue, newcomer)
        root = self.tree.root(queue)
        if self.tree.fair(root):
            names = self._larger_shares(queue) | self._within(queue, newcomer)
        else:
            names = set()
            for members in self._waiters.waiting(root, keys):
                if not members.needs and self._preempts(members.queue):
                    members.requeue()
                    names.add(members.queue)
            names |= self._requeue_lenders(queue, root) | self._guaranteed(root)
        names |= {queue} if requeued else set()
        self.changed |= names
        return names

    def _forget_needs(self, queue: str, newcomer: Workload | None) -> bool:
        """In its own queue something may be evicted that came in; whether any class was requeued for that."""
        pending, owner = self.pending.get(queue), self.tree.queues.get(queue)
        if pending is None or owner is None or owner.preemption.within is WithinQueue.NEVER:
            return False
        return pending.forget_needs(partial(self._may_evict, owner, newcomer))

    def _within(self, queue: str, newcomer: Workload | None) -> set[str]:
        """Requeue what may evict in its own queue what has come in; returns the queue, if anything may."""
        pending, owner = self.pending.get(queue), self.tree.queues.get(queue)
        if pending is None or owner is None or owner.preemption.within is WithinQueue.NEVER:
            return set()
        return {queue} if pending.requeue_matching(partial(self._may_evict, owner, newcomer)) else set()

    @staticmethod
    def _may_evict(queue: Queue, newcomer: Workload | None, head: Workload) -> bool:
        """Whether rank allows the head of a class to evict what has come in; None: anything has."""
        if newcomer is None or queue.by_namespace:
            return True
        return within_queue.lesser(queue.preemption.within, head).has(newcomer)

    def _larger_shares(self, queue: str) -> set[str]:
        """Requeue classes that may take from a queue, or a cohort above it: it uses more than before."""
        shares, parents = FairShares(self.tree, self.ledger.planned), self.tree.parents()
        names = set()
        for node in self.tree.path(("queue", queue)):
            above, share = parents.get(node), shares.of(node)
            if above is not None and share > NO_SHARE:
                names |= self._requeue_by_share(self.tree.below(above), share)
        return names

    def _requeue_lenders(self, queue: str, root: Node) -> set[str]:
        """Requeue classes that preempt to borrow: a queue that reclaims may have more than its own now."""
        owner = self.tree.queues.get(queue)
        if owner is None or owner.preemption.reclaim is not Reclaim.ANY:
            return set()
        return self._requeue_all(self.tree.preempting_to_borrow(root, BorrowWithin.LOWER_PRIORITY))

    def _guaranteed(self, root: Node, more: Callable[[], bool] = bool) -> set[str]:
        """Requeue classes that preempt by guaranteed shares, or must respect them: these have changed.

        Args:
            root: of the tree.
            more: whether more may be unused than before, and so shares larger.
        """
        names: set[str] = set()
        by_share = self.tree.preempting_to_borrow(root, BorrowWithin.GUARANTEED_SHARE)
        if not by_share:
            return names
        for name in by_share & self.pending.keys():
            pending = self.pending[name]
            if (pending.unsure or more()) and pending.requeue_entitled(partial(self._is_entitled, name)):
                names.add(name)
        return names | self._requeue_all(self.tree.preempting_to_borrow(root, BorrowWithin.LOWER_PRIORITY))

    def _requeue_all(self, queues: AbstractSet[str]) -> set[str]:
        """Try all again that waits in some queues; returns those in which there is any."""
        names = queues & self.pending.keys()
        for name in names:
            self.pending[name].requeue()
        return names

    def _preempts(self, queue: str) -> bool:
        found = self.tree.queues.get(queue)
        return found is not None and found.preemption.allowed

    def _side(self, queue: str) -> Node:
        """The child of the root that a queue is, or is below of."""
        *_, side = [node for node in self.tree.path(("queue", queue)) if node != self.tree.root(queue)]
        return side

    def _requeue_by_share(self, queues: Iterable[str], share: Share) -> set[str]:
        """Try all again that may take something from a queue of some share; returns the queues of those."""
        preempting = [name for name in queues if name in self.pending and self._preempts(name)]
        return {name for name in preempting if self.pending[name].requeue_by_share(share)}

    def reservation_ended(self, reservation: Reservation) -> set[str]:
        """As `freed`, with all that a reservation held."""
        return self.usage_shrank(reservation.queue, reservation.usage)

    def reorder(self, queue: str) -> None:
        """The pods of a queue are about to be others: by their age others may be over quota."""
        if queue not in self.reordered:
            self.reordered[queue] = self.capacity.planned(queue).holders()

    def compare(self) -> None:
        """Where others are over quota than before, others may be evicted: try preemptors again."""
        reordered, self.reordered = self.reordered, {}
        for queue, before in sorted(reordered.items()):
            if self.capacity.planned(queue).holders() != before:
                self.usage_grew(queue, self.ledger.planned.used(queue))

    def requeue_due(self, now: float) -> None:
        """Try all again that waits in queues with a timer that is due."""
        for queue in [queue for queue, due in self.timers.items() if due <= now]:
            del self.timers[queue]
            self.requeue(queue)

    def turn(self, now: float) -> None:
        """Begin and end back-offs; try again what waits there."""
        for queue, namespace in sorted(self.returned.turn(now)) if self.returned.is_due(now) else ():
            if queue in self.pending:
                self.pending[queue].sort_out(namespace)
            self.requeue(queue)

    def requeue(self, queue: str) -> None:
        """Anything may have changed for what waits in a queue."""
        if queue in self.pending:
            self.pending[queue].requeue()
            self.claims.mark(queue)
        self.changed.add(queue)
