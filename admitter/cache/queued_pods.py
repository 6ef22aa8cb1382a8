"""Pods that are queued by themselves or in a group: what is kept of each, and one as a job object.

A pod of a Job may name a queue too, since its template does. It has no gate, and what it was marked with
names the Workload of its Job.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from sys import intern
from typing import Final

import orjson

from admitter.cache.checkpoint import checkpoint_of
from admitter.cache.job_resources import POD, OwnerView, PodSetView, owner_of, titled
from admitter.cache.label_aliases import named_class
from admitter.cache.stated import stated
from admitter.cache.timestamps import seconds
from admitter.cache.views import (
    LONGEST_LABEL_VALUE,
    LONGEST_RECORD,
    LONGEST_TEMPLATE,
    POD_SET,
    JobView,
    Json,
    Meta,
    marks_of,
    meta,
    workload_name,
)
from admitter.client.sharing import shared
from admitter.client.store import Store, Unreadable, either
from admitter.convert.pod_sets import kept_template
from admitter.names import (
    BEYOND_GROUP_ANNOTATION,
    EVICTION_TIME_ANNOTATION,
    FAST_ADMISSION_ANNOTATION,
    INJECTED_ANNOTATION,
    POD_GATE,
    POD_GROUP_LABEL,
    POD_GROUP_OWNER_ANNOTATION,
    POD_GROUP_SIZE_ANNOTATION,
    QUEUE_LABEL,
    RETRIABLE_ANNOTATION,
    RETURNED_ANNOTATION,
    SERVING_ANNOTATION,
    USER_ANNOTATION,
    USER_UID_ANNOTATION,
    WORKLOAD_LABEL,
    WORKLOAD_UID_ANNOTATION,
)
from admitter.quotas import placement

PREEMPTION_REASON: Final = "PreemptionByAdmitter"
"""Of the condition `DisruptionTarget` of a pod that an eviction deletes."""
MOST_PODS: Final = 100_000
"""The largest size of a group that is read."""
_DIGITS: Final = 24
"""Of the digests by which groups and shapes of pods are told apart: 96 bits, since users choose the input."""


@dataclass(frozen=True, slots=True)
class QueuedPod(Meta):
    """A pod with the label of a queue."""

    queue: str
    created: float  # seconds since the epoch
    workload: str  # the name of its Workload, or of its group's
    group: str  # the name of its group; empty: it is queued by itself
    group_uid: str  # what its group is known by: users with the same name for a group have two groups
    size: int  # how many pods its group has; 0: it does not say, or no number
    retriable: bool  # whether another pod of the group may take its place if it fails
    serving: bool
    fast: bool
    beyond: bool  # whether its group, which serves, had no place for it: it is queued by itself
    gated: bool
    other_gates: tuple[str, ...]  # the scheduling gates that it has besides
    phase: str
    words: str  # why it failed
    failed_at: float  # seconds since the epoch, as its conditions tell; 0: it has not failed, or they don't
    deleting: bool
    disrupted: bool  # whether an eviction has written down why it is deleted
    barred: str  # the mark of the last eviction that made sure that no start of it is on its way
    marks: Json  # its labels and annotations that are Admitter's
    template: Json  # the fields of its spec that decide what it uses and where it may run
    oversized: int
    injected: str  # the record of what the admission put into it, as JSON
    shape: str  # the same for pods of which those fields are the same, or were when they were started
    eviction_time: str
    runtime: Json  # what it says of its runtime
    owner: OwnerView | None
    priority_class: str = ""  # the WorkloadPriorityClass that its labels name
    checkpoint: float = 0.0  # when it says that it has last saved its work; 0: nothing readable
    user: str = ""  # its maker

    @property
    def marked(self) -> bool:
        """Whether an admission of its Workload has started it."""
        return (self.marks.get("labels") or {}).get(WORKLOAD_LABEL) == self.workload

    @property
    def workload_uid(self) -> str:
        """The UID of the Workload that it was started for."""
        return str((self.marks.get("annotations") or {}).get(WORKLOAD_UID_ANNOTATION) or "")

    @property
    def queued(self) -> bool:
        """Whether it is admitted by itself or with its group; else something else counts it."""
        return self.gated or self.marked

    @property
    def is_member(self) -> bool:
        """Whether it is admitted with a group."""
        return bool(self.group) and not self.beyond

    @property
    def over(self) -> bool:
        """Whether it has come to its end."""
        return self.phase in {"Succeeded", "Failed"}

    @property
    def succeeded(self) -> bool:
        """Whether it has done its work; one that exits without an error because it is evicted has not."""
        return self.phase == "Succeeded" and not self.disrupted

    @property
    def running(self) -> bool:
        """Whether it has been started and uses quota, also while it takes its time to end."""
        return not self.gated and not self.over

    @property
    def age(self) -> tuple[float, str]:
        """The smaller, the older."""
        return self.created, self.name

    @property
    def title(self) -> str:
        """It as messages name it, and as it is known by as a job object."""
        return titled(POD.group, POD.kind, self.name)


def parse_queued_pod(raw: Json) -> QueuedPod:
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    if QUEUE_LABEL not in labels:
        raise ValueError(f"metadata.labels: {QUEUE_LABEL} is missing")
    gates = [str(gate["name"]) for gate in spec.get("schedulingGates") or ()]
    owner, queue, group = owner_of(metadata), labels[QUEUE_LABEL], labels.get(POD_GROUP_LABEL, "")
    identity = group_identity(metadata, group, queue, owner) if group else ""
    beyond = bool(group) and annotations.get(BEYOND_GROUP_ANNOTATION, "") == "true"
    name = (
        group_workload(group, identity)
        if group and not beyond
        else workload_name(f"pod/{metadata['name']}", metadata["uid"])
    )
    template = kept_template(spec)
    size = len(orjson.dumps(template))
    template = shared(template if size <= LONGEST_TEMPLATE else {"containers": []})
    marks = marks_of(raw)
    marked = (marks["labels"] or {}).get(WORKLOAD_LABEL) == name
    injected = annotations.get(INJECTED_ANNOTATION, "")[:LONGEST_RECORD] if marked else ""
    phase = str(status.get("phase") or "Pending")
    return QueuedPod(
        *meta(metadata),
        queue=intern(queue),
        created=seconds(metadata["creationTimestamp"]),
        workload=intern(name) if group and not beyond else name,
        group=intern(group),
        group_uid=intern(identity),
        size=_size(annotations.get(POD_GROUP_SIZE_ANNOTATION, "")) if group else 0,
        retriable=annotations.get(RETRIABLE_ANNOTATION, "") != "false",
        serving=annotations.get(SERVING_ANNOTATION, "") == "true",
        fast=annotations.get(FAST_ADMISSION_ANNOTATION, "") == "true",
        beyond=beyond,
        gated=POD_GATE in gates,
        other_gates=tuple(gate for gate in gates if gate != POD_GATE),
        phase=intern(phase),
        words=str(status.get("message") or status.get("reason") or "") if phase == "Failed" else "",
        failed_at=_last_change(status) if phase == "Failed" else 0.0,
        deleting="deletionTimestamp" in metadata,
        disrupted=any(
            each["type"] == "DisruptionTarget" and each.get("reason") == PREEMPTION_REASON
            for each in status.get("conditions") or ()
        ),
        barred=annotations.get(RETURNED_ANNOTATION, "")[:LONGEST_LABEL_VALUE],
        marks=marks,
        template=template,
        oversized=size if size > LONGEST_TEMPLATE else 0,
        injected=injected,
        shape=_started_as(injected) or _shape(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)),
        eviction_time=annotations.get(EVICTION_TIME_ANNOTATION, "")[:LONGEST_LABEL_VALUE],
        runtime=shared(stated(annotations, {"template": {"spec": spec}})),
        owner=owner,
        priority_class=named_class(metadata),
        checkpoint=checkpoint_of(annotations),
        user=intern(placement.user_of(metadata, {})),
    )


def _last_change(status: Json) -> float:
    """When a condition of a pod changed last."""
    times = (each.get("lastTransitionTime") for each in status.get("conditions") or ())
    return max((seconds(time) for time in times if time), default=0.0)


def _size(text: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(MOST_PODS)) else 0
    return number if number <= MOST_PODS else 0


def group_identity(metadata: Mapping[str, Json], group: str, queue: str, owner: OwnerView | None) -> str:
    """What a group is known by: its name, and the user, the controller and the queue of its pods.

    A pod that another user makes is of another group, whatever it says.
    """
    annotations = metadata.get("annotations") or {}
    user, uid = annotations.get(USER_ANNOTATION, ""), annotations.get(USER_UID_ANNOTATION, "")
    above = annotations.get(POD_GROUP_OWNER_ANNOTATION) or (owner.uid if owner is not None else "")
    parts = [metadata.get("namespace", ""), group, user, uid, above, queue]
    return f"podgroup-{sha256(orjson.dumps(parts)).hexdigest()[:_DIGITS]}"


def group_workload(group: str, identity: str) -> str:
    """The name of a group's Workload: readable, with the digest that tells it from others."""
    digest = identity.rpartition("-")[2]
    room = LONGEST_LABEL_VALUE - len("-") - len(digest)
    readable = f"podgroup-{group}".lower().replace("_", "-").replace(".", "-")[:room].rstrip("-")
    return f"{readable}-{digest}"


