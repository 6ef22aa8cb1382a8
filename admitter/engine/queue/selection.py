"""Which equivalence classes an event concerns: the rules of the table in `requeue`.

Each requeues the classes that it selects, by planned use as it is after the event, and returns the queues
that have to be looked at for that: those of the classes.
"""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial

from admitter.engine.model import FlavorResource, Workload
from admitter.engine.policy import BorrowWithin, Queue, Reclaim, WithinQueue
from admitter.engine.preemption import within_queue
from admitter.engine.queue import events
from admitter.engine.queue.claims import Claims
from admitter.engine.queue.inadmissible import InadmissibleClasses, Look
from admitter.engine.queue.namespace_turns import PendingByNamespace
from admitter.engine.queue.pending import PendingQueue
from admitter.engine.quota.fair_shares import ENDLESS, NO_SHARE, FairShares, Share
from admitter.engine.quota.ledger import Ledger
from admitter.engine.quota.tree import Tree
from admitter.engine.refusal import Reason


@dataclass(eq=False)
class Selection:
    """Selects classes of all that waits."""

    tree: Tree
    ledger: Ledger
    pending: dict[str, PendingQueue]
    inadmissible: InadmissibleClasses
    claims: Claims  # to be made anew where all is tried again
    changed: set[str] = field(default_factory=set)  # the queues in which something could be decided

    def is_preempting(self, queue: str) -> bool:
        """Whether any queue in the tree of this one may preempt."""
        return bool(self.tree.preempting(self.tree.root(queue)))

    def with_room(self, event: events.UsageShrank | events.ClaimsLessened) -> set[str]:
        """Of the tree what lacked no more than has been freed since its refusal, if a glance agrees."""
        found = self.inadmissible.freed(self.tree.root(event.queue), self._felt(*event))
        may_fit = [members for members in found if self.inadmissible.look(members) is not Look.SHORT]
        for members in may_fit:
            members.retry_as_known()
        return {members.queue for members in may_fit}

    def _felt(self, queue: str, usage: events.Amounts) -> list[tuple[FlavorResource, int]]:
        """Where it is felt that a queue has freed something: with a limit on all flavors, in all of them."""
        felt, owner = list(usage), self.tree.queues.get(queue)
        if owner is None or not owner.limits:
            return felt
        for (flavor, resource), amount in list(felt):
            if resource in owner.limits:
                others = {f for g in owner.groups if resource in g.resources for f in g.flavors} - {flavor}
                felt += [((other, resource), amount) for other in sorted(others)]
        return felt

    def kept_out_by_claims(self, event: events.RoundBegan) -> set[str]:
        """Of the tree what claims kept out: others have taken its room, or what kept it from evicting."""
        return self.inadmissible.claim_blocked.requeue(event.root)

    def entitled(self, event: events.UsageShrank) -> set[str]:
        """Of the queue what is within its own or its guaranteed share now, and so may take that back.

        Only where the queue may take from others, or pending reservations of its own may be taken over: in
        itself rank decides, whatever it uses. Where namespaces share it, of those that use less whatever
        waits.
        """
        pending, owner = self.pending.get(event.queue), self.tree.queues.get(event.queue)
        promised = event.queue in self.ledger.queues_with_pending
        if pending is None or owner is None or not (owner.preemption.allowed or promised):
            return set()
        policy = owner.preemption
        takes = policy.reclaim is not Reclaim.NEVER or policy.borrow is not BorrowWithin.NEVER or promised
        if not isinstance(pending, PendingByNamespace):
            found = takes and pending.requeue_entitled(self.inadmissible.may_take)
        elif takes:
            pending.requeue()
            found = True
        else:
            found = pending.requeue_shrunk()
        return {event.queue} if found else set()

    def on_smaller_side(self, event: events.UsageShrank) -> set[str]:
        """With fair sharing, on the queue's side of the root all that preempts: its share is smaller now."""
        root = self.tree.root(event.queue)
        if not self.tree.fair(root):
            return set()
        *_, side = [node for node in self.tree.path(("queue", event.queue)) if node != root]
        return self._requeue_by_share(self.tree.below(side), ENDLESS)

    def evicting_within(self, event: events.UsageGrew) -> set[str]:
        """Of the queue what may evict there what has come in, by shares; by rank none is tried.

        What comes later makes no room for what was refused before, since rank decides in a queue. But what is
        free alone no longer tells whether such a class fits.
        """
        pending, owner = self.pending.get(event.queue), self.tree.queues.get(event.queue)
        if pending is None or owner is None or owner.preemption.within is WithinQueue.NEVER:
            return set()
        may_evict = partial(_may_evict, owner, event.newcomer)
        found = pending.forget_needs(may_evict)
        if self.tree.fair(self.tree.root(event.queue)):
            found |= pending.requeue_matching(may_evict)
        return {event.queue} if found else set()

    def with_smaller_share(self, event: events.UsageGrew) -> set[str]:
        """With fair sharing, what may take from the queue or a cohort above it: their shares are larger."""
        names: set[str] = set()
        if not self.tree.fair(self.tree.root(event.queue)):
            return names
        shares, parents = FairShares(self.tree, self.ledger.planned), self.tree.parents()
        for node in self.tree.path(("queue", event.queue)):
            above, share = parents.get(node), shares.of(node)
            if above is not None and share > NO_SHARE:
                names |= self._requeue_by_share(self.tree.below(above), share)
        return names

    def evicting_borrowers(self, event: events.UsageGrew) -> set[str]:
        """Of the tree what preempts and lacks what is borrowed more; not if its own queue is in its way.

        Also what respects queues that would reclaim: one that keeps its own without a victim borrows more.
        """
        names: set[str] = set()
        root = self.tree.root(event.queue)
        if self.tree.fair(root):
            return names
        for members in self.inadmissible.waiting(root, event.keys):
            if not members.needs and self._preempts(members.queue):
                members.requeue()
                names.add(members.queue)
        return names

    def by_larger_guarantee(self, event: events.UsageShrank) -> set[str]:
        """As `by_guarantee`; if the queue uses less than its own, more is unused, and shares are larger."""
        return self._by_guarantee(event.queue, lambda: self._uses_less_than_its_own(*event))

    def _uses_less_than_its_own(self, queue: str, usage: events.Amounts) -> bool:
        used = self.ledger.planned.used(queue)
        return any(used.get(key, 0) < self.tree.minimum(queue, key) for key, _ in usage)

    def by_guarantee(self, event: events.UsageGrew) -> set[str]:
        """Of the tree what preempts by guaranteed shares, or must respect them: these have changed."""
        return self._by_guarantee(event.queue, bool)

    def _by_guarantee(self, queue: str, larger: Callable[[], bool]) -> set[str]:
        names: set[str] = set()
        root = self.tree.root(queue)
        by_share = self.tree.preempting_to_borrow(root, BorrowWithin.GUARANTEED_SHARE)
        if not by_share or self.tree.fair(root):
            return names
        for name in by_share & self.pending.keys():
            pending = self.pending[name]
            if (pending.unsure or larger()) and pending.requeue_entitled(self.inadmissible.may_take):
                names.add(name)
        return names | self._requeue_all(self.tree.preempting_to_borrow(root, BorrowWithin.LOWER_PRIORITY))

    def more_important(self, event: events.PendingReservationMade) -> set[str]:
        """Of the queue what has a higher priority, and could take the pending reservation over."""
        pending = self.pending.get(event.queue)
        return {event.queue} if pending is not None and pending.requeue_above(event.priority) else set()

    def older(self, event: events.Arrived) -> set[str]:
        """The workload's class, if it is the first of that and may evict by age what others could not."""
        queue, pending = self.tree.queues.get(event.queue), self.pending[event.queue]
        if queue is None or queue.preemption.within is not WithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY:
            return set()
        members = pending.class_of(event.workload)
        if members.head() is not event.workload:
            return set()
        members.requeue()
        return {event.queue}

    def itself(self, event: events.OfQueue) -> set[str]:
        """No class: the queue is looked at in the next cycle though none of it is requeued."""
        self.changed.add(event.queue)
        return set()

    def all_of_queue(self, event: events.TimerDue | events.BackOffTurned | events.TermsChanged) -> set[str]:
        """Whatever waits in the queue."""
        return self._try_all({event.queue})

    def all_of_tree(self, event: events.OfTree) -> set[str]:
        """Whatever waits in the tree, and its pending reservations."""
        return self._try_all({*self.tree.members(self.tree.root(event.queue))})

    def kept_by_limits(self, event: events.EvictionsMoved) -> set[str]:
        """What waits in the tree for limits on evictions alone."""
        names = self.pending.keys() & set(self.tree.members(self.tree.root(event.queue)))
        return {name for name in names if self.pending[name].requeue_refused_by(Reason.EVICTIONS_LIMITED)}

    def all_concerned(self, event: events.Redefined) -> set[str]:
        """Whatever waits in the queues and trees, and their pending reservations."""
        kept = (self.pending, self.ledger.queues_with_pending)
        return self._try_all({name for names in kept for name in self.tree.concerned(names, *event)})

    def _try_all(self, queues: AbstractSet[str]) -> set[str]:
        """Whatever waits in some queues; returns also those with nothing but pending reservations."""
        names = self._requeue_all(queues)
        for name in names:
            self.claims.mark(name)
        return names | (queues & self.ledger.queues_with_pending.keys())

    def _requeue_all(self, queues: AbstractSet[str]) -> set[str]:
        names = {*(queues & self.pending.keys())}
        for name in names:
            self.pending[name].requeue()
        return names

    def _requeue_by_share(self, queues: Iterable[str], share: Share) -> set[str]:
        """What preempts and may take something from a queue of some share."""
        preempting = [name for name in queues if name in self.pending and self._preempts(name)]
        return {name for name in preempting if self.pending[name].requeue_by_share(share)}

    def _preempts(self, queue: str) -> bool:
        found = self.tree.queues.get(queue)
        return found is not None and found.preemption.allowed


def _may_evict(queue: Queue, newcomer: Workload | None, head: Workload) -> bool:
    """Whether rank allows the head of a class to evict what has come in; None: anything has."""
    if newcomer is None or queue.by_namespace:
        return True
    return within_queue.lesser(queue.preemption.within, head).has(newcomer)
