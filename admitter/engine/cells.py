"""What there is and what is in use of one resource in one flavor, place by place (see `quota`).

A cell knows the one above it. Use that comes or goes changes integers on the way to the root, and so
does a definition: a cell hands up by how much what it lends and what it takes have changed.
"""

from typing import Final

from admitter.engine.policy import Quota

NO_QUOTA: Final = Quota()


class Together:
    """One resource in all flavors of one queue that has a limit on that.

    Attributes:
        limit: the most that may be in use, in the resource's unit.
        used: what is.
    """

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0


class Cell:
    """One resource in one flavor at one node. All amounts are in the resource's unit.

    Attributes:
        parent: the same of the node above; None at the root.
        quota: what is defined here.
        own: what the subtree has: the node's minimum, and what its children lend.
        kept: how much of `own` is not lent to the node above; at the root all of it.
        limit: the node's maximum; None: no such limit.
        used: use that reached this node: at a queue all of it, at a cohort what the children took from it.
        total: the use of the whole subtree.
        together: at a queue with a limit on all flavors together, what these use.
    """

    __slots__ = ("kept", "limit", "own", "parent", "quota", "together", "total", "used")

    def __init__(self) -> None:
        self.parent: Cell | None = None
        self.quota = NO_QUOTA
        self.own = 0
        self.kept = 0
        self.limit: int | None = None
        self.used = 0
        self.total = 0
        self.together: Together | None = None

    @property
    def lent(self) -> int:
        """How much of its own the node above has."""
        return self.own - self.kept

    @property
    def taken(self) -> int:
        """How much of its use the node above has to provide."""
        return self.used - self.kept if self.used > self.kept else 0

    def define(self, quota: Quota) -> None:
        """Set what is defined here, in place of what was."""
        if quota != self.quota:
            lent, taken, more = self.lent, self.taken, quota.minimum - self.quota.minimum
            self.quota, self.limit = quota, quota.maximum
            self.own += more
            self.kept = self.to_keep()
            if self.parent is not None:
                self.parent.shift(self.lent - lent, self.taken - taken, 0)

    def hang(self, parent: "Cell | None") -> None:
        """Move the subtree below another cell, with all that it lends and uses; None: it stands alone."""
        if parent is not self.parent:
            if self.parent is not None:
                self.parent.shift(-self.lent, -self.taken, -self.total)
            self.parent = parent
            self.kept = self.to_keep()
            if parent is not None:
                parent.shift(self.lent, self.taken, self.total)

    def to_keep(self) -> int:
        """How much of its own is not to be lent."""
        if self.parent is None:
            return self.own
        lending = self.quota.lending_limit
        return 0 if lending is None else max(0, self.own - lending)

    def shift(self, own: int, used: int, total: int) -> None:
        """A child lends, takes and uses so much more than before."""
        cell: Cell | None = self
        while cell is not None and (own or used or total):
            lent, taken = cell.lent, cell.taken
            cell.own += own
            cell.used += used
            cell.total += total
            cell.kept = cell.to_keep()
            own, used = cell.lent - lent, cell.taken - taken
            cell = cell.parent

    def add(self, amount: int) -> bool:
        """Add use, or remove it if negative, here and above.

        Returns:
            Whether a subtree borrows now that did not before.
        """
        if self.together is not None:
            self.together.used += amount
        cell: Cell | None = self
        passed = amount
        crossed = False
        while cell is not None:
            cell.total += amount
            if passed:
                before, kept = cell.used, cell.kept
                cell.used = after = before + passed
                crossed |= before <= cell.own < after
                passed = (after - kept if after > kept else 0) - (before - kept if before > kept else 0)
            cell = cell.parent
        return crossed

    def available(self) -> int:
        """The largest request that fits here now; not positive if none does."""
        free, together = self.in_flavor(), self.together
        return free if together is None else min(free, together.limit - together.used)

    def in_flavor(self) -> int:
        """As `available`, but for the limit on all flavors together."""
        cell: Cell | None = self
        free = 0
        room: int | None = None
        while cell is not None:
            if cell.limit is not None:
                left = cell.limit - cell.total
                if room is None or left < room:
                    room = left
            if cell.kept > cell.used:
                free += cell.kept - cell.used
            cell = cell.parent
        return free if room is None or free < room else room

    def ceiling(self) -> int:
        """The largest request that would fit if nothing were in use."""
        cell: Cell | None = self
        free = 0
        room = self.together.limit if self.together is not None else None
        while cell is not None:
            if cell.limit is not None and (room is None or cell.limit < room):
                room = cell.limit
            free += cell.kept
            cell = cell.parent
        return free if room is None or free < room else room

    def borrows(self, amount: int = 0) -> bool:
        """Whether this subtree uses more than its own, with so much added."""
        return self.used + amount > self.own