@lru_cache(maxsize=1024)
def _shape(template: bytes) -> str:
    """The name of the pod set of pods that wait with such a template."""
    return intern(f"shape-{sha256(template).hexdigest()[:_DIGITS]}")


@lru_cache(maxsize=1024)
def _started_as(injected: str) -> str:
    """The pod set of a pod that was started, as its start has written it down; empty for others.

    Users may still add tolerations, and lower requests: the pod keeps its place, and leaves no other free.
    """
    name, _ = _record(injected)
    return intern(name)


def _record(injected: str) -> tuple[str, Json]:
    """The pod set for which an admission has put something into a pod, and what; empty if nothing tells."""
    try:
        record = orjson.loads(injected) if injected else None
    except orjson.JSONDecodeError:
        return "", {}
    name, of_set = next(iter(record.items()), ("", {})) if isinstance(record, dict) else ("", {})
    return (name, of_set) if isinstance(of_set, dict) else ("", {})


def without_injected(template: Json, injected: str) -> Json:
    """A pod's template as its user wrote it, without what an admission has put in."""
    _, of_set = _record(injected)
    selector, tolerations = of_set.get("nodeSelector"), of_set.get("tolerations")
    if not isinstance(selector, dict) or not isinstance(tolerations, list):
        return template
    own = {k: v for k, v in (template.get("nodeSelector") or {}).items() if selector.get(k) != v}
    tolerated = [t for t in template.get("tolerations") or () if t not in tolerations]
    rest = {k: v for k, v in template.items() if k not in {"nodeSelector", "tolerations"}}
    return rest | ({"nodeSelector": own} if own else {}) | ({"tolerations": tolerated} if tolerated else {})


