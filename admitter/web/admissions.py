"""Admissions and evictions of the last day, found by comparing Workloads from one scene to the next."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from admitter.api.conditions import ConditionType, EvictedReason, FinishedReason
from admitter.cache.timestamps import seconds
from admitter.cache.views import WorkloadView
from admitter.cache.world import World
from admitter.convert import workloads
from admitter.engine.model import Admission
from admitter.insight.listing import job_name
from admitter.quantities.amounts import CPU

MOST_SPANS: Final = 20_000
"""Of those that have ended; 250 bytes each, with names of usual length."""
MOST_EVICTIONS: Final = 10_000


class Ending(StrEnum):
    """How an admission ended."""

    RUNNING = "running"
    """It has not ended."""
    SUCCEEDED = "succeeded"
    """Its Job is Complete."""
    FAILED = "failed"
    """Its Job is Failed."""
    EVICTED = "evicted"
    """It had to stop; `reason` says why, and the eviction of its time for which Workload."""
    OUT_OF_TIME = "outOfTime"
    """It has held quota for as long as it may."""
    DELETED = "deleted"
    """Its Workload was deleted while it held quota."""
    UNKNOWN = "unknown"
    """It ended while the page did not run, and its status does not tell how."""


@dataclass(frozen=True, slots=True)
class Span:
    """One admission of a Workload: from when to when it held quota. Times are in seconds since the epoch."""

    uid: str  # of the Workload
    namespace: str
    name: str  # of its Job, or its own if it has none; empty if it is hidden from the user
    workload: str  # its own name
    queue: str  # the engine's name of its queue
    flavors: tuple[str, ...]  # that it got, in order of their names
    usage: tuple[tuple[str, str, float], ...]  # flavor, resource and amount, in cores, bytes or devices
    pods: int
    priority: int
    queued: float  # since when it had waited: its creation, or the end of the admission before
    admitted: float
    ended: float | None = None  # when its quota was free again; None: it holds it
    how: Ending = Ending.RUNNING
    reason: str = ""  # of its eviction or end, in one word (`EvictedReason`, `FinishedReason`)
    evicted: float | None = None  # when it had to stop; None: it had not

    @property
    def waited(self) -> float:
        """For how long it had waited, in seconds."""
        return max(0.0, self.admitted - self.queued)

    @property
    def key(self) -> tuple[str, float]:
        return (self.uid, self.admitted)

    def hidden(self) -> "Span":
        """The same for those that may not see its namespace."""
        return replace(self, uid="", namespace="", name="", workload="", usage=(), pods=0, priority=0)


@dataclass(frozen=True, slots=True)
class Eviction:
    """One Workload had to stop."""

    time: float  # when, in seconds since the epoch
    uid: str
    namespace: str
    name: str  # of its Job, or its own if it has none; empty if it is hidden from the user
    workload: str  # its own name
    queue: str  # the engine's name of the queue that it was evicted from
    reason: str  # in one word (`EvictedReason`)
    rule: str  # by which it was preempted and what was compared, in a sentence; empty if it was not
    for_namespace: str  # the preemptor's; empty if there was none, or if it is hidden from the user
    for_name: str  # the name of the preemptor's Job, or of its Workload

    @property
    def key(self) -> tuple[str, float]:
        return (self.uid, self.time)

    def hidden(self) -> "Eviction":
        """The same for those that may not see its namespace."""
        return replace(self, uid="", namespace="", name="", workload="", rule="")

    def for_hidden(self) -> "Eviction":
        """The same for those that may not see the preemptor's namespace."""
        return replace(self, for_namespace="", for_name="")


_ENDINGS: Final = {
    FinishedReason.JOB_SUCCEEDED: Ending.SUCCEEDED,
    FinishedReason.JOB_FAILED: Ending.FAILED,
    FinishedReason.EVICTED: Ending.EVICTED,
    FinishedReason.MAX_RUNTIME_EXCEEDED: Ending.OUT_OF_TIME,
}


