"""What becomes of a Workload after its admission: `spec.lifecycle` of ClusterQueues and Cohorts.

A field that a ClusterQueue leaves out is that of the nearest Cohort above that has it (docs/run-time.md,
docs/not-starting.md).
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

from pydantic import Field, field_validator

from admitter.api.base import Duration, Int32, Int64, Model, Moment
from admitter.quantities.durations import parse_duration


class OnMaxRuntime(StrEnum):
    """What becomes of a Workload that has used up its maximum run time."""

    FINISH = "Finish"
    REQUEUE = "Requeue"


class Backoff(Model):
    """How long a Workload waits after an eviction for readiness."""

    base: Duration = 60
    """The wait after the first eviction, such as 30s, 5m or 1h30m."""
    factor: Int32 = Field(default=2, ge=1, le=100)
    """Each further wait in a row is so many times as long as the one before."""
    max: Duration = 3600
    """The longest wait, such as 30s, 5m or 1h30m."""


class GiveUp(Model):
    """When a Workload that does not become ready is paused (spec.active false). Whichever comes first."""

    attempts: Int32 | None = Field(default=None, ge=1, le=1_000_000)
    """After so many evictions in a row for which its own pods are to blame. Absent: any number."""
    after: Duration | None = None
    """With the first such eviction so long after the admission that began the row, such as 6h or 2d. Absent:
    any time."""


class Lifecycle(Model):
    """What becomes of a Workload after its admission."""

    ready_timeout: Duration | None = None
    """How long after its admission all pods of a Workload have to be ready, or to have succeeded, such as 90s
    or 30m. After that it is evicted, and tried again later. 0: no limit. Absent everywhere: 30m for Jobs, and
    no limit for other kinds."""
    recovery_timeout: Duration | None = None
    """How long a Workload that was ready may lack a ready pod before it is evicted, such as 90s or 30m.
    0: no limit. Absent everywhere: as readyTimeout. Means nothing where readyTimeout is 0."""
    backoff: Backoff | None = None
    """How long a Workload waits after an eviction for readiness; it holds nothing meanwhile, and no other
    waits for it. Absent everywhere: 60s, twice as long each time, at most 1h."""
    give_up: GiveUp | None = None
    """When a Workload that does not become ready is paused. Evictions for want of a node count for nothing
    here. Absent everywhere: never."""
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


def joined(places: Sequence[tuple[str, Lifecycle]]) -> Lifecycle:
    """All fields, each as the first of some places says that sets it."""
    found = {field: nearest(field, places) for field in Lifecycle.model_fields}
    return Lifecycle.model_construct(**{field: each[1] for field, each in found.items() if each is not None})


def nearest(field: str, places: Iterable[tuple[str, Lifecycle]]) -> tuple[str, Any] | None:
    """The first of some places, each with its title, that sets a field, and the value; None: none does."""
    for title, each in places:
        value = getattr(each, field)
        if value is not None:
            return title, value
    return None
