"""Finds a smallest set of workloads to evict so that the preemptor fits.

Candidates are removed one by one, in the order of the rule that allows it, until the preemptor fits;
then each is put back that turns out not to be needed, costliest first. All of it happens on the book
of what is planned, and is undone.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import inf
from typing import Final

from admitter.engine.model import FlavorResource, Usage, Workload
from admitter.engine.policy import BorrowWithin, Queue, Reclaim, WithinQueue
from admitter.engine.preemption import borrow, fair, guaranteed, namespaces, reclaim, within_queue
from admitter.engine.preemption.candidates import (
    Candidate,
    CandidateContext,
    Group,
    InLine,
    OverQuota,
    Pool,
    PreemptionRule,
    QueueLines,
    QueuePools,
    first_of,
)
from admitter.engine.preemption.context import PreemptionContext
from admitter.engine.preemption.lines import ANY_RANK, Lesser
from admitter.engine.preemption.receipt import Grounds
from admitter.engine.preemption.within_queue import WithinOwnQueue
from admitter.engine.quota.cells import FlavorsTogether
from admitter.engine.quota.fair_shares import ENDLESS, NO_SHARE
from admitter.engine.quota.ledger import Reservation
from admitter.engine.quota.namespace_shares import ENDLESS as NOBODY_GIVES
from admitter.engine.quota.tree import Node

Keys = frozenset[FlavorResource]

MOST_SPARED: Final = 50
MOST_STEPS: Final = 2000
"""So many candidates are looked at again at most, if the first attempt came to nothing."""


def _pools(groups: Iterable[Group]) -> Iterator[Pool]:
    """The queues that have candidates in some groups."""
    return (pool for group in groups for pool in group.pools())


@dataclass(slots=True)
class _Attempt:
    """What came of one attempt to make room.

    Attributes:
        victims: the workloads that would have to go; empty if it came to nothing.
        removed: the UIDs of workloads that were taken out in vain.
        refused: whether a candidate might not go.
        steps: how many were looked at.
    """

    victims: list[Reservation] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    refused: bool = False
    steps: int = 0


class Search:
    """Looks for victims of one preemptor.

    Attributes:
        barred: whether there were none for no other reason than what the own queue uses. The workload must
            ask for a single resource, in a queue with one cohort above it at most.
        share: with fair sharing, how large a share another queue of that cohort must have to give anything.
        giving: where namespaces share the queue, how large a share one of them must keep to give anything.
        due: when the first may be preempted of those that have not run long enough; inf if there are none.
        grounds: the rule by which victims of other queues were found.
        withheld: what of the usage there is room for, but not beside what others claim.
        bound: whether victims were found, and the preemptor would not leave what others claim, or relies on
            pending evictions for others.
    """

    def __init__(self, scene: PreemptionContext, queue: Queue, preemptor: Workload, usage: Usage) -> None:
        """Call `victims` to search.

        Args:
            scene: what victims are looked for in.
            queue: the preemptor's queue.
            preemptor: the workload to be admitted.
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
        self.bound = False
        self.withheld = tuple(
            (key, amount)
            for (key, amount), (cell, _) in zip(self._usage, self._wanted, strict=True)
            if key not in self._contested and cell.fits_but_for_claims(amount)
        )
        self._together: dict[FlavorsTogether, int] = {}
        for cell, amount in self._wanted:
            if cell.together is not None:
                self._together[cell.together] = self._together.get(cell.together, 0) + amount
        self._limited = frozenset(
            key[1]
            for (key, _), (cell, _) in zip(self._usage, self._wanted, strict=True)
            if cell.together is not None and not self._within(cell.together)
        )
        self._ground = CandidateContext(tree, self._book, self._contested)
        self.due = inf
        self._found: list[Group] = []
        self.barred = False
        self.share = ENDLESS
        self.giving = NOBODY_GIVES
        self.grounds = Grounds.RECLAIM
        self._root = tree.root(queue.name)
        self._shared = tree.fair(self._root)
        self._sides = tree.path(("queue", queue.name))[:-1]
        self._displaced = scene.ledger.is_displaced(preemptor.uid)

    def victims(self) -> list[Reservation]:
        """A smallest set of victims; empty if no set of allowed ones lets the preemptor in."""
        if not self._contested and not self._limited:
            self.barred, self.share = len(self._usage) == 1, NO_SHARE  # it borrows what others claim
            return []
        own = self._noted(self._own())
        self.barred = not own and len(self._usage) == 1
        reclaimed = self._by_reclaim(own)
        if any(victim.queue != self._queue.name for victim in reclaimed):
            return reclaimed
        # What takes back nothing loses nothing if others give first: their turn is before the own queue's.
        return self._by_borrowing(own) or reclaimed or self._minimal_victims(own, WithinOwnQueue())

    def _by_reclaim(self, own: list[Group]) -> list[Reservation]:
        """Take back what the queue lent, or cohorts above it."""
        if self._queue.preemption.reclaim is Reclaim.NEVER:
            return []
        rule = reclaim.Reclaiming(self._tree, self._book, self._queue, self._usage, self._contested)
        others: list[Group] = []
        for side in self._sides:
            given = [*own, *others]
            if not rule.could_hold(side, {}) and not (given and rule.could_hold(side, self._sums(given))):
                continue
            self.barred, self.share = False, NO_SHARE
            lesser = reclaim.lesser(self._queue.preemption.reclaim, self._preemptor)
            if rule.borrows_besides(side):
                by_share = self._tree.preempting_to_borrow(self._root, BorrowWithin.GUARANTEED_SHARE)
                if self._shared or by_share or not rule.borrows_only_the_unowned(side):
                    continue
                if self._tree.preempting_to_borrow(self._root, BorrowWithin.LOWER_PRIORITY):
                    # What borrows besides what can be lost again to higher priority may only evict lower
                    # priority: so every sequence of such evictions rises in priority, and comes to an end.
                    lesser = Lesser(min(lesser.below, self._preemptor.priority))
            others += self._others(side, lesser)
        return self._minimal_victims([*others, *own], rule) if others else []

    def _by_borrowing(self, own: list[Group]) -> list[Reservation]:
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
                return []  # whatever goes elsewhere, its own queue uses too much for it
            self.barred = False
            return self._by_rule(own, rule, ANY_RANK)
        self.grounds, self.barred = Grounds.BORROW, False
        lesser = borrow.lesser(policy, self._preemptor)
        return self._by_rule(own, borrow.Borrowing(self._tree, self._guaranteed().lacks), lesser)

    def _by_rule(self, own: list[Group], rule: PreemptionRule, lesser: Lesser) -> list[Reservation]:
        others: list[Group] = []
        for side in self._sides:
            others += self._others(side, lesser)
        return self._minimal_victims([*others, *own], rule) if others else []

    def _guaranteed(self) -> guaranteed.GuaranteedSharing:
        return guaranteed.GuaranteedSharing(self._tree, self._book, self._queue, self._usage)

    def _by_share(self, own: list[Group]) -> list[Reservation]:
        held = next((pool.held for pool in _pools(own)), {})
        rule = fair.FairPreemption(self._tree, self._book, self._queue, self._usage, held)
        self.share = min(self.share, rule.share)
        lesser = fair.lesser(self._queue.preemption, self._preemptor)
        others: list[Group] = []
        for side in self._sides:
            # Once a relative has given, this side's share is smaller for those that are farther away.
            gives = (lambda _: True) if others else rule.could_give
            others += self._others(side, lesser, gives)
        return self._minimal_victims([*others, *own], rule) if others else []

    def _own(self) -> list[Group]:
        policy = self._queue.preemption.within
        if policy is WithinQueue.NEVER:
            return []
        node, sharing = ("queue", self._queue.name), self._ledger.sharing.get(self._queue.name)
        lesser = within_queue.lesser(policy, self._preemptor)
        if not self._displaced and self._queue.name not in self._tree.apart:
            lines = self._own_lines()
            empty = first_of(lines, lesser) is None
            return [] if empty else [InLine(self._ground, self._queue.name, node, lines, lesser)]
        pool = Pool(self._ground, self._queue.name, node)
        allows = self._eligible(lesser)
        mine = self._preemptor.namespace if sharing is not None else None
        for reservation in filter(allows, self._ledger.candidates(self._queue.name, mine)):
            pool.add(reservation)
        if sharing is not None:  # between namespaces shares decide
            eligible = self._eligible(ANY_RANK)
            self.giving = namespaces.share_at_least(sharing, self._preemptor, self._usage, pool.held)
            for name in namespaces.givers(sharing, self._preemptor, self.giving):
                for reservation in filter(eligible, self._ledger.candidates(self._queue.name, name)):
                    pool.add(reservation)
        return [pool] if pool.held else []

    def _own_lines(self) -> QueueLines:
        """What of the own queue uses what is contested, or of what too much is in use in all flavors."""
        lines, limited = self._ledger.lines.of(self._queue.name), self._limited
        if limited:
            return {k: line for k, line in lines.items() if k in self._contested or k[1] in limited}
        return {key: lines[key] for key in self._contested if key in lines}

    def _eligible(self, lesser: Lesser) -> Callable[[Reservation], bool]:
        """The workloads that may be evicted, by rules on each alone."""

        def eligible(reservation: Reservation) -> bool:
            workload = reservation.workload
            if workload is None or not self._contends(reservation) or not lesser.has(workload):
                return False
            if self._displaced and not self._stays_out(reservation):
                return False
            runtime = self._tree.victim_terms(reservation.queue).runtime
            if runtime and reservation.since + runtime > self._scene.now:
                self.due = min(self.due, reservation.since + runtime)
                return False
            return True

        return eligible

    def _stays_out(self, victim: Reservation) -> bool:
        """Whether a victim could not take its place back from its preemptor.

        That is all that a displaced workload may evict, so evictions in turns come to an end
        (docs/design/preemption.md).
        """
        if victim.queue != self._queue.name:
            owner = self._tree.queues.get(victim.queue)
            return owner is None or not owner.preemption.allowed
        assert victim.workload is not None, "only workloads are evicted"
        mine = not self._queue.by_namespace or victim.namespace == self._preemptor.namespace
        return mine and self._preemptor.rank < victim.workload.rank

    def _others(self, side: Node, lesser: Lesser, gives: Callable[[str], bool] | None = None) -> list[Group]:
        """Candidates of queues that part from the preemptor's at this place on its side.

        Args:
            side: its queue, or a cohort above it.
            lesser: which may be evicted, by priority.
            gives: which of the queues that borrow what is contested may have to give; None: all.
        """
        groups: list[Group] = []
        # What is displaced may evict less of every queue: then all are looked at in full.
        exceeds, apart = self._exceeding(side), self._borrowers(side) if self._displaced else self._tree.apart
        # Shares change while others are taken out: where they decide, they do so before that.
        giving = None if gives is None else set(filter(gives, self._borrowers(side)))
        for name in sorted(self._borrowers(side, apart) if giving is None else apart & giving):
            if self._tree.queues[name].pool:
                standing = self._scene.capacity.planned(name)
                groups.append(OverQuota(self._ground, name, side, standing, self._eligible(lesser)))
            elif exceeds(name):
                pool = Pool(self._ground, name, side)
                for reservation in filter(self._eligible(lesser), self._ledger.candidates(name)):
                    pool.add(reservation)
                groups.append(pool)
        groups = [group for group in groups if isinstance(group, Pool) and group.held]
        if self._displaced:
            return self._noted(groups)

        def among(name: str) -> bool:
            given = self._is_beside(side, name) if giving is None else name in giving
            return given and name not in apart and exceeds(name)

        queues = QueuePools(self._ground, side, self._ledger.lines, lesser, among)
        return self._noted([*groups, queues] if queues else groups)

    def _exceeding(self, side: Node) -> Callable[[str], bool]:
        """Says whether a queue on another side, and all between it and the node above both, exceed their own.

        In anything that is contested.
        """
        parents, top = self._tree.parents(), self._tree.parents().get(side)
        known: dict[Node | None, Keys] = {top: self._contested}

        def keys(node: Node | None) -> Keys:
            if node not in known:
                assert node is not None, "the node above both is above it"
                above = keys(parents[node])
                known[node] = frozenset(key for key in above if self._book.at(node, key).borrows())
            return known[node]

        borrowers = {key: self._book.borrowers(self._root, key) for key in self._contested}
        holders = self._tree.holders(top) if top is not None else ()
        found = {node: [borrowers[key] for key in keys(node)] for node in holders}
        return lambda name: any(name in borrowing for borrowing in found[parents["queue", name]])

    def _borrowers(self, side: Node, among: AbstractSet[str] | None = None) -> set[str]:
        """Queues that part from the preemptor's at this place on its side, and borrow what is contested."""
        found: set[str] = set()
        for key in self._contested:
            names = self._book.borrowers(self._root, key)
            found.update(names if among is None else names & among)
        return {name for name in found if self._is_beside(side, name)}

    def _is_beside(self, side: Node, queue: str) -> bool:
        """Whether a queue is below the node above a side, and not below that."""
        path = self._tree.path(("queue", queue))
        return side not in path and self._tree.parents().get(side) in path

    def _noted(self, groups: list[Group]) -> list[Group]:
        self._found += groups
        return groups

    @property
    def evictable(self) -> Counter[FlavorResource]:
        """What all candidates that were found use of what is asked for, allowed together or not."""
        return self._sums(self._found)

    def _sums(self, groups: Iterable[Group]) -> Counter[FlavorResource]:
        """What candidates use of what is asked for."""
        sums: Counter[FlavorResource] = Counter()
        for pool in _pools(groups):
            for key, _ in self._usage:
                sums[key] += pool.amount(key)
        return sums

    def considered(self) -> set[str]:
        """The UIDs of all candidates that were found."""
        return {candidate.reservation.holder for group in self._found for candidate in group.members()}

    def _enough(self, groups: Sequence[Group]) -> bool:
        """Whether candidates could free what is lacking: a cheap look before the search."""
        for (key, amount), (cell, _) in zip(self._usage, self._wanted, strict=True):
            lacking = amount - cell.vacant()
            pools = _pools(groups)
            while lacking > 0:
                pool = next(pools, None)
                if pool is None:
                    return False
                lacking -= pool.at_most(key)
        return True

    def _contends(self, reservation: Reservation) -> bool:
        own = reservation.queue == self._queue.name
        return any(
            amount and (key in self._contested or (own and key[1] in self._limited))
            for key, amount in reservation.usage
        )

    def _minimal_victims(self, pools: Sequence[Group], rule: PreemptionRule) -> list[Reservation]:
        """The smallest set in the rule's order with which the preemptor fits; empty if there is none.

        The first victim may be why others may not go: then it is tried without one of them, and without
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
            for left_out in less:
                steps -= found.steps
                if steps < 0:
                    break
                found = self._attempt(pools, rule, left_out)
                if found.victims:
                    break
        return found.victims

    def _attempt(
        self, pools: Sequence[Group], rule: PreemptionRule, left_out: AbstractSet[str]
    ) -> "_Attempt":
        """Take out allowed victims until the preemptor fits, but for some; leaves all as it was."""
        made = _Attempt()
        removed: list[Candidate] = []
        try:
            for candidate in rule.order(pools):
                made.steps += 1
                if candidate.reservation.holder in left_out:
                    continue
                if not rule.may_go(candidate):
                    made.refused = True
                    continue
                candidate.move(-1)
                rule.moved(candidate, -1)
                removed.append(candidate)
                if self._fits() and rule.holds():
                    removed = self._fill_back(removed, rule)
                    if self._leaves_claims(removed) and self._is_sure():
                        made.victims = [victim.reservation for victim in removed]
                    else:
                        self.bound = True
                    return made
            made.removed = [candidate.reservation.holder for candidate in removed]
            return made
        finally:
            for candidate in removed:
                candidate.move(1)
                rule.moved(candidate, 1)

    def _fill_back(self, removed: list[Candidate], rule: PreemptionRule) -> list[Candidate]:
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
            removed = needed[::-1]  # with other shares than before another victim may turn out unneeded

    def _fits(self) -> bool:
        return all(amount <= cell.vacant() for cell, amount in self._wanted) and all(
            self._within(together) for together in self._together
        )

    def _leaves_claims(self, removed: list[Candidate]) -> bool:
        """Whether the preemptor newly borrows nothing that others own and wait for.

        That is no reason to evict more: what it frees would be theirs. Claims follow from what is planned,
        not from what is tried: they are made anew with what was taken out put back.
        """
        if not any(cell.newly_borrows(amount) for cell, amount in self._wanted):
            return True
        if self._book.renewal.due is not None:
            for candidate in removed:
                candidate.move(1)
            self._book.renewal.run()
            for candidate in removed:
                candidate.move(-1)
        return not any(cell.fits_but_for_claims(amount) for cell, amount in self._wanted)

    def _is_sure(self) -> bool:
        """Whether the preemptor fits even if pending evictions for others are cancelled in the end.

        Else its victims may end in vain: it waits until those evictions are over (docs/design/preemption.md).
        """
        rooms = self._ledger.rooms_of_pending_evictions(self._root)
        cells = [
            (self._book.cell(queue, key), amount) for queue, usage in rooms for key, amount in usage if amount
        ]
        for cell, amount in cells:
            cell.add(amount)
        found = self._fits()
        for cell, amount in cells:
            cell.add(-amount)
        return found

    def _within(self, together: FlavorsTogether) -> bool:
        """Whether the preemptor fits in a limit on all flavors together."""
        return self._together[together] <= together.limit - together.used
