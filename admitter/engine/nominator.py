"""The nomination of a workload, as things stand: as it is, by preemption, or with fewer pods."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from admitter.engine.flavors.assigner import Proposal, Ways
from admitter.engine.flavors.attempt import Combination, Wanted
from admitter.engine.flavors.partial_admission import fewest, largest_that_fits
from admitter.engine.model import FlavorResource, Workload
from admitter.engine.policy import PreemptionPolicy, Queue
from admitter.engine.preemption.demand import Demand
from admitter.engine.preemption.glance import Glance
from admitter.engine.preemption.limited import reached
from admitter.engine.preemption.search import Outlook, search
from admitter.engine.queue.competing_heads import Nomination
from admitter.engine.quota.cells import Cell
from admitter.engine.quota.ledger import PendingReservation
from admitter.engine.quota.lesser import lesser_reservations
from admitter.engine.refusal import Reason, Refusal
from admitter.engine.state import EngineState


class Refused(NamedTuple):
    """A workload gets no nomination: why, and what evictions could have done for it."""

    refusal: Refusal
    outlook: Outlook


class Nominator:
    """Finds nominations in one state, which it leaves as it was."""

    def __init__(self, state: EngineState) -> None:
        self._state = state

    def nominate(self, workload: Workload, queue: Queue) -> Nomination | Refused:
        """What a workload could get, by the first of these ways that there is.

        1. All of it as it is.
        2. All of it in the pending reservation of a less important one, or by preemption.
        3. As many of its pods as fit beside what runs.
        4. As many of its pods as preemption makes room for. This comes last: a victim returns with
           fewer pods by the way before, and takes nothing back for more.

        During a back-off only the first and the third count. Where only limits on evictions stand against it
        that is the reason.
        """
        self._state.preemption.kept_by_limits = False
        outcome = self._nominated_in_peace(workload, queue)
        if isinstance(outcome, Refused) and self._state.preemption.kept_by_limits:
            limited = self._by_limits(workload, queue, outcome)
            return outcome if limited is None else limited
        return outcome

    def _by_limits(self, workload: Workload, queue: Queue, refused: Refused) -> Refused | None:
        """What a workload is refused by that could evict some but for limits; None: that is no help."""
        scene = self._state.preemption
        if refused.refusal.reason is not Reason.INSUFFICIENT_QUOTA:
            return None
        scene.limited = False
        try:
            free = self._nominated(workload, queue)
        finally:
            scene.limited = True
        last = reached(scene, free.victims if isinstance(free, Nomination) else ())
        if last is None:
            return None
        return Refused(
            replace(refused.refusal, reason=Reason.EVICTIONS_LIMITED, limited=last), refused.outlook
        )

    def _nominated_in_peace(self, workload: Workload, queue: Queue) -> Nomination | Refused:
        """As `nominate`, without evictions during a back-off."""
        back_off = self._state.returned.of(queue.name, workload.namespace)
        if back_off is None:
            return self._nominated(workload, queue)
        peaceful = replace(queue, preemption=PreemptionPolicy())
        free = self._nominated(workload, peaceful, takes_over=False)
        if isinstance(free, Nomination) or free.refusal.reason is not Reason.INSUFFICIENT_QUOTA:
            return free
        outcome = self._nominated(workload, queue)
        if isinstance(outcome, Refused):
            return outcome  # it could evict nothing that helps: that is why it waits
        return Refused(
            replace(free.refusal, reason=Reason.PREEMPTION_BACKED_OFF, back_off=back_off), free.outlook
        )

    def _nominated(
        self, workload: Workload, queue: Queue, *, takes_over: bool = True
    ) -> Nomination | Refused:
        """As `nominate`, whether or not there is a back-off.

        With `takes_over` it may have pending reservations of less important ones.
        """
        outlook = Outlook()
        outcome = self._whole(workload, queue, outlook, takes_over=takes_over)
        if isinstance(outcome, Nomination):
            return outcome
        reduced = largest_that_fits(workload, lambda smaller: self._fitting(smaller, queue))
        if reduced is not None:
            reduced.first = False  # the next one may get more
            return Nomination(reduced)
        if queue.preemption.allowed:
            found = largest_that_fits(workload, lambda smaller: self._by_preemption(smaller, queue, outlook))
            if found is not None:
                return found
        if outcome.reason is Reason.NEVER_FITS and (smallest := fewest(workload)) is not None:
            of_fewest = self._whole(smallest, queue, outlook, takes_over=takes_over)
            outcome = of_fewest if isinstance(of_fewest, Refusal) else outcome
        tree = self._state.tree
        shared = outcome.preempts and tree.fair(tree.root(queue.name))
        return Refused(replace(outcome, shared=True) if shared else outcome, outlook)

    def _whole(
        self, workload: Workload, queue: Queue, outlook: Outlook, *, takes_over: bool = True
    ) -> Nomination | Refusal:
        """What exactly so many pods get, if need be by preemption; what comes to nothing is noted."""
        lesser = lesser_reservations(self._state.ledger, workload, queue) if takes_over else []
        if lesser:
            now = self._state.assigner.assign(workload, queue)
            if isinstance(now, Proposal) and not now.preempting:
                return Nomination(now)
            taking = self._taking_over(workload, queue, lesser, outlook)
            if taking is not None:
                return taking
        glance = Glance(self._state.preemption, queue, workload)

        def in_vain(wanted: Wanted) -> bool:
            seen = glance.at(wanted)
            if seen is not None:
                outlook.glanced(seen)  # as a search would be noted
            return seen is not None

        ways = Ways(self._state.assigner, workload, queue, in_vain)
        while True:
            outcome = ways.best()
            if isinstance(outcome, Refusal):
                return outcome
            if not outcome.preempting:
                return Nomination(outcome)
            result = search(self._state.preemption, queue, workload, tuple(outcome.usage.items()))
            if result.victims:
                outcome.borrowing = outcome.borrows()
                return Nomination(outcome, result.victims, result.grounds)
            outlook.note(result)
            ways.rule_out(self._hopeless(workload, queue, outcome))

    def _by_preemption(self, workload: Workload, queue: Queue, outlook: Outlook) -> Nomination | None:
        outcome = self._whole(workload, queue, outlook)
        return outcome if isinstance(outcome, Nomination) else None

    def _taking_over(
        self,
        workload: Workload,
        queue: Queue,
        reservations: Sequence[PendingReservation],
        outlook: Outlook,
    ) -> Nomination | None:
        """What it could get without some pending reservations: the fewest and least that do; None: none do.

        What it gets is within its queue's own quota, or no more than these reservations: victims are not
        evicted for more than before. Nor are they for what relies on pending evictions for others.
        """
        ledger, taken = self._state.ledger, list(reservations)
        found: Nomination | None = None
        try:
            for reservation in reservations:
                ledger.drop_pending(reservation.workload.uid)
            proposal = self._fitting(workload, queue, Cell.has_vacant)
            for reservation in reservations[::-1] if proposal is not None else ():
                ledger.add_pending(reservation.workload, reservation.admission)
                taken.remove(reservation)
                fewer = self._fitting(workload, queue, Cell.has_vacant) if taken else None
                if fewer is None or not _is_within(fewer, taken):
                    ledger.drop_pending(reservation.workload.uid)
                    taken.append(reservation)
                else:
                    proposal = fewer
            if proposal is not None and taken and _is_within(proposal, taken):
                if self._is_sure(queue, proposal, taken):
                    proposal.first = False
                    found = Nomination(proposal, places=tuple(taken))
                else:
                    outlook.bound = True
        finally:
            for reservation in taken:
                ledger.add_pending(reservation.workload, reservation.admission)
        return found

    def _is_sure(self, queue: Queue, proposal: Proposal, taken: Sequence[PendingReservation]) -> bool:
        """Whether nothing was evicted for places in vain, if they pass on; they are out of the plan."""
        ledger, preemptors = self._state.ledger, {pending.workload.uid for pending in taken}
        if not any(ledger.displacements.victims(uid) for uid in preemptors):
            return True
        root = self._state.tree.root(queue.name)
        return Demand(ledger, root, queue.name, tuple(proposal.usage.items())).is_sure(besides=preemptors)

    def fits(self, workload: Workload, queue: Queue) -> bool:
        """Whether it fits without evictions, perhaps with fewer pods."""
        whole = self._fitting(workload, queue)
        return (whole or largest_that_fits(workload, lambda fewer: self._fitting(fewer, queue))) is not None

    def _fitting(
        self, workload: Workload, queue: Queue, room: Callable[[Cell, int], bool] = Cell.fits
    ) -> Proposal | None:
        outcome = self._state.assigner.assign(workload, queue, room=room)
        return outcome if isinstance(outcome, Proposal) else None

    def _hopeless(self, workload: Workload, queue: Queue, proposal: Proposal) -> Combination:
        """What to rule out, if no victims make room for all: a choice that can't be had alone, or all."""
        together = frozenset(proposal.preempting)
        for choice, usage in proposal.preempting.items() if len(together) > 1 else ():
            if not search(self._state.preemption, queue, workload, usage).victims:
                return frozenset({choice})
        return together


def _is_within(proposal: Proposal, reservations: Sequence[PendingReservation]) -> bool:
    """Whether a proposal borrows nothing, or asks for no more than some reservations are together."""
    held: Counter[FlavorResource] = Counter()
    for reservation in reservations:
        held.update(dict(reservation.usage))
    return not proposal.borrowing or all(amount <= held[key] for key, amount in proposal.usage.items())
