"""What could be evicted of one resource in one flavor of a queue, in the order in which it goes.

A line is kept up with every reservation that comes or goes, so a search looks at those that it takes, and not
at all that there are.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from math import inf
from operator import itemgetter
from typing import Final, Generic, NamedTuple, TypeVar

from admitter.engine.model import FlavorResource, Usage, Workload

T = TypeVar("T")
Place = tuple[int, float, float, str]
"""Priority; since when work is unsaved, and time of creation, both negated; holder: the smallest is first."""


class Lesser(NamedTuple):
    """Which workloads may be evicted, by priority and rank."""

    below: float = inf  # those with a lower priority
    after: tuple[int, float, str] | None = None  # those with a later rank; None: no others

    def has(self, workload: Workload) -> bool:
        """Whether a workload is one of them."""
        return workload.priority < self.below or (self.after is not None and self.after < workload.rank)


ANY_RANK: Final = Lesser()
NO_RANK: Final = Lesser(-inf)


@dataclass(slots=True, eq=False)
class CandidateLine(Generic[T]):
    """Sorted, with the sums that are asked for."""

    _places: list[Place] = field(default_factory=list)
    _members: dict[str, tuple[Workload, T]] = field(default_factory=dict)
    _amounts: dict[str, int] = field(default_factory=dict)
    _of_priority: dict[int, int] = field(default_factory=dict)
    _total: int = 0
    largest: int = 0  # no single one of them uses more; perhaps one that is gone did

    def add(self, place: Place, workload: Workload, member: T, amount: int) -> None:
        priority, _, _, holder = place
        insort(self._places, place)
        self._members[holder] = (workload, member)
        self._amounts[holder] = amount
        self._of_priority[priority] = self._of_priority.get(priority, 0) + amount
        self._total += amount
        self.largest = max(self.largest, amount)

    def remove(self, place: Place) -> None:
        priority, _, _, holder = place
        del self._places[bisect_left(self._places, place)], self._members[holder]
        amount = self._amounts.pop(holder)
        self._total -= amount
        self._of_priority[priority] -= amount
        if not self._of_priority[priority]:
            del self._of_priority[priority]

    def fill(self, members: Sequence[tuple[Place, Workload, T, int]]) -> None:
        """Take many in, in order, as `add` takes one; there are none yet."""
        self._places = [place for place, *_ in members]
        self._members = {place[3]: (workload, member) for place, workload, member, _ in members}
        self._amounts = {place[3]: amount for place, _, _, amount in members}
        for (priority, *_), _, _, amount in members:
            self._of_priority[priority] = self._of_priority.get(priority, 0) + amount
        self._total = sum(self._amounts.values())
        self.largest = max(self._amounts.values())

    def amount(self, lesser: Lesser) -> int:
        if lesser.below == inf:
            return self._total
        found = sum(amount for priority, amount in self._of_priority.items() if priority < lesser.below)
        if lesser.after is not None:
            found += sum(self._amounts[holder] for *_, holder in self._equals(lesser))
        return found

    def __len__(self) -> int:
        return len(self._places)

    @property
    def front(self) -> Place | None:
        """The place of the first of all; None if there is none."""
        return self._places[0] if self._places else None

    def members(self, lesser: Lesser) -> Iterator[tuple[Place, T]]:
        """Some of them in order, with their places."""
        for place in self._places:
            if place[0] >= lesser.below:
                break
            yield place, self._members[place[3]][1]
        if lesser.after is not None:
            for place in self._equals(lesser):
                yield place, self._members[place[3]][1]

    def _equals(self, lesser: Lesser) -> Iterator[Place]:
        """The places of those that are no less important, but come after a rank."""
        for number in range(bisect_left(self._places, (lesser.below,)), len(self._places)):
            place = self._places[number]
            if not lesser.has(self._members[place[3]][0]):
                if place[0] > lesser.below:
                    break
                continue
            yield place


class CandidateLines(Generic[T]):
    """The lines of all queues, and the queues in the order of their fronts."""

    def __init__(self) -> None:
        self._of: defaultdict[str, dict[FlavorResource, CandidateLine[T]]] = defaultdict(dict)
        self._fronts: defaultdict[FlavorResource, list[tuple[Place, str]]] = defaultdict(list)

    def of(self, queue: str) -> Mapping[FlavorResource, CandidateLine[T]]:
        """The lines of a queue, by what is used; none is empty."""
        return self._of.get(queue, {})

    def add(self, queue: str, usage: Usage, place: Place, workload: Workload, member: T) -> None:
        """Take in what could be evicted from now on."""
        for key, amount in usage:
            if amount:
                lines = self._of[queue]
                line = lines.get(key)
                if line is None:
                    line = lines[key] = CandidateLine()
                before = line.front
                line.add(place, workload, member, amount)
                if before is None or place < before:
                    self._moved(queue, key, before, place)

    def fill(self, queue: str, members: Iterable[tuple[Place, Usage, Workload, T]]) -> None:
        """Take in all that could be evicted from a queue that has no lines yet."""
        found: defaultdict[FlavorResource, list[tuple[Place, Workload, T, int]]] = defaultdict(list)
        for place, usage, workload, member in sorted(members, key=itemgetter(0)):
            for key, amount in usage:
                if amount:
                    found[key].append((place, workload, member, amount))
        for key, listed in found.items():
            line = self._of[queue][key] = CandidateLine()
            line.fill(listed)
            self._moved(queue, key, None, line.front)

    def remove(self, queue: str, usage: Usage, place: Place) -> None:
        for key, amount in usage:
            if amount:
                line = self._of[queue][key]
                before = line.front
                line.remove(place)
                if before == place:
                    self._moved(queue, key, place, line.front)
                if not len(line):
                    del self._of[queue][key]
        if not self._of[queue]:
            del self._of[queue]

    def _moved(self, queue: str, key: FlavorResource, before: Place | None, after: Place | None) -> None:
        fronts = self._fronts[key]
        if before is not None:
            del fronts[bisect_left(fronts, (before, queue))]
        if after is not None:
            insort(fronts, (after, queue))

    def fronts(self, keys: Collection[FlavorResource], below: float) -> Iterator[tuple[Place, str]]:
        """The queues that have any of lower priority than that, first to give first; some several times."""
        fronts = [self._fronts[key] for key in keys if key in self._fronts]
        for front in fronts[0] if len(fronts) == 1 else merge(*fronts):
            if front[0][0] >= below:
                return
            yield front
