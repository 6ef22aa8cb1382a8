"""Expected moments, as the API writes times: the last one is in the year 9999."""

from datetime import UTC, datetime
from typing import Final

from admitter.cache.views import at, timestamp

_LAST: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()


def stamp(moment: float) -> str:
    """A moment in seconds since the epoch as the API writes it, at most the last one it can write."""
    return timestamp(at(min(moment, _LAST)))
