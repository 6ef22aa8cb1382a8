"""Finds a smallest set of workloads whose eviction lets another one in.

Candidates are ordered (design §3): those of other queues first, lowest priority, newest admission,
UID. They are removed one by one until the preemptor fits; then each is put back that turns out not
to be needed, costliest first. All of it happens on the book of what is planned, and is undone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from admitter.engine.ledger import Ledger, Reservation, Usage, fits
from admitter.engine.model import FlavorResource, Workload
from admitter.engine.policy import BorrowWithin, Queue, Reclaim, WithinQueue
from admitter.engine.preemption import borrow, reclaim, within_queue
from admitter.engine.quota import Node, Tree

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

    @property
    def order(self) -> tuple[bool, int, float, str]:
        """Its place, first to go first."""
        workload = self.reservation.workload
        assert workload is not None
        return (self.ancestor is None, workload.priority, -self.reservation.since, self.reservation.holder)


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
        self._contested: Keys = frozenset(
            key for key, amount in self._usage if amount > self._book.cell(queue.name, key).available()
        )

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
            if not reclaim.exceeds(self._book, self._tree, queue, above, self._contested):
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

    def _entitled(self, subtree: Node) -> bool:
        """Whether the subtree of the preemptor has what is contested, of its own."""
        usage = {key: amount for key, amount in self._usage if key in self._contested}
        return reclaim.entitled(self._book, subtree, usage)

    def _could_be_entitled(self, subtree: Node) -> bool:
        """Whether it could be so after evictions in the preemptor's own queue."""
        if self._queue.preemption.within is not WithinQueue.NEVER:
            return all(
                amount <= self._book.at(subtree, key).own
                for key, amount in self._usage
                if key in self._contested
            )
        return self._entitled(subtree)

    def _least(self, candidates: Sequence[Candidate], entitled: Node | None = None) -> list[Reservation]:
        """The smallest set in the candidates' order with which the preemptor fits; empty if there is none.

        Args:
            candidates: whom to try.
            entitled: a subtree that must stay within its own quota, since it takes back what it lent.
        """
        removed: list[Reservation] = []
        try:
            for candidate in sorted(candidates, key=lambda c: c.order):
                reservation = candidate.reservation
                if candidate.ancestor is not None and not self._exceeds(reservation, candidate.ancestor):
                    continue
                self._book.add(reservation.queue, reservation.usage, -1)
                removed.append(reservation)
                if self._fits(entitled):
                    return self._give_back(removed, entitled)
            return []
        finally:
            for reservation in removed:
                self._book.add(reservation.queue, reservation.usage)

    def _give_back(self, removed: list[Reservation], entitled: Node | None) -> list[Reservation]:
        """Put back what is not needed; `removed` keeps the rest, in order."""
        for reservation in reversed(removed[:-1]):
            self._book.add(reservation.queue, reservation.usage)
            if self._fits(entitled):
                removed.remove(reservation)
            else:
                self._book.add(reservation.queue, reservation.usage, -1)
        return list(removed)

    def _exceeds(self, reservation: Reservation, ancestor: Node) -> bool:
        """Whether a candidate's queue still borrows what is contested and the candidate uses."""
        keys = [key for key, amount in reservation.usage if amount and key in self._contested]
        return reclaim.exceeds(self._book, self._tree, reservation.queue, ancestor, keys)

    def _fits(self, entitled: Node | None) -> bool:
        if not fits(self._book, self._queue.name, self._usage):
            return False
        return entitled is None or self._entitled(entitled)
