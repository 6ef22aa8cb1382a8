"""An object of a described kind that grows and shrinks while it runs, each pod set by itself.

What its operator may run is bounded by a field of the object (`admitter.kinds.replicas`). The start sets that
to what was admitted. Beyond that `status.resize` of the Workload comes first, as of Jobs
(`admitter.policy.growing`); then the bound. A bound is lowered before the grant is (docs/design/growing.md).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

import orjson

from admitter.cache.job_resources import PodSetView
from admitter.cache.resize_status import PartStatus, ResizeStatus, resize_of
from admitter.cache.views import JobView, Json, WorkloadView
from admitter.engine.model import Admission, Assignment
from admitter.engine.quota.extras import Extra
from admitter.kinds.paths import Change
from admitter.kinds.replicas import MOST_REPLICAS, Replicas
from admitter.names import BOUNDS_ANNOTATION
from admitter.policy.growing import of_one

NAMES: Final = 100
"""So many pods at least may be named at a time to be ended."""


@dataclass(frozen=True, slots=True)
class Living:
    """A pod that uses quota."""

    name: str
    created: str  # as the API writes it
    ending: bool  # whether it was told to end
    labels: Mapping[str, str]


def _of(job: JobView | None, name: str) -> Replicas | None:
    """How a pod set of an object changes that has a bound by now; None if it does not."""
    if job is None or name not in job.spec.get("bounds", {}):
        return None
    return next((each.replicas for each in job.sets if each.name == name), None)


def _desired(job: JobView, name: str, base: int) -> int:
    """How many replicas a pod set could use, of which so many were admitted.

    What an autoscaler could use is not known beyond its bound: from there on twice of what it has.
    """
    replicas = _of(job, name)
    if replicas is None or not replicas.grows or job.suspended or job.deleting or job.problem or job.finished:
        return base
    bound = job.spec["bounds"][name].get("bound")
    most = min(MOST_REPLICAS // replicas.pods, bound if bound is not None else MOST_REPLICAS)
    if not replicas.autoscales:
        return max(base, min(replicas.size, most))
    if replicas.size >= replicas.limit or 2 * replicas.size < replicas.limit:
        return max(base, min(2 * replicas.size, most))
    return max(base, min(replicas.limit, most))


def extras_of(workload: WorkloadView, job: JobView | None, *, pauses: bool = False) -> dict[str, Extra]:
    """What a Workload that holds quota may run beyond its admission, by pod set; as `growing.extra_of`."""
    resize, admission = resize_of(workload), workload.admission
    if admission is None or (not bounds_of(job) and (resize is None or not resize.parts)):
        return {}
    still = pauses or workload.evicting
    since = max(workload.since, resize.changed if resize is not None else 0.0)
    found = {}
    for each in admission.pod_sets:
        part, replicas = resize.part(each.name) if resize is not None else None, _of(job, each.name)
        pods = replicas.pods if replicas is not None else 1
        base = max(1, each.count // pods)
        if not each.count:
            continue  # nothing was assigned to it, so there is nothing that it could have more of
        granted = _rounded_up(part.granted - each.count, pods) if part is not None else 0
        could = kept = 0  # of one that is left as it is, or that nothing can be told of
        if job is not None and replicas is not None and not still:
            kept = _rounded_up(part.target - each.count, pods) if part is not None else 0
            could = _desired(job, each.name, base) - base if not workload.status.get("held") else 0
        if granted > 0 or could > 0:
            found[each.name] = Extra(
                _each(admission, each, pods), base, max(granted, could), granted, kept, since
            )
    return found


def is_bounded(workload: WorkloadView, job: JobView) -> bool:
    """Whether an object still has the bounds of all pod sets that run more than was admitted."""
    resize, counts = resize_of(workload), _admitted(workload)
    parts = resize.parts if resize is not None else ()
    return all(part.granted <= counts.get(name, 0) or _of(job, name) is not None for name, part in parts)


def _admitted(workload: WorkloadView) -> dict[str, int]:
    return {each.name: each.count for each in workload.admission.pod_sets} if workload.admission else {}


def bounds_of(job: JobView | None) -> Mapping[str, Json]:
    """What an object remembers of its bounds."""
    found: Mapping[str, Json] = job.spec.get("bounds", {}) if job is not None else {}
    return found


def _rounded_up(pods: int, each: int) -> int:
    return max(0, -(-pods // each))


def _each(admission: Admission, assignment: Assignment, pods: int) -> tuple[tuple[tuple[str, str], int], ...]:
    """What one more replica uses."""
    return tuple((key, amount * pods) for key, amount in of_one(admission, assignment))


def decided(workload: WorkloadView, job: JobView | None, extras: Mapping[str, Extra]) -> ResizeStatus | None:
    """What `status.resize` is to say of what the engine has decided of pod sets; None if that is outdated."""
    admission, now = workload.admission, resize_of(workload)
    if admission is None:
        return None
    sets, parts, since = {each.name: each for each in admission.pod_sets}, dict(now.parts if now else ()), 0.0
    for name, extra in extras.items():
        replicas, assignment = _of(job, name), sets.get(name)
        if replicas is None or assignment is None or not assignment.count:
            return None
        if extra.each != _each(admission, assignment, replicas.pods):
            return None  # a replica has another number of pods by now
        base, before, shrinks = assignment.count, parts.get(name), extra.kept < extra.granted
        granted = base + extra.granted * replicas.pods
        if shrinks and (before is None or before.granted != granted):
            return None  # what was to shrink was never written
        more = extra.kept if shrinks else max(extra.most, extra.granted)
        parts[name], since = PartStatus(base + more * replicas.pods, granted), extra.since
    return summed(admission, parts, since)


def summed(admission: Admission, parts: Mapping[str, PartStatus], changed: float) -> ResizeStatus:
    """What `status.resize` says if it says this of some pod sets; the others have what was admitted."""
    others = sum(each.count for each in admission.pod_sets if each.name not in parts)
    wanted = others + sum(part.wanted for part in parts.values())
    granted = others + sum(part.granted for part in parts.values())
    return ResizeStatus(
        min(wanted, MOST_REPLICAS), min(granted, MOST_REPLICAS), changed, tuple(sorted(parts.items()))
    )


def asked(workload: WorkloadView, job: JobView) -> ResizeStatus | None:
    """What `status.resize` is to say if an object asks for more or less than that by now; else None.

    More waits for idle quota. Of less the rest has to end.
    """
    admission, resize = workload.admission, resize_of(workload)
    if admission is None:
        return None
    before = dict(resize.parts) if resize is not None else {}
    parts, changed = dict(before), resize.changed if resize is not None else workload.since
    for each in admission.pod_sets:
        part, replicas = before.get(each.name), _of(job, each.name)
        if replicas is None or not each.count:
            continue
        base, pods = each.count // replicas.pods, replicas.pods
        most = max(each.count, _desired(job, each.name, base) * pods)
        if part is None and most > each.count:
            parts[each.name] = PartStatus(most, each.count)
        elif part is not None and (most < part.target or (most != part.wanted and not part.shrinks)):
            parts[each.name] = replace(part, wanted=most)
    return summed(admission, parts, changed) if parts != before else None


def lowered(workload: WorkloadView, job: JobView, living: list[Living]) -> ResizeStatus | None:
    """What `status.resize` is to say once pods have ended; None if as it does.

    Only right if the operator of the object acts on the bounds that it has.
    """
    admission, resize = workload.admission, resize_of(workload)
    if admission is None or resize is None:
        return None
    parts = dict(resize.parts)
    for name, part in resize.parts:
        replicas = _of(job, name)
        if replicas is None or not part.shrinks or replicas.limit * replicas.pods > part.target:
            continue
        mine = _pods_of(replicas, name, living)
        if len(mine) <= part.wanted and not any(_ends(replicas, pod) for pod in mine):
            parts[name] = replace(part, granted=part.wanted)
    after = summed(admission, parts, resize.changed)
    # a pod with another label than the operator has given it is one of all
    return after if parts != dict(resize.parts) and len(living) <= after.granted else None


def _ends(replicas: Replicas, pod: Living) -> bool:
    """Whether a pod has been told to end: its operator may make another one beside it."""
    return pod.ending or pod.name in replicas.ending


def _pods_of(replicas: Replicas, name: str, living: list[Living]) -> list[Living]:
    """The pods of a pod set."""
    return [pod for pod in living if pod.labels.get(replicas.label, "").lower() == name]


def bounding(job: JobView, admission: Admission) -> tuple[Json, list[Change]]:
    """Annotations, and changes of an object, that keep it to its admission when it is started."""
    counts, known, record = {each.name: each.count for each in admission.pod_sets}, bounds_of(job), {}
    changes = list[Change]()
    for each in job.pod_sets:
        if each.replicas is None or not each.replicas.grows or each.name not in counts:
            continue
        own = {"bound": each.replicas.bound}
        own |= {"replicas": each.replicas.size} if each.replicas.autoscales else {}
        record[each.name] = known.get(each.name, own)
        changes.append(_set(each.replicas.bound_at, counts[each.name] // each.replicas.pods))
    if not record:
        return {}, []
    return {BOUNDS_ANNOTATION: orjson.dumps(record, option=orjson.OPT_SORT_KEYS).decode()}, changes


def unbounding(job: JobView) -> tuple[Json, list[Change]]:
    """The same for what puts back what its user wrote."""
    if not bounds_of(job):
        return {}, []
    changes = list[Change]()
    for each in job.pod_sets:
        own = bounds_of(job).get(each.name)
        if own is None or each.replicas is None:
            continue
        changes.append(_set(each.replicas.bound_at, own.get("bound")))
        if own.get("replicas") is not None:
            changes.append(_set(each.replicas.size_at, own["replicas"]))
        if each.replicas.ending_at is not None and each.replicas.ending:
            changes.append(_set(each.replicas.ending_at, None))
    return {BOUNDS_ANNOTATION: None}, changes


def resizing(job: JobView, workload: WorkloadView, living: list[Living]) -> list[Change]:
    """What brings an object that runs in step with what it is granted; nothing if it is."""
    resize, changes = resize_of(workload), list[Change]()
    for each in job.pod_sets if resize is not None and not job.suspended and not job.deleting else ():
        part = resize.part(each.name) if resize is not None else None
        if part is not None and _of(job, each.name) is not None:
            changes += _of_part(each, part, living)
    return changes


def _of_part(pod_set: PodSetView, part: PartStatus, living: list[Living]) -> Iterator[Change]:
    replicas = pod_set.replicas
    assert replicas is not None, "it has a bound"
    target = part.target // replicas.pods
    if replicas.limit != target:
        yield _set(replicas.bound_at, target)
    if replicas.autoscales and replicas.size > target and part.shrinks:
        yield _set(replicas.size_at, target)
    if not part.shrinks or replicas.ending_at is None:
        return
    mine = _pods_of(replicas, pod_set.name, living)
    named = [pod.name for pod in mine if pod.name in replicas.ending]
    more = list(_surplus(replicas, mine, target * replicas.pods))
    if more:
        yield _set(replicas.ending_at, [*named, *more])


def _surplus(replicas: Replicas, pods: list[Living], target: int) -> Iterator[str]:
    """Names of pods that are to end so that only so many are left: the newest replicas, each whole."""
    whole: dict[str, list[Living]] = {}
    for pod in pods:
        whole.setdefault(pod.labels.get(replicas.replica_label) or f"/{pod.name}", []).append(pod)
    stay = [each for each in whole.values() if not any(_ends(replicas, pod) for pod in each)]
    left, told = sum(map(len, stay)), 0
    for each in sorted(stay, key=lambda each: max((pod.created, pod.name) for pod in each), reverse=True):
        if left <= target or told >= NAMES:
            return
        yield from (pod.name for pod in each)
        left, told = left - len(each), told + len(each)


def _set(place: tuple[str | int, ...], value: object) -> Change:
    """The change that sets a field."""
    return place[:-1], {str(place[-1]): value}
