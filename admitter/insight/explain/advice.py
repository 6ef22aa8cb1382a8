"""What the person that has made a Job can do about its wait, in a sentence (docs/reasons.md has the rest)."""

from collections.abc import Mapping
from typing import Final

from admitter.api.conditions import WaitingReason
from admitter.cache.job_resources import sort_of
from admitter.cache.views import WorkloadView
from admitter.insight.explain.account import fewer_that_fit
from admitter.insight.explain.explainer import Answer
from admitter.names import ANY_NODE, MIN_PARALLELISM_ANNOTATION

_ASK = "An administrator of the queue has to act: tell them what it says here."
_WAIT = "Nothing has to be done: its turn comes."
_ADVICE: Final[Mapping[str, str]] = {
    WaitingReason.INSUFFICIENT_QUOTA: "Wait, or ask for less.",
    WaitingReason.NEVER_FITS: "Ask for less, or have the quota or the nodes enlarged: to wait does not help.",
    WaitingReason.NO_MATCHING_FLAVOR: "Change tolerations, nodeSelector or affinity of its pods.",
    WaitingReason.RESOURCE_NOT_COVERED: "Take it out of the requests, or have it added to the queue.",
    WaitingReason.NOTHING_REQUESTED: "Set requests of its containers.",
    WaitingReason.BEHIND_HEAD: _WAIT,
    WaitingReason.PREEMPTING: "Nothing has to be done: it starts once what it waits for has ended.",
    WaitingReason.PREEMPTION_BACKED_OFF: "Wait, and do not delete Jobs that were just admitted.",
    WaitingReason.EVICTIONS_LIMITED: "Nothing has to be done: it is tried again at the time in the sentence.",
    WaitingReason.QUEUE_NOT_FOUND: "Correct the name of the queue in its label, or have the queue made.",
    WaitingReason.QUEUE_STOPPED: _ASK,
    WaitingReason.CLUSTER_QUEUE_NOT_FOUND: _ASK,
    WaitingReason.CLUSTER_QUEUE_STOPPED: _ASK,
    WaitingReason.CLUSTER_QUEUE_INACTIVE: _ASK,
    WaitingReason.QUOTA_INACTIVE: _ASK,
    WaitingReason.NAMESPACE_NOT_SELECTED: _ASK,
    WaitingReason.NAMESPACE_TERMINATING: "Use another namespace: this one is being deleted.",
    WaitingReason.RESOURCE_CLAIMS: "Ask for resources that the queue counts, in place of resource claims.",
    WaitingReason.MANUAL_SELECTOR: "Delete the Job, and make it again without spec.manualSelector.",
    WaitingReason.INVALID_REQUESTS: "Correct the request that the sentence names.",
    WaitingReason.INVALID_ANNOTATION: "Correct the annotation that the sentence names.",
    WaitingReason.MAX_RUNTIME_EXCEEDED: "Make the Job again, or have the maximum run time made longer.",
    WaitingReason.PRIORITY_CLASS_NOT_FOUND: "Name another priority class, or have this one made.",
    WaitingReason.PRIORITY_CLASS_NOT_ALLOWED: "Name another priority class or none, or use another queue.",
    WaitingReason.PRIORITY_MISMATCH: "Correct spec.priority of the Workload.",
    WaitingReason.INACTIVE: "Set spec.active of the Workload to true (admitter resume).",
    WaitingReason.NOT_STARTED: "Correct what the sentence names: Job, policy, flavor or operator.",
    WaitingReason.KIND_INACTIVE: _ASK,
    WaitingReason.PARKED: "Shorten the spec, or wait for the end of other large Workloads of the namespace.",
    WaitingReason.OUTDATED: "Nothing has to be done, unless an event of its object says what is refused.",
    WaitingReason.JOB_STILL_RUNNING: "Nothing has to be done, unless a pod does not end.",
    WaitingReason.PODS_NOT_READY: "Correct image, command or selectors; or wait, if nodes are missing.",
    WaitingReason.GAVE_UP: "Correct the Job, then set spec.active of the Workload to true (admitter resume).",
    WaitingReason.POD_GROUP_INCOMPLETE: "Make the other pods of the group, or correct its size.",
    WaitingReason.POD_GROUP_SIZES_DIFFER: "Make the pods of the group again with one size.",
    WaitingReason.NO_PLACE_IN_GROUP: "Make the pod as the one in the place of which it comes.",
    WaitingReason.WORKLOAD_TAKEN: "Delete the Workload that has its name.",
}


def advice(answer: Answer) -> str:
    """What can be done about the wait of a Workload; empty if it does not wait, or nothing is to be said."""
    if answer.waiting is None:
        return ""
    fit = fewer_that_fit(answer)
    if fit is None:
        return _ADVICE.get(answer.waiting.reason, "")
    place = "" if fit.flavor == ANY_NODE else f" in flavor {fit.flavor}"
    words = f"Wait, or ask for less: {fit.pods} of its {fit.of} pods would fit now{place}."
    if not _may_begin_with_fewer(answer.workload):
        return words
    return f"{words} With the annotation {MIN_PARALLELISM_ANNOTATION} a Job begins with fewer."


def _may_begin_with_fewer(workload: WorkloadView | None) -> bool:
    """Whether it is of a Job, which an annotation lets begin with fewer pods, and it has none."""
    if workload is None or workload.job is None or sort_of(workload.job[0]):
        return False
    return all(each.get("minCount") is None for each in workload.spec["podSets"])
