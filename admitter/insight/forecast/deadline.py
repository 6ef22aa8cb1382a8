"""How long an answer may take. The clock is a parameter: a playout never reads one itself."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Final, Self

Clock = Callable[[], float]
"""The time, in seconds since any moment; it never goes back."""
Proceed = Callable[[], None]
"""Called at each step of a playout: raises OutOfTimeError if there is no time for the next one."""

ESTIMATE_SECONDS: Final = 2.0
"""How long an estimate may take by default."""


class OutOfTimeError(Exception):
    """There is no time to go on."""


def without_end() -> None:
    """Let a playout take as long as it takes."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment by which an answer has to be there."""

    at: float  # by the clock
    clock: Clock

    @classmethod
    def after(cls, seconds: float, clock: Clock) -> Self:
        return cls(clock() + seconds, clock)

    @property
    def left(self) -> float:
        """Seconds that are left; not positive once it is over."""
        return self.at - self.clock()

    def is_over(self) -> bool:
        return self.left <= 0

    def proceed(self) -> None:
        """Go on.

        Raises:
            OutOfTimeError: no time is left.
        """
        if self.is_over():
            raise OutOfTimeError

    def sooner(self, part: float) -> Self:
        """The deadline after a part of the time that is left."""
        now = self.clock()
        return type(self)(now + (self.at - now) * part, self.clock)


@dataclass(frozen=True, slots=True)
class Allowance:
    """A length of time, which starts with `begin`."""

    seconds: float  # inf: for ever
    clock: Clock = time.monotonic

    def begin(self, part: float = 1.0) -> Deadline:
        """The deadline after a part of it, from now on."""
        return Deadline.after(self.seconds * part, self.clock)


NO_LIMIT: Final = Allowance(inf)
"""As long as it takes."""
