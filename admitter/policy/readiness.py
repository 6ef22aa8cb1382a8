"""Until when the pods of an admitted Workload have to be ready, and when it is tried again if they were not.

Pure arithmetic: times are seconds since the epoch, spans are seconds, and nothing here has a clock. The
numbers come from `spec.lifecycle` (`admitter.policy.lifecycle_rules`). docs/design/readiness.md has an
example.
"""

from dataclasses import dataclass, replace
from hashlib import sha256
from math import ceil
from typing import Final

from admitter.api.lifecycle import Lifecycle
from admitter.cache.readiness_status import ReadinessStatus
from admitter.names import READY_TIMEOUT_ANNOTATION
from admitter.quantities.durations import InvalidDurationError, parse_duration, written_duration

DEFAULT_SECONDS: Final = 1800.0
"""The time that a Job gets where neither its queue nor a Cohort above says anything."""
JITTER: Final = 0.1
"""By at most such a part a wait is shorter than the rule says, so that not all try again in one moment."""
LOSS_SECONDS: Final = 60.0
"""A Workload that was ready lacks a pod for so long before a status says so: most are there by then."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long Workloads wait after evictions for readiness: a geometric series with a cap, in seconds."""

    base: float = 60.0
    factor: int = 2
    most: float = 3600.0


@dataclass(frozen=True, slots=True)
class GiveUp:
    """When a Workload is not tried again; with neither part it always is."""

    attempts: int | None = None  # after so many evictions that its own pods are to blame for
    after: float | None = None  # so many seconds after the admission that began the row


@dataclass(frozen=True, slots=True)
class ReadyRules:
    """What a queue and the Cohorts above it say.

    A `timeout` of None says nothing, and 0 means no limit. So does a `recovery` of 0; None is the timeout.
    """

    timeout: float | None = None
    recovery: float | None = None
    backoff: Backoff = Backoff()
    give_up: GiveUp = GiveUp()

    def limit(self, *, by_default: bool) -> float:
        """The time that a Workload gets, 0 for no limit; `by_default` is whether it has one unless told."""
        if self.timeout is not None:
            return self.timeout
        return DEFAULT_SECONDS if by_default else 0.0

    def recovery_limit(self, *, by_default: bool) -> float:
        """The time that it gets to be ready again; 0 for no limit."""
        limit = self.limit(by_default=by_default)
        return self.recovery if limit and self.recovery is not None else limit


NO_RULES: Final = ReadyRules()


def rules_of(said: Lifecycle) -> ReadyRules:
    """The rules of a queue, by its lifecycle with what Cohorts above say where it says nothing."""
    rules = ReadyRules(_seconds(said.ready_timeout), _seconds(said.recovery_timeout))
    if said.backoff is not None:
        base, most = parse_duration(str(said.backoff.base)), parse_duration(str(said.backoff.max))
        rules = replace(rules, backoff=Backoff(base, said.backoff.factor, most))
    if said.give_up is not None:
        rules = replace(rules, give_up=GiveUp(said.give_up.attempts, _seconds(said.give_up.after)))
    return rules


def _seconds(written: str | int | None) -> float | None:
    return parse_duration(str(written)) if written is not None else None


def wait(backoff: Backoff, attempt: int, uid: str) -> int:
    """For how many seconds a Workload waits after so many evictions in a row, at least one.

    The jitter follows from UID and attempt alone, so a restart, a follower and a replay find the same.
    """
    most, span = max(1.0, backoff.most), max(1.0, backoff.base)
    if backoff.factor > 1:
        for _ in range(attempt - 1):  # ends early: each step at least doubles the span
            if span >= most:
                break
            span *= backoff.factor
    digest = sha256(f"{uid}/{attempt}".encode()).digest()
    part = int.from_bytes(digest[:8], "big") / 2**64
    return max(1, ceil(min(most, span) * (1 - JITTER * part)))


def deadline(admitted: float, limit: float) -> float:
    """The whole second until which a Workload has to be ready that was admitted then."""
    return float(ceil(admitted + limit))


