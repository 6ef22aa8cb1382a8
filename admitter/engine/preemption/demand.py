"""What a preemptor asks for, and whether that fits while candidates are taken out of the plan."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from admitter.engine.model import FlavorResource, Usage
from admitter.engine.preemption.candidates import Candidate, Group, pools_of
from admitter.engine.quota.cells import FlavorsTogether
from admitter.engine.quota.ledger import Ledger, Reservation
from admitter.engine.quota.tree import Node

Keys = frozenset[FlavorResource]


class Demand:
    """What one preemptor asks for. Its attributes are as of before the first candidate is taken out."""

    def __init__(self, ledger: Ledger, root: Node, queue: str, usage: Usage) -> None:
        self._ledger = ledger
        self._book = ledger.planned
        self.root = root
        self._queue = queue
        self.usage = tuple((key, amount) for key, amount in usage if amount)  # what it would use
        self._wanted = [(key, self._book.cell(queue, key), amount) for key, amount in self.usage]
        # in what of that too little is free
        self.contested: Keys = frozenset(key for key, cell, amount in self._wanted if amount > cell.vacant())
        # what of the usage there is room for, but not beside what others claim
        self.withheld: Usage = ()
        if len(self.contested) < len(self.usage):
            self.withheld = tuple(
                (key, amount)
                for key, cell, amount in self._wanted
                if key not in self.contested and cell.fits_but_for_claims(amount)
            )
        self._together: dict[FlavorsTogether, int] = {}
        for _, cell, amount in self._wanted:
            if cell.together is not None:
                self._together[cell.together] = self._together.get(cell.together, 0) + amount
        # resources of which its queue would use too much in all flavors together
        self.limited: frozenset[str] = frozenset()
        if self._together:
            self.limited = frozenset(
                key[1]
                for key, cell, _ in self._wanted
                if cell.together is not None and not self._within(cell.together)
            )

    def contends(self, reservation: Reservation) -> bool:
        """Whether a workload holds any of what is contested."""
        own = reservation.queue == self._queue
        return any(
            amount and (key in self.contested or (own and key[1] in self.limited))
            for key, amount in reservation.usage
        )

    def fits(self) -> bool:
        """Whether there is room now, whatever others claim."""
        return all(amount <= cell.vacant() for _, cell, amount in self._wanted) and all(
            self._within(together) for together in self._together
        )

    def _within(self, together: FlavorsTogether) -> bool:
        return self._together[together] <= together.limit - together.used

    def could_fit(self, groups: Sequence[Group]) -> bool:
        """Whether candidates could free what is lacking: a cheap look before any is taken out."""
        for key, cell, amount in self._wanted:
            lacking = amount - cell.vacant()
            pools = pools_of(groups)
            while lacking > 0:
                pool = next(pools, None)
                if pool is None:
                    return False
                lacking -= pool.at_most(key)
        return True

    def leaves_claims(self, removed: Iterable[Candidate]) -> bool:
        """Whether the preemptor newly borrows nothing that others own and wait for.

        That is no reason to evict more: what it frees would be theirs. Claims follow from what is planned,
        not from what is tried: they are made anew with what was taken out put back.
        """
        if not any(cell.newly_borrows(amount) for _, cell, amount in self._wanted):
            return True
        if self._book.renewal.due is not None:
            for candidate in removed:
                candidate.move(1)
            self._book.renewal.run()
            for candidate in removed:
                candidate.move(-1)
        return not any(cell.fits_but_for_claims(amount) for _, cell, amount in self._wanted)

    def is_sure(self, besides: AbstractSet[str] = frozenset()) -> bool:
        """Whether the preemptor fits even if pending evictions for others are cancelled in the end.

        Else its victims may end in vain: it waits until those evictions are over (docs/design/preemption.md).
        Those for the preemptors `besides`, of which it takes over the places, are for it.
        """
        rooms = self._ledger.rooms_of_pending_evictions(self.root, besides)
        cells = [
            (self._book.cell(queue, key), amount) for queue, usage in rooms for key, amount in usage if amount
        ]
        for cell, amount in cells:
            cell.add(amount)
        found = self.fits()
        for cell, amount in cells:
            cell.add(-amount)
        return found
