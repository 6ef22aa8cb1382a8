"""Which workloads might be evicted, and by what right: what all rules of preemption have in common."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from heapq import heappop, heappush, heapreplace, merge
from itertools import repeat
from operator import itemgetter
from typing import ClassVar

from admitter.engine.model import FlavorResource
from admitter.engine.quota.book import Book
from admitter.engine.quota.capacity import OverQuotaUse, Standing
from admitter.engine.quota.cells import Cell
from admitter.engine.quota.ledger import Reservation, place_of
from admitter.engine.quota.lines import CandidateLine, CandidateLines, Lesser, Place
from admitter.engine.quota.tree import Node, Tree

QueueLines = Mapping[FlavorResource, CandidateLine[Reservation]]
"""Reservations of one queue that could be evicted, by what they use."""


@dataclass(frozen=True, slots=True)
class CandidateContext:
    """What candidates are looked for on: the tree, what is in use, and what of it is contested."""

    tree: Tree
    book: Book
    contested: frozenset[FlavorResource]


class Pool:
    """All candidates of one queue."""

    def __init__(self, ground: CandidateContext, queue: str, side: Node) -> None:
        self.queue = queue
        # the preemptor's queue, or the cohort above it that is below the nearest node above both queues
        self.side = side
        self.own = side == ("queue", queue)  # whether it is the preemptor's own queue
        self._held: dict[FlavorResource, int] = {}
        self._ground = ground
        self._candidates: list[Candidate] = []
        self._largest: dict[FlavorResource, int] = {}

    @property
    def held(self) -> Mapping[FlavorResource, int]:
        """What they hold together."""
        return self._held

    @cached_property
    def cells(self) -> Mapping[FlavorResource, Cell]:
        """Its cells, of all that is used in it."""
        book = self._ground.book
        return {key: book.cell(self.queue, key) for key in book.used(self.queue)}

    @cached_property
    def chains(self) -> Mapping[FlavorResource, list[Cell]]:
        """For what is contested, its cells up to the nearest node above it and the preemptor.

        The preemptor's own queue has none.
        """
        if self.own:
            return {}
        book, nodes = self._ground.book, self._ground.tree.path(("queue", self.queue))
        above = self._ground.tree.parents()[self.side]
        assert above is not None, "another side has a node above in common"
        nodes = nodes[: nodes.index(above)]
        return {key: [book.at(node, key) for node in nodes] for key in self._ground.contested}

    def add(self, reservation: Reservation) -> None:
        self._candidates.append(Candidate(reservation, self))
        held, largest = self._held, self._largest
        for key, amount in reservation.usage:
            held[key] = held.get(key, 0) + amount
            if amount > largest.get(key, 0):
                largest[key] = amount

    def members(self) -> Iterable["Candidate"]:
        """The workloads that might be evicted, first to go first."""
        return sorted(self._candidates, key=place)

    def pools(self) -> Iterable["Pool"]:
        """Itself: a pool is a group of one."""
        return (self,)

    def amount(self, key: FlavorResource) -> int:
        """What they hold of something that is contested."""
        return self.held.get(key, 0)

    def _most(self, key: FlavorResource) -> int:
        """No single one of them holds more."""
        return self._largest.get(key, 0)

    def at_most(self, key: FlavorResource) -> int:
        """A bound on what can be freed: of what is contested what it borrows, and one workload more."""
        held = self.amount(key)
        if self.own or not held or key not in self._ground.contested:
            return held
        cell = self._ground.book.cell(self.queue, key)
        return min(held, cell.used - cell.subtree_quota + self._most(key))


class InLine(Pool):
    """All candidates of a queue in which priority and rank alone decide.

    They are looked at one by one, as they are taken.
    """

    def __init__(
        self, ground: CandidateContext, queue: str, side: Node, lines: QueueLines, lesser: Lesser
    ) -> None:
        """Of `lines`, which hold what of the queue is contested, those are candidates that are `lesser`."""
        super().__init__(ground, queue, side)
        self._lines = lines
        self._lesser = lesser

    @property
    def held(self) -> Mapping[FlavorResource, int]:
        """What they hold together, also of what is not contested."""
        sums: dict[FlavorResource, int] = {}
        for candidate in self.members():
            for key, amount in candidate.reservation.usage:
                sums[key] = sums.get(key, 0) + amount
        return sums

    def members(self) -> Iterable["Candidate"]:
        return (candidate for _, candidate in self.placed())

    def placed(self) -> Iterator[tuple[Place, "Candidate"]]:
        """As `members`, each with its place."""
        last: Place | None = None
        lines = [line.members(self._lesser) for line in self._lines.values()]
        for found, reservation in lines[0] if len(lines) == 1 else merge(*lines, key=itemgetter(0)):
            if found != last:  # what uses several of what is contested is in as many lines
                yield found, Candidate(reservation, self)
            last = found

    def amount(self, key: FlavorResource) -> int:
        line = self._lines.get(key)
        return line.amount(self._lesser) if line is not None else 0

    def _most(self, key: FlavorResource) -> int:
        return self._lines[key].largest


@dataclass(eq=False)
class QueuePools:
    """The candidates of many queues that part from the preemptor's at one place, all in line.

    A queue is looked at when the first of it is taken, or when all have to be known.
    """

    ground: CandidateContext
    side: Node
    lines: CandidateLines[Reservation]
    lesser: Lesser  # those that are `lesser` are candidates
    among: Callable[[str], bool]  # whether a queue is one of those meant
    own: ClassVar = False
    _pools: dict[str, InLine] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return any(True for _ in self._fronts())

    def pools(self) -> Iterator[Pool]:
        """Those of queues that have any."""
        return (self._pool(name) for _, name in self._fronts())

    def members(self) -> Iterator["Candidate"]:
        fronts = self._fronts()
        front = next(fronts, None)
        heap: list[tuple[Place, Candidate, Iterator[tuple[Place, Candidate]]]] = []  # no two of one place
        while heap or front is not None:
            while front is not None and (not heap or front[0] < heap[0][0]):
                following = self._pool(front[1]).placed()
                heappush(heap, (*next(following), following))
                front = next(fronts, None)
            _, candidate, following = heap[0]
            yield candidate
            after = next(following, None)
            if after is not None:
                heapreplace(heap, (*after, following))
            else:
                heappop(heap)

    def _fronts(self) -> Iterator[tuple[Place, str]]:
        """The queues that have any, each once, in the order of the first of each."""
        seen: set[str] = set()
        for place, name in self.lines.fronts(self.ground.contested, self.lesser.below):
            if name not in seen:
                seen.add(name)
                if self.among(name):
                    yield place, name

    def _pool(self, name: str) -> InLine:
        found = self._pools.get(name)
        if found is None:
            lines = self.lines.of(name)
            mine = {key: lines[key] for key in self.ground.contested if key in lines}
            found = self._pools[name] = InLine(self.ground, name, self.side, mine, self.lesser)
        return found


class OverQuota(Pool):
    """The candidates of an elastic queue: workloads with a place that is over quota, newest first.

    They are looked at one by one: in a large tree most never are.
    """

    def __init__(
        self,
        ground: CandidateContext,
        queue: str,
        side: Node,
        standing: Standing,
        eligible: Callable[[Reservation], bool],
    ) -> None:
        """A workload over quota is a candidate if it is eligible."""
        super().__init__(ground, queue, side)
        self.excesses = standing.excesses
        self._eligible = eligible
        self._held = standing.held
        self._largest = standing.largest

    def members(self) -> Iterable["Candidate"]:
        """The workloads that might be evicted, those with the newest place over quota first."""
        return (c for excess in self.excesses if (c := self.candidate(excess)) is not None)

    def candidate(self, excess: OverQuotaUse) -> "Candidate | None":
        """The workload as a candidate; None if it can't be evicted."""
        return Candidate(excess.reservation, self) if self._eligible(excess.reservation) else None


