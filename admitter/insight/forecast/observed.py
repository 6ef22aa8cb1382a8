"""What several playouts say of one Workload's start, if some ended too early to tell."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_ROUNDED: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Observed:
    """One start in several playouts."""

    starts: Sequence[float]  # in seconds from now, in order
    never: int  # the number of playouts that ended without a start
    reached: Sequence[float]  # how far the other playouts ran, in seconds from now, before the time was over

    @property
    def told(self) -> int:
        """The number of playouts that tell when it starts, or that it does not."""
        return len(self.starts) + self.never

    def within(self, part: float) -> float | None:
        """By when it has started in a part (0 to 1) of the playouts; None: later than is known, or never.

        The product-limit estimate (Kaplan and Meier, 1958): a playout that ran for long without a start
        tells that the start is late; one that hardly ran tells nothing. If all ran to their end it is the
        start at that place in their order.
        """
        waits = 1.0  # the part of the playouts in which it has not started yet
        for place, start in enumerate(self.starts):
            at_risk = self.told - place + sum(each >= start for each in self.reached)
            waits -= waits / at_risk
            if 1 - waits >= part - _ROUNDED:
                return start
        return None
