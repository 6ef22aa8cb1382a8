"""Finds a smallest set of workloads whose eviction lets another one in.

Candidates are removed one by one, in the order of the rule that allows it, until the preemptor fits;
then each is put back that turns out not to be needed, costliest first. All of it happens on the book
of what is planned, and is undone.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise

from admitter.engine.ledger import Ledger, Reservation, Usage
from admitter.engine.model import FlavorResource, Workload
from admitter.engine.policy import BorrowWithin, Queue, Reclaim, WithinQueue
from admitter.engine.preemption import borrow, fair, reclaim, within_queue
from admitter.engine.preemption.candidates import Candidate, Rule, sums
from admitter.engine.preemption.within_queue import WithinOwnQueue
from admitter.engine.quota import Cell, Node, Tree

Keys = frozenset[FlavorResource]


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
        return self._by_reclaim(own) or self._by_borrowing(own) or self._least(own, WithinOwnQueue())

    def _by_reclaim(self, own: list[Candidate]) -> list[Reservation]:
        """Take back what the queue lent, or a cohort above it."""
        if self._queue.preemption.reclaim is Reclaim.NEVER:
            return []
        freed = sums(own)
        for below, above in self._levels():
            rule = reclaim.Reclaiming(
                self._tree, self._book, self._queue, below, self._usage, self._contested
            )
            if not rule.could_hold(freed):
                continue
            others = self._counted(self._others(above, below, self._may_reclaim))
            if others and rule.borrows_only_the_unowned():
                found = self._least([*others, *own], rule)
                if found:
                    return found
        return []

    def _by_borrowing(self, own: list[Candidate]) -> list[Reservation]:
        """Borrow instead of others: by priority, or where it is shared by weight, by that."""
        policy = self._queue.preemption
        shared = self._tree.fair(self._tree.root(self._queue.name))
        if policy.borrow is BorrowWithin.NEVER and (not shared or policy.reclaim is Reclaim.NEVER):
            return []
        allows = self._may_share if shared else self._may_borrow
        others = [
            candidate
            for below, above in self._levels()
            for candidate in self._counted(self._others(above, below, allows))
        ]
        if not others:
            return []
        rule: Rule = (
            fair.FairSharing(self._tree, self._book, self._queue, self._usage)
            if shared
            else borrow.Borrowing(self._tree)
        )
        return self._least([*others, *own], rule)

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
        self.evictable.update(sums(candidates))
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

    def _may_share(self, victim: Workload) -> bool:
        return fair.allows(self._queue.preemption, self._preemptor, victim)

    def _moves(self, reservation: Reservation) -> list[tuple[Cell, int]]:
        return [(self._book.cell(reservation.queue, key), amount) for key, amount in reservation.usage]

    def _least(self, candidates: Sequence[Candidate], rule: Rule) -> list[Reservation]:
        """The smallest set in the rule's order with which the preemptor fits; empty if there is none."""
        if not candidates or not self._enough(candidates):
            return []
        removed: list[Candidate] = []
        try:
            for candidate in rule.order(candidates):
                if rule.may_go(candidate):
                    candidate.move(-1)
                    rule.moved(candidate, -1)
                    removed.append(candidate)
                    if self._fits() and rule.holds():
                        removed = self._give_back(removed, rule)
                        return [victim.reservation for victim in removed]
            return []
        finally:
            for candidate in removed:
                candidate.move(1)

    def _give_back(self, removed: list[Candidate], rule: Rule) -> list[Candidate]:
        """Put back what is not needed; returns the rest, in order. The last one is always needed."""
        *others, last = removed
        needed = [last]
        for candidate in reversed(others):
            candidate.move(1)
            rule.moved(candidate, 1)
            if not (self._fits() and rule.holds()):
                candidate.move(-1)
                rule.moved(candidate, -1)
                needed.append(candidate)
        return needed[::-1]

    def _fits(self) -> bool:
        return all(amount <= cell.available() for cell, amount in self._wanted)
