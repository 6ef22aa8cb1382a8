"""Victims when a tree uses more than there is (docs/design/hierarchy.md: the root follows the cluster).

No preemptor waits for what is freed. The order is that of preemption: first workloads of queues that borrow
what there is too much of, of these the lowest priority, then the newest; a victim that turns out unneeded
stays.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from admitter.engine.model import FlavorResource
from admitter.engine.preemption.candidates import Candidate, CandidateContext, Pool, place
from admitter.engine.quota.ledger import Ledger, Reservation
from admitter.engine.quota.tree import Node, Tree


@dataclass
class Overflow:
    """Use of a tree beyond the limits at its root; what is looked at is the plan, and stays as it is."""

    tree: Tree
    ledger: Ledger
    root: Node
    # by how much each limit is passed; negative: how much is left
    _over: dict[FlavorResource, int] = field(default_factory=dict)

    def victims(self, leaving: AbstractSet[str]) -> list[Reservation]:
        """A smallest set, in order, without which the rest is within the limits.

        Pods that outlived their Workload are on their way out: they are no reason to evict others. So are
        workloads that are `leaving` for another reason than preemption.
        """
        cells = self.ledger.planned.cells(self.root).items()
        self._over = {key: cell.total - cell.limit for key, cell in cells if cell.limit is not None}
        names = self.tree.members(self.root)
        reservations = [r for name in names for r in self.ledger.reservations(name)]
        rest = [r for r in reservations if not self.ledger.evicting(r.holder)]
        for reservation in rest:
            if reservation.workload is None or reservation.holder in leaving:
                self._count(reservation, -1)
        ground = CandidateContext(self.tree, self.ledger.planned, frozenset())
        pools = {name: Pool(ground, name, self.root) for name in names}
        staying = (r for r in rest if r.workload is not None and r.holder not in leaving)
        return self._among(sorted((Candidate(r, pools[r.queue]) for r in staying), key=place))

    def _among(self, candidates: list[Candidate]) -> list[Reservation]:
        removed: list[Candidate] = []
        try:
            for borrowers_only in (True, False):
                rest, candidates = candidates, []
                for candidate in rest:
                    if self._helps(candidate, borrowers_only=borrowers_only):
                        candidate.move(-1)
                        self._count(candidate.reservation, -1)
                        removed.append(candidate)
                    else:
                        candidates.append(candidate)
            return self._needed(removed)
        finally:
            for candidate in removed:
                candidate.move(1)

    def _needed(self, removed: list[Candidate]) -> list[Reservation]:
        """Those that are needed, in order: each is tried without, costliest first."""
        needed = []
        for candidate in reversed(removed):
            usage = candidate.reservation.usage
            if any(amount and self._over.get(key, -amount) > -amount for key, amount in usage):
                needed.append(candidate.reservation)
            else:
                self._count(candidate.reservation, 1)
        return needed[::-1]

    def _count(self, reservation: Reservation, sign: int) -> None:
        for key, amount in reservation.usage:
            if key in self._over:
                self._over[key] += sign * amount

    def _helps(self, candidate: Candidate, *, borrowers_only: bool) -> bool:
        """Whether a candidate holds any of what is too much, and if it matters, borrowed."""
        held = (key for key, amount in candidate.reservation.usage if amount and self._over.get(key, 0) > 0)
        cells = candidate.pool.cells
        return any(not borrowers_only or cells[key].borrows() for key in held)
