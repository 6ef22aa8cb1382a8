"""What several futures say of one Workload's start, if some of them were not played far enough to tell."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_ROUNDED: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Observed:
    """A start in several futures.

    Attributes:
        starts: when it starts, in seconds from now, in those in which it does; in order.
        never: in so many it does not start, however long they go on.
        reached: how far the others were played, in seconds from now: it had not started by then.
    """

    starts: Sequence[float]
    never: int
    reached: Sequence[float]

    @property
    def told(self) -> int:
        """So many futures tell when it starts, or that it does not."""
        return len(self.starts) + self.never

    def within(self, part: float) -> float | None:
        """By when it has started in a part of the futures; None: later than is known, or never.

        The product-limit estimate (Kaplan and Meier, 1958): a future that was played for long without a start
        tells that it is late, one that was hardly begun tells nothing. Where all were played to the end it is
        the start at that place in their order.

        Args:
            part: between 0 and 1.
        """
        waits = 1.0  # the part of the futures in which it has not started yet
        for place, start in enumerate(self.starts):
            at_risk = self.told - place + sum(each >= start for each in self.reached)
            waits -= waits / at_risk
            if 1 - waits >= part - _ROUNDED:
                return start
        return None