Group = Pool | QueuePools  # candidates that are looked at together


def pools_of(groups: Iterable[Group]) -> Iterator[Pool]:
    """The queues that have candidates in some groups."""
    return (pool for group in groups for pool in group.pools())


@dataclass(frozen=True, slots=True)
class Candidate:
    """A workload that might be evicted, beside those of the same queue."""

    reservation: Reservation
    pool: Pool

    def move(self, sign: int) -> None:
        """Take its use out of the tree with sign -1, or put it back."""
        cells = self.pool.cells
        for key, amount in self.reservation.usage:
            if amount:
                cells[key].add(sign * amount)

    def contested(self) -> list[tuple[list[Cell], int]]:
        """For what of it is contested: the chain of cells, and how much."""
        chains = self.pool.chains
        return [(chains[key], amount) for key, amount in self.reservation.usage if amount and key in chains]


def place(candidate: Candidate) -> tuple[bool, Place]:
    """A candidate's place in the order of eviction: other queues first, then as in its queue."""
    workload = candidate.reservation.workload
    assert workload is not None, "only workloads are evicted"
    return (candidate.pool.own, place_of(candidate.reservation, workload))


class PreemptionRule:
    """By what right workloads of other queues are evicted; if no more is said, by none."""

    def order(self, pools: Iterable[Group]) -> Iterator[Candidate]:
        """Candidates, first to go first, while those before are being taken out.

        In their fixed order; of elastic queues the newest that is over quota, whatever its priority.
        """
        elastic: list[OverQuota] = []
        others: list[Group] = []
        for pool in pools:
            if isinstance(pool, OverQuota):
                elastic.append(pool)
            else:
                others.append(pool)
        excesses = [zip(pool.excesses, repeat(pool)) for pool in elastic]
        for excess, pool in merge(*excesses, key=lambda each: each[0].newest, reverse=True):
            candidate = pool.candidate(excess)
            if candidate is not None:
                yield candidate
        for own in (False, True):
            lines = [group.members() for group in others if group.own is own]
            yield from lines[0] if len(lines) == 1 else merge(*lines, key=place)

    def may_go(self, candidate: Candidate) -> bool:
        """Whether a candidate may be taken out now, after those that are out already."""
        return candidate.pool.own

    def holds(self) -> bool:
        """Whether the preemptor, once in, has a right to all that is out now."""
        return True

    def moved(self, candidate: Candidate, sign: int) -> None:
        """A candidate was taken out (-1), or put back (1)."""
