"""Lifecycle: how long what a ClusterQueue admits may go on (docs/run-time.md).

A Cohort has the same fields, as defaults for the queues below it: the nearest one that sets a field counts.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from pydantic import Field, field_validator

from admitter.api.base import Duration, Int64, Model, Moment
from admitter.quantities.durations import parse_duration


class OnMaxRuntime(StrEnum):
    """What becomes of a Workload that has used up its maximum run time."""

    FINISH = "Finish"
    REQUEUE = "Requeue"


class Lifecycle(Model):
    """How long Workloads of a queue may go on."""

    max_runtime: Duration | None = None
    """How long a Workload may hold quota, all of its admissions together, such as 30m or 12h. Its object may
    ask for less, or in a queue without a maximum for any, by its annotation admitter.dev/max-runtime. Absent:
    what the nearest Cohort above says; if none does, there is no maximum."""
    on_max_runtime: OnMaxRuntime | None = None
    """What becomes of a Workload then, once its pods are gone. Finish: it is over, and its Job stays
    suspended. Requeue: it waits again, behind those that wait already, and its time starts anew. Absent: what
    the nearest Cohort above says; if none does, Finish."""

    @field_validator("max_runtime")
    @classmethod
    def _is_some_time(cls, value: str | int | None) -> str | int | None:
        if value is not None and parse_duration(str(value)) <= 0:
            raise ValueError(f"{value} is no time at all")
        return value


class RunTime(Model):
    """How long a Workload has held quota, and how long it may."""

    used_seconds: Int64 = Field(default=0, ge=0)
    """How long it held quota in its admissions before this one, each up to its eviction."""
    deadline: Moment | None = None
    """When this admission ends at the latest. Fixed at the admission. Absent: it waits."""
    on_max_runtime: OnMaxRuntime = OnMaxRuntime.FINISH
    """What becomes of it at the deadline."""
    limit: str | None = Field(default=None, max_length=1024)
    """Where the deadline comes from, in words."""
    requeued_at: Moment | None = None
    """When it was requeued last, since its time was used up: its place in the queue is by this time."""


def nearest(field: str, places: Iterable[tuple[str, Lifecycle]]) -> tuple[str, Any] | None:
    """The first of some places, each with its title, that sets a field, and the value; None: none does."""
    for title, each in places:
        value = getattr(each, field)
        if value is not None:
            return title, value
    return None
