"""What Jobs say of their own runtime, and how far that counts.

Whoever may make a Job may say anything of it, and others' estimates go by what is said. So a word counts up
to what Kubernetes enforces, and `durations` compares it with earlier words of the same
owner. What is no duration is no word: nothing raises here, and `complaint` says why it is none.
"""

from math import ceil, floor, log10
from typing import Final

from admitter.cache.views import JobView
from admitter.names import EXPECTED_RUNTIME_ANNOTATION
from admitter.quantities.durations import LONGEST_SECONDS, InvalidDurationError, parse_duration

LONGEST: Final = float(LONGEST_SECONDS)
"""Seconds: nothing is said or reckoned to run for longer."""
_RETRIES: Final = 6
"""How often pods are tried again where a Job does not say."""
_ALIKE: Final = (-1, 0, 1)
"""A word bears out others of its own order of magnitude, and of the two beside it."""


def word_of(job: JobView | None) -> float | None:
    """For how many seconds a Job says that it runs, no more than it can; None: no word counts."""
    said = _said(job)
    return min(said, most(job)) if isinstance(said, float) else None


def complaint(job: JobView | None) -> str:
    """Why what a Job's annotation says does not count; empty if it does, or there is none."""
    said = _said(job)
    return f"annotation {EXPECTED_RUNTIME_ANNOTATION} is not taken: {said}" if isinstance(said, str) else ""


def deadline_of(job: JobView | None) -> float | None:
    """After how many seconds Kubernetes ends a Job; None: never, or so late that it tells nothing."""
    return _seconds(job.spec.get("activeDeadlineSeconds")) if job is not None else None


def most(job: JobView | None) -> float:
    """For how many seconds a Job runs at most, by its own deadline and that of its pods."""
    found = (deadline_of(job), _pods_deadline(job))
    return min((each for each in found if each is not None), default=LONGEST)


def magnitude(word: float) -> int:
    """The order of magnitude of a word: 0 from 1 to 10 seconds, and for all that is less."""
    return floor(log10(max(1.0, word)))


def bears_out(word: float) -> tuple[int, ...]:
    """The orders of magnitude of the words of which a word that was true or false tells something.

    Three Jobs of a second that said so do not make a word of a year true.
    """
    own = magnitude(word)
    return tuple(own + step for step in _ALIKE)


def truth(word: float, took: float) -> float:
    """How many times as long as its word something took; times are known to a second."""
    return max(1.0, took) / max(1.0, word)


def _said(job: JobView | None) -> float | str | None:
    """What an annotation says, in seconds; or why it says nothing; None: there is none."""
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
    """A number of a manifest; None if it is none, or beyond all that is reckoned with."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= LONGEST:
        return None
    return float(value)
