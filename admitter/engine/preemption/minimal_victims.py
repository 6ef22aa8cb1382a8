"""The smallest set of candidates that makes room for a preemptor, in the order of the rule that allows it.

Candidates are taken out of the plan one by one until the preemptor fits; then each is put back that turns
out not to be needed, costliest first. In the end all of it is undone.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from admitter.engine.preemption.candidates import Candidate, Group, PreemptionRule
from admitter.engine.preemption.demand import Demand
from admitter.engine.quota.ledger import Reservation

MOST_LEFT_OUT: Final = 50
MOST_STEPS: Final = 2000
"""So many candidates are looked at again at most, if the first attempt came to nothing."""


class Victims(NamedTuple):
    """What may be evicted for a preemptor."""

    # of the workloads that would have to go; empty if there are none
    reservations: Sequence[Reservation] = ()
    # whether there would be some, but the preemptor would not leave what others claim, or relies on pending
    # evictions for others
    bound: bool = False


class _Attempt(NamedTuple):
    """What came of one attempt to make room: whether one might not go, and those taken out in vain."""

    victims: Victims
    steps: int
    refused: bool
    removed: Sequence[str] = ()


def minimal_victims(demand: Demand, groups: Sequence[Group], rule: PreemptionRule) -> Victims:
    """The smallest set in the rule's order with which the preemptor fits.

    The first victim may be why others may not go: then it is tried without one of them, and without
    the first two, three and so on.
    """
    if not groups or not demand.could_fit(groups):
        return Victims()
    made = _attempt(demand, groups, rule, frozenset())
    victims, steps, bound = made.victims, MOST_STEPS, made.victims.bound
    if not victims.reservations and made.refused:
        removed = made.removed
        less = [frozenset({uid}) for uid in removed]
        less += [frozenset(removed[:count]) for count in range(2, min(len(removed) + 1, MOST_LEFT_OUT))]
        for left_out in less:
            steps -= made.steps
            if steps < 0:
                break
            made = _attempt(demand, groups, rule, left_out)
            victims, bound = made.victims, bound or made.victims.bound
            if victims.reservations:
                break
    return Victims(victims.reservations, bound)


def _attempt(
    demand: Demand, groups: Sequence[Group], rule: PreemptionRule, left_out: AbstractSet[str]
) -> _Attempt:
    """Take out allowed candidates until the preemptor fits, but for some; leaves all as it was."""
    steps, refused = 0, False
    removed: list[Candidate] = []
    try:
        for candidate in rule.order(groups):
            steps += 1
            if candidate.reservation.holder in left_out:
                continue
            if not rule.may_go(candidate):
                refused = True
                continue
            candidate.move(-1)
            rule.moved(candidate, -1)
            removed.append(candidate)
            if demand.fits() and rule.holds():
                removed = fill_back(demand, removed, rule)
                sure = demand.leaves_claims(removed) and demand.is_sure()
                found = [victim.reservation for victim in removed] if sure else []
                return _Attempt(Victims(found, bound=not sure), steps, refused)
        return _Attempt(Victims(), steps, refused, [candidate.reservation.holder for candidate in removed])
    finally:
        for candidate in removed:
            candidate.move(1)
            rule.moved(candidate, 1)


def fill_back(demand: Demand, removed: list[Candidate], rule: PreemptionRule) -> list[Candidate]:
    """Put back what is not needed; returns the rest, in order."""
    while True:
        needed = []
        for candidate in reversed(removed):
            candidate.move(1)
            rule.moved(candidate, 1)
            if not (demand.fits() and rule.holds()):
                candidate.move(-1)
                rule.moved(candidate, -1)
                needed.append(candidate)
        if len(needed) == len(removed):
            return removed
        removed = needed[::-1]  # with other shares than before another victim may turn out unneeded
