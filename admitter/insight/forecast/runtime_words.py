"""The stated runtimes of Jobs, and how far they count.

A user that may create a Job may state any runtime, and other users' estimates depend on it. So a stated
runtime counts up to what Kubernetes enforces, and `durations` compares it with earlier ones of the same
owner. An invalid duration counts as none: nothing raises here, and `complaint` says why.
"""

from math import ceil, floor, log10
from typing import Final

from admitter.cache.views import JobView
from admitter.names import EXPECTED_RUNTIME_ANNOTATION
from admitter.quantities.durations import LONGEST_SECONDS, InvalidDurationError, parse_duration

LONGEST: Final = float(LONGEST_SECONDS)
"""Seconds: the longest runtime, stated or computed."""
_RETRIES: Final = 6
"""The retries of a Job without `backoffLimit`."""
_ALIKE: Final = (-1, 0, 1)
"""A stated runtime confirms others of its own order of magnitude, and of the two beside it."""


def word_of(job: JobView | None) -> float | None:
    """The stated runtime of a Job in seconds, at most what it can run; None: none counts."""
    said = _said(job)
    return min(said, most(job)) if isinstance(said, float) else None


def complaint(job: JobView | None) -> str:
    """Why the stated runtime of a Job does not count; empty if it does, or there is none."""
    said = _said(job)
    return f"annotation {EXPECTED_RUNTIME_ANNOTATION} is not taken: {said}" if isinstance(said, str) else ""


def deadline_of(job: JobView | None) -> float | None:
    """After how many seconds Kubernetes ends a Job; None: never, or so late that it tells nothing."""
    return _seconds(job.spec.get("activeDeadlineSeconds")) if job is not None else None


def most(job: JobView | None) -> float:
    """The longest runtime of a Job in seconds, by its own deadline and that of its pods."""
    found = (deadline_of(job), _pods_deadline(job))
    return min((each for each in found if each is not None), default=LONGEST)


def magnitude(word: float) -> int:
    """The order of magnitude of a stated runtime: 0 up to 10 seconds."""
    return floor(log10(max(1.0, word)))


def bears_out(word: float) -> tuple[int, ...]:
    """The orders of magnitude of stated runtimes that a stated runtime confirms or refutes.

    Three true statements of a second do not confirm a statement of a year.
    """
    own = magnitude(word)
    return tuple(own + step for step in _ALIKE)


def truth(word: float, took: float) -> float:
    """Actual runtime divided by stated runtime; times are known to a second."""
    return max(1.0, took) / max(1.0, word)


def _said(job: JobView | None) -> float | str | None:
    """The annotation in seconds; or why it is invalid; None: there is none."""
    if job is None or "expected" not in job.spec:
        return None
    try:
        said = parse_duration(job.spec["expected"])
    except InvalidDurationError as error:
        return str(error)
    return said if said > 0 else f"{job.spec['expected']!r} is no time at all"


def _pods_deadline(job: JobView | None) -> float | None:
    """The time after which the last pod has ended if each goes on until its own deadline; None without one.

    Pods run in rounds of `parallelism`, and each failure may cost a round more.
    """
    each = _seconds(job.spec.get("podDeadlineSeconds")) if job is not None else None
    if job is None or each is None:
        return None
    completions, parallelism = _seconds(job.spec.get("completions")), _seconds(job.spec.get("parallelism"))
    rounds = ceil(completions / parallelism) if completions and parallelism else 1
    retries = _seconds(job.spec.get("backoffLimit"))
    return min(LONGEST, each * (rounds + (_RETRIES if retries is None else retries)))


def _seconds(value: object) -> float | None:
    """A number of a manifest; None if it is none, negative, or above LONGEST."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST:
        return None
    return float(value)
