"""`status.readiness` of a Workload, read."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from admitter.cache.timestamps import seconds


@dataclass(frozen=True, slots=True)
class ReadinessStatus:
    """Until when a Workload has to be ready, and how often it was not; times in seconds since the epoch."""

    deadline: float | None = None
    ready_at: float | None = None
    recover_by: float | None = None
    attempts: int = 0
    failures: int = 0
    since: float | None = None
    next_try: float | None = None
    gave_up: str = ""
    tried_last: tuple[str, ...] = ()


NO_READINESS = ReadinessStatus()
"""That of a Workload without a limit."""


def read(raw: Mapping[str, Any] | None) -> ReadinessStatus:
    """The same as a status has it.

    Raises:
        ValueError: a time in it can't be read.
    """
    if not raw:
        return NO_READINESS
    return ReadinessStatus(
        _time(raw.get("deadline")),
        _time(raw.get("readyAt")),
        _time(raw.get("recoverBy")),
        int(raw.get("attempts") or 0),
        int(raw.get("failures") or 0),
        _time(raw.get("since")),
        _time(raw.get("nextTry")),
        str(raw.get("gaveUp") or ""),
        tuple(raw.get("triedLast") or ()),
    )


def written(known: ReadinessStatus) -> dict[str, Any] | None:
    """It as a merge patch writes it, of which nothing of an earlier one is left; None if it says nothing."""
    if known == NO_READINESS:
        return None
    return {
        "deadline": _text(known.deadline),
        "readyAt": _text(known.ready_at),
        "recoverBy": _text(known.recover_by),
        "attempts": known.attempts or None,
        "failures": known.failures or None,
        "since": _text(known.since),
        "nextTry": _text(known.next_try),
        "gaveUp": known.gave_up or None,
        "triedLast": list(known.tried_last) or None,
    }


def _time(text: str | None) -> float | None:
    return seconds(text) if text else None


def _text(time: float | None) -> str | None:
    if time is None:
        return None
    moment = datetime.fromtimestamp(time, UTC)
    return f"{moment.year:04}{moment:-%m-%dT%H:%M:%SZ}"
