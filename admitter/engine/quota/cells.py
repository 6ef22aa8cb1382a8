"""What there is and what is in use of one resource in one flavor, place by place (see `quota`).

A cell knows the one above it. Use that comes or goes changes integers on the way to the root, and so
does a definition: a cell hands up by how much what it lends and what it takes have changed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from admitter.engine.policy import Quota

NO_QUOTA: Final = Quota()


@dataclass(slots=True, eq=False)
class FlavorsTogether:
    """One resource in all flavors of one queue that has a limit on that."""

    limit: int  # the most that may be in use, in the resource's unit
    used: int = 0  # what is


@dataclass(slots=True, eq=False)
class Renewal:
    """Lets claims be made anew before any of them is looked at: most decisions concern none."""

    due: Callable[[], None] | None = None  # makes them anew; None: they are as they should be

    def run(self) -> None:
        """Make them anew if that is due."""
        due, self.due = self.due, None
        if due is not None:
            due()


@dataclass(slots=True, eq=False)
class Cell:
    """One resource in one flavor at one node. All amounts are in the resource's unit."""

    renewal: Renewal  # of the claims in the same book
    parent: "Cell | None" = None  # the same of the node above; None at the root
    quota: Quota = NO_QUOTA  # what is defined here
    subtree_quota: int = 0  # what the subtree has: the node's minimum, and what its children lend
    local_quota: int = 0  # how much of that is not lent to the node above; at the root all of it
    limit: int | None = None  # the node's maximum; None: no such limit
    # use that reached this node: at a queue all of it, at a cohort what the children took from it
    used: int = 0
    total: int = 0  # the use of the whole subtree
    # at a queue with a limit on all flavors together, what these use
    together: FlavorsTogether | None = None
    attached: int = 0  # what waiting workloads claim of what this subtree owns (see `claims`)
    claimed: int = 0  # what the children claim of what they own here, together
    handed: int = 0  # how much of `claimed` at the parent is this subtree's

    @property
    def lent(self) -> int:
        """How much of its own the node above has."""
        return self.subtree_quota - self.local_quota

    @property
    def taken(self) -> int:
        """How much of its use the node above has to provide."""
        return self.used - self.local_quota if self.used > self.local_quota else 0

    def define(self, quota: Quota) -> None:
        """Set what is defined here, in place of what was."""
        if quota != self.quota:
            lent, taken, more = self.lent, self.taken, quota.minimum - self.quota.minimum
            self.quota, self.limit = quota, quota.maximum
            self.subtree_quota += more
            self.local_quota = self.unlent_quota()
            self.hand_up()
            if self.parent is not None:
                self.parent.shift(self.lent - lent, self.taken - taken, 0)

    def hang(self, parent: "Cell | None") -> None:
        """Move the subtree below another cell, with all that it lends and uses; None: it stands alone."""
        if parent is not self.parent:
            if self.parent is not None:
                self.parent.shift(-self.lent, -self.taken, -self.total)
                self.parent.claim(-self.handed)
            self.parent = parent
            self.local_quota = self.unlent_quota()
            self.handed = 0
            self.hand_up()
            if parent is not None:
                parent.shift(self.lent, self.taken, self.total)

    def unlent_quota(self) -> int:
        """How much of its own is not to be lent."""
        if self.parent is None:
            return self.subtree_quota
        lending = self.quota.lending_limit
        return 0 if lending is None else max(0, self.subtree_quota - lending)

    def shift(self, own: int, used: int, total: int) -> None:
        """A child lends, takes and uses so much more than before."""
        cell: Cell | None = self
        while cell is not None and (own or used or total):
            lent, taken = cell.lent, cell.taken
            cell.subtree_quota += own
            cell.used += used
            cell.total += total
            cell.local_quota = cell.unlent_quota()
            cell.hand_up()
            own, used = cell.lent - lent, cell.taken - taken
            cell = cell.parent

    def attach(self, amount: int) -> None:
        """A waiting workload claims so much of what this subtree owns, or no longer if negative."""
        self.attached += amount
        self.hand_up()

    def claim(self, amount: int) -> None:
        """The children claim so much more."""
        if amount:
            self.claimed += amount
            self.hand_up()

    def hand_up(self) -> None:
        """Tell the node above what is claimed of it: what this subtree owns, has left and does not keep."""
        wanted = self.attached + self.claimed
        if self.parent is not None and (wanted or self.handed):
            left = self.subtree_quota - self.used
            wanted = wanted if wanted < left else left
            kept = self.local_quota - self.used
            handed = max(0, wanted - kept if kept > 0 else wanted)
            more, self.handed = handed - self.handed, handed
            self.parent.claim(more)

    def add(self, amount: int) -> bool:
        """Add use, or remove it if negative, here and above; returns whether a subtree borrows more."""
        if self.together is not None:
            self.together.used += amount
        cell: Cell | None = self
        passed = amount
        borrows_more = False
        while cell is not None:
            cell.total += amount
            if passed:
                before, kept = cell.used, cell.local_quota
                cell.used = after = before + passed
                borrows_more |= after > before and after > cell.subtree_quota
                if cell.attached or cell.claimed:
                    cell.hand_up()
                passed = (after - kept if after > kept else 0) - (before - kept if before > kept else 0)
            cell = cell.parent
        return borrows_more

    def rising(self, amount: int) -> int:
        """How much of an amount that is added here, or removed if negative, reaches the node above."""
        after = self.used + amount - self.local_quota
        return (after if after > 0 else 0) - self.taken

    def available(self) -> int:
        """The largest request that fits here now; not positive if none does.

        One that newly borrows leaves what others claim that own it.
        """
        free, together = self.in_flavor(), self.together
        return free if together is None else min(free, together.limit - together.used)

    def in_flavor(self) -> int:
        """As `available`, but for the limit on all flavors together."""
        self.renewal.run()
        free = self.vacant()
        return min(free, self._beside_claims()) if self._is_bound() else free

    def fits(self, amount: int) -> bool:
        """Whether a request of so much fits here now: as `available` says, in one walk.

        Claims are only looked at if the request newly borrows.
        """
        together = self.together
        if together is not None and amount > together.limit - together.used:
            return False
        cell, rest, borrows = self, amount, False
        while (parent := cell.parent) is not None:
            if cell.limit is not None and amount > cell.limit - cell.total:
                return False
            if rest > 0:
                used, kept = cell.used, cell.local_quota
                borrows = borrows or used + rest > cell.subtree_quota
                if used < kept:
                    rest -= kept - used
            cell = parent
        if cell.limit is not None and amount > cell.limit - cell.total:
            return False
        if rest > 0 and rest > cell.subtree_quota - cell.used:
            return False
        return not borrows or self._leaves_claims(amount)

    def has_vacant(self, amount: int) -> bool:
        """As `fits`, whatever others claim, and but for the limit on all flavors together."""
        return amount <= self.vacant()

    def newly_borrows(self, amount: int) -> bool:
        """Whether with so much added some subtree takes more than its own, and more than it took before."""
        cell, rest = self, amount
        while cell.parent is not None and rest > 0:
            if cell.used + rest > cell.subtree_quota:
                return True
            rest = cell.rising(rest)
            cell = cell.parent
        return False

    def lacking(self, amount: int) -> tuple[int, bool]:
        """How much more has to be free at least for a request of so much; not positive if it fits.

        And whether there is room but for what others claim.
        """
        lacks, together = amount - self.vacant(), self.together
        if together is not None:
            lacks = max(lacks, amount - together.limit + together.used)
        if lacks > 0 or not self.newly_borrows(amount):
            return lacks, False
        self.renewal.run()
        kept = amount - self._beside_claims() if self._is_bound() else 0
        return (kept, True) if kept > 0 else (lacks, False)

    def fits_but_for_claims(self, amount: int) -> bool:
        """Whether there is room for so much, but for what others claim."""
        return self.has_vacant(amount) and self.newly_borrows(amount) and not self._leaves_claims(amount)

    def _leaves_claims(self, amount: int) -> bool:
        """Whether a request for which there is room leaves what others claim."""
        self.renewal.run()
        return not self._is_bound() or amount <= self._beside_claims()

    def _is_bound(self) -> bool:
        """Whether others claim anything on the way to the root."""
        cell = self
        while cell.parent is not None:
            if cell.parent.claimed > cell.handed:
                return True
            cell = cell.parent
        return False

    def _beside_claims(self) -> int:
        """The largest request that fits if no maximum counted, and newly borrows nothing that others claim.

        From the root downwards: what a node may take from the one above it is what is free there. Beyond what
        the node owns, that is what other children of the one above do not claim.
        """
        chain = [self]
        while chain[-1].parent is not None:
            chain.append(chain[-1].parent)
        root = chain.pop()
        free = root.subtree_quota - root.used if root.subtree_quota > root.used else 0
        for cell in reversed(chain):
            assert cell.parent is not None, "the root has gone"
            withheld = cell.parent.claimed - cell.handed
            if cell.local_quota > cell.used:
                free += cell.local_quota - cell.used
            if withheld > 0:
                left = max(free - withheld, cell.subtree_quota - cell.used)
                free = min(free, left) if left > 0 else 0
        return free

    def vacant(self) -> int:
        """The largest request for which there is room, whatever others claim; as `in_flavor` else."""
        cell: Cell | None = self
        free = 0
        room: int | None = None
        while cell is not None:
            if cell.limit is not None and (room is None or cell.limit - cell.total < room):
                room = cell.limit - cell.total
            if cell.local_quota > cell.used:
                free += cell.local_quota - cell.used
            cell = cell.parent
        return free if room is None or free < room else room

    def room(self) -> int:
        """The largest request for which there is room, whatever others claim; as `available` else."""
        free, together = self.vacant(), self.together
        return free if together is None else min(free, together.limit - together.used)

    def alone(self, levels: int) -> int:
        """The largest request that would fit if nothing were above the subtree so many levels up."""
        cell: Cell | None = self
        free = level = 0
        room: int | None = None
        while cell is not None and level <= levels:
            if cell.limit is not None and (room is None or cell.limit - cell.total < room):
                room = cell.limit - cell.total
            own = cell.subtree_quota if level == levels else cell.local_quota
            if own > cell.used:
                free += own - cell.used
            cell = cell.parent
            level += 1
        return free if room is None or free < room else room

    def potential_available(self) -> int:
        """The largest request that would fit if nothing were in use."""
        cell: Cell | None = self
        free = 0
        room = self.together.limit if self.together is not None else None
        while cell is not None:
            if cell.limit is not None and (room is None or cell.limit < room):
                room = cell.limit
            free += cell.local_quota
            cell = cell.parent
        return free if room is None or free < room else room

    def borrows(self, amount: int = 0) -> bool:
        """Whether this subtree uses more than its own, with so much added."""
        return self.used + amount > self.subtree_quota
