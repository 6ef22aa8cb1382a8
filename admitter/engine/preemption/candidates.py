"""Who might be evicted for whom, and by what right: what all rules of preemption have in common."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from admitter.engine.ledger import Reservation
from admitter.engine.model import FlavorResource
from admitter.engine.quota import Cell


@dataclass(frozen=True, slots=True)
class Candidate:
    """A workload that might be evicted.

    Attributes:
        reservation: what it holds.
        moves: where in the tree, and how much of it.
        chains: for what of it is contested: the cells from its queue up to the nearest node above it and
            the preemptor, and how much of it. None if it is of the preemptor's own queue.
    """

    reservation: Reservation
    moves: list[tuple[Cell, int]]
    chains: list[tuple[list[Cell], int]] | None

    def move(self, sign: int) -> None:
        """Take its use out of the tree with sign -1, or put it back."""
        for cell, amount in self.moves:
            cell.add(sign * amount)


def place(candidate: Candidate) -> tuple[bool, int, float, str]:
    """A candidate's place (design §3): other queues first, lowest priority, newest admission, UID."""
    reservation = candidate.reservation
    assert reservation.workload is not None
    priority = reservation.workload.priority
    return (candidate.chains is None, priority, -reservation.since, reservation.holder)


def sums(candidates: Iterable[Candidate]) -> Counter[FlavorResource]:
    """What candidates hold together."""
    found: Counter[FlavorResource] = Counter()
    for candidate in candidates:
        for key, amount in candidate.reservation.usage:
            found[key] += amount
    return found


class Rule(Protocol):
    """By what right workloads of other queues are evicted."""

    def order(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """Candidates, first to go first, while those before are being taken out."""

    def may_go(self, candidate: Candidate) -> bool:
        """Whether a candidate of another queue may be taken out now, after those that are out already."""

    def holds(self) -> bool:
        """Whether the preemptor, once in, has a right to all that is out now."""

    def moved(self, candidate: Candidate, sign: int) -> None:
        """A candidate was taken out (-1), or put back (1)."""


class Simple:
    """What is the same for every rule that does not say otherwise."""

    def order(self, candidates: Iterable[Candidate]) -> Iterator[Candidate]:
        """In their fixed order."""
        return iter(sorted(candidates, key=place))

    def holds(self) -> bool:
        """Always."""
        return True

    def moved(self, candidate: Candidate, sign: int) -> None:
        """Does not matter."""
