"""What a workload could get as things stand: as it is, by preemption, or with fewer pods."""

from dataclasses import replace
from functools import partial

from admitter.engine.attempt import Combination, Wanted
from admitter.engine.explain import Reason, Refusal
from admitter.engine.field import Verdict
from admitter.engine.flavors import Proposal
from admitter.engine.model import Workload
from admitter.engine.partial import fewest, largest_that_fits
from admitter.engine.policy import Queue
from admitter.engine.preemption.glance import Glance
from admitter.engine.preemption.search import Search
from admitter.engine.state import Outlook, State


class Judge:
    """Judges in one state, which it leaves as it was.

    Attributes:
        outlook: what evictions could have done for the workload that was judged last.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self.outlook = Outlook()

    def verdict(self, workload: Workload, queue: Queue) -> Verdict | Refusal:
        """What a workload could get, by the first of these ways that there is.

        1. All of it as it is.
        2. All of it by preemption.
        3. As many of its pods as fit beside what runs.
        4. As many of its pods as preemption makes room for. This comes last: whoever was evicted returns with
           fewer pods by the way before, and takes nothing back for more.
        """
        self.outlook = Outlook()
        outcome = self._whole(workload, queue)
        if isinstance(outcome, Verdict):
            return outcome
        reduced = largest_that_fits(workload, lambda smaller: self._fitting(smaller, queue))
        if reduced is not None:
            reduced.first = False  # the next one may get more
            return Verdict(reduced)
        if queue.preemption.allowed:
            found = largest_that_fits(workload, lambda smaller: self._by_preemption(smaller, queue))
            if found is not None:
                return found
        if outcome.reason is Reason.NEVER_FITS:
            outcome = self._of_the_fewest(workload, queue) or outcome
        tree = self._state.tree
        return replace(outcome, shared=outcome.preempts and tree.fair(tree.root(queue.name)))

    def _whole(self, workload: Workload, queue: Queue) -> Verdict | Refusal:
        """What exactly so many pods get, if need be by preemption."""
        glance = Glance(self._state.scene, queue, workload)
        ways = self._state.assigner.ways(workload, queue, partial(self._in_vain, glance))
        while True:
            outcome = ways.best()
            if isinstance(outcome, Refusal):
                return outcome
            if not outcome.preempting:
                return Verdict(outcome)
            search = Search(self._state.scene, queue, workload, tuple(outcome.usage.items()))
            victims = search.victims()
            if victims:
                outcome.borrowing = outcome.borrows()
                return Verdict(outcome, victims, search.grounds)
            self.outlook.note(search)
            ways.rule_out(self._hopeless(workload, queue, outcome))

    def _in_vain(self, glance: Glance, wanted: Wanted) -> bool:
        """Whether a glance says that no evictions make room; then that is noted as a search would be."""
        if not glance.in_vain(wanted):
            return False
        self.outlook.note(glance)
        return True

    def _of_the_fewest(self, workload: Workload, queue: Queue) -> Refusal | None:
        """Why not even the smallest form of a workload fits; None if there is no such form."""
        smallest = fewest(workload)
        outcome = self._whole(smallest, queue) if smallest is not None else None
        return outcome if isinstance(outcome, Refusal) else None

    def _by_preemption(self, workload: Workload, queue: Queue) -> Verdict | None:
        outcome = self._whole(workload, queue)
        return outcome if isinstance(outcome, Verdict) else None

    def fits(self, workload: Workload, queue: Queue) -> bool:
        """Whether it fits with nobody evicted, perhaps with fewer pods."""
        if self._fitting(workload, queue) is not None:
            return True
        return largest_that_fits(workload, lambda smaller: self._fitting(smaller, queue)) is not None

    def _fitting(self, workload: Workload, queue: Queue) -> Proposal | None:
        outcome = self._state.assigner.assign(workload, queue, preempts=False)
        return outcome if isinstance(outcome, Proposal) else None

    def _hopeless(self, workload: Workload, queue: Queue, proposal: Proposal) -> Combination:
        """What to do without, if nobody can be evicted for all: a choice that can't be had alone, or all."""
        together = frozenset(proposal.preempting)
        for choice, usage in proposal.preempting.items() if len(together) > 1 else ():
            if not Search(self._state.scene, queue, workload, usage).victims():
                return frozenset({choice})
        return together
