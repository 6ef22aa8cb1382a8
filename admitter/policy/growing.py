"""A Job that can use more pods than it asks for: what it may run (docs/design/growing.md).

`status.resize` of its Workload is written before the Job is patched, and lowered once pods are gone. An
annotation at the Job says which grant it has been patched for: a Job with another one is patched next.
"""

from dataclasses import replace

from admitter.cache.parallelism import number
from admitter.cache.resize_status import ResizeStatus, resize_of
from admitter.cache.views import JobView, Json, WorkloadView
from admitter.engine.model import Admission, Assignment, FlavorResource, Usage
from admitter.engine.quota.extras import Extra
from admitter.names import GRANTED_PARALLELISM_ANNOTATION, MAX_PARALLELISM_ANNOTATION, PARALLELISM_ANNOTATION
from admitter.policy.fewer_pods import annotated_pods
from admitter.quantities.amounts import InvalidQuantityError


def most(job: JobView) -> int | None:
    """How many pods a Job can use; None if no more than it asks for.

    Raises:
        InvalidQuantityError: its annotation is no number of pods.
    """
    found = annotated_pods(job, "most", MAX_PARALLELISM_ANNOTATION)
    if found is None:
        return None
    completions, succeeded = job.spec["completions"], int(job.status["succeeded"])
    if completions is not None:
        return min(found, max(0, int(completions) - succeeded))
    return None if succeeded else found  # it replaces none of its pods once one has succeeded


def usable(job: JobView | None) -> int:
    """How many pods a Job that runs can use; 0 if it is not to grow."""
    if job is None or job.suspended or job.deleting or job.problem or job.finished:
        return 0
    if _is_lowered(job):
        return 0
    try:
        return most(job) or 0
    except InvalidQuantityError:
        return 0


def _is_lowered(job: JobView) -> bool:
    """Whether a user has lowered the parallelism of a Job that has grown: so it stays until it is evicted."""
    return bool(job.spec["parallelism"] < job.spec.get("applied", 0))


def admitted_pods(admission: Admission) -> int:
    """How many pods an admission is for."""
    return sum(each.count for each in admission.pod_sets)


def living(workload: WorkloadView) -> dict[str, int]:
    """How many extra pods of each pod set of a Workload may live."""
    resize, admission = resize_of(workload), workload.admission
    if resize is None or admission is None:
        return {}
    if not resize.parts:
        return {each.name: max(0, resize.granted - admitted_pods(admission)) for each in admission.pod_sets}
    granted = {name: part.granted for name, part in resize.parts}
    return {each.name: max(0, granted.get(each.name, 0) - each.count) for each in admission.pod_sets}


def extra_usage(workload: WorkloadView) -> Usage:
    """What the extra pods of a Workload use that holds quota."""
    sums: dict[FlavorResource, int] = {}
    for name, pods in living(workload).items():
        assert workload.admission is not None
        pod_set = next(each for each in workload.admission.pod_sets if each.name == name)
        for key, amount in of_one(workload.admission, pod_set) if pods else ():
            sums[key] = sums.get(key, 0) + amount * pods
    return tuple(sums.items())


def shrinks(workload: WorkloadView) -> bool:
    """Whether extra pods of a Workload have to end."""
    resize = resize_of(workload)
    return resize is not None and resize.shrinks


def extra_of(workload: WorkloadView, job: JobView | None, *, pauses: bool = False) -> Extra | None:
    """What a Workload that holds quota may run beyond its admission; None if nothing, as of most.

    One that pauses is left as it is for a while: the API server has refused what was written.
    """
    resize = resize_of(workload)
    if resize is None and (job is None or job.spec.get("most") is None):
        return None
    assert workload.admission is not None
    base = admitted_pods(workload.admission)
    granted = max(0, resize.granted - base) if resize is not None else 0
    kept = max(0, resize.target - base) if resize is not None else 0
    could = 0 if pauses or workload.status.get("held") else usable(job) - base
    if workload.evicting or pauses:
        could = kept = 0  # they count as leaving, so that nothing is decided about them
    if granted <= 0 and could <= 0:
        return None
    since = max(workload.since, resize.changed if resize is not None else 0.0)
    return Extra(_each(workload.admission), base, max(granted, could), granted, kept, since)


