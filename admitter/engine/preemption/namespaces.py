"""Preempting between namespaces that share a queue (docs/design/namespace-fairness.md).

In the preemptor's own queue shares replace priority between namespaces: with the preemptor in and all
victims out, its namespace has a smaller share than every one that loses something, or an equal one that
grew by it. Within its namespace priority decides, as in any queue. What other queues lose is up to
the rule that takes it from them.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush

from admitter.engine.model import FlavorResource, Usage, Workload
from admitter.engine.preemption.candidates import Candidate, Group, PreemptionRule, place
from admitter.engine.quota.namespace_shares import NO_SHARE, NamespaceShare, Sharing, by_resource

_Turn = tuple[bool, bool, NamespaceShare, str]


def share_at_least(
    sharing: Sharing, preemptor: Workload, usage: Usage, own: Mapping[FlavorResource, int]
) -> NamespaceShare:
    """The smallest share that the preemptor's namespace could end up with.

    Possible victims of that namespace hold `own`.
    """
    more = by_resource(usage)
    for (_, resource), amount in own.items():
        more[resource] -= amount
    return sharing.with_(preemptor.namespace, more)


def givers(sharing: Sharing, preemptor: Workload, share: NamespaceShare) -> list[str]:
    """Other namespaces that might have to give, if the preemptor's can do with such a share."""
    others = (name for name in sharing.users() if name != preemptor.namespace)
    return [name for name in others if sharing.could_give(name, share)]


class AmongNamespaces(PreemptionRule):
    """Another rule, with shares of namespaces in the preemptor's own queue."""

    def __init__(self, rule: PreemptionRule, sharing: Sharing, preemptor: Workload, usage: Usage) -> None:
        """Begin with nothing taken out; `rule` is for what other queues lose."""
        self._rule = rule
        self._sharing = sharing
        self._namespace = preemptor.namespace
        self._asked = by_resource(usage)
        self._before = sharing.of(preemptor.namespace)
        self._least = NO_SHARE
        self._out: dict[str, Counter[str]] = {}
        self._lost: Counter[str] = Counter()

    def order(self, pools: Iterable[Group]) -> Iterator[Candidate]:
        """Other queues first; in the own one the namespace with the largest share, its own last."""
        every = list(pools)
        others = [pool for pool in every if not pool.own]
        yield from self._rule.order(others) if others else ()
        lines: dict[str, deque[Candidate]] = {}
        for candidate in sorted((c for pool in every if pool.own for c in pool.members()), key=place):
            lines.setdefault(candidate.reservation.namespace, deque()).append(candidate)
        own = self._asked.copy()
        for candidate in lines.get(self._namespace, ()):
            own.subtract(by_resource(candidate.reservation.usage))
        self._least = self._sharing.with_(self._namespace, own)
        heap = [self._turn(name) for name in lines]
        heapify(heap)
        while heap:
            turn = heappop(heap)
            name = turn[-1]
            if name != self._namespace and not self._could_give(name):
                yield lines[name].popleft()  # to be refused; so would all others be
                continue
            if turn == self._turn(name):
                yield lines[name].popleft()
            if lines[name]:  # its turn only moves back: its share gets smaller
                heappush(heap, self._turn(name))

    def may_go(self, candidate: Candidate) -> bool:
        """Whether a namespace would still have no smaller share than the preemptor's could become."""
        name = candidate.reservation.namespace
        if not candidate.pool.own or name == self._namespace:
            return self._rule.may_go(candidate)
        self._take(candidate, 1)
        left = self._share(name)
        fair = left > self._least or (left == self._least and self._before < left)
        self._take(candidate, -1)
        return fair and self._rule.may_go(candidate)

    def holds(self) -> bool:
        """Whether it is fair to all namespaces that lose something, and to other queues."""
        losers = (name for name, lost in self._lost.items() if lost and name != self._namespace)
        return self._rule.holds() and all(self._fair_to(name) for name in losers)

    def moved(self, candidate: Candidate, sign: int) -> None:
        if candidate.pool.own:
            self._take(candidate, -sign)
        self._rule.moved(candidate, sign)

    def _take(self, candidate: Candidate, sign: int) -> None:
        name = candidate.reservation.namespace
        self._lost[name] += sign
        out = self._out.setdefault(name, Counter())
        for resource, amount in by_resource(candidate.reservation.usage).items():
            out[resource] -= sign * amount

    def _turn(self, name: str) -> _Turn:
        """When a namespace has to give: the own one last, of others the largest share first."""
        endless, share = self._share(name)
        return (name == self._namespace, not endless, (False, -share), name)

    def _share(self, name: str) -> NamespaceShare:
        return self._sharing.with_(name, self._out.get(name, Counter()))

    def _could_give(self, name: str) -> bool:
        """Whether a namespace could give anything more, if all of the preemptor's own gave too."""
        more = self._sharing.least(name, -1)
        more.update(self._out.get(name, {}))
        return self._sharing.with_(name, more) >= self._least

    def _fair_to(self, name: str) -> bool:
        more = self._asked.copy()
        more.update(self._out.get(self._namespace, {}))
        mine, theirs = self._sharing.with_(self._namespace, more), self._share(name)
        return not mine[0] and (mine < theirs or (mine == theirs and self._before < mine))
