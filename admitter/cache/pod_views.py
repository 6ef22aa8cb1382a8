"""The pods that admissions have labelled: what each one uses, and of which Workload's quota."""

from collections.abc import Mapping
from dataclasses import dataclass
from sys import intern
from typing import Final

import orjson

from admitter.cache.label_aliases import capacity
from admitter.cache.pod_readiness import Trouble, trouble_of
from admitter.cache.timestamps import seconds
from admitter.cache.views import JobView, Json, Meta, WorkloadView, meta
from admitter.convert.pod_requests import pod_requests
from admitter.engine.model import Admission, Assignment
from admitter.names import (
    CLUSTER_QUEUE_LABEL,
    COUNTED_ANNOTATION,
    EVICTION_TIME_ANNOTATION,
    FLAVORS_ANNOTATION,
    GPU_MEMORY,
    PODS,
    WORKLOAD_LABEL,
    WORKLOAD_UID_ANNOTATION,
)
from admitter.quantities.amounts import InvalidQuantityError

DEFAULT_SCHEDULER: Final = "default-scheduler"
LONGEST_NAME: Final = 253
"""Characters of the name of a scheduler; the API server takes any."""
LONGEST_AMOUNT: Final = 19
"""Digits; the API server takes no larger quantity."""


@dataclass(frozen=True, slots=True)
class PodView(Meta):
    """A pod that an admission has labelled."""

    workload: str  # name of the Workload that holds the quota that it uses
    workload_uid: str  # its UID; empty for a pod that no admission has labelled
    created: float  # seconds since the epoch
    live: bool  # whether it still uses quota: neither succeeded nor failed, and not gone
    succeeded: bool
    has_run: bool  # whether its containers run, or have
    usage: Admission  # what it uses, as an admission of one pod; resources of an unknown flavor are left out
    capacity: str
    eviction_time: str
    unanswered_scheduler: str  # the scheduler that has said nothing of the pod yet; empty: it has
    trouble: Trouble | None = None  # why it is not ready; None if it is, or has succeeded
    node: str = ""  # the name of the node that it is on; empty: of none yet

    def is_of(self, workload: WorkloadView) -> bool:
        """Whether that Workload's admission has made it, and not that of another one of its name."""
        return self.workload_uid == workload.uid


def parse_pod(raw: Json) -> PodView:
    metadata = raw["metadata"]
    annotations = metadata.get("annotations") or {}
    phase = (raw.get("status") or {}).get("phase")
    labels = metadata.get("labels") or {}
    if WORKLOAD_LABEL not in labels:
        raise ValueError(f"metadata.labels: {WORKLOAD_LABEL} is missing")
    return PodView(
        *meta(metadata),
        workload=labels[WORKLOAD_LABEL],
        workload_uid=annotations.get(WORKLOAD_UID_ANNOTATION, ""),
        created=seconds(metadata["creationTimestamp"]),
        live=phase not in {"Succeeded", "Failed"},
        succeeded=phase == "Succeeded",
        has_run=phase in {"Running", "Succeeded", "Failed"},
        usage=_usage(metadata["name"], labels, annotations, raw["spec"]),
        capacity=capacity(metadata),
        eviction_time=annotations.get(EVICTION_TIME_ANNOTATION, ""),
        unanswered_scheduler=_unanswered(raw["spec"], raw.get("status") or {}),
        trouble=trouble_of(metadata, raw["spec"], raw.get("status") or {}),
        node=intern(str(raw["spec"].get("nodeName") or "")),
    )


def _unanswered(spec: Json, status: Json) -> str:
    """The scheduler of a pod that has neither a node nor a word on why it has none."""
    answered = any(condition["type"] == "PodScheduled" for condition in status.get("conditions") or ())
    if spec.get("nodeName") or answered or status.get("phase", "Pending") != "Pending":
        return ""
    return intern(str(spec.get("schedulerName") or DEFAULT_SCHEDULER)[:LONGEST_NAME])


def usage_of(job: JobView) -> Admission:
    """What all pods of a Job use that an admission has started, by what it has put into its template."""
    made = []
    for each in job.sets:
        labels, annotations = (each.marks.get(part) or {} for part in ("labels", "annotations"))
        made.append(_usage(each.name, labels, annotations, each.template, each.count))
    counted = [usage for usage in made if usage.queue]
    if not counted:
        return Admission("", ())
    pod_sets = tuple(assignment for usage in counted for assignment in usage.pod_sets)
    return Admission(counted[0].queue, pod_sets, counted[0].pool)


def loose_usage(job: JobView, workload: WorkloadView | None) -> Admission | None:
    """What a Job uses that was started, and may make pods without quota of a Workload; None if it may not.

    One that is halted makes none, and its template may have been changed: its pods are counted one by one. So
    are those that are queued by themselves.
    """
    over = (
        job.resource.is_pods
        or job.finished
        or job.started_by != job.workload
        or (job.suspended and job.halted)
    )
    if over or (workload is not None and workload.admission is not None and job.is_started_by(workload)):
        return None
    try:
        usage = usage_of(job)
    except InvalidQuantityError:
        return None  # an older API server let its template be overwritten: its pods are counted one by one
    return usage if usage.queue else None


def _usage(
    name: str, labels: Mapping[str, str], annotations: Mapping[str, str], spec: Json, count: int = 1
) -> Admission:
    """What some pods use, as an admission; resources of an unknown flavor are left out."""
    flavors = _texts(annotations.get(FLAVORS_ANNOTATION, ""))
    counted = _texts(annotations.get(COUNTED_ANNOTATION, ""))
    requests = pod_requests(spec) | {PODS: 1} | _gpu_memory(counted.get(GPU_MEMORY, ""))
    usage = tuple((resource, amount * count) for resource, amount in requests.items() if resource in flavors)
    assignment = Assignment(name, count, tuple(flavors.items()), usage)
    return Admission(labels.get(CLUSTER_QUEUE_LABEL, ""), (assignment,), counted.get("pool", ""))


def _gpu_memory(text: str) -> dict[str, int]:
    written = text.isascii() and text.isdecimal() and len(text) <= LONGEST_AMOUNT
    return {GPU_MEMORY: int(text)} if written else {}


def _texts(text: str) -> dict[str, str]:
    """A map written as JSON; an invalid annotation gives an empty one."""
    try:
        parsed = orjson.loads(text) if text else {}
    except orjson.JSONDecodeError:
        return {}
    return {str(k): str(v) for k, v in parsed.items()} if isinstance(parsed, dict) else {}