def asked_limit(text: str | None, limit: float, queue: str, title: str) -> tuple[float, str]:
    """The limit of a Workload with such an annotation, and what its user is to be told; empty: nothing.

    `limit` is that of its queue, 0 for none. The annotation may shorten it; what can't be read counts as if
    it were not there. `title` names the object with the annotation, `queue` what sets the limit.
    """
    if text is None:
        return limit, ""
    place = f"{title}: metadata.annotations[{READY_TIMEOUT_ANNOTATION}]"
    try:
        asked = parse_duration(text)
    except InvalidDurationError as error:
        return limit, f"{place}: {error}; {_counts(limit, queue)}"
    if not limit or 0 < asked <= limit:
        return asked, ""
    span = written_duration(asked) if asked else "0s, which is no limit,"
    return limit, f"{place}: {span} is longer than {queue} allows; {_counts(limit, queue)}"


def _counts(limit: float, queue: str) -> str:
    return f"{written_duration(limit)} of {queue} counts" if limit else f"{queue} sets no limit"


def after_eviction(
    before: ReadinessStatus, admitted: float, now: float, uid: str, rules: ReadyRules, *, to_blame: bool
) -> ReadinessStatus:
    """What is remembered of a Workload that is evicted now since its pods were not ready.

    `to_blame` is whether that was due to its own pods, and not to the want of nodes.
    """
    attempts, failures = before.attempts + 1, before.failures + to_blame
    since = before.since if before.since is not None else admitted
    words = gives_up(rules.give_up, failures, since, now) if to_blame else ""
    next_try = None if words else float(ceil(now)) + wait(rules.backoff, attempts, uid)
    return ReadinessStatus(
        before.deadline,
        before.ready_at,
        before.recover_by,
        attempts,
        failures,
        since,
        next_try,
        words,
    )


def gives_up(rule: GiveUp, failures: int, since: float, now: float) -> str:
    """Why a Workload is not tried again after so many evictions that its pods are to blame for; or empty."""
    if rule.attempts is not None and failures >= rule.attempts:
        times = "once" if failures == 1 else f"{failures} times"
        return f"its pods have failed to become ready {times} (giveUp.attempts: {rule.attempts})"
    if rule.after is not None and now - since >= rule.after:
        span = written_duration(rule.after)
        return f"its pods have not become ready for {span} (giveUp.after: {span})"
    return ""


def admitted_anew(before: ReadinessStatus, until: float | None) -> ReadinessStatus:
    """What is remembered of a Workload that is admitted with such a deadline; None: it has no limit.

    The row of evictions goes on, unless it was given up: then its user has set it going again.
    """
    if before.gave_up:
        return ReadinessStatus(until)
    return ReadinessStatus(until, None, None, before.attempts, before.failures, before.since)


def is_late(known: ReadinessStatus, now: float, *, ready: bool, was_ready: bool) -> bool:
    """Whether an admitted Workload is out of time.

    `was_ready` is whether it is known to have been ready since its admission.
    """
    if ready:
        return False
    if known.recover_by is not None:
        return now >= known.recover_by
    return known.deadline is not None and not (was_ready or known.ready_at) and now >= known.deadline


def to_note(
    known: ReadinessStatus, now: float, lost: float | None, recovery: float, *, ready: bool, was_ready: bool
) -> ReadinessStatus | None:
    """What is to be remembered of a Workload that runs; None: nothing new.

    `lost` is since when it lacks a ready pod after it was ready, and `recovery` how long it may, or 0.
    """
    past = known.deadline is not None and now >= known.deadline
    seen = known.ready_at if known.ready_at is not None else now
    if ready and known.recover_by is not None:
        return ReadinessStatus(known.deadline, seen, None, known.attempts, known.failures, known.since)
    stays = lost is not None and recovery and now - lost >= loss_seconds(recovery)
    if not ready and stays and lost is not None and known.recover_by is None:
        until = float(ceil(lost + recovery))
        return ReadinessStatus(known.deadline, seen, until, known.attempts, known.failures, known.since)
    if past and known.ready_at is None and known.recover_by is None and (ready or was_ready):
        return ReadinessStatus(known.deadline, now)
    if past and ready and known.ready_at is not None and known.attempts:
        return ReadinessStatus(known.deadline, known.ready_at)
    return None


def loss_seconds(recovery: float) -> float:
    """For how long a pod is lost before that is written down, if there are so many seconds to recover."""
    return min(LOSS_SECONDS, recovery / 4)
