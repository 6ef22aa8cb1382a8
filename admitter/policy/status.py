"""The status of Workloads: every patch that the controller writes to one.

A Workload's conditions belong to the controller alone, so a patch carries them all; it names the
resource version that was decided on, so that nothing newer is overwritten.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from math import ceil
from typing import Final

from admitter.api.conditions import (
    ActiveReason,
    ConditionType,
    EvictedReason,
    FinishedReason,
    PendingReason,
)
from admitter.api.eviction_limits import MOST_EVICTIONS
from admitter.cache.preemption_status import PreemptionStatus, ReservationStatus
from admitter.cache.resize_status import ResizeStatus
from admitter.cache.run_time_status import run_time_of
from admitter.cache.timestamps import seconds
from admitter.cache.views import Json, WorkloadView, at, timestamp
from admitter.convert.workloads import admission_json
from admitter.engine.model import Admission
from admitter.engine.quota.back_off import BackOff
from admitter.policy.defects import HARMLESS
from admitter.policy.fewer_pods import fewer
from admitter.policy.growing import admitted_pods
from admitter.policy.growing import words as resize_words
from admitter.policy.lifecycle import Step, after, phase_of
from admitter.policy.messages import queue_title, workload_title
from admitter.policy.run_time import over_message, run_time_json
from admitter.policy.run_time import stopped as run_time_stopped
from admitter.quantities.amounts import display

Clock = Callable[[], datetime]  # the current time, in UTC
_HOLDS: Final = frozenset({ConditionType.QUOTA_RESERVED, ConditionType.ADMITTED})


def merged(conditions: list[Json], *changes: Json) -> list[Json]:
    """Conditions with some replaced; the time of transition stays where the status does."""
    result = {condition["type"]: condition for condition in conditions}
    for change in changes:
        before = result.get(change["type"])
        if before is not None and before["status"] == change["status"]:
            change["lastTransitionTime"] = before["lastTransitionTime"]
        result[change["type"]] = change
    return list(result.values())


def condition(kind: str, holds: bool, reason: str, message: str, now: datetime) -> Json:
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp(now),
    }


def admitted(
    workload: WorkloadView,
    admission: Admission,
    term: tuple[int, int],
    now: datetime,
    passing: str = "",
    generation: int = 0,
) -> Json:
    """The Workload may start: it holds its quota from here on.

    `term` is a shard and an epoch of it; the API server refuses any but that of the process that leads.
    `passing` is what else is told: the Workload that it passes, if it is admitted out of order, with the rule
    that allows it, and when it ends at the latest. The generation is that of its last pending reservation,
    which this admission uses; 0: it never had one.
    """
    words = f"admitted by {queue_title(admission.queue)}: {_flavors_in_words(admission)}"
    words += f"; {passing}" if passing else ""
    with_fewer = fewer(workload, sum(each.count for each in admission.pod_sets))
    words += f"; it {with_fewer}" if with_fewer else ""
    changes = [
        condition(ConditionType.QUOTA_RESERVED, True, ConditionType.QUOTA_RESERVED, words, now),
        condition(ConditionType.ADMITTED, True, ConditionType.ADMITTED, words, now),
    ]
    changes += [
        condition(over, False, ConditionType.ADMITTED, "admitted again", now)
        for over in (ConditionType.EVICTED, ConditionType.PREEMPTED)
        if workload.is_true(over)
    ]
    changes += _end_of_pending_eviction(workload, "admitted again", now)
    fields: Json = {"admission": _decided(admission, term), "preemption": None}
    fields |= {"message": with_fewer} if with_fewer else {}
    fields |= _all_given_back(workload)
    fields |= {"clusterQueue": admission.queue}
    fields |= {"place": _place(ReservationStatus(generation))} if generation else {}
    return _patch(workload, Step.ADMIT, changes, **fields)


def waiting(  # what a status says of a wait
    workload: WorkloadView,
    reason: str,
    message: str,
    now: datetime,
    queue: str | None = None,
    back_off: BackOff | None = None,
) -> Json:
    """The Workload waits, in which queue, and why; and for how long nothing is evicted for it, if so.

    The queue is the engine's; None: its LocalQueue leads nowhere.
    """
    change = condition(ConditionType.QUOTA_RESERVED, False, reason, message, now)
    body = _patch(workload, None, [change], reason=reason, message=message, clusterQueue=queue)
    if back_off is not None:
        body["status"]["backOff"] = {"count": back_off.count, "until": timestamp(at(back_off.until))}
    return body


def reservation_pending(
    workload: WorkloadView, place: ReservationStatus, reason: str, message: str, now: datetime
) -> Json:
    """The Workload has a pending reservation; the message says what it waits for."""
    queue = place.admission.queue if place.admission is not None else None
    body = waiting(workload, reason, message, now, queue)
    body["status"]["place"] = _place(place)
    return body


def reservation_changed(workload: WorkloadView, place: ReservationStatus) -> Json:
    """The Workload has this pending reservation, or none any more; another patch says why it waits."""
    return _of_version(workload, {"place": _place(place)})


def reassigned(workload: WorkloadView, by: PreemptionStatus) -> Json:
    """The Workload is evicted, or its eviction is pending, for another preemptor than before."""
    until = workload.evict_at
    evict_at = timestamp(at(until)) if until is not None else None
    return _of_version(workload, {"preemption": _preemption(by, evict_at)})


def restored(workload: WorkloadView) -> Json:
    """The Workload waits since it was evicted, and may evict again what it could before."""
    return _of_version(workload, {"preemption": None})


def evicted(workload: WorkloadView, reason: EvictedReason, message: str, now: datetime) -> Json:
    """The Workload must stop; it keeps its quota until its pods are gone."""
    changes = [
        condition(ConditionType.EVICTED, True, reason, message, now),
        condition(ConditionType.ADMITTED, False, reason, message, now),
        *_end_of_pending_eviction(workload, "evicted", now),
    ]
    body = _patch(workload, Step.EVICT, changes, reason=reason, message=message)
    generation = workload.reservation.generation
    if generation:  # the victims of the place that it loses made no room for the next one
        body["status"]["place"] = _place(ReservationStatus(generation + 1))
    return body


def preempted(workload: WorkloadView, by: PreemptionStatus, now: datetime) -> Json:
    """As `evicted`, for a preemptor; what is written here keeps the preemptor's pending reservation."""
    words = f"preempted for {_whom(by, workload)}"
    body = evicted(workload, EvictedReason.PREEMPTED, words, now)
    change = condition(ConditionType.PREEMPTED, True, EvictedReason.PREEMPTED, words, now)
    body["status"]["conditions"] = merged(body["status"]["conditions"], change)
    body["status"]["preemption"] = _preemption(by, None)
    # A second began may be over: then no time span that a limit looks at is shorter than it says.
    times = [*(workload.status.get("evictedAt") or ()), timestamp(at(ceil(now.timestamp())))]
    body["status"]["evictedAt"] = times[-MOST_EVICTIONS:]
    return body


