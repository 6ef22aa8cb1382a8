"""All that can be said about one waiting workload: computed when it is asked for, never stored.

A refusal (`admitter.engine.refusal`) is what is written down, and stays true while the workload waits. This
describes one moment: what is free, what each limit cuts, what is ahead, what would have to end.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from admitter.engine.explain.blocking import BlockingWorkloads
from admitter.engine.flavors.assigner import Proposal, Ways
from admitter.engine.flavors.partial_admission import fewest
from admitter.engine.model import FlavorResource, PodSet, Usage, Workload
from admitter.engine.policy import Queue
from admitter.engine.preemption.search import search
from admitter.engine.quota.cells import Cell
from admitter.engine.quota.extras import Part
from admitter.engine.quota.tree import Node
from admitter.engine.refusal import FlavorRefusal, Reason, Refusal
from admitter.engine.state import EngineState

_T = TypeVar("_T")
_ByPodSet = dict[str, tuple[_T, ...]]


@dataclass(frozen=True, slots=True)
class Amounts:
    """One resource in one flavor, for one pod set. All amounts are in the resource's unit."""

    flavor: str
    resource: str
    asked: int  # what all pods of the pod set ask for, apart from other pod sets
    free: int  # what the queue has left of its own
    borrowable: int  # what it could borrow on top of that
    cut_by_max: int  # by how much `max`, of the queue or a cohort above it, makes that less
    # queues that keep quota unused by a `lendingLimit`, and how much, the most first
    keepers: tuple[tuple[Node, int], ...]
    most: int  # how much the queue could have if nothing were in use
    claimed: int = 0  # how much is free, and not to be borrowed since others that wait own it
    # what these are: the UID of each, the subtree that owns it, and how much of that it claims
    claims: tuple[tuple[str, Node, int], ...] = ()

    @property
    def lacking(self) -> int:
        """How much is missing; not positive if it would fit."""
        return self.asked - self.free - self.borrowable

    @property
    def possible(self) -> bool:
        """Whether it would fit if nothing were in use."""
        return self.asked <= self.most


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a workload waits now."""

    workload: Workload
    refusal: Refusal | None  # the rule that stops it; None if nothing does: it has not been looked at yet
    amounts: dict[str, tuple[Amounts, ...]]  # for each pod set by name, every flavor that suits it
    # for each pod set by name, the flavors that do not suit it
    mismatches: dict[str, tuple[FlavorRefusal, ...]]
    ahead: int  # how many wait before it in its queue
    # UIDs of workloads that its queue's policy would let it evict, if that were enough
    evictable: tuple[str, ...]
    # UIDs of the blocking workloads: their end would let it in, perhaps by evicting others; empty if none
    # would. Of a preemptor with a pending reservation: its victims
    blocking: tuple[str, ...]
    # whether `evictable` and `blocking` were looked for to the end; if not, both are empty
    sought: bool = True
    # the pod sets of which extra pods, or replicas, end before it starts, and how many
    shrinking: tuple[tuple[Part, int], ...] = ()


class RefusalExplainer:
    """Explains in one state, which it leaves as it was, but for claims that are made anew."""

    def __init__(self, state: EngineState) -> None:
        self._state = state
        self._book = state.ledger.planned

    def explain(self, workload: Workload, enough: Callable[[], bool]) -> Explanation:
        """Explain a workload that waits in a queue that exists.

        `enough` is asked between attempts whether the search for blocking workloads, which may be long, ends.
        """
        queue = self._state.tree.queues[workload.queue]
        self._state.renew_claims(self._state.tree.root(queue.name))
        pending = self._state.pending[workload.queue]
        outcome = self._state.assigner.assign(workload, queue)
        awaited = bool(self._state.ledger.pending_in(queue.name))
        refusal = pending.refusal(workload, queue, awaited=awaited) or (
            outcome if isinstance(outcome, Refusal) else None
        )
        blocking = None if enough() else BlockingWorkloads(self._state, workload, queue, enough).found()
        evictable = self._evictable(workload, queue, enough) if blocking is not None else None
        return Explanation(
            workload,
            refusal,
            *self._tried(workload, queue),
            pending.in_order().index(workload),
            tuple(sorted(evictable or ())),
            tuple(sorted(blocking or ())) if evictable is not None else (),
            evictable is not None,
        )

    def explain_pending_reservation(self, workload: Workload) -> Explanation:
        """Explain a preemptor with a pending reservation: its victims and extra pods have to end."""
        ledger, queue = self._state.ledger, self._state.tree.queues[workload.queue]
        root = self._state.tree.root(queue.name)
        self._state.renew_claims(root)
        names = self._state.tree.members(root)
        holders = [r.holder for name in names for r in ledger.reservations(name)]
        victims = tuple(sorted(uid for uid in holders if ledger.preemptor(uid) == workload.uid))
        return Explanation(
            workload,
            Refusal(Reason.PREEMPTING, queue.name),
            *self._tried(workload, queue),
            0,
            (),
            victims,
            shrinking=tuple(self._shrinking(ledger.pending_reservations[workload.uid].usage, names)),
        )

    def _shrinking(self, usage: Usage, names: Iterable[str]) -> Iterator[tuple[Part, int]]:
        """What goes on, in some queues, without extra pods that use what a preemptor asks for."""
        ledger, asked = self._state.ledger, {key for key, amount in usage if amount}
        for part in ledger.extras.granted(names):
            extra = ledger.extras.get(*part)
            if extra is None or extra.kept == extra.granted or ledger.evicting(part[0]):
                continue
            if any(key in asked for key, amount in extra.each if amount):
                yield part, extra.granted - extra.kept

    def _tried(self, workload: Workload, queue: Queue) -> tuple[_ByPodSet[Amounts], _ByPodSet[FlavorRefusal]]:
        """For each pod set, the flavors that suit it, and why others do not."""
        amounts, mismatches = {}, {}
        for pod_set in workload.pod_sets:
            suiting, others = self._flavors(pod_set, queue)
            amounts[pod_set.name] = tuple(self._amounts(pod_set, queue, key) for key in suiting)
            mismatches[pod_set.name] = tuple(others)
        return amounts, mismatches

    def _flavors(self, pod_set: PodSet, queue: Queue) -> tuple[list[FlavorResource], list[FlavorRefusal]]:
        """What a pod set could use by taints and labels, and why not the rest."""
        suiting: list[FlavorResource] = []
        others: list[FlavorRefusal] = []
        for group in queue.groups:
            wanted = [resource for resource in group.resources if pod_set.asks_for(resource)]
            for name in group.flavors if wanted else ():
                refused = self._state.assigner.mismatch(pod_set, name)
                if refused is None:
                    suiting += [(name, resource) for resource in wanted]
                else:
                    others.append(refused)
        return suiting, others

    def _amounts(self, pod_set: PodSet, queue: Queue, wanted: FlavorResource) -> Amounts:
        flavor, resource = wanted
        key = queue.key(flavor, resource)
        cell = self._book.cell(queue.name, key)
        available = max(0, cell.available())
        vacant = max(0, cell.room())
        uncut = _free(cell)
        free = min(available, max(0, cell.subtree_quota - cell.used))
        root = self._state.tree.root(queue.name)
        mine = {("queue", queue.name), *self._state.tree.path(("queue", queue.name))}
        kept = [
            (node, other.local_quota - other.used)
            for node in self._state.tree.nodes(root)
            if node not in mine
            for other in (self._book.at(node, key),)
            if other.local_quota > other.used
        ]
        kept.sort(key=lambda each: (-each[1], each[0]))
        asked = pod_set.request(resource, self._state.flavors[flavor]) * pod_set.count
        cut = max(0, uncut - vacant)
        claims = tuple(
            (claim.uid, claim.node, dict(claim.amounts)[key])
            for _, claim in self._state.claims.on(root, key)
            if available < vacant and claim.node not in mine
        )
        claimed = vacant - available
        most, borrowable = cell.potential_available(), available - free
        return Amounts(flavor, resource, asked, free, borrowable, cut, tuple(kept), most, claimed, claims)

    def _evictable(self, workload: Workload, queue: Queue, enough: Callable[[], bool]) -> set[str] | None:
        """Which the policy would let it evict, in whichever flavor, for all of its pods or the fewest.

        None: not looked for to the end.
        """
        found: set[str] = set()
        smallest = fewest(workload)
        for form in (workload,) if smallest is None else (workload, smallest):
            ways = Ways(self._state.assigner, form, queue, lambda _: False)
            while True:
                outcome = ways.best()
                if not isinstance(outcome, Proposal) or not outcome.preempting:
                    break
                if enough():
                    return None
                result = search(self._state.preemption, queue, form, tuple(outcome.usage.items()))
                found |= {c.reservation.holder for group in result.candidates for c in group.members()}
                ways.rule_out(frozenset(outcome.preempting))
        return found


def _free(cell: Cell) -> int:
    """What is free for a place if no `max` counted."""
    free = 0
    step: Cell | None = cell
    while step is not None:
        free += max(0, step.local_quota - step.used)
        step = step.parent
    return free
