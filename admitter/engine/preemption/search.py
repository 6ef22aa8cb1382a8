"""Finds a smallest set of workloads to evict so that the preemptor fits: by which rules, in which order."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from admitter.engine.model import FlavorResource, Usage, Workload
from admitter.engine.policy import BorrowWithin, Queue, Reclaim
from admitter.engine.preemption import borrow, fair, guaranteed, namespaces, reclaim
from admitter.engine.preemption.candidates import Group, PreemptionRule, pools_of
from admitter.engine.preemption.context import PreemptionContext
from admitter.engine.preemption.demand import Demand
from admitter.engine.preemption.finder import CandidateFinder
from admitter.engine.preemption.glance import InVain
from admitter.engine.preemption.limited import victims_within_limits
from admitter.engine.preemption.minimal_victims import Victims
from admitter.engine.preemption.receipt import Grounds
from admitter.engine.quota.fair_shares import ENDLESS, NO_SHARE, Share
from admitter.engine.quota.ledger import Reservation
from admitter.engine.quota.lines import ANY_RANK, Lesser
from admitter.engine.quota.namespace_shares import ENDLESS as NO_NAMESPACE_GIVES
from admitter.engine.quota.namespace_shares import NamespaceShare
from admitter.engine.quota.tree import Node


class SearchResult(NamedTuple):
    """Victims, or what a refusal may wait for."""

    victims: Sequence[Reservation]  # a smallest set; empty if no set of allowed ones lets the preemptor in
    grounds: Grounds  # the rule by which victims of other queues were found
    usage: Usage
    candidates: Sequence[Group]  # all that were found, rule by rule
    # whether there are no victims for no other reason than what the own queue uses. The workload must ask for
    # a single resource, in a queue with one cohort above it at most
    barred: bool
    # with fair sharing, how large a share another queue of that cohort must have to give anything
    share: Share
    # where namespaces share the queue, how large a share one of them must keep to give anything
    giving: NamespaceShare
    # when the first may be preempted of those that may not be now by time alone; inf if there are none
    due: float
    withheld: Usage  # what of the usage there is room for, but not beside what others claim
    # whether victims were found, and the preemptor would not leave what others claim, or relies on pending
    # evictions for others
    bound: bool

    @property
    def evictable(self) -> Counter[FlavorResource]:
        """What all candidates use of what is asked for, allowed together or not."""
        return _sums(self.candidates, self.usage)


@dataclass(slots=True)
class Outlook:
    """What evictions could have done for a workload that got no nomination.

    It sums up what searches came to: the most that was `evictable`, and all else as in `SearchResult`.
    """

    evictable: dict[FlavorResource, int] = field(default_factory=dict)
    barred: bool = True
    share: Share = ENDLESS
    giving: NamespaceShare = NO_NAMESPACE_GIVES
    due: float = inf
    withheld: dict[tuple[FlavorResource, int], None] = field(default_factory=dict)
    bound: bool = False

    def glanced(self, seen: InVain) -> None:
        """Take in what a glance saw to be in vain."""
        evictable = self.evictable
        for key, amount in seen.evictable.items():
            if amount > evictable.get(key, -1):
                evictable[key] = amount
        self.barred &= seen.barred

    def note(self, result: SearchResult) -> None:
        """Take in what a search has found that came to nothing."""
        for key, amount in result.evictable.items():
            self.evictable[key] = max(self.evictable.get(key, 0), amount)
        self.barred &= result.barred
        self.share = min(self.share, result.share)
        self.giving = min(self.giving, result.giving)
        self.due = min(self.due, result.due)
        self.withheld.update(dict.fromkeys(result.withheld))
        self.bound |= result.bound


class _Attempt(NamedTuple):
    """What came of one rule: `barred` and `share` are as of the result, as far as it is concerned."""

    grounds: Grounds = Grounds.RECLAIM
    candidates: Sequence[Group] = ()
    found: Victims = Victims()
    barred: bool = True
    share: Share = ENDLESS


_NOTHING: Final = _Attempt()
"""Of a rule that the policy excludes."""


def search(scene: PreemptionContext, queue: Queue, preemptor: Workload, usage: Usage) -> SearchResult:
    """Look for victims of one preemptor, which would use so much; the plan is in the end as it was."""
    return _Search(scene, queue, preemptor, usage).result()


class _Search:
    """What the rules have in common for one preemptor."""

    def __init__(self, scene: PreemptionContext, queue: Queue, preemptor: Workload, usage: Usage) -> None:
        self._tree = tree = scene.tree
        self._ledger = scene.ledger
        self._book = scene.ledger.planned
        self._queue = queue
        self._preemptor = preemptor
        self._root = tree.root(queue.name)
        self._shared = tree.fair(self._root)
        self._sides = tree.path(("queue", queue.name))[:-1]
        self._demand = Demand(scene.ledger, self._root, queue.name, usage)
        self._usage = self._demand.usage
        self._finder = CandidateFinder(scene, queue, preemptor, self._demand)
        self._scene = scene
        self._due = inf  # when limits leave more victims

    def result(self) -> SearchResult:
        """Try one rule after the other."""
        demand, single = self._demand, len(self._usage) == 1
        if not demand.contested and not demand.limited:  # it borrows what others claim
            nothing = _Attempt(barred=single, share=NO_SHARE)
            return self._result([], NO_NAMESPACE_GIVES, nothing)
        own, giving = self._finder.own()
        reclaimed = self._by_reclaim(own)
        if any(victim.queue != self._queue.name for victim in reclaimed.found.reservations):
            return self._result(own, giving, reclaimed)
        # What takes back nothing loses nothing if others give first: their turn is before the own queue's.
        borrowed = self._by_borrowing(own)
        if borrowed.found.reservations or reclaimed.found.reservations:
            return self._result(own, giving, borrowed, reclaimed)
        within = _Attempt(found=self._minimal_victims(own, PreemptionRule()))
        return self._result(own, giving, borrowed, reclaimed, within)

    def _result(self, own: Sequence[Group], giving: NamespaceShare, *attempts: _Attempt) -> SearchResult:
        """What all attempts came to: the victims of the first that has any."""
        taken, candidates = attempts[0], list(own)
        barred, share, bound = len(self._usage) == 1 and not own, ENDLESS, False
        for each in attempts:
            if each.found.reservations and not taken.found.reservations:
                taken = each
            candidates += each.candidates
            barred &= each.barred
            share = min(share, each.share)
            bound |= each.found.bound
        found, withheld = taken.found.reservations, self._demand.withheld
        due = min(self._due, self._finder.due)
        seen = (barred, share, giving, due, withheld, bound)
        return SearchResult(found, taken.grounds, self._usage, candidates, *seen)

    def _by_reclaim(self, own: Sequence[Group]) -> _Attempt:
        """Take back what the queue lent, or cohorts above it."""
        if self._queue.preemption.reclaim is Reclaim.NEVER:
            return _NOTHING
        rule = reclaim.Reclaiming(self._tree, self._book, self._queue, self._usage, self._demand.contested)
        others: list[Group] = []
        barred, share = True, ENDLESS
        for side in self._sides:
            given = [*own, *others]
            if not rule.could_hold(side, {}) and not (
                given and rule.could_hold(side, _sums(given, self._usage))
            ):
                continue
            barred, share = False, NO_SHARE
            lesser = self._reclaimable(rule, side)
            if lesser is not None:
                others += self._finder.others(side, lesser)
        return _Attempt(Grounds.RECLAIM, others, self._besides(others, own, rule), barred, share)

    def _reclaimable(self, rule: reclaim.Reclaiming, side: Node) -> Lesser | None:
        """From what a side may take back; None: from nothing, as it would borrow from others besides."""
        lesser = reclaim.lesser(self._queue.preemption.reclaim, self._preemptor)
        if not rule.borrows_besides(side):
            return lesser
        by_share = self._tree.preempting_to_borrow(self._root, BorrowWithin.GUARANTEED_SHARE)
        if self._shared or by_share or not rule.borrows_only_the_unowned(side):
            return None
        if self._tree.preempting_to_borrow(self._root, BorrowWithin.LOWER_PRIORITY):
            # What borrows besides what can be lost again to higher priority may only evict lower
            # priority: so every sequence of such evictions rises in priority, and comes to an end.
            return Lesser(min(lesser.below, self._preemptor.priority))
        return lesser

    def _by_borrowing(self, own: Sequence[Group]) -> _Attempt:
        """Borrow instead of others: by priority, or where it is shared by weight, by that."""
        policy = self._queue.preemption
        if self._shared:
            never = policy.reclaim is Reclaim.NEVER and policy.borrow is not BorrowWithin.LOWER_PRIORITY
            return _NOTHING if never else self._by_share(own)
        if policy.borrow is BorrowWithin.NEVER:
            return _NOTHING
        guarantee = guaranteed.GuaranteedSharing(self._tree, self._book, self._queue, self._usage)
        if policy.borrow is BorrowWithin.GUARANTEED_SHARE:
            if not own and not guarantee.holds():
                return _NOTHING  # whatever goes elsewhere, its own queue uses too much for it
            return self._by_rule(Grounds.GUARANTEED_SHARE, own, guarantee, ANY_RANK)
        rule = borrow.Borrowing(self._tree, guarantee.lacks)
        return self._by_rule(Grounds.BORROW, own, rule, borrow.lesser(policy, self._preemptor))

    def _by_rule(
        self, grounds: Grounds, own: Sequence[Group], rule: PreemptionRule, lesser: Lesser
    ) -> _Attempt:
        others: list[Group] = []
        for side in self._sides:
            others += self._finder.others(side, lesser)
        return _Attempt(grounds, others, self._besides(others, own, rule), barred=False)

    def _by_share(self, own: Sequence[Group]) -> _Attempt:
        held = next((pool.held for pool in pools_of(own)), {})
        rule = fair.FairPreemption(self._tree, self._book, self._queue, self._usage, held)
        share, lesser = rule.share, fair.lesser(self._queue.preemption, self._preemptor)
        others: list[Group] = []
        for side in self._sides:
            # Once a relative has given, this side's share is smaller for those that are farther away.
            gives: Callable[[str], bool] = (lambda _: True) if others else rule.could_give
            others += self._finder.others(side, lesser, gives)
        return _Attempt(Grounds.FAIR_SHARE, others, self._besides(others, own, rule), False, share)

    def _besides(self, others: Sequence[Group], own: Sequence[Group], rule: PreemptionRule) -> Victims:
        """Victims of other queues, and if need be of the own; none if no other queue has candidates."""
        return self._minimal_victims([*others, *own], rule) if others else Victims()

    def _minimal_victims(self, groups: Sequence[Group], rule: PreemptionRule) -> Victims:
        """As the function of that name; between namespaces that share the own queue shares decide."""
        sharing = self._ledger.sharing.get(self._queue.name)
        if sharing is not None and any(group.own for group in groups):
            rule = namespaces.AmongNamespaces(rule, sharing, self._preemptor, self._usage)
        found, due = victims_within_limits(self._scene, self._demand, groups, rule)
        self._due = min(self._due, due)
        return found


def _sums(groups: Iterable[Group], usage: Usage) -> Counter[FlavorResource]:
    """What candidates use of what is asked for."""
    sums: Counter[FlavorResource] = Counter()
    for pool in pools_of(groups):
        for key, _ in usage:
            sums[key] += pool.amount(key)
    return sums
