"""One cohort tree's turn in a cycle: the heads of its queues compete for what is free.

The order (design §3, *Order*): who needs no borrowing goes first, then priority, age and UID. After
each decision the queue's next head competes at once, so a turn admits as much as fits. Use only
grows while a turn lasts, except by evictions; so a head is judged again only if something was
decided since it was judged.
"""

from dataclasses import dataclass, field

from admitter.engine.explain import Refusal
from admitter.engine.field import ByRank, ByShare, Entry, Field, Verdict
from admitter.engine.judging import Judge
from admitter.engine.ledger import Hold, Reservation
from admitter.engine.model import Admission, Workload
from admitter.engine.policy import Queue, Strategy
from admitter.engine.quota import Node
from admitter.engine.receipt import Passed, Passing, Receipt, Receipts
from admitter.engine.state import Look, State


@dataclass(frozen=True, slots=True)
class Eviction:
    """Somebody who has to go.

    Attributes:
        victim: who.
        preemptor: for whom.
        admission: what the preemptor will get.
        receipt: by which rule.
        grace: for how long the victim may go on, in seconds.
    """

    victim: Reservation
    preemptor: Workload
    admission: Admission
    receipt: Receipt
    grace: float = 0.0


@dataclass(slots=True)
class Plan:
    """What one cycle decided.

    Attributes:
        admissions: workloads to admit, in the order of the decisions.
        evictions: workloads to evict, each for a preemptor that is admitted once they are gone.
        refusals: by UID, who waits for a reason that was not told before.
        planned: workloads that will be admitted once what they wait for is gone, and as what.
        passed: by the UID of who is admitted out of order, whom it passes.
    """

    admissions: list[tuple[Workload, Admission]] = field(default_factory=list)
    evictions: list[Eviction] = field(default_factory=list)
    refusals: dict[str, Refusal] = field(default_factory=dict)
    planned: dict[str, Admission] = field(default_factory=dict)
    passed: dict[str, Passed] = field(default_factory=dict)


