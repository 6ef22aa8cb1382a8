"""How long an answer may take. The clock is handed in: what is played never reads one itself."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final, Self

Clock = Callable[[], float]
"""Says when it is, in seconds since whenever; it never goes back."""
Proceed = Callable[[], None]
"""Called at each step of a future: raises OutOfTimeError if there is no time for the next one."""

ESTIMATE_SECONDS: Final = 2.0
"""So long an estimate may take if no other time is given."""


class OutOfTimeError(Exception):
    """There is no time to go on."""


def without_end() -> None:
    """A future may take as long as it takes."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment by which an answer has to be there.

    Attributes:
        at: that moment, by the clock.
        clock: what says when it is.
    """

    at: float
    clock: Clock

    @classmethod
    def after(cls, seconds: float, clock: Clock) -> Self:
        """So many seconds from now."""
        return cls(clock() + seconds, clock)

    @property
    def left(self) -> float:
        """So many seconds are left; not positive if it is over."""
        return self.at - self.clock()

    def is_over(self) -> bool:
        """Whether no time is left."""
        return self.left <= 0

    def proceed(self) -> None:
        """Go on.

        Raises:
            OutOfTimeError: no time is left.
        """
        if self.is_over():
            raise OutOfTimeError

    def sooner(self, part: float) -> Self:
        """When only that part of what is left now will have passed."""
        now = self.clock()
        return type(self)(now + (self.at - now) * part, self.clock)


@dataclass(frozen=True, slots=True)
class Allowance:
    """A length of time, which begins to run when it is taken.

    Attributes:
        seconds: how long; inf: for ever.
        clock: what says when it is.
    """

    seconds: float
    clock: Clock = time.monotonic

    def begin(self, part: float = 1.0) -> Deadline:
        """When that part of it will have passed, from now on."""
        return Deadline.after(self.seconds * part, self.clock)


NO_LIMIT: Final = Allowance(inf)
"""As long as it takes."""