def at_admission(admission: Admission, job: JobView, now: float) -> Extra | None:
    """What a Job that is admitted now, in seconds since the epoch, may run beyond that; None if nothing."""
    if not job.resource.proves or job.spec.get("most") is None:
        return None
    base = admitted_pods(admission)
    try:
        could = (most(job) or 0) - base
    except InvalidQuantityError:
        return None
    return Extra(_each(admission), base, could, since=now) if could > 0 else None


def _each(admission: Admission) -> Usage:
    """What one more pod of a Job uses."""
    return of_one(admission, admission.pod_sets[0]) if admission.pod_sets else ()


def of_one(admission: Admission, pod_set: Assignment) -> Usage:
    """What one pod of a pod set uses."""
    flavors, sums = dict(pod_set.flavors), dict[FlavorResource, int]()
    for resource, amount in pod_set.usage:
        key = (admission.pool or flavors[resource], resource)
        sums[key] = sums.get(key, 0) + amount // max(1, pod_set.count)
    return tuple(sums.items())


def orphaned(extra: Extra) -> Extra:
    """The same once the Workload is gone: nothing of it goes on, or grows."""
    return replace(extra, most=extra.granted, kept=0)


def decided(admission: Admission, extra: Extra) -> ResizeStatus:
    """What `status.resize` is to say of what the engine has decided."""
    base = admitted_pods(admission)
    wanted = base + (extra.kept if extra.kept < extra.granted else max(extra.most, extra.granted))
    return ResizeStatus(wanted, base + extra.granted, extra.since)


def given_back(workload: WorkloadView, job: JobView, needs: int) -> ResizeStatus | None:
    """What `status.resize` is to say once a Job needs so many pods; None if as it does.

    A grant is not lowered before the Job was patched for it.
    """
    resize = resize_of(workload)
    if resize is None or workload.admission is None:
        return None
    after = max(needs, admitted_pods(workload.admission))
    patched = resize.shrinks or _is_lowered(job) or job.spec.get("applied", 0) >= resize.granted
    if after >= resize.granted or not patched:
        return None
    wanted = resize.wanted if after > resize.target else max(after, usable(job))
    return ResizeStatus(wanted, after, resize.changed)


def narrowed(workload: WorkloadView, job: JobView) -> ResizeStatus | None:
    """What `status.resize` is to say if its user says by now that a Job can use fewer pods; else None."""
    resize = resize_of(workload)
    if resize is None or workload.admission is None:
        return None
    most = max(number(job.spec.get("most", "")) or 0, admitted_pods(workload.admission))
    return replace(resize, wanted=most) if most < resize.target else None


def patch(workload: WorkloadView, job: JobView) -> Json | None:
    """The merge patch that gives a Job the parallelism that is granted; None if it has that."""
    resize = resize_of(workload)
    if resize is None or job.suspended or job.deleting:
        return None
    before, applied, lowered = job.spec["parallelism"], job.spec.get("applied", 0), _is_lowered(job)
    if before <= resize.target and (lowered or resize.target <= applied):
        return None  # the annotation alone does not count: users can write it
    parallelism = min(before, resize.target) if lowered else resize.target
    annotations = {
        PARALLELISM_ANNOTATION: str(job.spec.get("original", before)),
        GRANTED_PARALLELISM_ANNOTATION: str(applied if lowered else resize.target),
    }
    metadata = {"resourceVersion": str(job.version), "annotations": annotations}
    return {"metadata": metadata, "spec": {"parallelism": parallelism}}


def words(resize: ResizeStatus, base: int) -> str:
    """How many pods a Workload runs, in words."""
    extra = max(0, resize.granted - base)
    if resize.shrinks:
        return f"runs with {resize.target} pods; {resize.granted - resize.target} extra pods have to end"
    if not extra:
        return f"runs with {base} pods, and could use {resize.wanted}"
    return f"runs with {resize.granted} pods, {extra} of them extra: these go first"