class Admissions:
    """What is known of admissions; its present is the last scene's."""

    def __init__(self, kept_seconds: float) -> None:
        self._kept = kept_seconds
        self._seen: dict[str, int] = {}  # versions by UID
        self._open: dict[str, Span] = {}
        self._over: dict[tuple[str, float], Span] = {}  # in the order in which they were known to be over
        self._freed: dict[str, float] = {}  # when those that wait again gave their quota back
        self._evictions: dict[tuple[str, float], Eviction] = {}
        self._changed: dict[tuple[str, float], Span] = {}
        self._new: list[Eviction] = []

    def spans(self) -> Iterator[Span]:
        yield from self._over.values()
        yield from self._open.values()

    def evictions(self) -> Iterable[Eviction]:
        return self._evictions.values()

    def changes(self) -> tuple[list[Span], list[Eviction]]:
        """What has changed since this was last asked."""
        found = list(self._changed.values()), self._new
        self._changed, self._new = {}, []
        return found

    def restore(self, spans: Iterable[Span], evictions: Iterable[Eviction]) -> None:
        """Take up what was known earlier. What has not ended in it ends, or goes on, by the next scene."""
        known, found = {span.key for span in self._open.values()}, dict(self._over)
        self._over = {}
        for span in sorted(spans, key=lambda span: (span.ended or 0.0, span.key)):
            if span.key in known or span.key in found:
                continue
            if span.ended is None and span.uid not in self._open:
                self._open[span.uid] = span
            elif span.ended is not None:
                self._over[span.key] = span
        self._over |= found
        late = self._evictions
        self._evictions = {each.key: each for each in sorted(evictions, key=lambda each: each.time)} | late
        self._seen = {}  # each Workload is compared with what was known of it

    def note(self, world: World, now: float) -> None:
        """Compare all Workloads with what was known of them."""
        seen = {view.uid: view.version for view in world.workloads}
        ends: list[Span] = []
        for view in world.workloads:
            if self._seen.get(view.uid) != view.version:
                ends += self._compared(view, world, now)
        gone = (self._seen.keys() | self._open.keys()) - seen.keys()
        for uid in gone:
            self._freed.pop(uid, None)
            span = self._open.pop(uid, None)
            if span is not None:
                ends.append(replace(span, ended=max(now, span.admitted), how=Ending.DELETED))
        self._seen = seen
        for span in sorted(ends, key=lambda span: (span.ended or 0.0, span.key)):
            self._over[span.key] = self._changed[span.key] = span
        self._forget(now)

    def _compared(self, view: WorkloadView, world: World, now: float) -> Iterator[Span]:
        """Note one Workload; returns the admissions of it that are over."""
        known = self._open.get(view.uid)
        self._note_eviction(view, known, world, now)
        if view.finished:
            self._freed.pop(view.uid, None)
            yield from self._finished(view, self._open.pop(view.uid, None), now)
        elif view.admission is None:
            if known is not None:
                yield _given_back(self._open.pop(view.uid), view)
            self._freed.pop(view.uid, None)
            if view.is_true(ConditionType.EVICTED):
                self._freed[view.uid] = waiting_since(view)
        else:
            if known is not None and known.admitted != view.since:
                end = min(max(known.evicted or view.since, known.admitted), view.since)
                how = Ending.EVICTED if known.evicted is not None else Ending.UNKNOWN
                yield replace(known, ended=end, how=how)
                self._freed.setdefault(view.uid, end)
                known = None
            queued = known.queued if known is not None else self._freed.pop(view.uid, view.created)
            span = _span(view, view.admission, queued)
            self._open[view.uid] = span
            if span != known:
                self._changed[span.key] = span

    def _finished(self, view: WorkloadView, known: Span | None, now: float) -> Iterator[Span]:
        """The last admission of a Workload that is finished, if it had one lately that is not known."""
        over = view.condition(ConditionType.FINISHED)
        ended, reason = seconds(over["lastTransitionTime"]), str(over.get("reason", ""))
        record = _recorded(view)
        if record is not None and (known is None or known.admitted != view.since):
            if known is not None:
                yield replace(known, ended=view.since, how=Ending.UNKNOWN)
            known = _span(view, record, view.created)
        if known is None or known.key in self._over or ended < now - self._kept:
            return
        how = _ENDINGS.get(FinishedReason(reason), Ending.UNKNOWN) if reason in _REASONS else Ending.UNKNOWN
        yield replace(known, ended=max(ended, known.admitted), how=how, reason=reason)

    def _note_eviction(self, view: WorkloadView, known: Span | None, world: World, now: float) -> None:
        if not view.is_true(ConditionType.EVICTED):
            return
        condition = view.condition(ConditionType.EVICTED)
        time, reason = seconds(condition["lastTransitionTime"]), str(condition.get("reason", ""))
        if (view.uid, time) in self._evictions or time < now - self._kept:
            return
        queue = view.admission.queue if view.admission is not None else known.queue if known else ""
        by = view.preemption if reason == EvictedReason.PREEMPTED else None
        preemptor = world.workloads.get(by.key) if by is not None else None
        made = Eviction(
            time,
            view.uid,
            view.namespace,
            job_name(view),
            view.name,
            queue or str(view.status.get("clusterQueue") or ""),
            reason,
            by.why if by is not None else "",
            by.key[0] if by is not None else "",
            job_name(preemptor) if preemptor is not None else by.key[1] if by is not None else "",
        )
        self._evictions[made.key] = made
        self._new.append(made)

    def oldest(self, now: float) -> float:
        """What has ended before that moment is not kept."""
        first = next(iter(self._over.values()), None) if len(self._over) >= MOST_SPANS else None
        return max(now - self._kept, first.ended or 0.0) if first is not None else now - self._kept

    def _forget(self, now: float) -> None:
        """Drop what is too old, and what is too much."""
        oldest = now - self._kept
        while self._over:
            first = next(iter(self._over.values()))
            if len(self._over) <= MOST_SPANS and (first.ended or 0.0) >= oldest:
                break
            del self._over[first.key]
        while self._evictions:
            early = next(iter(self._evictions.values()))
            if len(self._evictions) <= MOST_EVICTIONS and early.time >= oldest:
                break
            del self._evictions[early.key]