def pod_job(pod: QueuedPod) -> JobView:
    """A pod as a job object; one of a group as its group would be if it were alone."""
    return JobView(
        pod.namespace,
        pod.title,
        pod.uid,
        pod.version,
        workload=pod.workload,
        created=pod.created,
        deleting=pod.deleting,
        queue=pod.queue,
        submission=None,
        injected=pod.injected,
        eviction_time=pod.eviction_time,
        oversized=pod.oversized,
        spec=shared(
            {
                **pod.runtime,
                **({"schedulingGates": [{"name": g} for g in pod.other_gates]} if pod.other_gates else {}),
                "suspend": pod.gated,
                "parallelism": 0,
                "completions": None,
                "template": pod.template,
            }
        ),
        template_metadata=pod.marks,
        status=_status(pod.gated, pod.phase, pod.words),
        pod_sets=(PodSetView(pod.shape if pod.is_member else POD_SET, 1, pod.template, pod.marks, ()),),
        resource=POD,
        owner=pod.owner,
        priority_class=pod.priority_class,
        checkpoint=pod.checkpoint,
        user=pod.user,
    )


@lru_cache(maxsize=1024)
def _status(gated: bool, phase: str, words: str) -> Json:
    """What the status of a pod says, in the words of a Job's."""
    conditions = {"Suspended": {"status": str(gated), "message": ""}}
    if phase in {"Succeeded", "Failed"}:
        kind = "Complete" if phase == "Succeeded" else "Failed"
        conditions[kind] = {"status": "True", "message": words}
    return {
        "active": int(not gated and phase not in {"Succeeded", "Failed"}),
        "terminating": 0,
        "succeeded": int(phase == "Succeeded"),
        "startTime": None,
        "conditions": conditions,
    }


class PodJobs:
    """The pods that are queued by themselves, as job objects."""

    def __init__(self, pods: Store[QueuedPod]) -> None:
        self.jobs: Store[JobView] = Store()  # by their titles
        self._pods = pods
        pods.follow(self._changed)
        pods.unreadable_changed.listen(self._unreadable)

    def _unreadable(self, now: Unreadable) -> None:
        """A pod can't be read, or can again: so it is with the job object that it may be."""
        key = (now.key[0], titled(POD.group, POD.kind, now.key[1]))
        known = replace(now, key=key)
        if self._pods.unreadable.get(now.key) is now:
            self.jobs.unreadable[key] = known
        else:
            known = self.jobs.unreadable.pop(key, known)
        self.jobs.unreadable_changed(known)

    def _changed(self, old: QueuedPod | None, new: QueuedPod | None) -> None:
        if new is not None and new.queued and not new.is_member:
            self.jobs.apply(pod_job(new))
        elif old is not None and old.queued and not old.is_member:
            self.jobs.delete((old.namespace, either(old, new).title), old.uid)
