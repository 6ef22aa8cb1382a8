"""What running workloads say of their last checkpoint: the work up to it is not lost by an eviction.

A checkpoint that lies in the future counts from the moment it names, and not before.
"""

from collections.abc import Iterator
from math import inf


class Checkpoints:
    """Those that lie in the future, by holder; all others are part of the reservations."""

    def __init__(self) -> None:
        self._coming: dict[str, float] = {}
        self.due = inf  # when the first begins to count, in seconds since the epoch

    def counted(self, holder: str, said: float, now: float) -> float:
        """What counts at a time of a checkpoint that a holder says; 0 if that lies in the future.

        One in the future is remembered for `turn`. All times are in seconds since the epoch.
        """
        self.forget(holder)
        if said <= now:
            return said
        self._coming[holder] = said
        self.due = min(self.due, said)
        return 0.0

    def said(self, holder: str, counted: float) -> float:
        """What a holder says of its last checkpoint, of which so much counts."""
        return self._coming.get(holder, counted)

    def forget(self, holder: str) -> None:
        """A holder says nothing any more of a checkpoint in the future."""
        if self._coming.pop(holder, None) is not None:
            self.due = min(self._coming.values(), default=inf)

    def turn(self, now: float) -> Iterator[tuple[str, float]]:
        """Take out those that begin to count until a time, by holder."""
        if self.due > now:
            return
        found = sorted(pair for pair in self._coming.items() if pair[1] <= now)
        for holder, said in found:
            del self._coming[holder]
            yield holder, said
        self.due = min(self._coming.values(), default=inf)
