"""What has happened to a Workload, and what will at a time that is known: by its status, in order of time.

A status tells the last of each kind, and of evictions for others the last ten. What came before is in
`admitter history`, and in a journal.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from admitter.api.conditions import ConditionType, EvictedReason
from admitter.cache.resize_status import resize_of
from admitter.cache.run_time_status import run_time_of
from admitter.cache.timestamps import seconds
from admitter.cache.views import JobView, Json, WorkloadView
from admitter.cache.world import World
from admitter.insight.listing import job_name
from admitter.policy.growing import admitted_pods
from admitter.policy.growing import words as resize_words
from admitter.policy.messages import queue_title

Key = tuple[str, str]

SAME_SECONDS: Final = 2.0
"""Times of one eviction differ by so much at most: one is rounded down, and the other up."""


class What(StrEnum):
    """What has happened, or will."""

    CREATED = "Created"
    QUEUED = "Queued"  # its Workload was made, if that was later
    ADMITTED = "Admitted"
    PODS_MADE = "PodsMade"
    READY = "Ready"
    RESIZED = "Resized"
    SAVED = "Saved"
    EVICTION_PENDING = "EvictionPending"
    EVICTION_CANCELLED = "EvictionCancelled"
    EVICTED = "Evicted"
    REQUEUED = "Requeued"
    FINISHED = "Finished"
    DELETED = "Deleted"
    # what will happen if nothing else does
    TO_BE_EVICTED = "ToBeEvicted"
    TO_BE_READY = "ToBeReady"
    NEXT_TRY = "NextTry"
    MAY_EVICT = "MayEvict"
    ENDS = "Ends"


WILL: Final = frozenset({What.TO_BE_EVICTED, What.TO_BE_READY, What.NEXT_TRY, What.MAY_EVICT, What.ENDS})


@dataclass(frozen=True, slots=True)
class Preemptor:
    """The Workload for which another one is evicted."""

    key: Key  # namespace, and name of its Job or its own
    queue: str  # as its users know it
    rule: str  # what allows it, and what was compared; empty if that was not written


@dataclass(frozen=True, slots=True)
class Happening:
    """Something that has happened, or will."""

    at: float  # seconds since the epoch
    what: What
    reason: str = ""  # in one word
    message: str = ""  # in a sentence, as the status has it
    preemptor: Preemptor | None = None


def life(world: World, workload: WorkloadView, now: float) -> list[Happening]:
    """All that is known of a Workload, in order of time; what was due in the past is left out."""
    job = world.job_of(workload.key)
    found = [*_began(workload, job), *_admission(world, workload, job)]
    found += [*_evictions(world, workload), *_over(workload), *_coming(workload)]
    order = list(What)
    there = (each for each in found if each.what not in WILL or each.at > now)
    return sorted(there, key=lambda each: (each.at, order.index(each.what)))


def _began(workload: WorkloadView, job: JobView | None) -> Iterator[Happening]:
    created = job.created if job is not None else workload.created
    yield Happening(min(created, workload.created), What.CREATED)
    if workload.created > created:
        yield Happening(workload.created, What.QUEUED)
    requeued = run_time_of(workload.status).requeued
    if requeued is not None:
        yield Happening(requeued, What.REQUEUED, EvictedReason.MAX_RUNTIME_EXCEEDED)


def _admission(world: World, workload: WorkloadView, job: JobView | None) -> Iterator[Happening]:
    """The last admission, if it goes on or was the last: what was evicted since says so itself."""
    admitted = workload.condition(ConditionType.QUOTA_RESERVED)
    if admitted.get("status") != "True":
        return
    since = workload.since
    yield from _of_condition(admitted, What.ADMITTED)
    if job is None or not job.resource.is_pods:
        made = [pod.created for pod in world.pods_of(workload) if pod.created >= since - 1]
        if made:
            yield Happening(min(made), What.PODS_MADE)
    known = workload.readiness
    if known.ready_at is not None and known.ready_at >= since:
        yield Happening(known.ready_at, What.READY)
    resize = resize_of(workload)
    if resize is not None and workload.admission is not None:
        words = resize_words(resize, admitted_pods(workload.admission))
        yield Happening(resize.changed, What.RESIZED, message=words)
    if job is not None and job.checkpoint:
        yield Happening(job.checkpoint, What.SAVED)


def _evictions(world: World, workload: WorkloadView) -> Iterator[Happening]:
    last = workload.condition(ConditionType.EVICTED)
    by = preemptor_of(world, workload) if last.get("reason") == EvictedReason.PREEMPTED else None
    evicted = list(_of_condition(last, What.EVICTED, by)) if last.get("status") == "True" else []
    yield from evicted
    for time in workload.evictions:
        if all(abs(time - each.at) > SAME_SECONDS for each in evicted):
            yield Happening(time, What.EVICTED, EvictedReason.PREEMPTED)
    waits = workload.condition(ConditionType.QUOTA_RESERVED)
    if evicted and workload.admission is None and not workload.finished and waits.get("status") == "False":
        yield from (replace(each, message="") for each in _of_condition(waits, What.REQUEUED))
    yield from _pending_eviction(world, workload)


def _pending_eviction(world: World, workload: WorkloadView) -> Iterator[Happening]:
    """That it will be evicted, or will not after all."""
    pending = workload.condition(ConditionType.EVICTION_PENDING)
    if pending.get("status") == "True":
        yield from _of_condition(pending, What.EVICTION_PENDING, preemptor_of(world, workload))
    elif workload.admission is not None and not workload.evicting:
        found = _of_condition(pending, What.EVICTION_CANCELLED)
        yield from (each for each in found if each.at > workload.since)


def _of_condition(condition: Json, what: What, by: Preemptor | None = None) -> Iterator[Happening]:
    """What a condition reports that is there."""
    if condition.get("lastTransitionTime"):
        time = seconds(condition["lastTransitionTime"])
        yield Happening(time, what, str(condition.get("reason", "")), str(condition.get("message", "")), by)


def preemptor_of(world: World, workload: WorkloadView) -> Preemptor | None:
    """The Workload for which one was evicted last, or will be; None: for none."""
    by = workload.preemption
    if by is None:
        return None
    view = world.workloads.get(by.key)
    name = job_name(view) if view is not None and view.uid == by.uid else by.key[1]
    return Preemptor((by.key[0], name), queue_title(by.admission.queue), by.why)


def _over(workload: WorkloadView) -> Iterator[Happening]:
    over = workload.condition(ConditionType.FINISHED)
    if over.get("status") == "True":
        yield from _of_condition(over, What.FINISHED)


def _coming(workload: WorkloadView) -> Iterator[Happening]:
    """What is due at a time that its status has."""
    if workload.finished:
        return
    known, run_time, back_off = workload.readiness, run_time_of(workload.status), workload.back_off
    if workload.admission is None:
        if known.next_try is not None:
            yield Happening(known.next_try, What.NEXT_TRY)
        if back_off is not None:
            yield Happening(back_off.until, What.MAY_EVICT)
        return
    if workload.evicting:
        return
    if workload.evict_at is not None:
        yield Happening(workload.evict_at, What.TO_BE_EVICTED)
    if known.recover_by is not None:
        yield Happening(known.recover_by, What.TO_BE_READY)
    elif known.deadline is not None and known.ready_at is None:
        yield Happening(known.deadline, What.TO_BE_READY)
    if run_time.deadline is not None:
        yield Happening(run_time.deadline, What.ENDS, message=run_time.limit)
