"""How many pods an admitted Workload still holds quota for: those that may live, and no others.

An admission is for all pods. Pods that have ended for good need nothing any more, so that the Workload gives
their places back: `status.held` says what is left, and what it says counts. It is written before the quota
is used by others, so that what was given back is known to each process, and to users. It goes down alone: a
Job that comes to need more again than it holds is stopped, as one that asks for more than was admitted, and
what it needs counts until it has stopped (docs/design/reclaim.md).
"""

from collections.abc import Mapping
from dataclasses import replace

from admitter.cache.views import JobView, Json, WorkloadView
from admitter.engine.model import Admission, Assignment

_ENDING = ("SuccessCriteriaMet", "FailureTarget")
"""Conditions of a Job that makes no pods any more: those that live are stopped, and then it has finished."""

Counts = Mapping[str, int]
"""Numbers of pods, by pod set."""


def held(workload: WorkloadView) -> dict[str, int]:
    """How many pods of each pod set a Workload holds quota for, as its status says."""
    assert workload.admission is not None
    counts = {each.name: each.count for each in workload.admission.pod_sets}
    for each in workload.status.get("held") or ():
        if each["name"] in counts:
            counts[each["name"]] = min(counts[each["name"]], each["count"])
    return counts


def wanted(job: JobView) -> dict[str, int]:
    """How many pods of each pod set a Job asks for: one that does not run may yet make all."""
    return {each.name: each.count for each in job.sets} if job.suspended else _left(job)


def _left(job: JobView) -> dict[str, int]:
    """How many pods of each pod set a Job that runs would have, as its spec and its status say."""
    return {each.name: 0 if _makes_none(job) else each.count - each.ended for each in job.sets}


def needed(job: JobView, alive: int = 0) -> dict[str, int]:
    """How many pods of each pod set may live of a Job that was started: those that do, and those to be made.

    `alive` are those that are known to live. Which pod set a pod is of is known of Jobs alone: of other kinds
    only what their pods may come to counts.
    """
    left = _left(job)
    if not job.resource.proves or len(left) != 1:
        return left
    living = max(alive, job.status["active"] + job.status["terminating"])
    return {name: max(living, count) for name, count in left.items()}


def _makes_none(job: JobView) -> bool:
    """Whether a Job makes no pods any more: without completions it replaces none once one has succeeded."""
    if not job.resource.proves:
        return False
    if any(job.status["conditions"].get(each, {}).get("status") == "True" for each in _ENDING):
        return True
    return job.spec["completions"] is None and job.status["succeeded"] > 0


def lowered(workload: WorkloadView, job: JobView, alive: int) -> list[Json] | None:
    """What `status.held` is to say of a Workload with a Job that runs; None if it gives nothing back.

    Args:
        workload: holds quota.
        job: its own.
        alive: how many pods of the Workload are known to live.
    """
    before, needs = held(workload), needed(job, alive)
    after = {name: min(count, needs.get(name, count)) for name, count in before.items()}
    if after == before or alive > sum(after.values()):
        return None  # of more pods than that some end, and their end brings us here again
    return [{"name": name, "count": count} for name, count in after.items()]


def left_of(admission: Admission, workload: WorkloadView, job: JobView | None = None) -> Admission:
    """What of an admission is in use: what its Workload holds, and what its Job needs again."""
    if not workload.status.get("held"):
        return admission
    counts = held(workload)
    needs = needed(job) if job is not None and not job.problem else {}
    pod_sets = tuple(
        reduced(each, min(each.count, max(counts[each.name], needs.get(each.name, 0))))
        for each in admission.pod_sets
    )
    return replace(admission, pod_sets=pod_sets) if pod_sets != admission.pod_sets else admission


def reduced(assignment: Assignment, count: int) -> Assignment:
    """What fewer pods use of what was assigned."""
    if count == assignment.count or not assignment.count:
        return assignment
    usage = tuple((resource, amount // assignment.count * count) for resource, amount in assignment.usage)
    return replace(assignment, count=count, usage=usage)


def missing(workload: WorkloadView, job: JobView) -> str:
    """What a Job needs again of what its Workload has given back, in words; empty if nothing."""
    assert workload.admission is not None
    counts, wants = held(workload), wanted(job)
    for each in workload.admission.pod_sets:
        if counts[each.name] < wants.get(each.name, 0) <= each.count:
            return (
                f"its {job.resource.kind} asks for {wants[each.name]} pods again, and has given back"
                f" all but {counts[each.name]} of {each.count}"
            )
    return ""
