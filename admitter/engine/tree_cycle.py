"""One cohort tree's turn in a cycle: the heads of its queues compete for what is free.

The order (design §3, *Order*): heads that need no borrowing, then priority, age and UID. After
each decision the queue's next head competes at once, so a turn admits as much as fits. Use only
grows while a turn lasts, except by evictions; so a head is judged again only if something was
decided since it was judged.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from admitter.engine.model import Admission, FlavorResource, Usage, Workload
from admitter.engine.nominator import Nominator
from admitter.engine.policy import Queue, Strategy
from admitter.engine.preemption.receipt import Passed, Passing, Receipt, Receipts
from admitter.engine.queue.competing_heads import ByRank, ByShare, CompetingHead, CompetingHeads, Nomination
from admitter.engine.quota.cells import Cell
from admitter.engine.quota.ledger import PendingReservation, Reservation
from admitter.engine.quota.tree import Node
from admitter.engine.refusal import Refusal
from admitter.engine.state import EngineState, Look


@dataclass(frozen=True, slots=True)
class PlannedEviction:
    """A workload that has to go.

    Attributes:
        victim: what it holds.
        preemptor: the workload that it goes for.
        admission: what the preemptor will get.
        receipt: by which rule.
        grace: for how long the victim may go on, in seconds.
    """

    victim: Reservation
    preemptor: Workload
    admission: Admission
    receipt: Receipt
    grace: float = 0.0


@dataclass(frozen=True, slots=True)
class Reassignment:
    """An eviction that was decided for one workload before, and is for another one now.

    Attributes:
        victim: UID of what was evicted; it may be gone already.
        preemptor: for which workload.
        admission: what that one will get.
    """

    victim: str
    preemptor: Workload
    admission: Admission


@dataclass(slots=True)
class Plan:
    """What one cycle decided.

    Attributes:
        admissions: workloads to admit, in the order of the decisions.
        evictions: workloads to evict, each for a preemptor that is admitted once they are gone.
        refusals: by UID of waiting workloads, reasons that were not reported before.
        planned: workloads that will be admitted once what they wait for is gone, and as what.
        passed: by the UID of each workload admitted out of order, the one that it passes.
        taken_over: by the UID of what took over the places of less important workloads of its queue, these.
        reassigned: evictions of earlier cycles that are for other workloads now.
        restored: UIDs of waiting workloads that were evicted, and may evict again what could come back: what
            they use now is not what it was.
    """

    admissions: list[tuple[Workload, Admission]] = field(default_factory=list)
    evictions: list[PlannedEviction] = field(default_factory=list)
    refusals: dict[str, Refusal] = field(default_factory=dict)
    planned: dict[str, Admission] = field(default_factory=dict)
    passed: dict[str, Passed] = field(default_factory=dict)
    taken_over: dict[str, tuple[Workload, ...]] = field(default_factory=dict)
    reassigned: list[Reassignment] = field(default_factory=list)
    restored: list[str] = field(default_factory=list)

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


def decide_tree(
    state: EngineState,
    root: Node,
    changed: set[str],
    now: float,
    plan: Plan,
    failed: Callable[[Node, Exception], None] | None,
) -> None:
    """Decide what can be decided in one tree; arguments as of `TreeCycle.run`.

    Args:
        state: of the engine.
        root: of the tree.
        changed: queues of it in which something has changed.
        now: when it is, in seconds since the epoch.
        plan: gets what is decided.
        failed: told of a defect that the tree brings out, while others are decided; None: it is raised.
    """
    try:
        TreeCycle(state, root).run(changed, now, plan)
    except Exception as error:  # a defect that one tree brings out must not stop the others
        if failed is None:
            raise
        failed(root, error)


class TreeCycle:
    """Decides what can be decided in one tree."""

    def __init__(self, state: EngineState, root: Node) -> None:
        self._state = state
        self._root = root
        self._tree = state.tree
        self._ledger = state.ledger
        self._decisions = 0
        self._heads: CompetingHeads = (
            ByShare(self._tree, self._ledger.planned, root) if self._tree.fair(root) else ByRank()
        )
        self._nominator = Nominator(state)
        self._renewal = self._ledger.planned.renewal
        # What workloads have got since claims were made anew, and where something was woken by these.
        self._taken: dict[str, Usage] = {}
        self._requeued: set[str] = set()

    def run(self, queues: set[str], now: float, plan: Plan) -> None:
        """Let what was promised in, then let the heads of some queues compete."""
        names = queues
        self._ledger.keep_rooms(self._holds())
        try:
            while True:
                redeemed = self._redeem(now, plan)
                if redeemed or names:
                    self._claim_anew()
                woken = redeemed | self._released() | self._state.claim_blocked.requeue(self._root)
                self._state.changed |= woken  # what is behind those gets another reason
                self._enter_all(names | woken)
                if not self._heads:
                    return
                self._drain(now, plan)
                names = set()
        finally:
            self._ledger.free_rooms()
            self._renewal.due = None

    def _claim_anew(self) -> None:
        """Workloads may claim something else than before: found out before any claim is looked at next.

        Most decisions concern none, and nothing is found out for those.
        """
        self._renewal.due = self._renew

    def _renew(self) -> None:
        taken, self._taken = self._taken, {}
        self._requeued |= self._state.renew_claims(self._root, taken)

    def _released(self) -> set[str]:
        """The queues in which something was woken, as less is claimed; if anything waits for that."""
        if self._root in self._state.claim_blocked:
            self._renewal.run()
        if not self._requeued:
            return set()
        woken, self._requeued = self._requeued, set()
        return woken

    def _drain(self, now: float, plan: Plan) -> None:
        """Take the turn of each head that competes."""
        while self._heads:
            entry = self._heads.pop()
            if self._is_still_head(entry.workload):
                fresh = entry.nomination is not None and entry.nominated_at == self._decisions
                verdict = entry.nomination if fresh else self._nominate_again(entry)
                if verdict is not None:
                    self._decide(entry.workload, verdict, now, plan)
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
        """Let a queue's next head compete; those that have no chance are parked on the way."""
        queue, pending = self._tree.queues.get(name), self._state.pending.get(name)
        if queue is None or not queue.admits or pending is None or name in self._heads:
            return
        while (workload := pending.candidate(queue.strategy)) is not None:
            if queue.strategy is Strategy.STRICT_FIFO and not self._is_ahead(workload):
                return  # the head of the queue is on the way in, and is not overtaken
            look = self._state.look(pending.class_of(workload))
            if look is Look.SHORT:
                continue
            if look is not Look.UNSURE and self._heads.lazy:
                self._heads.push(CompetingHead(workload, look is Look.BORROWS, None, self._decisions))
                return
            verdict = self._nominate(workload, queue)
            if isinstance(verdict, Nomination):
                self._compete(workload, verdict)
                return
            self._state.mark_inadmissible(workload, verdict, self._nominator.outlook)

    def _is_ahead(self, workload: Workload) -> bool:
        """Whether a workload is more important than all of its queue that have a place already."""
        holds = self._ledger.pending_in(workload.queue)
        return all(hold.workload.priority < workload.priority for hold in holds)

    def _compete(self, workload: Workload, verdict: Nomination) -> None:
        self._heads.push(CompetingHead(workload, verdict.proposal.borrowing, verdict, self._decisions))

    def _nominate_again(self, entry: CompetingHead) -> Nomination | None:
        """A workload was not judged since the last decision.

        Returns:
            What it could get now, if its turn is as it was with that; else it competes anew, or is parked.
        """
        queue = self._tree.queues[entry.workload.queue]
        if entry.nominated_at != self._decisions:
            members = self._state.pending[queue.name].class_of(entry.workload)
            if self._state.look(members) is Look.SHORT:
                return None
        verdict = self._nominate(entry.workload, queue)
        if not isinstance(verdict, Nomination):
            self._state.mark_inadmissible(entry.workload, verdict, self._nominator.outlook)
        elif self._heads.lazy and verdict.proposal.borrowing == entry.borrowing:
            return verdict
        else:
            self._compete(entry.workload, verdict)
        return None

    def _nominate(self, workload: Workload, queue: Queue) -> Nomination | Refusal:
        """What a workload could get: what the last of its class could, if that fits again."""
        members = self._state.pending[queue.name].class_of(workload)
        again = self._state.assigner.again(members.proposal, queue) if members.proposal is not None else None
        if again is not None:
            return Nomination(again)
        verdict = self._nominator.nominate(workload, queue)
        if isinstance(verdict, Nomination) and verdict.proposal.first:
            members.proposal = verdict.proposal
        return verdict

    def _decide(self, workload: Workload, verdict: Nomination, now: float, plan: Plan) -> None:
        """Admit the workload whose turn it is, or preempt for it."""
        admission = verdict.proposal.admission
        self._decisions += 1
        self._state.dequeue(workload.uid)
        if verdict.victims:
            self._preempt(workload, admission, verdict, plan)
        elif verdict.places:
            self._take_over(workload, admission, verdict.places, plan)
        else:
            self._admit_or_reserve(workload, admission, now, plan)
        self._state.settled(workload.uid)

    def _admit_or_reserve(self, workload: Workload, admission: Admission, now: float, plan: Plan) -> None:
        """Admit now if that fits what is real too; else keep the place until it does."""
        if self._ledger.fits_really(admission.queue, admission.usage):
            borrowed = self._ledger.reserve(Reservation(workload.uid, admission, workload, now))
            self._placed(workload, admission.usage)
            self._admit(workload, admission, plan)
        else:
            borrowed = self._reserve_pending(workload, admission, plan)
        self._heads.changed(admission.queue)
        self._enter_all(self._state.usage_grew(admission.queue, borrowed, workload))

    def _reserve_pending(self, workload: Workload, admission: Admission, plan: Plan) -> list[FlavorResource]:
        """Keep a place for a workload; returns what `Ledger.hold` does."""
        plan.planned[workload.uid] = admission
        pending = self._state.pending.get(workload.queue)
        if pending is not None:
            pending.requeue_above(workload.priority)
            self._state.changed.add(workload.queue)
        borrowed = self._ledger.add_pending(workload, admission)
        self._placed(workload, admission.usage)
        return borrowed

    def _placed(self, workload: Workload, usage: Usage) -> None:
        """A workload has a place: the next of its queue may claim."""
        self._taken[workload.uid] = usage
        self._claim_anew()

    def _admit(self, workload: Workload, admission: Admission, plan: Plan) -> None:
        """Record the admission, and the workload of its queue that it passes."""
        plan.admissions.append((workload, admission))
        pending = self._state.pending.get(workload.queue)
        first = pending.ahead_of(workload) if pending is not None else None
        if pending is None or first is None:
            return
        if pending.class_of(first).inadmissible is not None:
            rule = Passing.BEST_EFFORT
        elif self._tree.queues[workload.queue].by_namespace:
            rule = Passing.NAMESPACE_SHARE
        else:
            rule = Passing.PROMISED
        plan.passed[workload.uid] = Passed(first, rule)

    def _preempt(self, workload: Workload, admission: Admission, verdict: Nomination, plan: Plan) -> None:
        victims = verdict.victims
        receipts = Receipts(self._tree, self._ledger.planned, workload, verdict.grounds, victims)
        freed = self._ledger.evict_all(victims, workload.uid)
        self._state.returned.gained.add(workload.uid)
        graces = {name: self._tree.victim_terms(name).grace for name in freed}
        for victim in victims:
            if graces[victim.queue]:
                self._ledger.mark_eviction_pending(victim.holder)
        borrowed = self._reserve_pending(workload, admission, plan)
        for victim, receipt in zip(victims, receipts.finished(victims), strict=True):
            plan.evictions.append(PlannedEviction(victim, workload, admission, receipt, graces[victim.queue]))
        self._heads.changed(admission.queue)
        woken = self._state.usage_grew(admission.queue, borrowed, workload)
        for name, usage in freed.items():
            self._heads.changed(name)
            woken |= self._state.usage_shrank(name, usage)
        self._enter_all(woken)  # once all are awake: of a queue the first of them competes

    def _take_over(
        self, workload: Workload, admission: Admission, places: Sequence[PendingReservation], plan: Plan
    ) -> None:
        """Let a workload have places that were promised to less important ones of its queue.

        What was evicted for those goes for this one now, but for what need not go any more: of what was told,
        the last to go stays first. The workloads with these places compete anew.
        """
        ledger, state = self._ledger, self._state
        for place in places:
            ledger.drop_pending(place.workload.uid)
            plan.planned.pop(place.workload.uid, None)
            state.returned.passed(place.workload.uid, workload.uid)
        for victim in [each for place in places for each in ledger.displacements.victims(place.workload.uid)]:
            ledger.reassign(victim, workload.uid)
        woken = set()
        for told in ledger.pending_evictions_for(workload.uid)[::-1]:
            ledger.cancel_eviction(told.holder)
            if ledger.planned.fits(admission.queue, admission.usage, Cell.has_vacant):
                plan.cancel_eviction(told.holder)
                state.doubtful.add(told.queue)  # places may have relied on what it would have left
                woken |= state.usage_grew(told.queue, (key for key, _ in told.usage))
                self._heads.changed(told.queue)
            else:
                ledger.evict(told.holder, workload.uid)
                ledger.mark_eviction_pending(told.holder)
        for victim in sorted(ledger.displacements.victims(workload.uid)):
            plan.reassign(victim, workload, admission)
        plan.taken_over[workload.uid] = tuple(place.workload for place in places)
        borrowed = self._reserve_pending(workload, admission, plan)
        self._heads.changed(admission.queue)
        for place in places:
            state.enqueue(place.workload)
            woken |= state.usage_shrank(place.queue, place.usage)
        woken |= state.usage_grew(admission.queue, borrowed, workload)
        self._enter_all(woken | {workload.queue})

    def _cancel_needless(self, uid: str) -> set[str]:
        """A workload got in before all went that had been told to: these stay.

        Returns:
            The queues of what is tried again, as it may evict what stays.
        """
        spared = self._ledger.cancel_pending_evictions(uid)
        self._state.doubtful |= spared  # places may have relied on what these would have left
        woken = set(self._tree.members(self._root)) & self._state.pending.keys() if spared else set()
        for name in woken:
            self._state.requeue(name)
        return woken

    def _redeem(self, now: float, plan: Plan) -> set[str]:
        """Admit what has a place, as far as what is real allows; returns the queues concerned."""
        ledger = self._ledger
        woken: set[str] = set()
        if not ledger.pending_reservations:
            return woken
        for hold in sorted(self._holds(), key=ledger.turn):
            if ledger.redeems(hold):
                ledger.drop_pending(hold.workload.uid)
                ledger.reserve(Reservation(hold.workload.uid, hold.admission, hold.workload, now))
                self._admit(hold.workload, hold.admission, plan)
                woken.add(hold.workload.queue)
                woken |= self._cancel_needless(hold.workload.uid)
                woken |= self._state.usage_grew(hold.queue, (key for key, _ in hold.usage), hold.workload)
        return woken

    def _holds(self) -> list[PendingReservation]:
        """The places that are kept in the tree."""
        if not self._ledger.pending_reservations:
            return []
        return [hold for name in self._tree.members(self._root) for hold in self._ledger.pending_in(name)]
