"""The maximum run time: what counts, and when it is over (docs/design/run-time.md).

All of it is arithmetic on what the status of a Workload says, in whole seconds, with the time as an argument:
a process that starts in between comes to the same second. The controllers write what is found here into the
status with writes that they make anyway; a simulation takes it at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, floor
from typing import Any, Final

from admitter.api.lifecycle import Lifecycle, OnMaxRuntime, nearest
from admitter.cache.run_time_status import RunTimeStatus
from admitter.cache.views import JobView, at, timestamp
from admitter.names import MAX_RUNTIME_ANNOTATION
from admitter.quantities.durations import InvalidDurationError, parse_duration, written_duration

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunTimeRules:
    """What a queue says of the run time of its Workloads, with what Cohorts say instead."""

    cap: int | None = None  # seconds; None: no maximum
    source: str = ""  # the queue or the Cohort that says so
    requeues: bool = False  # whether a Workload waits again after its end


NO_RULES: Final = RunTimeRules()


def rules_of(places: Sequence[tuple[str, Lifecycle]]) -> RunTimeRules:
    """The rules of a queue: its own, then those of the Cohorts above, each with its title."""
    cap, end = nearest("max_runtime", places), nearest("on_max_runtime", places)
    return RunTimeRules(
        ceil(parse_duration(str(cap[1]))) if cap is not None else None,
        cap[0] if cap is not None else "",
        end is not None and end[1] is OnMaxRuntime.REQUEUE,
    )


@dataclass(frozen=True, slots=True)
class Maximum:
    """For how long a Workload may hold quota."""

    seconds: int
    requeues: bool
    words: str  # where it comes from


def asked_of(job: JobView | None) -> int | str | None:
    """The maximum that a job object asks for, in seconds; or why that can't be read; None: none."""
    text = job.spec.get("maxRuntime") if job is not None else None
    if text is None:
        return None
    try:
        seconds = ceil(parse_duration(text))
    except InvalidDurationError as error:
        return str(error)
    return seconds if seconds > 0 else f"{text!r} is no time at all"


def complaint(job: JobView | None) -> str:
    """Why the annotation of a job object can't be read; empty if it can, or there is none."""
    asked = asked_of(job)
    if not isinstance(asked, str) or job is None:
        return ""
    return f"the annotation {MAX_RUNTIME_ANNOTATION} of its {job.resource.kind}: {asked}"


def maximum(job: JobView | None, rules: RunTimeRules) -> Maximum | None:
    """The maximum of a Workload in a queue with these rules; None: it may go on for ever.

    A job object that asks for more than the queue allows gets that, and its user is told. One with an
    annotation that can't be read is not admitted.
    """
    asked = asked_of(job)
    own = asked if isinstance(asked, int) else None
    if own is not None and (rules.cap is None or own <= rules.cap):
        return Maximum(
            own, rules.requeues, f"its annotation {MAX_RUNTIME_ANNOTATION} of {written_duration(own)}"
        )
    if rules.cap is None:
        return None
    words = f"maxRuntime {written_duration(rules.cap)} of {rules.source}"
    if own is not None:
        asks = f"the {written_duration(own)} of its annotation {MAX_RUNTIME_ANNOTATION}"
        words += f", which counts instead of {asks}"
    return Maximum(rules.cap, rules.requeues, words)


def left_of(most: Maximum, status: RunTimeStatus) -> int:
    """For how many seconds more a Workload without quota may hold some; 0: its time is used up.

    One that is requeued has all of its time again.
    """
    left = max(0, most.seconds - status.used)
    return most.seconds if most.requeues and not left else left


def begun(status: RunTimeStatus, most: Maximum | None, now: float) -> RunTimeStatus:
    """The run time of a Workload that is admitted now; `left_of` it is more than 0."""
    if most is None:
        return RunTimeStatus()
    left = left_of(most, status)
    used = status.used if most.seconds - status.used == left else 0
    return replace(status, used=used, deadline=floor(now) + left, requeues=most.requeues, limit=most.words)


def is_over(status: RunTimeStatus, now: float) -> bool:
    """Whether an admitted Workload has to stop, since its time is used up."""
    return status.deadline is not None and status.deadline <= now


def stopped(status: RunTimeStatus, since: float, ended: float, now: float) -> tuple[RunTimeStatus, bool]:
    """The run time of a Workload that was admitted at `since`, evicted at `ended`, and waits again now.

    The second says whether its time was used up, and it is not to be requeued: then it is over.
    """
    if status.deadline is None:
        return status, False
    used = status.used + max(0, floor(ended) - floor(since))
    if ended < status.deadline:
        return replace(status, used=used, deadline=None), False
    if not status.requeues:
        return replace(status, used=used, deadline=None), True
    return replace(status, used=0, deadline=None, requeued=floor(now)), False


def over_message(status: RunTimeStatus) -> str:
    """What its user is told when a Workload has to stop."""
    then = "it is requeued" if status.requeues else "it is not admitted again"
    return f"its time is used up: {status.limit}; {then}"


def admitted_message(status: RunTimeStatus) -> str:
    """What its user is told at the admission; empty if there is no maximum."""
    if status.deadline is None:
        return ""
    return f"ends at {timestamp(at(status.deadline))} at the latest: {status.limit}"


def used_up_message(most: Maximum, status: RunTimeStatus) -> str:
    """Why a Workload with no time left is not admitted."""
    return f"it has held quota for {written_duration(status.used)}, and may for no longer: {most.words}"


def run_time_json(before: RunTimeStatus, now: RunTimeStatus) -> Json:
    """The part of a patch of a status that says the run time; empty if there is nothing to say."""
    if now == before:
        return {}
    if now == RunTimeStatus():
        return {"runTime": None}
    return {
        "runTime": {
            "usedSeconds": now.used,
            "deadline": _moment(now.deadline),
            "onMaxRuntime": OnMaxRuntime.REQUEUE if now.requeues else OnMaxRuntime.FINISH,
            "limit": now.limit or None,
            "requeuedAt": _moment(now.requeued),
        }
    }


def _moment(time: float | None) -> str | None:
    return timestamp(at(time)) if time is not None else None