_REASONS: Final = frozenset(map(str, FinishedReason))


def waiting_since(view: WorkloadView) -> float:
    """Since when a pending Workload has waited, in seconds since the epoch.

    That is its creation; of one that was evicted, when its quota was free.
    """
    reserved = view.condition(ConditionType.QUOTA_RESERVED)
    if view.is_true(ConditionType.EVICTED) and reserved.get("lastTransitionTime"):
        return max(view.created, seconds(reserved["lastTransitionTime"]))
    return view.created


def _recorded(view: WorkloadView) -> Admission | None:
    """The last admission of a finished Workload; None if it had none, or if what its status says is none."""
    raw = view.status.get("admission")
    if not raw or not view.is_true(ConditionType.QUOTA_RESERVED):
        return None
    try:
        return workloads.admission(raw)
    except (KeyError, TypeError, ValueError):  # a hand has written it: nothing else reads it
        return None


def _span(view: WorkloadView, admission: Admission, queued: float) -> Span:
    evicted = view.condition(ConditionType.EVICTED) if view.is_true(ConditionType.EVICTED) else {}
    return Span(
        view.uid,
        view.namespace,
        job_name(view),
        view.name,
        admission.queue,
        tuple(sorted({flavor for each in admission.pod_sets for _, flavor in each.flavors})),
        tuple(
            (flavor, resource, amount / 1000 if resource == CPU else float(amount))
            for (flavor, resource), amount in admission.usage
        ),
        sum(each.count for each in admission.pod_sets),
        int(view.spec.get("priority", 0)),
        queued,
        view.since,
        reason=str(evicted.get("reason", "")),
        evicted=seconds(evicted["lastTransitionTime"]) if evicted else None,
    )


def _given_back(span: Span, view: WorkloadView) -> Span:
    """The admission of a Workload that waits again."""
    reason, evicted, how = span.reason, span.evicted, Ending.UNKNOWN
    if view.is_true(ConditionType.EVICTED):
        condition = view.condition(ConditionType.EVICTED)
        reason, evicted = str(condition.get("reason", "")), seconds(condition["lastTransitionTime"])
        how = Ending.OUT_OF_TIME if reason == EvictedReason.MAX_RUNTIME_EXCEEDED else Ending.EVICTED
    released = view.condition(ConditionType.QUOTA_RESERVED).get("lastTransitionTime")
    ended = seconds(released) if released else view.created
    return replace(span, ended=max(ended, span.admitted), how=how, reason=reason, evicted=evicted)
