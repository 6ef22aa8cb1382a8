"""Who might be evicted for whom, and by what right: what all rules of preemption have in common."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heapreplace
from typing import Protocol

from admitter.engine.capacity import Age, Standing
from admitter.engine.cells import Cell
from admitter.engine.ledger import Reservation
from admitter.engine.model import FlavorResource
from admitter.engine.quota import Book, Node, Tree


@dataclass(frozen=True, slots=True)
class Ground:
    """What candidates are looked for on: the tree, what is in use, and what of it is contested."""

    tree: Tree
    book: Book
    contested: frozenset[FlavorResource]


class Pool:
    """All candidates of one queue.

    Attributes:
        queue: the queue's name.
        side: the preemptor's queue, or the cohort above it that is below the nearest node above both queues.
        own: whether it is the preemptor's own queue.
        held: what they hold together.
    """

    def __init__(self, ground: Ground, queue: str, side: Node) -> None:
        self.queue = queue
        self.side = side
        self.own = side == ("queue", queue)
        self.held: dict[FlavorResource, int] = {}
        self._ground = ground
        self._candidates: list[Candidate] = []
        self._largest: dict[FlavorResource, int] = {}

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
        assert above is not None, "whoever is on another side has a node above in common"
        nodes = nodes[: nodes.index(above)]
        return {key: [book.at(node, key) for node in nodes] for key in self._ground.contested}

    def add(self, reservation: Reservation) -> None:
        """Take a reservation in."""
        self._candidates.append(Candidate(reservation, self))
        held, largest = self.held, self._largest
        for key, amount in reservation.usage:
            held[key] = held.get(key, 0) + amount
            if amount > largest.get(key, 0):
                largest[key] = amount

    def members(self) -> Iterable["Candidate"]:
        """Who might be evicted."""
        return self._candidates

    def at_most(self, key: FlavorResource) -> int:
        """A bound on what can be freed: of what is contested what it borrows, and one workload more."""
        held = self.held.get(key, 0)
        if self.own or not held or key not in self._ground.contested:
            return held
        cell = self._ground.book.cell(self.queue, key)
        return min(held, cell.used - cell.own + self._largest[key])


class OverQuota(Pool):
    """The candidates of an elastic queue: whoever owns a place that is over quota, newest first.

    They are looked at one by one: in a large tree most never are.
    """

    def __init__(
        self,
        ground: Ground,
        queue: str,
        side: Node,
        standing: Standing,
        eligible: Callable[[Reservation], bool],
    ) -> None:
        """Prepare; who is over quota is a candidate as far as he is eligible."""
        super().__init__(ground, queue, side)
        self._standing = standing
        self._eligible = eligible
        self.held = standing.held
        self._largest = standing.largest

    def members(self) -> Iterable["Candidate"]:
        """Who might be evicted, newest first."""
        return (c for place in range(len(self._standing.excesses)) if (c := self.at(place)) is not None)

    def at(self, place: int) -> "Candidate | None":
        """Who has the newest place that is over quota but so many; None if he can't be evicted."""
        reservation = self._standing.excesses[place].reservation
        return Candidate(reservation, self) if self._eligible(reservation) else None

    def age(self, place: int) -> Age | None:
        """The age of that place; None if there are not so many."""
        excesses = self._standing.excesses
        return excesses[place].newest if place < len(excesses) else None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A workload that might be evicted.

    Attributes:
        reservation: what it holds.
        pool: those of the same queue.
    """

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


def place(candidate: Candidate) -> tuple[bool, int, float, float, str]:
    """A candidate's place (design §3): other queues first, lowest priority, newest admission, UID.

    Of those that were admitted in the same second the one that was created last comes first.
    """
    reservation = candidate.reservation
    workload = reservation.workload
    assert workload is not None
    since, created = reservation.since, workload.created
    return (candidate.pool.own, workload.priority, -since, -created, reservation.holder)


class _Turn:
    """Who of an elastic queue comes next; the newest of all comes first."""

    __slots__ = ("age", "place", "pool")

    def __init__(self, pool: OverQuota) -> None:
        self.pool = pool
        self.place = 0
        self.age = pool.age(0)

    def __lt__(self, other: "_Turn") -> bool:
        assert self.age is not None
        assert other.age is not None
        return other.age < self.age

    def advance(self) -> bool:
        """Go on to the next; False if there is none."""
        self.place += 1
        self.age = self.pool.age(self.place)
        return self.age is not None


class Rule(Protocol):
    """By what right workloads of other queues are evicted."""

    def order(self, pools: Iterable[Pool]) -> Iterator[Candidate]:
        """Candidates, first to go first, while those before are being taken out."""

    def may_go(self, candidate: Candidate) -> bool:
        """Whether a candidate of another queue may be taken out now, after those that are out already."""

    def holds(self) -> bool:
        """Whether the preemptor, once in, has a right to all that is out now."""

    def moved(self, candidate: Candidate, sign: int) -> None:
        """A candidate was taken out (-1), or put back (1)."""


class Simple:
    """What is the same for every rule that does not say otherwise."""

    def order(self, pools: Iterable[Pool]) -> Iterator[Candidate]:
        """In their fixed order; of elastic queues the newest that is over quota, whatever its priority."""
        others: list[Candidate] = []
        heap: list[_Turn] = []
        for pool in pools:
            if isinstance(pool, OverQuota):
                heap.append(_Turn(pool))
            else:
                others += pool.members()
        heapify(heap)
        while heap:
            turn = heap[0]
            candidate = turn.pool.at(turn.place)
            if turn.advance():
                heapreplace(heap, turn)
            else:
                heappop(heap)
            if candidate is not None:
                yield candidate
        yield from sorted(others, key=place)

    def holds(self) -> bool:
        """Always."""
        return True

    def moved(self, candidate: Candidate, sign: int) -> None:
        """Does not matter."""
