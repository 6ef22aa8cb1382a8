"""All that can be said about one waiting workload: computed when it is asked for, never stored.

A refusal (`admitter.engine.explain`) is what is written down, and stays true while the workload waits. This
is the picture of the moment: what is free, what is cut by which limit, who is ahead, who would have to end.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from admitter.engine.explain import FlavorRefusal, Refusal
from admitter.engine.flavors import Proposal
from admitter.engine.ledger import Reservation
from admitter.engine.model import FlavorResource, PodSet, Workload
from admitter.engine.policy import Queue
from admitter.engine.preemption.search import Search
from admitter.engine.quota import Cell
from admitter.engine.state import State


@dataclass(frozen=True, slots=True)
class Amounts:
    """One resource in one flavor, for one pod set. All amounts are in the resource's unit.

    Attributes:
        flavor: its name.
        resource: its name.
        asked: what all pods of the pod set ask for.
        free: what the queue has left of its own.
        borrowable: what it could borrow on top of that.
        cut_by_max: by how much `max`, of the queue or a cohort above it, makes that less.
        kept_by_others: what others of the tree have unused and keep by their `lendingLimit`.
    """

    flavor: str
    resource: str
    asked: int
    free: int
    borrowable: int
    cut_by_max: int
    kept_by_others: int

    @property
    def lacking(self) -> int:
        """How much is missing; not positive if it would fit."""
        return self.asked - self.free - self.borrowable


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a workload waits now.

    Attributes:
        workload: which one.
        refusal: the rule that stops it; None if nothing does: it has not been looked at yet.
        amounts: for each pod set by name, every flavor that suits it.
        mismatches: for each pod set by name, the flavors that do not suit it.
        ahead: how many wait before it in its queue.
        evictable: UIDs of those whom its queue's policy would let it evict, if that were enough.
        enders: UIDs of a minimal set of holders whose end would let it in; empty if none would.
    """

    workload: Workload
    refusal: Refusal | None
    amounts: dict[str, tuple[Amounts, ...]]
    mismatches: dict[str, tuple[FlavorRefusal, ...]]
    ahead: int
    evictable: tuple[str, ...]
    enders: tuple[str, ...]


class Explainer:
    """Explains in one state, which it leaves as it was."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._book = state.ledger.planned

    def explain(self, workload: Workload) -> Explanation:
        """Explain a workload that waits in a queue that exists."""
        queue = self._state.tree.queues[workload.queue]
        outcome = self._state.assigner.assign(workload, queue)
        amounts, mismatches = {}, {}
        for pod_set in workload.pod_sets:
            suiting, others = self._flavors(pod_set, queue)
            amounts[pod_set.name] = tuple(self._amounts(pod_set, queue, key) for key in suiting)
            mismatches[pod_set.name] = tuple(others)
        pending = self._state.pending[workload.queue]
        return Explanation(
            workload,
            pending.class_of(workload).parked or (outcome if isinstance(outcome, Refusal) else None),
            amounts,
            mismatches,
            pending.ahead(workload),
            tuple(sorted(self._evictable(workload, queue, outcome))),
            tuple(sorted(self._enders(workload, queue))),
        )

    def _flavors(self, pod_set: PodSet, queue: Queue) -> tuple[list[FlavorResource], list[FlavorRefusal]]:
        """What a pod set could use by taints and labels, and why not the rest."""
        requests = {resource for resource, amount in pod_set.requests if amount}
        suiting: list[FlavorResource] = []
        others: list[FlavorRefusal] = []
        for group in queue.groups:
            wanted = [resource for resource in group.resources if resource in requests]
            for name in group.flavors if wanted else ():
                refused = self._state.assigner.mismatch(pod_set, group, name)
                if refused is None:
                    suiting += [(name, resource) for resource in wanted]
                else:
                    others.append(refused)
        return suiting, others

    def _amounts(self, pod_set: PodSet, queue: Queue, key: FlavorResource) -> Amounts:
        cell = self._book.cell(queue.name, key)
        available = max(0, cell.available())
        uncut = _free(cell)
        free = min(available, max(0, cell.own - cell.used))
        root = self._state.tree.root(queue.name)
        mine = {("queue", queue.name), *self._state.tree.path(("queue", queue.name))}
        kept = sum(
            max(0, other.kept - other.used)
            for node in self._state.tree.nodes(root)
            if node not in mine
            for other in (self._book.at(node, key),)
        )
        asked = dict(pod_set.requests)[key[1]] * pod_set.count
        return Amounts(*key, asked, free, available - free, max(0, uncut - available), kept)

    def _evictable(self, workload: Workload, queue: Queue, outcome: Proposal | Refusal) -> Iterable[str]:
        if not isinstance(outcome, Proposal):
            return ()
        search = Search(self._state.tree, self._state.ledger, queue, workload, tuple(outcome.usage.items()))
        search.victims()
        return search.considered

    def _enders(self, workload: Workload, queue: Queue) -> list[str]:
        """A minimal set of holders without whom it fits: newest first, as far as they are needed."""
        names = self._state.tree.members(self._state.tree.root(queue.name))
        holders = [r for name in names for r in self._state.ledger.reservations(name)]
        holders.sort(key=lambda r: (r.queue != queue.name, -r.since, r.holder))
        removed: list[Reservation] = []
        needed: list[Reservation] = []
        try:
            while not self._fits(workload, queue):
                if not holders:
                    return []
                removed.append(holders.pop(0))
                self._move(removed[-1], -1)
            for reservation in reversed(removed):
                self._move(reservation, 1)
                if not self._fits(workload, queue):
                    self._move(reservation, -1)
                    needed.append(reservation)
            removed = list(needed)
            return [reservation.holder for reservation in needed]
        finally:
            for reservation in removed:
                self._move(reservation, 1)

    def _move(self, reservation: Reservation, sign: int) -> None:
        if not self._state.ledger.evicting(reservation.holder):  # the plan is without it already
            self._book.add(reservation.queue, reservation.usage, sign)

    def _fits(self, workload: Workload, queue: Queue) -> bool:
        outcome = self._state.assigner.assign(workload, queue)
        return isinstance(outcome, Proposal) and not outcome.preempting


def _free(cell: Cell) -> int:
    """What is free for a place if no `max` counted."""
    free = 0
    step: Cell | None = cell
    while step is not None:
        free += max(0, step.kept - step.used)
        step = step.parent
    return free
