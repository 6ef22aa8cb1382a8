"""Finds a smallest set of workloads whose eviction lets another one in.

Candidates are ordered (design §3): those of other queues first, lowest priority, newest admission,
UID. They are removed one by one until the preemptor fits; then each is put back that turns out not
to be needed, costliest first. All of it happens on the book of what is planned, and is undone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from admitter.engine.ledger import Ledger, Reservation, Usage
from admitter.engine.model import FlavorResource, Workload
from admitter.engine.policy import BorrowWithin, Queue, Reclaim, WithinQueue
from admitter.engine.preemption import borrow, reclaim, within_queue
from admitter.engine.quota import Cell, Node, Tree

Keys = frozenset[FlavorResource]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A workload that might be evicted.

    Attributes:
        reservation: what it holds.
        ancestor: the nearest node above it and the preemptor; None if it is of the same queue.
    """

    reservation: Reservation
    ancestor: Node | None


def _order(candidate: Candidate) -> tuple[bool, int, float, str]:
    """A candidate's place, first to go first."""
    reservation = candidate.reservation
    assert reservation.workload is not None
    priority = reservation.workload.priority
    return (candidate.ancestor is None, priority, -reservation.since, reservation.holder)


class Search:
    """Looks for victims of one preemptor."""

    def __init__(self, tree: Tree, ledger: Ledger, queue: Queue, preemptor: Workload, usage: Usage) -> None:
        """Prepare.

        Args:
            tree: the quota tree.
            ledger: who holds what.
            queue: the preemptor's queue.
            preemptor: who wants to be admitted.
            usage: what it would use.
        """
        self._tree = tree
        self._ledger = ledger
        self._book = ledger.planned
        self._queue = queue
        self._preemptor = preemptor
        self._usage = tuple((key, amount) for key, amount in usage if amount)
        self._wanted = [(self._book.cell(queue.name, key), amount) for key, amount in self._usage]
        self._contested: Keys = frozenset(
            key
            for (key, amount), (cell, _) in zip(self._usage, self._wanted, strict=True)
            if amount > cell.available()
        )
        self._chains: dict[tuple[str, Node, FlavorResource], list[Cell]] = {}

    def victims(self) -> list[Reservation]:
        """Whom to evict; empty if no set of allowed victims lets the preemptor in."""
        own = self._own()
        if self._queue.preemption.reclaim is not Reclaim.NEVER:
            for below, above in self._levels():
                if not self._could_be_entitled(below):
                    continue
                others = self._others(above, below, self._may_reclaim)
                found = self._least([*others, *own], below) if others else []
                if found:
                    return found
        if self._queue.preemption.borrow is not BorrowWithin.NEVER:
            others = [
                candidate
                for below, above in self._levels()
                for candidate in self._others(above, below, self._may_borrow)
            ]
            found = self._least([*others, *own]) if others else []
            if found:
                return found
        return self._least(own) if own else []

    def _levels(self) -> Iterator[tuple[Node, Node]]:
        """Each node from the queue upwards, with the one above it."""
        path = list(self._tree.path(("queue", self._queue.name)))
        yield from pairwise(path)

    def _own(self) -> list[Candidate]:
        policy = self._queue.preemption.within
        if policy is WithinQueue.NEVER:
            return []
        return [
            Candidate(reservation, None)
            for reservation in self._ledger.candidates(self._queue.name)
            if self._contends(reservation)
            and reservation.workload is not None
            and within_queue.allows(policy, self._preemptor, reservation.workload)
        ]

    def _others(self, above: Node, below: Node, allows: Callable[[Workload], bool]) -> list[Candidate]:
        """Candidates of queues below one node, but not below another one under it."""
        found = []
        for queue in self._tree.below(above):
            if below in self._tree.path(("queue", queue)):
                continue
            if not any(reclaim.exceeds([self._chain(queue, above, key)]) for key in self._contested):
                continue
            found += [
                Candidate(reservation, above)
                for reservation in self._ledger.candidates(queue)
                if reservation.workload is not None
                and self._contends(reservation)
                and allows(reservation.workload)
            ]
        return found

    def _contends(self, reservation: Reservation) -> bool:
        return any(key in self._contested for key, amount in reservation.usage if amount)

    def _may_reclaim(self, victim: Workload) -> bool:
        return reclaim.allows(self._queue.preemption.reclaim, self._preemptor, victim)

    def _may_borrow(self, victim: Workload) -> bool:
        return borrow.allows(self._queue.preemption, self._preemptor, victim)

    def _share(self, subtree: Node) -> list[tuple[Cell, int]]:
        """What of the contested a subtree of the preemptor would use more."""
        return [
            (self._book.at(subtree, key), amount) for key, amount in self._usage if key in self._contested
        ]

    def _could_be_entitled(self, subtree: Node) -> bool:
        """Whether it has enough of its own, perhaps after evictions in the preemptor's own queue."""
        share = self._share(subtree)
        if self._queue.preemption.within is not WithinQueue.NEVER:
            return all(amount <= cell.own for cell, amount in share)
        return reclaim.entitled(share)

    def _chain(self, queue: str, ancestor: Node, key: FlavorResource) -> list[Cell]:
        known = self._chains.get((queue, ancestor, key))
        if known is None:
            known = self._chains[queue, ancestor, key] = reclaim.chain(
                self._book, self._tree, queue, ancestor, key
            )
        return known

    def _exceeds(self, candidate: Candidate) -> bool:
        """Whether a candidate's queue still borrows what is contested and the candidate uses."""
        queue, ancestor = candidate.reservation.queue, candidate.ancestor
        return ancestor is None or reclaim.exceeds(
            self._chain(queue, ancestor, key)
            for key, amount in candidate.reservation.usage
            if amount and key in self._contested
        )

    def _least(self, candidates: Sequence[Candidate], entitled: Node | None = None) -> list[Reservation]:
        """The smallest set in the candidates' order with which the preemptor fits; empty if there is none.

        Args:
            candidates: whom to try.
            entitled: a subtree that must stay within its own quota, since it takes back what it lent.
        """
        share = self._share(entitled) if entitled is not None else []
        removed: list[Candidate] = []
        try:
            for candidate in sorted(candidates, key=_order):
                if self._exceeds(candidate):
                    self._move(candidate, -1)
                    removed.append(candidate)
                    if self._fits(share):
                        removed = self._give_back(removed, share)
                        return [victim.reservation for victim in removed]
            return []
        finally:
            for candidate in removed:
                self._move(candidate, 1)

    def _give_back(self, removed: list[Candidate], share: list[tuple[Cell, int]]) -> list[Candidate]:
        """Put back what is not needed; returns the rest, in order. The last one is always needed."""
        *others, last = removed
        needed = [last]
        for candidate in reversed(others):
            self._move(candidate, 1)
            if not self._fits(share):
                self._move(candidate, -1)
                needed.append(candidate)
        return needed[::-1]

    def _move(self, candidate: Candidate, sign: int) -> None:
        """Put a candidate's use back into the tree, or take it out."""
        for key, amount in candidate.reservation.usage:
            self._book.cell(candidate.reservation.queue, key).add(sign * amount)

    def _fits(self, share: list[tuple[Cell, int]]) -> bool:
        return all(amount <= cell.available() for cell, amount in self._wanted) and reclaim.entitled(share)
