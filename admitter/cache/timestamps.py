"""Timestamps of the API, read."""

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=4096)  # a status is read many times while it stays the same, and times are whole seconds
def seconds(timestamp: str) -> float:
    """An API timestamp as seconds since the epoch.

    Raises:
        ValueError: it is none, or a moment that can't be written again: not of the years 1 to 9999 in UTC.
    """
    try:
        return datetime.fromisoformat(timestamp).astimezone(UTC).timestamp()
    except OverflowError as error:
        raise ValueError(f"{timestamp!r} is not of the years 1 to 9999") from error