def eviction(workload: WorkloadView, step: Step, by: PreemptionStatus, grace: float, now: datetime) -> Json:
    """A step of a victim: its eviction is pending, starts, or is for another preemptor than before.

    The step is ANNOUNCE, EVICT or REASSIGN. An announced eviction grants so much grace, in seconds, and is
    pending until a whole second.
    """
    if step is Step.EVICT:
        return preempted(workload, by, now)
    until = ceil(now.timestamp() + grace) if step is Step.ANNOUNCE else workload.evict_at
    if until is None:
        return reassigned(workload, by)
    evict_at = timestamp(at(until))
    words = f"will be evicted at {evict_at} for {_whom(by, workload)}"
    change = condition(ConditionType.EVICTION_PENDING, True, PendingReason.PREEMPTED, words, now)
    fields = {"reason": ConditionType.EVICTION_PENDING, "message": words}
    return _patch(workload, step, [change], preemption=_preemption(by, evict_at), **fields)


def eviction_cancelled(workload: WorkloadView, now: datetime) -> Json:
    """The eviction is cancelled: no preemptor waits for the Workload's quota any more."""
    changes = _end_of_pending_eviction(workload, "no preemptor waits for its quota any more", now)
    return _patch(workload, Step.CANCEL, changes, preemption=None)


