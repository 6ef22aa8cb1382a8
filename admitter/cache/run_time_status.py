"""The run time in the status of a Workload: what it has used up, and until when it may go on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from admitter.api.lifecycle import OnMaxRuntime
from admitter.cache.timestamps import seconds


@dataclass(frozen=True, slots=True)
class RunTimeStatus:
    """As `status.runTime` has it; times are in seconds since the epoch."""

    used: int = 0  # seconds that it held quota in earlier admissions
    deadline: float | None = None  # when the present admission ends at the latest; None: never, or it waits
    requeues: bool = False  # whether it waits again after that
    limit: str = ""  # where the deadline comes from, in words
    requeued: float | None = None  # when it was requeued last at the end of its time; None: never


NO_RUN_TIME = RunTimeStatus()
"""That of a Workload without a maximum."""


def run_time_of(status: Mapping[str, Any]) -> RunTimeStatus:
    """The run time in a status of a Workload.

    Raises:
        ValueError: a time in it is none.
    """
    raw = status.get("runTime")
    if not raw:
        return NO_RUN_TIME
    return RunTimeStatus(
        int(raw.get("usedSeconds") or 0),
        _seconds(raw.get("deadline")),
        raw.get("onMaxRuntime") == OnMaxRuntime.REQUEUE,
        str(raw.get("limit") or ""),
        _seconds(raw.get("requeuedAt")),
    )


def _seconds(timestamp: str | None) -> float | None:
    return seconds(timestamp) if timestamp else None
