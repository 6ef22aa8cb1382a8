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
from admitter.engine import model
from admitter.engine.model import Admission
from admitter.insight.listing import job_name
from admitter.policy.snapshot import Snapshot
from admitter.web.lately import Key, Lately
from admitter.web.use_over_time import Earlier, Usage, changed, counted, usage_of

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
    usage: Usage  # that it uses now, or used when it ended
    pods: int
    priority: int
    queued: float  # since when it had waited: its creation, or the end of the admission before
    admitted: float
    ended: float | None = None  # when its quota was free again; None: it holds it
    how: Ending = Ending.RUNNING
    reason: str = ""  # of its eviction or end, in one word (`EvictedReason`, `FinishedReason`)
    evicted: float | None = None  # when it had to stop; None: it had not
    earlier: Earlier = ()  # what it used before

    @property
    def waited(self) -> float:
        """For how long it had waited, in seconds."""
        return max(0.0, self.admitted - self.queued)

    @property
    def key(self) -> Key:
        return (self.uid, self.admitted)


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
    def key(self) -> Key:
        return (self.uid, self.time)

    def for_hidden(self) -> "Eviction":
        """The same for those that may not see the preemptor's namespace."""
        return replace(self, for_namespace="", for_name="")


_ENDINGS: Final = {
    FinishedReason.JOB_SUCCEEDED: Ending.SUCCEEDED,
    FinishedReason.JOB_FAILED: Ending.FAILED,
    FinishedReason.EVICTED: Ending.EVICTED,
    FinishedReason.MAX_RUNTIME_EXCEEDED: Ending.OUT_OF_TIME,
}


@dataclass(frozen=True, slots=True)
class Changes:
    """What is new, and what was dropped although it is not old."""

    spans: list[Span]
    evictions: list[Eviction]
    spans_gone: list[Key]
    evictions_gone: list[Key]


class Admissions:
    """What is known of admissions; its present is the last scene's."""

    def __init__(self, kept_seconds: float) -> None:
        self._kept = kept_seconds
        self._seen: dict[str, tuple[int, model.Usage]] = {}  # versions and what they count with, by UID
        self._open: dict[str, Span] = {}
        self._over = Lately[Span](MOST_SPANS, lambda span: span.ended or 0.0)
        self._freed: dict[str, float] = {}  # when those that wait again gave their quota back
        self._evictions = Lately[Eviction](MOST_EVICTIONS, lambda each: each.time)
        self._changed: dict[Key, Span] = {}
        self._new: dict[Key, Eviction] = {}

    def spans(self) -> Iterator[Span]:
        yield from self._over
        yield from self._open.values()

    def evictions(self) -> Iterable[Eviction]:
        return self._evictions

    def changes(self) -> Changes:
        """What has changed since this was last asked."""
        gone = self._over.gone(), self._evictions.gone()
        for key in gone[0]:
            self._changed.pop(key, None)
        for key in gone[1]:
            self._new.pop(key, None)
        found = Changes(list(self._changed.values()), list(self._new.values()), *gone)
        self._changed, self._new = {}, {}
        return found

    def restore(self, spans: Iterable[Span], evictions: Iterable[Eviction]) -> None:
        """Take up what was known earlier. What has not ended in it ends, or goes on, by the next scene."""
        known = {span.key for span in self._open.values()}
        over: list[Span] = []
        for span in sorted(spans, key=lambda span: span.key):
            if span.key in known or span in self._over:
                continue
            if span.ended is not None:
                over.append(span)
            elif span.uid not in self._open:
                self._open[span.uid] = span
        self._over.restore(over)
        self._evictions.restore(each for each in evictions if each not in self._evictions)
        self._seen = {}  # each Workload is compared with what was known of it

    def note(self, snapshot: Snapshot) -> None:
        """Compare all Workloads with what was known of them."""
        world, ledger, now = snapshot.world, snapshot.engine.ledger, snapshot.now
        seen = {view.uid: (view.version, counted(ledger, view)) for view in world.workloads}
        ends: list[Span] = []
        for view in world.workloads:
            if self._seen.get(view.uid) != seen[view.uid]:
                ends += self._compared(view, usage_of(seen[view.uid][1]), world, now)
        gone = (self._seen.keys() | self._open.keys()) - seen.keys()
        for uid in gone:
            self._freed.pop(uid, None)
            span = self._open.pop(uid, None)
            if span is not None:
                ends.append(replace(span, ended=max(now, span.admitted), how=Ending.DELETED))
        self._seen = seen
        for span in sorted(ends, key=lambda span: (span.ended or 0.0, span.key)):
            self._over.add(span)
            self._changed[span.key] = span
        self._over.forget(now - self._kept)
        self._evictions.forget(now - self._kept)

    def _compared(self, view: WorkloadView, usage: Usage, world: World, now: float) -> Iterator[Span]:
        """Note one Workload, and what it uses now; returns the admissions of it that are over."""
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
            span = _span(view, view.admission, usage, queued)
            if known is not None:
                earlier = known.earlier
                if known.usage != usage:
                    earlier = changed(known.admitted, earlier, known.usage, now)
                span = replace(span, earlier=earlier)
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
            known = _span(view, record, usage_of(record.usage), view.created)
        if known is None or known in self._over or ended < now - self._kept:
            return
        how = _ENDINGS.get(FinishedReason(reason), Ending.UNKNOWN) if reason in _REASONS else Ending.UNKNOWN
        yield replace(known, ended=max(ended, known.admitted), how=how, reason=reason)

    def _note_eviction(self, view: WorkloadView, known: Span | None, world: World, now: float) -> None:
        if not view.is_true(ConditionType.EVICTED):
            return
        condition = view.condition(ConditionType.EVICTED)
        time, reason = seconds(condition["lastTransitionTime"]), str(condition.get("reason", ""))
        if self._evictions.has(view.namespace, (view.uid, time)) or time < now - self._kept:
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
        self._evictions.add(made)
        self._new[made.key] = made


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


def _span(view: WorkloadView, admission: Admission, usage: Usage, queued: float) -> Span:
    evicted = view.condition(ConditionType.EVICTED) if view.is_true(ConditionType.EVICTED) else {}
    return Span(
        view.uid,
        view.namespace,
        job_name(view),
        view.name,
        admission.queue,
        tuple(sorted({flavor for each in admission.pod_sets for _, flavor in each.flavors})),
        usage,
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
