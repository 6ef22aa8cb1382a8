"""The elastic rule again, as plain as docs/design/elastic-quota.md: all is recomputed, all sets are tried.

It shares no code with the engine. Amounts are by resource name; what runs is a `Runs`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import inf

Amounts = Mapping[str, int]


@dataclass(frozen=True)
class Terms:
    """A quota: what it names in `least` counts; a maximum may be absent."""

    least: Amounts
    most: Amounts
    runtime: float = 0
    grace: float = 0


@dataclass(frozen=True)
class Runs:
    """A holder of quota: so many pods of one size; `born` has the times of those that are there."""

    uid: str
    quota: str
    priority: int
    count: int
    size: Amounts
    since: float
    born: tuple[float, ...] = ()

    def uses(self, resource: str) -> int:
        return self.count * self.size.get(resource, 0)


@dataclass(frozen=True)
class Elastic:
    """Quotas, and the Workloads that hold something of them."""

    terms: Mapping[str, Terms]
    running: tuple[Runs, ...]
    now: float = inf

    def without(self, gone: Iterable[Runs]) -> "Elastic":
        left = set(map(id, gone))
        return Elastic(self.terms, tuple(r for r in self.running if id(r) not in left), self.now)

    def used(self, quota: str, resource: str) -> int:
        return sum(r.uses(resource) for r in self.running if r.quota == quota)

    def least(self, quota: str, resource: str) -> int:
        return self.terms[quota].least.get(resource, 0)

    def there_is(self, resource: str) -> int:
        return sum(terms.least.get(resource, 0) for terms in self.terms.values())

    def free(self, resource: str) -> int:
        return self.there_is(resource) - sum(r.uses(resource) for r in self.running)

    def over(self, quota: str) -> set[str]:
        """Workloads with pods over quota: by creation, size and name; those that are not there yet last."""
        rows: list[tuple[float, float, tuple[int, ...], str, str]] = []
        named = sorted(self.terms[quota].least)
        for r in self.running:
            if r.quota == quota:
                size = tuple(r.size[resource] for resource in named)
                rows += [(born, 0.0, size, f"{r.uid}-{n}", r.uid) for n, born in enumerate(r.born)]
                rows += [(inf, r.since, size, r.uid, r.uid)] * (r.count - len(r.born))
        total = [0] * len(named)
        found: set[str] = set()
        for _, _, size, _, uid in sorted(rows):
            total = [before + more for before, more in zip(total, size, strict=True)]
            beyond = any(each > self.least(quota, r) for each, r in zip(total, named, strict=True))
            if beyond or found:
                found.add(uid)
        return found

    def asked(self, who: Runs) -> dict[str, int]:
        return {r: who.uses(r) for r in self.terms[who.quota].least if who.uses(r)}

    def fits(self, who: Runs) -> bool:
        most = self.terms[who.quota].most
        return all(
            amount <= self.free(r) and self.used(who.quota, r) + amount <= most.get(r, inf)
            for r, amount in self.asked(who).items()
        )

    def keeps(self, owner: Runs, who: Runs) -> bool:
        """Whether one that waits for what its quota has may keep another one from borrowing that."""
        owned = all(
            self.used(owner.quota, r) + n <= self.least(owner.quota, r) for r, n in self.asked(owner).items()
        )
        borrowed = {
            r for r, n in self.asked(who).items() if self.used(who.quota, r) + n > self.least(who.quota, r)
        }
        return owner.quota != who.quota and owned and bool(borrowed & self.asked(owner).keys())

    def contested(self, who: Runs) -> set[str]:
        return {r for r, amount in self.asked(who).items() if amount > self.free(r)}

    def guaranteed(self, quota: str, resource: str) -> Fraction:
        """Its part of what is unused."""
        spare = sum(max(0, self.least(q, resource) - self.used(q, resource)) for q in self.terms)
        there_is = self.there_is(resource)
        return Fraction(self.least(quota, resource) * spare, there_is) if there_is else Fraction(0)

    def over_use(self, quota: str, resource: str) -> int:
        return self.used(quota, resource) - self.least(quota, resource)

    def with_in(self, who: Runs) -> "Elastic":
        return Elastic(self.terms, (*self.running, who), self.now)

    def candidates(self, who: Runs) -> list[Runs]:
        """Owners of over-quota pods elsewhere that have run for long enough and use what is contested."""
        contested = self.contested(who)
        over = {name: self.over(name) for name in self.terms if name != who.quota}
        return [
            r
            for r in self.running
            if r.quota != who.quota
            and r.uid in over[r.quota]
            and r.since + self.terms[r.quota].runtime <= self.now
            and any(r.uses(resource) for resource in contested)
        ]

    def may_reclaim(self, who: Runs, victims: list[Runs]) -> bool:
        """Whether a quota within its own takes back what others borrow, one after the other."""
        if any(self.used(who.quota, r) + n > self.least(who.quota, r) for r, n in self.asked(who).items()):
            return False
        contested = self.contested(who)
        for number, victim in enumerate(victims):
            state = self.without(victims[:number])
            if any(state.over_use(victim.quota, r) <= 0 for r in contested if victim.uses(r)):
                return False
        return self.without(victims).fits(who)

    def may_take_its_part(self, who: Runs, victims: list[Runs], *, keep: bool = True) -> bool:
        """Whether a quota beyond its own takes from those beyond their part; with `keep` in all."""
        contested = self.contested(who)
        after = self.without(victims).with_in(who)
        mine = self.asked(who)
        if any(after.over_use(who.quota, r) > after.guaranteed(who.quota, r) for r in mine):
            return False
        for number, victim in enumerate(victims):
            before = self.without(victims[:number])
            for r in contested:
                over = before.over_use(victim.quota, r)
                if victim.uses(r) and over <= after.guaranteed(victim.quota, r):
                    return False
            kept = self.terms[victim.quota].least if keep else contested
            if any(victim.uses(r) and before.over_use(victim.quota, r) < victim.uses(r) for r in kept):
                return False
        return self.without(victims).fits(who)

    def sets(self, who: Runs, most: int = 5) -> Iterator[list[Runs]]:
        """Sets of victims in other quotas that let a workload in; small ones first."""
        candidates = self.candidates(who)
        for size in range(1, min(most, len(candidates)) + 1):
            for victims in map(list, combinations(candidates, size)):
                if self.may_reclaim(who, victims) or self.may_take_its_part(who, victims):
                    yield victims

    def own_sets(self, who: Runs, most: int = 5) -> Iterator[list[Runs]]:
        """Sets of victims of lower priority in its own quota."""
        lower = [
            r
            for r in self.running
            if r.quota == who.quota
            and r.priority < who.priority
            and r.since + self.terms[r.quota].runtime <= self.now
        ]
        for size in range(1, min(most, len(lower)) + 1):
            for victims in map(list, combinations(lower, size)):
                if self.without(victims).fits(who):
                    yield victims