def _decided(admission: Admission, term: tuple[int, int]) -> Json:
    shard, epoch = term
    return {**admission_json(admission), "epoch": epoch, **({"shard": shard} if shard else {})}


def _end_of_pending_eviction(workload: WorkloadView, words: str, now: datetime) -> list[Json]:
    """The end of a grace period, if one runs."""
    kind = ConditionType.EVICTION_PENDING
    return [condition(kind, False, PendingReason.OVER, words, now)] if workload.is_true(kind) else []


def _whom(by: PreemptionStatus, victim: WorkloadView) -> str:
    """The preemptor, as the victim's user may know it, and the rule that allows the eviction."""
    words = f"{workload_title(*by.key, victim.namespace)} in {queue_title(by.admission.queue)}"
    return f"{words}: {by.why}" if by.why else words


def _preemption(by: PreemptionStatus, evict_at: str | None) -> Json:
    return {
        "message": by.why or None,
        "namespace": by.key[0],
        "name": by.key[1],
        "uid": by.uid,
        "generation": by.generation or None,
        "admission": _replacing(by.admission),
        "evictAt": evict_at,
    }


def _place(place: ReservationStatus) -> Json:
    admission = _replacing(place.admission) if place.admission is not None else None
    return {"generation": place.generation, "admission": admission}


def _replacing(admission: Admission) -> Json:
    """An admission in a merge patch: of the one before nothing is left."""
    return {"pool": None, **admission_json(admission)}


def released(workload: WorkloadView, now: datetime) -> Json:
    """The evicted Workload's pods are gone: its quota is free, and it waits again."""
    eviction = workload.condition(ConditionType.EVICTED)
    reason, message = eviction.get("reason", ""), eviction.get("message", "")
    changes = [
        condition(ConditionType.QUOTA_RESERVED, False, reason, message, now),
        condition(ConditionType.ADMITTED, False, reason, message, now),
    ]
    fields = _all_given_back(workload)
    return _patch(workload, Step.RELEASE, changes, reason=reason, message=message, admission=None, **fields)


def freed(workload: WorkloadView, now: datetime) -> Json:
    """The evicted Workload's pods are gone: it waits again, unless it has had all of its time."""
    before = run_time_of(workload.status)
    ended = seconds(workload.condition(ConditionType.EVICTED)["lastTransitionTime"])
    run_time, over = run_time_stopped(before, workload.since, ended, now.timestamp())
    if over:
        return time_is_over(workload, now)
    body = released(workload, now)
    body["status"] |= run_time_json(before, run_time)
    return body


def time_is_over(workload: WorkloadView, now: datetime) -> Json:
    """The Workload has had all of its time, and none of its pods is left."""
    reason, words = FinishedReason.MAX_RUNTIME_EXCEEDED, over_message(run_time_of(workload.status))
    body = finished(workload, reason, words, now)
    body["status"] |= {"reason": reason, "message": words}
    return body


def finished(workload: WorkloadView, reason: FinishedReason, message: str, now: datetime) -> Json:
    """The Workload's Job is over; what it held is free."""
    change = condition(ConditionType.FINISHED, True, reason, message, now)
    changes = [change, *_end_of_pending_eviction(workload, "finished", now)]
    return _patch(workload, Step.FINISH, changes, preemption=None)


def _all_given_back(workload: WorkloadView) -> Json:
    """What says for how many pods a Workload holds quota goes with its admission."""
    return {name: None for name in ("held", "resize") if workload.status.get(name)}


def holding(workload: WorkloadView, held: list[Json] | None, resize: ResizeStatus | None = None) -> Json:
    """An admitted Workload holds quota for so many pods of each pod set from here on; None: as before."""
    fields: Json = {"held": held} if held is not None else {}
    return _of_version(workload, fields | (_resize(workload, resize) if resize is not None else {}))


