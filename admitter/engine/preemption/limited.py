"""Limits on the evictions of all workloads of a queue, or below a Cohort, as a rule on top of another one.

That says which candidates may be taken out; of a queue, or below a Cohort, no more go than its limit has
left (docs/design/eviction-limits.md).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from math import inf

from admitter.engine.preemption.candidates import Candidate, Group, PreemptionRule
from admitter.engine.preemption.context import PreemptionContext
from admitter.engine.preemption.demand import Demand
from admitter.engine.preemption.minimal_victims import MOST_STEPS, Victims, minimal_victims
from admitter.engine.quota.eviction_limits import LimitOf, LimitReached, Window, opens
from admitter.engine.quota.ledger import Reservation
from admitter.engine.quota.tree import Node


class Limited(PreemptionRule):
    """Another rule, within what limits have left."""

    def __init__(self, rule: PreemptionRule, scene: PreemptionContext, demand: Demand) -> None:
        """Begin with nothing taken out."""
        self._rule = rule
        self._scene = scene
        self._demand = demand
        self._left: dict[Node, int] = {}
        # when the first limit leaves more that has kept a candidate, in seconds since the epoch
        self.due = inf
        self.kept = False  # whether one has
        # whether of the first `MOST_STEPS` those go first that hold most of what is contested
        self.largest_first = False

    def order(self, pools: Iterable[Group]) -> Iterator[Candidate]:
        """Those that limits leave, after those that are out already."""
        candidates = self._rule.order(pools)
        if self.largest_first:
            candidates = iter(sorted(islice(candidates, MOST_STEPS), key=self._size))
        for candidate in candidates:
            kept_by = self._kept_by(candidate)
            if kept_by is None:
                yield candidate
            elif kept_by == self._demand.root:
                return  # it keeps all others too

    def _size(self, candidate: Candidate) -> tuple[bool, int]:
        """Other queues first, then those that hold most."""
        contested = self._demand.contested
        held = sum(amount for key, amount in candidate.reservation.usage if key in contested)
        return (candidate.pool.own, -held)

    def _kept_by(self, candidate: Candidate) -> Node | None:
        """The limit that keeps a candidate: of several that of the place that is highest in the tree."""
        found = None
        for node in self._scene.tree.limiting(candidate.reservation.queue):
            if node not in self._left:
                self._left[node] = self._window(node).left
            if self._left[node] <= 0:
                window = self._window(node)
                self.due = min(self.due, window.opens(max(0, window.left) + 1))
                self.kept, found = True, node
        return found

    def _window(self, node: Node) -> Window:
        return self._scene.ledger.evictions.window(node, self._scene.now)

    def may_go(self, candidate: Candidate) -> bool:
        return self._rule.may_go(candidate)

    def holds(self) -> bool:
        return self._rule.holds()

    def moved(self, candidate: Candidate, sign: int) -> None:
        for node in self._scene.tree.limiting(candidate.reservation.queue):
            self._left[node] += sign
        self._rule.moved(candidate, sign)


def victims_within_limits(
    scene: PreemptionContext, demand: Demand, groups: Sequence[Group], rule: PreemptionRule
) -> tuple[Victims, float]:
    """As `minimal_victims`, within limits; and when one of these leaves more, in seconds since the epoch.

    If they keep the preemptor out it is tried again with those first that hold most: one large victim may
    do where three small ones would be too many.
    """
    if not scene.limited or not scene.tree.eviction_limits:
        return minimal_victims(demand, groups, rule), inf
    limited = Limited(rule, scene, demand)
    found = minimal_victims(demand, groups, limited)
    if not found.reservations and limited.kept:
        scene.kept_by_limits = True
        limited.largest_first = True
        found = minimal_victims(demand, groups, limited)
    return found, limited.due


def reached(scene: PreemptionContext, victims: Sequence[Reservation]) -> LimitReached | None:
    """The limit that keeps some victims from being evicted now for the longest time; None: there is none."""
    found, numbers = list[LimitReached](), dict[Node, int]()
    for victim in victims:
        limit, workload = scene.tree.queues[victim.queue].eviction_limit, victim.workload
        until = opens(limit, workload.evictions) if workload is not None else 0.0
        if limit is not None and until > scene.now:
            found.append(LimitReached(victim.queue, limit, until))
        for node in scene.tree.limiting(victim.queue):
            numbers[node] = numbers.get(node, 0) + 1
    for node, number in numbers.items():
        window = scene.ledger.evictions.window(node, scene.now)
        if number > window.left:
            until = window.opens(number)
            found.append(LimitReached(node[1], window.limit, until, LimitOf(node[0])))
    return max(found, key=lambda each: (each.until, each.of, each.queue), default=None)
