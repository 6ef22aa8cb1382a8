"""The part of a cycle in one cohort tree: the heads of its queues compete for what is free.

The order (docs/design/engine.md): heads that need no borrowing, then priority, age and UID. After
each decision the queue's next head competes at once, so a tree cycle admits as much as fits. Use only
grows while it lasts, except by evictions; so a head is nominated again only if something was decided
since its nomination.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from admitter.engine.growth import Resizing
from admitter.engine.model import Admission, FlavorResource, Usage, Workload
from admitter.engine.nominator import Nominator, Refused
from admitter.engine.policy import Queue, Strategy
from admitter.engine.preemption.receipt import Passed, Passing, Receipt, Receipts
from admitter.engine.queue import events
from admitter.engine.queue.competing_heads import ByRank, ByShare, CompetingHead, Nomination
from admitter.engine.queue.inadmissible import Look
from admitter.engine.quota.cells import Cell
from admitter.engine.quota.ledger import PendingReservation, Reservation
from admitter.engine.quota.tree import Node
from admitter.engine.refusal import Refusal
from admitter.engine.state import EngineState


@dataclass(frozen=True, slots=True)
class PlannedEviction:
    """The eviction of one victim."""

    victim: Reservation
    preemptor: Workload  # the workload that gets the quota
    admission: Admission
    receipt: Receipt
    grace: float = 0.0  # for how long the eviction is pending, in seconds; 0: it starts at once


@dataclass(frozen=True, slots=True)
class Reassignment:
    """An eviction that was decided for one workload before, and is for another one now."""

    victim: str  # UID of the victim; it may be gone already
    preemptor: Workload  # the new one
    admission: Admission


@dataclass(slots=True)
class Plan:
    """What one cycle decided."""

    # workloads to admit, in the order of the decisions
    admissions: list[tuple[Workload, Admission]] = field(default_factory=list)
    # workloads to evict, each for a preemptor that is admitted once they are gone
    evictions: list[PlannedEviction] = field(default_factory=list)
    # by UID of waiting workloads, reasons that were not reported before
    refusals: dict[str, Refusal] = field(default_factory=dict)
    # workloads that will be admitted once what they wait for is gone, and as what
    planned: dict[str, Admission] = field(default_factory=dict)
    # by the UID of each workload admitted out of order, the one that it passes
    passed: dict[str, Passed] = field(default_factory=dict)
    # by UID of each workload that took over pending reservations of less important workloads of its queue,
    # these workloads
    taken_over: dict[str, tuple[Workload, ...]] = field(default_factory=dict)
    # evictions of earlier cycles that are for other workloads now
    reassigned: list[Reassignment] = field(default_factory=list)
    # UIDs of waiting workloads that were evicted, and may evict again what could come back: what they use now
    # is not what it was
    restored: list[str] = field(default_factory=list)
    # workloads that get more extra pods, or lose some
    resized: list[Resizing] = field(default_factory=list)

    def cancel_eviction(self, victim: str) -> None:
        """An eviction of this plan is not needed any more."""
        self.evictions = [each for each in self.evictions if each.victim.holder != victim]
        self.reassigned = [each for each in self.reassigned if each.victim != victim]

    def reassign(self, victim: str, preemptor: Workload, admission: Admission) -> None:
        """An eviction is for another workload than before, whichever cycle decided it."""
        for number, eviction in enumerate(self.evictions):
            if eviction.victim.holder == victim:
                self.evictions[number] = replace(eviction, preemptor=preemptor, admission=admission)
                return
        self.reassigned = [each for each in self.reassigned if each.victim != victim]
        self.reassigned.append(Reassignment(victim, preemptor, admission))


class TreeCycle:
    """Decides what can be decided in one tree."""

    def __init__(self, state: EngineState, root: Node, now: float, plan: Plan) -> None:
        """What is decided goes into `plan`; it is `now`, in seconds since the epoch."""
        self._state = state
        self._root = root
        self._now = now
        self._plan = plan
        self._tree = state.tree
        self._ledger = state.ledger
        self._decisions = 0
        fair = self._tree.fair(root)
        self._heads = ByShare(self._tree, self._ledger.planned, root) if fair else ByRank()
        self._nominator = Nominator(state)
        self._renewal = self._ledger.planned.renewal
        # What workloads have got since claims were made anew, and the queues that these have requeued.
        self._taken: dict[str, Usage] = {}
        self._requeued: set[str] = set()

    def run(self, queues: set[str]) -> None:
        """Admit pending reservations that fit now, then let the heads of some (changed) queues compete."""
        names = queues
        self._ledger.keep_rooms(self._pending_reservations())
        try:
            while True:
                redeemed = self._redeem()
                if redeemed or names:
                    self._renewal.due = self._renew
                requeued = redeemed | self._released() | self._state.requeue(events.RoundBegan(self._root))
                self._state.changed |= redeemed  # what is behind those gets another reason
                self._enter_all(names | requeued)
                if not self._heads:
                    return
                self._drain()
                names = set()
        finally:
            self._ledger.free_rooms()
            self._renewal.due = None

    def _renew(self) -> None:
        """Workloads may claim something else than before: found out before any claim is looked at next.

        Most decisions concern none, and nothing is found out for those.
        """
        taken, self._taken = self._taken, {}
        self._requeued |= self._state.renew_claims(self._root, taken)

    def _released(self) -> set[str]:
        """The queues in which a class was requeued, as less is claimed; if any waits for that."""
        if self._root in self._state.claim_blocked:
            self._renewal.run()
        if not self._requeued:
            return set()
        requeued, self._requeued = self._requeued, set()
        return requeued

    def _drain(self) -> None:
        """Take the turn of each head that competes."""
        while self._heads:
            entry = self._heads.pop()
            if self._is_still_head(entry.workload):
                fresh = entry.nomination is not None and entry.nominated_at == self._decisions
                nomination = entry.nomination if fresh else self._nominate_again(entry)
                if nomination is not None:
                    self._decide(entry.workload, nomination)
                    if released := self._released():
                        self._enter_all(released)
            self._enter(entry.workload.queue)

    def _is_still_head(self, workload: Workload) -> bool:
        """Whether no workload before this one in its queue was requeued since it began to compete."""
        pending = self._state.pending[workload.queue]
        return pending.candidate(self._tree.queues[workload.queue].strategy) is workload

    def _enter_all(self, names: set[str]) -> None:
        for name in sorted(names):
            self._enter(name)

    def _enter(self, name: str) -> None:
        """Let a queue's next head compete; heads that do not fit are marked inadmissible on the way."""
        queue, pending = self._tree.queues.get(name), self._state.pending.get(name)
        if queue is None or not queue.admits or pending is None or name in self._heads:
            return
        while (workload := pending.candidate(queue.strategy)) is not None:
            if queue.strategy is Strategy.STRICT_FIFO and not self._is_ahead(workload):
                return  # the head of the queue is on the way in, and is not overtaken
            look = self._state.inadmissible.look(pending.class_of(workload))
            if look is Look.SHORT:
                continue
            if look is not Look.UNSURE and self._heads.lazy:
                self._heads.push(CompetingHead(workload, look is Look.BORROWS, None, self._decisions))
                return
            outcome = self._nominate(workload, queue)
            if isinstance(outcome, Nomination):
                self._compete(workload, outcome)
                return
            self._state.mark_inadmissible(workload, *outcome)

    def _is_ahead(self, workload: Workload) -> bool:
        """Whether a workload is more important than all of its queue that have a pending reservation."""
        reservations = self._ledger.pending_in(workload.queue)
        return all(pending.workload.priority < workload.priority for pending in reservations)

    def _compete(self, workload: Workload, nomination: Nomination) -> None:
        self._heads.push(CompetingHead(workload, nomination.proposal.borrowing, nomination, self._decisions))

    def _nominate_again(self, entry: CompetingHead) -> Nomination | None:
        """Nominate a workload that was not since the last decision.

        Unless its turn is as before with its nomination now, it competes anew, or is inadmissible.
        """
        queue = self._tree.queues[entry.workload.queue]
        if entry.nominated_at != self._decisions:
            members = self._state.pending[queue.name].class_of(entry.workload)
            if self._state.inadmissible.look(members) is Look.SHORT:
                return None
        outcome = self._nominate(entry.workload, queue)
        if not isinstance(outcome, Nomination):
            self._state.mark_inadmissible(entry.workload, *outcome)
        elif self._heads.lazy and outcome.proposal.borrowing == entry.borrowing:
            return outcome
        else:
            self._compete(entry.workload, outcome)
        return None

    def _nominate(self, workload: Workload, queue: Queue) -> Nomination | Refused:
        """The nomination of a workload: that of the last of its class, if that fits again."""
        members = self._state.pending[queue.name].class_of(workload)
        again = self._state.assigner.again(members.proposal, queue) if members.proposal is not None else None
        if again is not None:
            return Nomination(again)
        outcome = self._nominator.nominate(workload, queue)
        if isinstance(outcome, Nomination) and outcome.proposal.first:
            members.proposal = outcome.proposal
        return outcome

    def _decide(self, workload: Workload, nomination: Nomination) -> None:
        admission = nomination.proposal.admission
        self._decisions += 1
        self._state.dequeue(workload.uid)
        if nomination.victims:
            self._preempt(workload, admission, nomination)
        elif nomination.places:
            self._take_over(workload, admission, nomination.places)
        else:
            self._admit_or_reserve(workload, admission)
        self._state.settled(workload.uid)

    def _admit_or_reserve(self, workload: Workload, admission: Admission) -> None:
        """Admit now if that fits real use too; else make a pending reservation."""
        if self._ledger.real.fits(admission.queue, admission.usage):
            borrowed = self._ledger.reserve(Reservation(workload.uid, admission, workload, self._now))
            self._placed(workload, admission.usage)
            self._admit(workload, admission)
        else:
            borrowed = self._reserve_pending(workload, admission)
        self._heads.changed(admission.queue)
        self._enter_all(self._state.requeue(events.UsageGrew(admission.queue, borrowed, workload)))

    def _reserve_pending(self, workload: Workload, admission: Admission) -> list[FlavorResource]:
        """Make a pending reservation for a workload; returns what `Ledger.add_pending` does."""
        self._plan.planned[workload.uid] = admission
        self._state.requeue(events.PendingReservationMade(workload.queue, workload.priority))
        borrowed = self._ledger.add_pending(workload, admission)
        self._placed(workload, admission.usage)
        return borrowed

    def _placed(self, workload: Workload, usage: Usage) -> None:
        """A workload has a reservation: the next of its queue may claim."""
        self._taken[workload.uid] = usage
        self._renewal.due = self._renew

    def _admit(self, workload: Workload, admission: Admission, *, promised: bool = False) -> None:
        """Record the admission, and the workload of its queue that it passes.

        Where the place was `promised`, it counts how that one was tried last: what is to be tried again has
        not had its turn yet.
        """
        self._plan.admissions.append((workload, admission))
        pending = self._state.pending.get(workload.queue)
        first = pending.ahead_of(workload) if pending is not None else None
        if pending is None or first is None:
            return
        passed = pending.class_of(first)
        if (passed.refusal if promised else passed.inadmissible) is not None:
            rule = Passing.BEST_EFFORT
        elif self._tree.queues[workload.queue].by_namespace:
            rule = Passing.NAMESPACE_SHARE
        else:
            rule = Passing.PROMISED
        self._plan.passed[workload.uid] = Passed(first, rule)

    def _preempt(self, workload: Workload, admission: Admission, nomination: Nomination) -> None:
        victims = nomination.victims
        receipts = Receipts(self._tree, self._ledger.planned, workload, nomination.grounds, victims)
        freed = self._ledger.evict_all(victims, workload.uid)
        self._state.returned.gained.add(workload.uid)
        graces = {name: self._tree.victim_terms(name).grace for name in freed}
        for victim in victims:
            if graces[victim.queue]:
                self._ledger.mark_eviction_pending(victim.holder)
        borrowed = self._reserve_pending(workload, admission)
        self._plan.evictions += [
            PlannedEviction(victim, workload, admission, receipt, graces[victim.queue])
            for victim, receipt in zip(victims, receipts.finished(victims), strict=True)
        ]
        self._heads.changed(admission.queue)
        requeued = self._state.requeue(events.UsageGrew(admission.queue, borrowed, workload))
        for name, usage in freed.items():
            self._heads.changed(name)
            requeued |= self._state.requeue(events.UsageShrank(name, usage))
        self._enter_all(requeued)  # once all are requeued: of a queue the first of them competes

    def _take_over(
        self, workload: Workload, admission: Admission, reservations: Sequence[PendingReservation]
    ) -> None:
        """Let a workload take over pending reservations of less important ones of its queue.

        It becomes the preemptor of their victims. Pending evictions that it does not need are cancelled, the
        most important victims first. The workloads that lose a reservation compete anew.
        """
        ledger, state, plan = self._ledger, self._state, self._plan
        for reservation in reservations:
            ledger.drop_pending(reservation.workload.uid)
            plan.planned.pop(reservation.workload.uid, None)
            state.returned.passed(reservation.workload.uid, workload.uid)
        for victim in [
            each
            for reservation in reservations
            for each in ledger.displacements.victims(reservation.workload.uid)
        ]:
            ledger.reassign(victim, workload.uid)
        requeued = set()
        for pending in ledger.pending_evictions_for(workload.uid)[::-1]:
            ledger.cancel_eviction(pending.holder)
            if ledger.planned.fits(admission.queue, admission.usage, Cell.has_vacant):
                plan.cancel_eviction(pending.holder)
                state.doubtful.add(pending.queue)  # reservations may have relied on its end
                requeued |= state.requeue(events.UsageGrew(pending.queue, [key for key, _ in pending.usage]))
                self._heads.changed(pending.queue)
            else:
                ledger.evict(pending.holder, workload.uid)
                ledger.mark_eviction_pending(pending.holder)
        for victim in sorted(ledger.displacements.victims(workload.uid)):
            plan.reassign(victim, workload, admission)
        plan.taken_over[workload.uid] = tuple(reservation.workload for reservation in reservations)
        borrowed = self._reserve_pending(workload, admission)
        self._heads.changed(admission.queue)
        for reservation in reservations:
            state.enqueue(reservation.workload)
            requeued |= state.requeue(events.UsageShrank(reservation.queue, reservation.usage))
        requeued |= state.requeue(events.UsageGrew(admission.queue, borrowed, workload))
        self._enter_all(requeued | {workload.queue})

    def _redeem(self) -> set[str]:
        """Admit preemptors with a pending reservation that fits real use; returns the queues concerned."""
        ledger = self._ledger
        requeued: set[str] = set()
        if not ledger.pending_reservations:
            return requeued
        in_turn = sorted(self._pending_reservations(), key=ledger.turn)
        if ledger.extras:
            ledger.keep_rooms(in_turn)  # what is free goes by turns, whichever was made first
        for pending in in_turn:
            if ledger.redeems(pending):
                workload = pending.workload
                ledger.drop_pending(workload.uid)
                ledger.reserve(Reservation(workload.uid, pending.admission, workload, self._now))
                self._admit(workload, pending.admission, promised=True)
                requeued.add(workload.queue)
                cancelled = ledger.cancel_pending_evictions(workload.uid)  # admitted early, it needs none
                if cancelled:
                    self._state.doubtful |= cancelled  # reservations may have relied on their end
                    requeued |= self._state.requeue(events.EvictionCancelled(min(cancelled)))
                keys = [key for key, _ in pending.usage]
                requeued |= self._state.requeue(events.UsageGrew(pending.queue, keys, workload))
        return requeued

    def _pending_reservations(self) -> list[PendingReservation]:
        """The pending reservations in the tree."""
        if not self._ledger.pending_reservations:
            return []
        return [
            pending for name in self._tree.members(self._root) for pending in self._ledger.pending_in(name)
        ]
