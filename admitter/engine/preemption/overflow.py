"""Whom to evict when a tree uses more than there is (docs/design/hierarchy.md: the root follows the cluster).

Nobody waits for what is freed. The order is that of preemption: first those whose queues borrow what
there is too much of, of these the lowest priority, then the newest; who turns out unneeded stays.
"""

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet

from admitter.engine.ledger import Ledger, Reservation
from admitter.engine.model import FlavorResource
from admitter.engine.preemption.candidates import Candidate, Ground, Pool, place
from admitter.engine.preemption.reclaim import exceeds
from admitter.engine.quota import Node, Tree


class Overflow:
    """Use of a tree beyond the limit at its root; what is looked at is the plan, and stays as it is."""

    def __init__(self, tree: Tree, ledger: Ledger, root: Node) -> None:
        self._tree = tree
        self._ledger = ledger
        self._book = ledger.planned
        self._root = root

    def victims(self, leaving: AbstractSet[str]) -> list[Reservation]:
        """A smallest set, in order, without which the rest is within the limit.

        Args:
            leaving: UIDs of those who go already for another reason than preemption.
        """
        gone = [c for c in self._candidates() if c.reservation.holder in leaving]
        _move(gone, -1)
        try:
            return self._among([c for c in self._candidates() if c.reservation.holder not in leaving])
        finally:
            _move(gone, 1)

    def _among(self, candidates: Iterable[Candidate]) -> list[Reservation]:
        removed: list[Candidate] = []
        rest = sorted(candidates, key=place)
        try:
            for borrowers_only in (True, False):
                for candidate in list(rest):
                    too_much = self._too_much()
                    if not too_much:
                        return self._give_back(removed)
                    if self._helps(candidate, too_much, borrowers_only=borrowers_only):
                        candidate.move(-1)
                        removed.append(candidate)
                        rest.remove(candidate)
            return self._give_back(removed)
        finally:
            _move(removed, 1)

    def _give_back(self, removed: list[Candidate]) -> list[Reservation]:
        """Put back who is not needed, costliest first; returns the rest in order."""
        left = self._too_much()
        for candidate in list(reversed(removed)):
            candidate.move(1)
            if self._too_much() == left:
                removed.remove(candidate)
            else:
                candidate.move(-1)
        return [candidate.reservation for candidate in removed]

    def _helps(self, candidate: Candidate, keys: Collection[FlavorResource], *, borrowers_only: bool) -> bool:
        """Whether a candidate holds any of that, and if it matters, borrowed."""
        held = [key for key, amount in candidate.reservation.usage if amount and key in keys]
        if not borrowers_only:
            return bool(held)
        cells = candidate.pool.cells
        return any(exceeds([[cells[key]]]) for key in held)

    def _too_much(self) -> dict[FlavorResource, int]:
        """Of what more is in use than the root allows, and by how much."""
        return {
            key: cell.total - cell.limit
            for key, cell in self._book.cells(self._root).items()
            if cell.limit is not None and cell.total > cell.limit
        }

    def _candidates(self) -> list[Candidate]:
        ground = Ground(self._tree, self._book, frozenset())
        found = []
        for name in self._tree.members(self._root):
            pool = Pool(ground, name, self._root)
            found += [Candidate(reservation, pool) for reservation in self._ledger.candidates(name)]
        return found


def _move(candidates: Iterable[Candidate], sign: int) -> None:
    for candidate in candidates:
        candidate.move(sign)
