"""Moments that are foreseen, as the API writes times: there is a last one of these."""

from datetime import UTC, datetime
from typing import Final

from admitter.cache.views import at, timestamp

_LAST: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def stamp(moment: float) -> str:
    """A moment in seconds since the epoch as the API writes it; the last that it can write if it is later."""
    return timestamp(at(min(moment, _LAST)))
