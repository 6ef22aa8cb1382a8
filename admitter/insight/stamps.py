"""Moments as the API writes times, of which the last is in the year 9999, and lengths of time in words."""

from datetime import UTC, datetime
from typing import Final

from admitter.cache.views import at, timestamp

_LAST: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
_STEPS: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def stamp(moment: float) -> str:
    """A moment in seconds since the epoch as the API writes it, at most the last one it can write."""
    return timestamp(at(min(moment, _LAST)))


def spell(seconds: float) -> str:
    """A length of time, in its two largest units."""
    left = round(seconds)
    for (size, unit), below in zip(_STEPS, (*(each[1] for each in _STEPS[1:]), "s"), strict=True):
        if left >= size:
            smaller = {"h": 3_600, "min": 60, "s": 1}[below]
            rest = left % size // smaller
            return f"{left // size} {unit}" + (f" {rest} {below}" if rest else "")
    return f"{left} s"
