"""Failures of writes that are tried again: which of them are logged, and when they are told."""

import logging
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from admitter.client.errors import is_busy, is_retryable, is_too_late, level_of

K = TypeVar("K", bound=Hashable)

FAILURES_TOLD: Final = 6
"""After so many refusals in a row users are told: in a work queue some seconds."""
REFUSALS_TOLD: Final = 2
"""As many where what is refused is tried again after some seconds only."""


class Failure(NamedTuple):
    """A failure, and how loud it is to be logged."""

    level: int  # of logging: an answer is loud once for a key, until another one comes
    times: int  # how many there were in a row; those of a server that is too busy are left out


def is_refused(error: Exception) -> bool:
    """Whether a failure is about what was asked, and not about the server or the moment."""
    return not is_busy(error) and not is_too_late(error)


def is_rejected(error: Exception) -> bool:
    """The same, but for a server that fails: it may take the same write a little later."""
    return not is_retryable(error) and not is_too_late(error)


@dataclass
class _Row:
    count: int = 0
    refusals: int = 0
    logged: str = ""


class Failures(Generic[K]):
    """Failures in a row, for each key and what was tried."""

    def __init__(
        self,
        refused: Callable[[K, Exception], None] = lambda _, __: None,
        told_after: int = FAILURES_TOLD,
        is_refused: Callable[[Exception], bool] = is_refused,
    ) -> None:
        """Call `refused` with a key and the last error after so many refusals without a success."""
        self._refused = refused
        self._told_after = told_after
        self._is_refused = is_refused
        self._rows: dict[K, dict[str, _Row]] = {}

    def __contains__(self, key: object) -> bool:
        """Whether anything has failed last for a key."""
        return key in self._rows

    def note(self, key: K, error: Exception, tried: str = "") -> Failure:
        """What was tried for a key has failed again."""
        row = self._rows.setdefault(key, {}).setdefault(tried, _Row())
        row.count += not is_busy(error)
        level = logging.DEBUG if row.logged == str(error) else level_of(error)
        if level > logging.DEBUG:
            row.logged = str(error)
        if self._is_refused(error):
            row.refusals += 1
            if row.refusals == self._told_after:
                self._refused(key, error)
        return Failure(level, row.count)

    def over(self, key: K, tried: str | None = None) -> None:
        """What was tried for a key has succeeded; None: whatever it was, it is not tried again."""
        rows = self._rows.get(key)
        if rows is None:
            return
        if tried is not None:
            rows.pop(tried, None)
        if tried is None or not rows:
            del self._rows[key]
