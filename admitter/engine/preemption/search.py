"""Finds a smallest set of workloads whose eviction lets another one in.

Candidates are removed one by one, in the order of the rule that allows it, until the preemptor fits;
then each is put back that turns out not to be needed, costliest first. All of it happens on the book
of what is planned, and is undone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import inf
from typing import Final

from admitter.engine.capacity import Capacity
from admitter.engine.cells import Together
from admitter.engine.fairness import ENDLESS, NO_SHARE
from admitter.engine.ledger import Ledger, Reservation
from admitter.engine.model import FlavorResource, Usage, Workload
from admitter.engine.namespaces import ENDLESS as NOBODY_GIVES
from admitter.engine.policy import BorrowWithin, Queue, Reclaim, WithinQueue
from admitter.engine.preemption import borrow, fair, guaranteed, namespaces, reclaim, within_queue
from admitter.engine.preemption.candidates import Candidate, Ground, OverQuota, Pool, Rule
from admitter.engine.preemption.within_queue import WithinOwnQueue
from admitter.engine.quota import Node, Tree
from admitter.engine.receipt import Grounds

Keys = frozenset[FlavorResource]

MOST_SPARED: Final = 50
MOST_STEPS: Final = 2000
"""So many candidates are looked at again at most, if the first attempt came to nothing."""


def _anybody(_: Workload) -> bool:
    """Whatever the priority."""
    return True


@dataclass(slots=True)
class Scene:
    """What victims are looked for in.

    Attributes:
        tree: the quota tree.
        ledger: who holds what.
        capacity: who is over quota.
        now: when it is, in seconds since the epoch.
    """

    tree: Tree
    ledger: Ledger
    capacity: Capacity
    now: float = 0.0

    def giving(self, queue: Queue, preemptor: Workload) -> Counter[FlavorResource]:
        """What those of a queue use, as sums, who may be evicted for one of its workloads.

        Between namespaces that share a queue shares decide, in the end; here anybody of others may go.
        """
        policy, sums = queue.preemption.within, Counter[FlavorResource]()
        if policy is WithinQueue.NEVER:
            return sums
        shared, runtime = queue.name in self.ledger.sharing, self.tree.patience(queue.name).runtime
        for reservation in self.ledger.candidates(queue.name):
            victim = reservation.workload
            if victim is None or reservation.since + runtime > self.now:
                continue
            other = shared and victim.namespace != preemptor.namespace
            if other or within_queue.allows(policy, preemptor, victim):
                sums.update(dict(reservation.usage))
        return sums


@dataclass(slots=True)
class _Attempt:
    """What came of one attempt to make room.

    Attributes:
        victims: who would have to go; nobody if it came to nothing.
        removed: the UIDs of those who were taken out in vain.
        refused: whether somebody might not go.
        steps: how many were looked at.
    """

    victims: list[Reservation] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    refused: bool = False
    steps: int = 0


class Search:
    """Looks for victims of one preemptor.

    Attributes:
        evictable: the use of all candidates that were found, allowed together or not.
        barred: whether there were none for no other reason than what the own queue uses. The workload must
            ask for a single resource, in a queue with one cohort above it at most.
        share: with fair sharing, how large a share another queue of that cohort must have to give anything.
        giving: where namespaces share the queue, how large a share one of them must keep to give anything.
        due: when the first of those may be preempted who have not run for long enough; inf if there are none.
        grounds: the rule by which victims of other queues were found.
    """

    def __init__(self, scene: Scene, queue: Queue, preemptor: Workload, usage: Usage) -> None:
        """Prepare.

        Args:
            scene: what victims are looked for in.
            queue: the preemptor's queue.
            preemptor: who wants to be admitted.
            usage: what it would use.
        """
        self._scene = scene
        self._tree = tree = scene.tree
        self._ledger = scene.ledger
        self._book = scene.ledger.planned
        self._queue = queue
        self._preemptor = preemptor
        self._usage = tuple((key, amount) for key, amount in usage if amount)
        self._wanted = [(self._book.cell(queue.name, key), amount) for key, amount in self._usage]
        self._contested: Keys = frozenset(
            key
            for (key, amount), (cell, _) in zip(self._usage, self._wanted, strict=True)
            if amount > cell.vacant()
        )
        self._together: Counter[Together] = Counter()
        for cell, amount in self._wanted:
            if cell.together is not None:
                self._together[cell.together] += amount
        self._limited = frozenset(
            key[1]
            for (key, _), (cell, _) in zip(self._usage, self._wanted, strict=True)
            if cell.together is not None and not self._within(cell.together)
        )
        self._ground = Ground(tree, self._book, self._contested)
        self.evictable: Counter[FlavorResource] = Counter()
        self.due = inf
        self._found: list[Pool] = []
        self.barred = False
        self.share = ENDLESS
        self.giving = NOBODY_GIVES
        self.grounds = Grounds.RECLAIM
        self._root = tree.root(queue.name)
        self._shared = tree.fair(self._root)
        self._sides = tree.path(("queue", queue.name))[:-1]
        self._displaced = scene.ledger.is_displaced(preemptor.uid)

    def victims(self) -> list[Reservation]:
        """Whom to evict; empty if no set of allowed victims lets the preemptor in."""
        own = self._counted(self._own())
        self.barred = not own and len(self._usage) == 1
        reclaimed = self._by_reclaim(own)
        if any(victim.queue != self._queue.name for victim in reclaimed):
            return reclaimed
        # What takes back nothing loses nothing if others give first: their turn is before the own queue's.
        return self._by_borrowing(own) or reclaimed or self._least(own, WithinOwnQueue())

    def _by_reclaim(self, own: list[Pool]) -> list[Reservation]:
        """Take back what the queue lent, or cohorts above it."""
        if self._queue.preemption.reclaim is Reclaim.NEVER:
            return []
        rule = reclaim.Reclaiming(self._tree, self._book, self._queue, self._usage, self._contested)
        others: list[Pool] = []
        freed = Counter(own[0].held) if own else Counter()
        for side in self._sides:
            if not rule.could_hold(side, freed):
                continue
            self.barred, self.share = False, NO_SHARE
            allows = self._may_reclaim
            if rule.borrows_besides(side):
                by_share = self._tree.preempting_to_borrow(self._root, BorrowWithin.GUARANTEED_SHARE)
                if self._shared or by_share or not rule.borrows_only_the_unowned(side):
                    continue
                if self._tree.preempting_to_borrow(self._root, BorrowWithin.LOWER_PRIORITY):
                    allows = self._may_reclaim_lower
            found = self._others(side, self._borrowers(side), allows)
            for pool in found:
                freed.update(pool.held)
            others += found
        return self._least([*others, *own], rule) if others else []

    def _by_borrowing(self, own: list[Pool]) -> list[Reservation]:
        """Borrow instead of others: by priority, or where it is shared by weight, by that."""
        policy = self._queue.preemption
        if self._shared:
            self.grounds = Grounds.FAIR_SHARE
            if policy.reclaim is Reclaim.NEVER and policy.borrow is not BorrowWithin.LOWER_PRIORITY:
                return []
            self.barred = False
            return self._by_share(own)
        if policy.borrow is BorrowWithin.NEVER:
            return []
        if policy.borrow is BorrowWithin.GUARANTEED_SHARE:
            self.grounds = Grounds.GUARANTEED_SHARE
            rule = self._guaranteed()
            if not own and not rule.holds():
                return []  # whoever goes elsewhere, its own queue uses too much for it
            self.barred = False
            return self._by_rule(own, rule, _anybody)
        self.grounds, self.barred = Grounds.BORROW, False
        return self._by_rule(own, borrow.Borrowing(self._tree, self._guaranteed().lacks), self._may_borrow)

    def _by_rule(self, own: list[Pool], rule: Rule, allows: Callable[[Workload], bool]) -> list[Reservation]:
        others: list[Pool] = []
        for side in self._sides:
            others += self._others(side, self._borrowers(side), allows)
        return self._least([*others, *own], rule) if others else []

    def _guaranteed(self) -> guaranteed.GuaranteedSharing:
        return guaranteed.GuaranteedSharing(self._tree, self._book, self._queue, self._usage)

    def _by_share(self, own: list[Pool]) -> list[Reservation]:
        held = own[0].held if own else {}
        rule = fair.FairSharing(self._tree, self._book, self._queue, self._usage, held)
        self.share = min(self.share, rule.share)
        others: list[Pool] = []
        for side in self._sides:
            # Once a relative has given, this side's share is smaller for those who are farther away.
            names = [name for name in self._borrowers(side) if others or rule.could_give(name)]
            others += self._others(side, names, self._may_share)
        return self._least([*others, *own], rule) if others else []

    def _own(self) -> list[Pool]:
        policy = self._queue.preemption.within
        if policy is WithinQueue.NEVER:
            return []
        pool = Pool(self._ground, self._queue.name, ("queue", self._queue.name))
        allows = self._eligible(lambda victim: within_queue.allows(policy, self._preemptor, victim))
        sharing = self._ledger.sharing.get(self._queue.name)
        mine = self._preemptor.namespace if sharing is not None else None
        for reservation in filter(allows, self._ledger.candidates(self._queue.name, mine)):
            pool.add(reservation)
        if sharing is not None:  # between namespaces shares decide
            anybody = self._eligible(_anybody)
            self.giving = namespaces.share_at_least(sharing, self._preemptor, self._usage, pool.held)
            for name in namespaces.givers(sharing, self._preemptor, self.giving):
                for reservation in filter(anybody, self._ledger.candidates(self._queue.name, name)):
                    pool.add(reservation)
        return [pool] if pool.held else []

    def _eligible(self, allows: Callable[[Workload], bool]) -> Callable[[Reservation], bool]:
        """Who may be evicted, by rules on each alone."""

        def eligible(reservation: Reservation) -> bool:
            workload = reservation.workload
            if workload is None or not self._contends(reservation) or not allows(workload):
                return False
            if self._displaced and not self._stays_out(reservation):
                return False
            runtime = self._tree.patience(reservation.queue).runtime
            if runtime and reservation.since + runtime > self._scene.now:
                self.due = min(self.due, reservation.since + runtime)
                return False
            return True

        return eligible

    def _stays_out(self, victim: Reservation) -> bool:
        """Whether a victim could not take its place back from what it was evicted for.

        That is all that a displaced workload may evict, so evictions in turns come to an end
        (docs/design/preemption.md).
        """
        if victim.queue != self._queue.name:
            owner = self._tree.queues.get(victim.queue)
            return owner is None or not owner.preemption.allowed
        assert victim.workload is not None, "only workloads are evicted"
        mine = not self._queue.by_namespace or victim.namespace == self._preemptor.namespace
        return mine and self._preemptor.rank < victim.workload.rank

    def _others(self, side: Node, names: Iterable[str], allows: Callable[[Workload], bool]) -> list[Pool]:
        """Candidates of some queues that part from the preemptor's at this place on its side."""
        eligible = self._eligible(allows)
        pools = (self._filled(queue, side, eligible) for queue in names)
        return self._counted([pool for pool in pools if pool.held])

    def _filled(self, queue: str, side: Node, eligible: Callable[[Reservation], bool]) -> Pool:
        """The candidates of another queue."""
        if self._tree.queues[queue].pool:
            return OverQuota(self._ground, queue, side, self._scene.capacity.planned(queue), eligible)
        pool = Pool(self._ground, queue, side)
        if any(reclaim.exceeds([chain]) for chain in pool.chains.values()):
            for reservation in self._ledger.candidates(queue):
                if eligible(reservation):
                    pool.add(reservation)
        return pool

    def _borrowers(self, side: Node) -> list[str]:
        """Queues that part from the preemptor's at this place on its side, and borrow what is contested."""
        beside = self._tree.beside(side)
        return sorted(
            {name for key in self._contested for name in self._book.borrowers(self._root, key) & beside}
        )

    def _counted(self, pools: list[Pool]) -> list[Pool]:
        self._found += pools
        for pool in pools:
            for key, amount in pool.held.items():
                self.evictable[key] += amount
        return pools

    def considered(self) -> set[str]:
        """The UIDs of all candidates that were found."""
        return {candidate.reservation.holder for pool in self._found for candidate in pool.members()}

    def _enough(self, pools: Sequence[Pool]) -> bool:
        """Whether candidates could free what is lacking: a cheap look before the search."""
        return all(
            amount <= cell.vacant() + sum(pool.at_most(key) for pool in pools)
            for (key, amount), (cell, _) in zip(self._usage, self._wanted, strict=True)
        )

    def _contends(self, reservation: Reservation) -> bool:
        own = reservation.queue == self._queue.name
        return any(
            amount and (key in self._contested or (own and key[1] in self._limited))
            for key, amount in reservation.usage
        )

    def _may_reclaim(self, victim: Workload) -> bool:
        return reclaim.allows(self._queue.preemption.reclaim, self._preemptor, victim)

    def _may_reclaim_lower(self, victim: Workload) -> bool:
        """Who borrows besides what can be lost again to higher priority may only evict lower priority.

        So every sequence of such evictions rises in priority, and comes to an end.
        """
        return victim.priority < self._preemptor.priority and self._may_reclaim(victim)

    def _may_borrow(self, victim: Workload) -> bool:
        return borrow.allows(self._queue.preemption, self._preemptor, victim)

    def _may_share(self, victim: Workload) -> bool:
        return fair.allows(self._queue.preemption, self._preemptor, victim)

    def _least(self, pools: Sequence[Pool], rule: Rule) -> list[Reservation]:
        """The smallest set in the rule's order with which the preemptor fits; empty if there is none.

        Who went first may be why others may not: then it is tried without one of those who went, and without
        the first two, three and so on.
        """
        if not pools or not self._enough(pools):
            return []
        sharing = self._ledger.sharing.get(self._queue.name)
        if sharing is not None and any(pool.own for pool in pools):
            rule = namespaces.AmongNamespaces(rule, sharing, self._preemptor, self._usage)
        found = self._attempt(pools, rule, frozenset())
        steps = MOST_STEPS
        if not found.victims and found.refused:
            removed = found.removed
            less = [frozenset({uid}) for uid in removed]
            less += [frozenset(removed[:count]) for count in range(2, min(len(removed) + 1, MOST_SPARED))]
            for spared in less:
                steps -= found.steps
                if steps < 0:
                    break
                found = self._attempt(pools, rule, spared)
                if found.victims:
                    break
        return found.victims

    def _attempt(self, pools: Sequence[Pool], rule: Rule, spared: AbstractSet[str]) -> "_Attempt":
        """Take out whoever may go until the preemptor fits, but for some; leaves all as it was."""
        made = _Attempt()
        removed: list[Candidate] = []
        try:
            for candidate in rule.order(pools):
                made.steps += 1
                if candidate.reservation.holder in spared:
                    continue
                if not rule.may_go(candidate):
                    made.refused = True
                    continue
                candidate.move(-1)
                rule.moved(candidate, -1)
                removed.append(candidate)
                if self._fits() and rule.holds():
                    removed = self._give_back(removed, rule)
                    if self._leaves_claims():
                        made.victims = [victim.reservation for victim in removed]
                    return made
            made.removed = [candidate.reservation.holder for candidate in removed]
            return made
        finally:
            for candidate in removed:
                candidate.move(1)
                rule.moved(candidate, 1)

    def _give_back(self, removed: list[Candidate], rule: Rule) -> list[Candidate]:
        """Put back what is not needed; returns the rest, in order."""
        while True:
            needed = []
            for candidate in reversed(removed):
                candidate.move(1)
                rule.moved(candidate, 1)
                if not (self._fits() and rule.holds()):
                    candidate.move(-1)
                    rule.moved(candidate, -1)
                    needed.append(candidate)
            if len(needed) == len(removed):
                return removed
            removed = needed[::-1]  # with other shares than before somebody else may turn out unneeded

    def _fits(self) -> bool:
        return all(amount <= cell.vacant() for cell, amount in self._wanted) and all(
            self._within(together) for together in self._together
        )

    def _leaves_claims(self) -> bool:
        """Whether the preemptor newly borrows nothing that others own and wait for.

        That is no reason to evict more: what it frees would be theirs.
        """
        return all(amount <= cell.in_flavor() for cell, amount in self._wanted)

    def _within(self, together: Together) -> bool:
        """Whether the preemptor fits in a limit on all flavors together."""
        return self._together[together] <= together.limit - together.used