def resized(workload: WorkloadView, resize: ResizeStatus, term: tuple[int, int], now: datetime) -> Json:
    """An admitted Workload may run so many pods from here on, or has to end some; `term` as of `admitted`."""
    shard, epoch = term
    told = _resize(workload, now_changed(resize, now))
    return _of_version(workload, told | {"admission": {"epoch": epoch, "shard": shard or None}})


def now_changed(resize: ResizeStatus, now: datetime) -> ResizeStatus:
    """The same, decided now."""
    return replace(resize, changed=now.timestamp())


def _resize(workload: WorkloadView, resize: ResizeStatus) -> Json:
    assert workload.admission is not None
    said: Json = {"wanted": resize.wanted, "granted": resize.granted}
    said["changedAt"] = timestamp(at(resize.changed))
    if resize.parts:
        parts = ((name, {"wanted": part.wanted, "granted": part.granted}) for name, part in resize.parts)
        said["podSets"] = [{"name": name, **fields} for name, fields in parts]
    if workload.evict_at is not None:
        return {"resize": said}  # its message tells of that
    return {"resize": said, "message": resize_words(resize, admitted_pods(workload.admission))}


def remembered(workload: WorkloadView, ended: list[Json]) -> Json:
    """Which pods of a group have succeeded, so that it is known once they are gone."""
    return _of_version(workload, {"succeededPods": ended})


def lowered(workload: WorkloadView, admission: Admission, term: tuple[int, int]) -> Json:
    """An admitted group that serves keeps this much of its admission; `term` as of `admitted`."""
    words = f"admitted by {queue_title(admission.queue)}, of which it keeps {_flavors_in_words(admission)}"
    fields = {"admission": _decided(admission, term), "conditions": _reworded(workload, lambda _: words)}
    return _of_version(workload, fields)


def given_back(workload: WorkloadView, ended: list[Json], places: int, seconds: float) -> Json:
    """Which places of a group are given back since no pod took them for so long; messages say how many."""
    words = f"; given back: {places} of its places, since no pod took them for {seconds:.0f} s"
    conditions = _reworded(workload, lambda before: before.partition("; given back:")[0] + words)
    return _of_version(workload, {"succeededPods": ended, "conditions": conditions})


def _reworded(workload: WorkloadView, words: Callable[[str], str]) -> list[Json]:
    """The conditions of a Workload that holds quota, with other messages in those that say so."""
    return [
        {**each, "message": words(each["message"])}
        if each["type"] in _HOLDS and each["status"] == "True"
        else each
        for each in workload.status.get("conditions") or ()
    ]


def active(
    generation: int, conditions: list[Json], problem: tuple[ActiveReason, str] | None, now: datetime
) -> list[Json]:
    """The conditions of a queue or flavor: usable, or why not."""
    reason, message = problem or (ActiveReason.READY, "ready")
    works = reason in {ActiveReason.READY, ActiveReason.NO_POLICY, *HARMLESS}
    change = condition(ConditionType.ACTIVE, works, reason, message, now)
    change["observedGeneration"] = generation
    return merged(conditions, change)


def _patch(workload: WorkloadView, step: Step | None, changes: list[Json], **fields: object) -> Json:
    """A patch that takes a step; without one the phase stays."""
    phase = phase_of(workload) if step is None else after(phase_of(workload), step)
    status: Json = {"state": phase.state, "reason": None, "message": None, **fields}
    if workload.back_off is not None:
        status["backOff"] = None
    status["conditions"] = merged(workload.status.get("conditions") or [], *changes)
    return _of_version(workload, status)


def _of_version(workload: WorkloadView, status: Json) -> Json:
    """A patch of the status of the version that was decided on, and of no newer one."""
    return {"metadata": {"resourceVersion": str(workload.version)}, "status": status}


def _flavors_in_words(admission: Admission) -> str:
    words = [
        f"{display(resource, amount)} {resource} of {dict(pod_set.flavors)[resource]}"
        for pod_set in admission.pod_sets
        for resource, amount in pod_set.usage
    ]
    return ", ".join(words) or "it asks for nothing that is limited"