class Contest:
    """Decides what can be decided in one tree."""

    def __init__(self, state: State, root: Node) -> None:
        self._state = state
        self._root = root
        self._tree = state.tree
        self._ledger = state.ledger
        self._decisions = 0
        self._field: Field = (
            ByShare(self._tree, self._ledger.planned, root) if self._tree.fair(root) else ByRank()
        )
        self._judge = Judge(state)

    def run(self, queues: set[str], now: float, plan: Plan) -> None:
        """Let what was promised in, then let the heads of some queues compete."""
        names = queues
        while True:
            self._enter_all(names | self._redeem(now, plan))
            if not self._field:
                return
            self._drain(now, plan)
            names = set()

    def _drain(self, now: float, plan: Plan) -> None:
        """Take the turn of everybody who competes."""
        while self._field:
            entry = self._field.pop()
            if self._is_next(entry.workload):
                fresh = entry.verdict is not None and entry.judged == self._decisions
                verdict = entry.verdict if fresh else self._judge_anew(entry)
                if verdict is not None:
                    self._decide(entry.workload, verdict, now, plan)
            self._enter(entry.workload.queue)

    def _is_next(self, workload: Workload) -> bool:
        """Whether nobody who goes before a workload in its queue was woken since it began to compete."""
        pending = self._state.pending[workload.queue]
        return pending.candidate(self._tree.queues[workload.queue].strategy) is workload

    def _enter_all(self, names: set[str]) -> None:
        for name in sorted(names):
            self._enter(name)

    def _enter(self, name: str) -> None:
        """Let a queue's next head compete; those that have no chance are parked on the way."""
        queue, pending = self._tree.queues.get(name), self._state.pending.get(name)
        if queue is None or not queue.admits or pending is None or name in self._field:
            return
        if queue.strategy is Strategy.STRICT_FIFO and self._ledger.holds_in(name):
            return  # its head is on the way in, and is not overtaken
        while (workload := pending.candidate(queue.strategy)) is not None:
            look = self._state.look(pending.class_of(workload))
            if look is Look.SHORT:
                continue
            if look is not Look.UNSURE and self._field.lazy:
                self._field.push(Entry(workload, look is Look.BORROWS, None, self._decisions))
                return
            verdict = self._verdict(workload, queue)
            if isinstance(verdict, Verdict):
                self._compete(workload, verdict)
                return
            self._state.park(workload, verdict, self._judge.outlook)

    def _compete(self, workload: Workload, verdict: Verdict) -> None:
        self._field.push(Entry(workload, verdict.proposal.borrowing, verdict, self._decisions))

    def _judge_anew(self, entry: Entry) -> Verdict | None:
        """A workload was not judged since the last decision.

        Returns:
            What it could get now, if its turn is as it was with that; else it competes anew, or is parked.
        """
        queue = self._tree.queues[entry.workload.queue]
        if entry.judged != self._decisions:
            members = self._state.pending[queue.name].class_of(entry.workload)
            if self._state.look(members) is Look.SHORT:
                return None
        verdict = self._verdict(entry.workload, queue)
        if not isinstance(verdict, Verdict):
            self._state.park(entry.workload, verdict, self._judge.outlook)
        elif self._field.lazy and verdict.proposal.borrowing == entry.borrowing:
            return verdict
        else:
            self._compete(entry.workload, verdict)
        return None

    def _verdict(self, workload: Workload, queue: Queue) -> Verdict | Refusal:
        """What a workload could get: what the last of its class could, if that fits again."""
        members = self._state.pending[queue.name].class_of(workload)
        again = self._state.assigner.again(members.proposal, queue) if members.proposal is not None else None
        if again is not None:
            return Verdict(again)
        verdict = self._judge.verdict(workload, queue)
        if isinstance(verdict, Verdict) and verdict.proposal.first:
            members.proposal = verdict.proposal
        return verdict

    def _decide(self, workload: Workload, verdict: Verdict, now: float, plan: Plan) -> None:
        """Admit the workload whose turn it is, or preempt for it."""
        admission = verdict.proposal.admission
        if verdict.victims:
            self._preempt(workload, admission, verdict, plan)
        else:
            self._settle(workload, admission, now, plan)

    def _settle(self, workload: Workload, admission: Admission, now: float, plan: Plan) -> None:
        """Admit now if that fits what is real too; else keep the place until it does."""
        self._decisions += 1
        self._state.dequeue(workload.uid)
        if self._ledger.fits_really(admission.queue, admission.usage):
            borrowed = self._ledger.reserve(Reservation(workload.uid, admission, workload, now))
            self._admit(workload, admission, plan)
        else:
            borrowed = self._ledger.hold(workload, admission)
            plan.planned[workload.uid] = admission
        self._field.changed(admission.queue)
        self._enter_all(self._state.exposed(admission.queue, borrowed))

    def _admit(self, workload: Workload, admission: Admission, plan: Plan) -> None:
        """Say who is admitted, and whom of its queue it passes."""
        plan.admissions.append((workload, admission))
        pending = self._state.pending.get(workload.queue)
        first = pending.ahead_of(workload) if pending is not None else None
        if pending is None or first is None:
            return
        if pending.class_of(first).parked is not None:
            rule = Passing.BEST_EFFORT
        elif self._tree.queues[workload.queue].by_namespace:
            rule = Passing.NAMESPACE_SHARE
        else:
            rule = Passing.PROMISED
        plan.passed[workload.uid] = Passed(first, rule)

    def _preempt(self, workload: Workload, admission: Admission, verdict: Verdict, plan: Plan) -> None:
        self._decisions += 1
        self._state.dequeue(workload.uid)
        victims = verdict.victims
        receipts = Receipts(self._tree, self._ledger.planned, workload, verdict.grounds, victims)
        freed = self._ledger.evict_all(victims, workload.uid)
        for victim in victims:
            if self._tree.patience(victim.queue).grace:
                self._ledger.tell(victim.holder)
        borrowed = self._ledger.hold(workload, admission)
        for victim, receipt in zip(victims, receipts.finished(victims), strict=True):
            grace = self._tree.patience(victim.queue).grace
            plan.evictions.append(Eviction(victim, workload, admission, receipt, grace))
        plan.planned[workload.uid] = admission
        self._field.changed(admission.queue)
        woken = self._state.exposed(admission.queue, borrowed)
        for name, usage in freed.items():
            self._field.changed(name)
            woken |= self._state.freed(name, usage)
        self._enter_all(woken)  # once all are awake: of a queue the first of them competes

    def _let_stay(self, uid: str, holds: list[Hold]) -> set[str]:
        """Somebody got in before those went who had been told: they stay, unless others got their place.

        Returns:
            The queues of those who are tried again, as they may evict who stays.
        """
        heir = next((hold.workload.uid for hold in holds if hold.workload.uid in self._ledger.holds), None)
        for told in self._ledger.told_for(uid):
            if heir is not None and not self._ledger.planned.fits(told.queue, told.usage):
                self._ledger.settle(told.holder)
                self._ledger.evict(told.holder, heir)
                self._ledger.tell(told.holder)
        spared = self._ledger.spare_told(uid)
        self._state.doubtful |= spared
        woken = set(self._tree.members(self._root)) & self._state.pending.keys() if spared else set()
        for name in woken:
            self._state.wake(name)
        return woken

    def _redeem(self, now: float, plan: Plan) -> set[str]:
        """Admit those whose place is kept, as far as what is real allows; returns the queues concerned."""
        if not self._ledger.holds:
            return set()
        redeemed = set()
        holds = [hold for name in self._tree.members(self._root) for hold in self._ledger.holds_in(name)]
        for hold in sorted(holds, key=lambda hold: hold.workload.rank):
            if self._ledger.fits_really(hold.admission.queue, hold.usage):
                self._ledger.drop(hold.workload.uid)
                self._ledger.reserve(Reservation(hold.workload.uid, hold.admission, hold.workload, now))
                self._admit(hold.workload, hold.admission, plan)
                redeemed.add(hold.workload.queue)
                redeemed |= self._let_stay(hold.workload.uid, holds)
                redeemed |= self._state.exposed(hold.admission.queue, (key for key, _ in hold.usage))
        return redeemed
