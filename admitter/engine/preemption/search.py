"""Finds a smallest set of workloads whose eviction lets another one in.

Candidates are ordered (design §3): those of other queues first, lowest priority, newest admission,
UID. They are removed one by one until the preemptor fits; then each is put back that turns out not
to be needed, costliest first. All of it happens on the book of what is planned, and is undone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

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
        moves: where in the tree, and how much of it.
        chains: for what of it is contested: the cells from its queue up to the nearest node above it and
            the preemptor, and how much of it. None if it is of the preemptor's own queue.
    """

    reservation: Reservation
    moves: list[tuple[Cell, int]]
    chains: list[tuple[list[Cell], int]] | None


def _order(candidate: Candidate) -> tuple[bool, int, float, str]:
    """A candidate's place, first to go first."""
    reservation = candidate.reservation
    assert reservation.workload is not None
    priority = reservation.workload.priority
    return (candidate.chains is None, priority, -reservation.since, reservation.holder)


def _sums(candidates: Iterable[Candidate]) -> Counter[FlavorResource]:
    sums: Counter[FlavorResource] = Counter()
    for candidate in candidates:
        for key, amount in candidate.reservation.usage:
            sums[key] += amount
    return sums


class Search:
    """Looks for victims of one preemptor.

    Attributes:
        evictable: the use of all candidates that were found, allowed together or not.
        considered: their UIDs.
    """

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
        self.evictable: Counter[FlavorResource] = Counter()
        self.considered: set[str] = set()

    def victims(self) -> list[Reservation]:
        """Whom to evict; empty if no set of allowed victims lets the preemptor in."""
        own = self._counted(self._own())
        if self._queue.preemption.reclaim is not Reclaim.NEVER:
            for below, above in self._levels():
                if not self._could_be_entitled(below, own):
                    continue
                others = self._counted(self._others(above, below, self._may_reclaim))
                found = self._least([*others, *own], below) if others else []
                if found:
                    return found
        if self._queue.preemption.borrow is not BorrowWithin.NEVER:
            others = [
                candidate
                for below, above in self._levels()
                for candidate in self._counted(self._others(above, below, self._may_borrow))
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
            Candidate(reservation, self._moves(reservation), None)
            for reservation in self._ledger.candidates(self._queue.name)
            if self._contends(reservation)
            and reservation.workload is not None
            and within_queue.allows(policy, self._preemptor, reservation.workload)
        ]

    def _others(self, above: Node, below: Node, allows: Callable[[Workload], bool]) -> list[Candidate]:
        """Candidates of queues below one node, but not below another one under it."""
        found = []
        for queue in self._borrowers(above, below):
            chains = {k: reclaim.chain_of(self._book, self._tree, queue, above, k) for k in self._contested}
            if not any(reclaim.exceeds([chain]) for chain in chains.values()):
                continue
            for reservation in self._ledger.candidates(queue):
                taken = [
                    (chains[key], amount) for key, amount in reservation.usage if key in chains and amount
                ]
                if taken and reservation.workload is not None and allows(reservation.workload):
                    moves = [
                        (chains[k][0] if k in chains else self._book.cell(queue, k), amount)
                        for k, amount in reservation.usage
                    ]
                    found.append(Candidate(reservation, moves, taken))
        return found

    def _borrowers(self, above: Node, below: Node) -> list[str]:
        """Queues below one node, but not below another one under it, that borrow what is contested."""
        root = self._tree.root(self._queue.name)
        names = {name for key in self._contested for name in self._book.borrowers(root, key)}
        return [
            name
            for name in sorted(names)
            if below not in (path := list(self._tree.path(("queue", name)))) and above in path
        ]

    def _counted(self, candidates: list[Candidate]) -> list[Candidate]:
        self.evictable.update(_sums(candidates))
        self.considered.update(candidate.reservation.holder for candidate in candidates)
        return candidates

    def _enough(self, candidates: Sequence[Candidate]) -> bool:
        """Whether candidates could free what is lacking: a cheap look before the search.

        Of another queue it is at most what that one borrows, and the rest of one workload.
        """
        freed: Counter[FlavorResource] = Counter()
        for name, ours in groupby(candidates, key=lambda candidate: candidate.reservation.queue):
            sums: Counter[FlavorResource] = Counter()
            largest: dict[FlavorResource, int] = {}
            for candidate in ours:
                for key, amount in candidate.reservation.usage:
                    sums[key] += amount
                    if amount > largest.get(key, 0):
                        largest[key] = amount
            for key in self._contested & sums.keys():
                if name != self._queue.name:
                    cell = self._book.cell(name, key)
                    sums[key] = min(sums[key], cell.used - cell.own + largest[key])
                freed[key] += sums[key]
        return all(
            amount <= cell.available() + freed[key]
            for (key, amount), (cell, _) in zip(self._usage, self._wanted, strict=True)
        )

    def _contends(self, reservation: Reservation) -> bool:
        return any(key in self._contested for key, amount in reservation.usage if amount)

    def _may_reclaim(self, victim: Workload) -> bool:
        return reclaim.allows(self._queue.preemption.reclaim, self._preemptor, victim)

    def _may_borrow(self, victim: Workload) -> bool:
        return borrow.allows(self._queue.preemption, self._preemptor, victim)

    def _share(self, subtree: Node) -> list[tuple[Cell, int]]:
        """What of the contested a subtree of the preemptor would use more."""
        return [(self._book.at(subtree, k), amount) for k, amount in self._usage if k in self._contested]

    def _borrows_only_the_unowned(self, subtree: Node) -> bool:
        """Whether what it uses besides is of its own too, or quota that no queue has for itself.

        Else the owner would take that back, and what was reclaimed here would be lost again: so three or
        more could evict each other in turns.
        """
        return all(
            not self._book.at(subtree, key).borrows(amount) or self._unowned(key, amount)
            for key, amount in self._usage
            if key not in self._contested
        )

    def _unowned(self, key: FlavorResource, amount: int) -> bool:
        """Whether so much more fits beside all that the queues of the tree have, used or not."""
        root = self._tree.root(self._queue.name)
        claimed = 0
        for name in self._tree.members(root):
            cell = self._book.cell(name, key)
            claimed += max(cell.own, cell.used + (amount if name == self._queue.name else 0))
        return claimed <= self._book.at(root, key).own

    def _could_be_entitled(self, subtree: Node, own: Sequence[Candidate]) -> bool:
        """Whether it has enough of its own, perhaps after evictions in the preemptor's own queue."""
        freed = _sums(own)
        return all(
            amount <= freed[key] or not self._book.at(subtree, key).borrows(amount - freed[key])
            for key, amount in self._usage
            if key in self._contested
        )

    def _moves(self, reservation: Reservation) -> list[tuple[Cell, int]]:
        return [(self._book.cell(reservation.queue, key), amount) for key, amount in reservation.usage]

    def _may_go(self, candidate: Candidate, *, reclaiming: bool) -> bool:
        """Whether a candidate's queue still borrows what is contested and the candidate uses."""
        chains = candidate.chains
        if chains is None:
            return True
        if not reclaim.exceeds(chain for chain, _ in chains):
            return False
        if reclaiming:
            return True
        owner = self._tree.queues.get(candidate.reservation.queue)
        takes_back = owner is not None and owner.preemption.reclaim is Reclaim.ANY
        return not takes_back or borrow.spares(chains)

    def _least(self, candidates: Sequence[Candidate], entitled: Node | None = None) -> list[Reservation]:
        """The smallest set in the candidates' order with which the preemptor fits; empty if there is none.

        Args:
            candidates: whom to try.
            entitled: a subtree that must stay within its own quota, since it takes back what it lent.
        """
        if not self._enough(candidates):
            return []
        share = self._share(entitled) if entitled is not None else []
        if entitled is not None and not self._borrows_only_the_unowned(entitled):
            return []
        removed: list[Candidate] = []
        try:
            for candidate in sorted(candidates, key=_order):
                if self._may_go(candidate, reclaiming=entitled is not None):
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
        for cell, amount in candidate.moves:
            cell.add(sign * amount)

    def _fits(self, share: list[tuple[Cell, int]]) -> bool:
        return all(amount <= cell.available() for cell, amount in self._wanted) and reclaim.entitled(share)
