"""The fields of Kubernetes objects that Admitter uses, parsed once per version of the object.

Everything else is dropped here, so that the stores stay small.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from sys import intern
from typing import Any, Final

import orjson

from admitter.api.conditions import ConditionType
from admitter.cache import parallelism
from admitter.cache.checkpoint import checkpoint_of
from admitter.cache.job_resources import JOB, POD_GROUP, JobResource, OwnerView, PodSetView, owner_of, titled
from admitter.cache.label_aliases import capacity, named_class
from admitter.cache.preemption_status import PreemptionStatus, ReservationStatus
from admitter.cache.readiness_status import ReadinessStatus, read
from admitter.cache.run_time_status import run_time_of
from admitter.cache.stated import stated
from admitter.cache.timestamps import seconds
from admitter.client.sharing import shared
from admitter.client.store import Key
from admitter.convert import workloads
from admitter.convert.pod_sets import job_count, kept_template
from admitter.engine.model import Admission
from admitter.engine.quota.back_off import BackOff
from admitter.names import (
    CAPACITY_ALIAS_LABEL,
    CAPACITY_LABEL,
    CLUSTER_QUEUE_LABEL,
    COUNTED_ANNOTATION,
    EVICTION_TIME_ANNOTATION,
    FLAVORS_ANNOTATION,
    INJECTED_ANNOTATION,
    JOB_LABEL,
    PLACED_ANNOTATION,
    POD_GROUP_LABEL,
    QUEUE_LABEL,
    RETRIABLE_ANNOTATION,
    WORKLOAD_LABEL,
    WORKLOAD_UID_ANNOTATION,
)
from admitter.quotas import placement
from admitter.quotas.placement import Submission

Json = dict[str, Any]

POD_SET: Final = "main"  # the name of a Job's only pod set
LONGEST_LABEL_VALUE: Final = 63
LONGEST_TEMPLATE: Final = 65_536
"""Bytes of what is kept of a pod template: of one that says more nothing is, and it gets no Workload."""
LONGEST_RECORD: Final = 65_536
"""Characters of what a Job remembers of its last admission: the controller writes no more, but a user may."""
_DIGITS: Final = 10


def at(time: float) -> datetime:
    """A time in seconds since the epoch as a moment, in UTC."""
    return datetime.fromtimestamp(time, UTC)


def timestamp(now: datetime) -> str:
    """A time as the API writes it."""
    return f"{now.year:04}{now:-%m-%dT%H:%M:%SZ}"  # %Y has no zeros in front


@dataclass(frozen=True, slots=True)
class Meta:
    """What every object has."""

    namespace: str
    name: str
    uid: str
    version: int

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)


def meta(metadata: Mapping[str, Any]) -> tuple[str, str, str, int]:
    """The same of an object's metadata, in this order."""
    namespace = intern(metadata.get("namespace", ""))
    return namespace, metadata["name"], metadata["uid"], int(metadata["resourceVersion"])


@dataclass(frozen=True, slots=True)
class ObjectView(Meta):
    """An object that is read rarely: its labels, spec and status as they are."""

    labels: Mapping[str, str]
    generation: int
    created: float  # seconds since the epoch
    changed: float  # when anything but its status was changed last, by whole seconds since the epoch
    terminating: bool
    spec: Json
    status: Json
    body: Json  # for kinds without spec (PriorityClass, RuntimeClass), the fields at the top


def parse_object(raw: Json) -> ObjectView:
    metadata = raw["metadata"]
    created = seconds(metadata["creationTimestamp"])
    changes = (m for m in metadata.get("managedFields") or () if not m.get("subresource") and m.get("time"))
    return ObjectView(
        *meta(metadata),
        labels=metadata.get("labels") or {},
        generation=metadata.get("generation", 0),
        created=created,
        changed=max((seconds(m["time"]) for m in changes), default=created),
        terminating="deletionTimestamp" in metadata,
        spec=raw.get("spec") or {},
        status=raw.get("status") or {},
        body={k: v for k, v in raw.items() if k in {"value", "globalDefault", "overhead"}},
    )


@dataclass(frozen=True, slots=True)
class JobView(Meta):
    """A batch/v1 Job, or an object of a kind that a JobKind describes.

    The name of the latter has its kind before it, as kubectl takes it: `jobset/train`.
    """

    workload: str  # the name of its Workload
    created: float  # seconds since the epoch
    deleting: bool
    queue: str | None  # the LocalQueue named by its label; None without one
    # what rules may find a queue by, if it names none or they have found the one that it names
    submission: Submission | None
    injected: str  # the record of what the last admission put into its template, as JSON
    eviction_time: str  # when it will be evicted, as its annotation says; empty if no eviction is pending
    oversized: int  # how many bytes of JSON its template takes, if that is more than is kept; else 0
    # `suspend`, `parallelism`, `completions`, the fields of the pod template that decide what its pods use
    # and where they may run; if it has them `manualSelector`, what annotations say (`expected`, `maxRuntime`,
    # `readyTimeout`, `least`, `most`, `original`, `applied`), `podDeadlineSeconds`, `backoffLimit`,
    # `activeDeadlineSeconds`, and of a pod the `schedulingGates` of others
    spec: Json
    template_metadata: Json  # the labels and annotations of the pod template that are Admitter's
    status: Json  # the counters, `startTime` and, by type, status and message of the conditions
    # what its JobKind has found; none of a batch/v1 Job, which has one by its template
    pod_sets: tuple[PodSetView, ...] = ()
    resource: JobResource = JOB
    owner: OwnerView | None = None
    problem: str = ""  # why what its pods ask for can't be counted; empty if it can
    # group and version, kind and name of what else says that, in its namespace or in none
    related: tuple[tuple[str, str, str], ...] = ()
    priority_class: str = ""  # the WorkloadPriorityClass that its labels name; empty if they name none
    # when it says that it has last saved its work, in seconds since the epoch; 0: it says nothing readable
    checkpoint: float = 0.0
    user: str = ""  # its maker, as the API server or its own labels and annotations say; empty: neither does

    @property
    def path(self) -> str:
        """The URL path of the object."""
        return self.resource.object_path(self.key)

    @property
    def sets(self) -> tuple[PodSetView, ...]:
        """All of its pod sets."""
        if self.pod_sets or self.problem:
            return self.pod_sets
        count = job_count(self.spec, self.status)
        return (PodSetView(POD_SET, count, self.template, self.template_metadata, _TEMPLATE),)

    def count(self, succeeded: int = 0) -> int:
        """How many pods run at a time, if so many have succeeded, or as many as its status says."""
        if self.pod_sets or self.problem:
            return sum(each.count for each in self.pod_sets)
        return job_count(self.spec, {"succeeded": max(succeeded, int(self.status["succeeded"]))})

    @property
    def suspended(self) -> bool:
        """Whether it is asked to have no pods."""
        return bool(self.spec["suspend"])

    @property
    def selects_itself(self) -> bool:
        """Whether its pods are found by a selector of its user's, so that they can be taken from it."""
        return bool(self.spec.get("manualSelector"))

    @property
    def template(self) -> Json:
        """The kept fields of the pod template's spec."""
        template: Json = self.spec["template"]
        return template

    @property
    def started_by(self) -> str | None:
        """The name of the Workload that it was started for; None if it was not started."""
        name = (self.template_metadata.get("labels") or {}).get(WORKLOAD_LABEL)
        return str(name) if name else None

    @property
    def started_by_uid(self) -> str:
        """The UID of the Workload that it was started for; empty if an older version started it, or none."""
        return str((self.template_metadata.get("annotations") or {}).get(WORKLOAD_UID_ANNOTATION) or "")

    def is_started_by(self, workload: "WorkloadView") -> bool:
        """Whether the admission of that Workload started it, and not that of another one of the same name."""
        if self.started_by != workload.name:
            return False
        if self.started_by_uid:
            return self.started_by_uid == workload.uid
        return workload.job is not None and workload.job[1] == self.uid

    @property
    def finished(self) -> str | None:
        """`Complete` or `Failed` once no pod of it runs any more."""
        return next((kind for kind in ("Complete", "Failed") if self._condition(kind) == "True"), None)

    @property
    def finish_message(self) -> str:
        """What the Job controller said when it finished."""
        condition = self.status["conditions"].get(self.finished or "", {})
        return str(condition.get("message", ""))

    @property
    def halted(self) -> bool:
        """Whether the Job controller says that it is suspended: it makes no pods until the next start.

        Job status names no generation, so by itself this may be an old answer: see `resumed`.
        From then on its template may be changed, also while pods of the last start take their time to end.
        """
        return self._condition("Suspended") == "True"

    @property
    def at_rest(self) -> bool:
        """Whether no pod is made for it before its next start; pods of a Job may still live then."""
        return self.halted and (self.resource is JOB or self.idle)

    @property
    def unstarted(self) -> bool:
        """Whether no admission has ever started it: no Job controller may say anything of such a Job.

        Of other kinds it is not known: what an admission has put in is taken out again.
        """
        return self.resource.proves and self.suspended and self.started_by is None and self.idle

    @property
    def idle(self) -> bool:
        """Whether the Job controller counts no active and no terminating pod."""
        return not self.status["active"] and not self.status["terminating"]

    @property
    def resumed(self) -> bool:
        """Whether the Job controller has acted on the end of the suspension.

        Only after that does a later `halted` prove that it has seen the next suspension.
        """
        started = self.status["startTime"] is not None or self._condition("Suspended") == "False"
        return started and self._condition("Suspended") != "True"

    def _condition(self, kind: str) -> str:
        return str(self.status["conditions"].get(kind, {}).get("status", ""))


_TEMPLATE: Final = ("spec", "template")
_TEMPLATE_MARKS = frozenset(
    {
        *(WORKLOAD_LABEL, CLUSTER_QUEUE_LABEL, CAPACITY_LABEL, CAPACITY_ALIAS_LABEL),
        *(WORKLOAD_UID_ANNOTATION, FLAVORS_ANNOTATION, COUNTED_ANNOTATION),
    }
)


def parse_job(raw: Json) -> JobView:
    metadata, spec, status = raw["metadata"], raw["spec"], raw.get("status") or {}
    queue = (metadata.get("labels") or {}).get(QUEUE_LABEL)
    annotations = metadata.get("annotations") or {}
    by_rules = queue is None or (queue and annotations.get(PLACED_ANNOTATION) == queue)
    template = spec["template"]
    kept = kept_template(template["spec"])
    size = len(orjson.dumps(kept))
    oversized = size if size > LONGEST_TEMPLATE else 0
    conditions = status.get("conditions") or ()
    return JobView(
        *meta(metadata),
        workload=workload_name(metadata["name"], metadata["uid"]),
        created=seconds(metadata["creationTimestamp"]),
        deleting="deletionTimestamp" in metadata,
        queue=queue,
        submission=placement.submission(raw) if by_rules else None,
        injected=annotations.get(INJECTED_ANNOTATION, "")[:LONGEST_RECORD],
        eviction_time=annotations.get(EVICTION_TIME_ANNOTATION, "")[:LONGEST_LABEL_VALUE],
        oversized=oversized,
        spec=shared(
            {
                **stated(annotations, spec),
                **({"manualSelector": True} if spec.get("manualSelector") else {}),
                **parallelism.said(annotations),
                "suspend": spec.get("suspend", False),
                "parallelism": spec.get("parallelism", 1),
                "completions": spec.get("completions"),
                "template": kept if not oversized else {"containers": []},
            }
        ),
        template_metadata=marks_of(template),
        owner=owner_of(metadata),
        priority_class=named_class(metadata),
        checkpoint=checkpoint_of(annotations),
        user=intern(placement.user_of(metadata, template.get("metadata") or {})),
        status=shared(
            {
                "active": status.get("active", 0),
                "ready": status.get("ready", 0),
                "terminating": status.get("terminating", 0),
                "succeeded": status.get("succeeded", 0),
                "startTime": status.get("startTime"),
                "conditions": {
                    c["type"]: {k: c.get(k, "") for k in ("status", "message")} for c in conditions
                },
            }
        ),
    )


def marks_of(template: Json) -> Json:
    """The labels and annotations of a pod template that are Admitter's."""
    metadata = template.get("metadata") or {}
    made: Json = shared(
        {
            part: {k: v for k, v in (metadata.get(part) or {}).items() if k in _TEMPLATE_MARKS}
            for part in ("labels", "annotations")
        }
    )
    return made


def workload_name(name: str, uid: str) -> str:
    """The name of a Job's Workload: readable, unique by the Job's UID, and short enough for a label.

    That of an object of another kind begins with the kind.
    """
    digest = sha256(uid.encode()).hexdigest()[:_DIGITS]
    readable = name.replace("/", "-") if "/" in name else f"job-{name}"
    room = LONGEST_LABEL_VALUE - len("-") - len(digest)
    return f"{readable[:room].rstrip('-.')}-{digest}"


@dataclass(frozen=True, slots=True)
class WorkloadView(Meta):
    """A Workload."""

    created: float  # seconds since the epoch
    # name and UID of the Job that it was made for, as the view of that has it; None for one made by hand. The
    # name is empty if the Job was deleted and left its Workload behind
    job: tuple[str, str] | None
    spec: Json
    admission: Admission | None  # the quota it holds; None if it waits, and once it has finished
    status: Json
    true: frozenset[str]  # the types of the conditions that hold
    finished: bool  # whether its work is over; it holds nothing then
    size: int  # bytes of its spec as JSON
    capacity: str = ""  # what its label says: `in-quota`, `over-quota`, or nothing
    parked: bool = False  # whether nothing is kept of what it asks for
    group: str = JOB.group  # the API group of the Job that it was made for
    retriable: bool = True  # whether pods may take the places of those that are evicted

    @property
    def queue(self) -> str:
        return str(self.spec["queueName"])

    @property
    def active(self) -> bool:
        """Whether its user lets it be admitted."""
        return bool(self.spec.get("active", True))

    @property
    def since(self) -> float:
        """When it was admitted, in seconds since the epoch."""
        reserved = self.condition(ConditionType.QUOTA_RESERVED).get("lastTransitionTime")
        return seconds(reserved) if reserved else self.created

    @property
    def evicting(self) -> bool:
        """Whether it must give back the quota that it still holds."""
        return self.admission is not None and self.is_true("Evicted")

    @property
    def evict_at(self) -> float | None:
        """When it will be evicted, in seconds since the epoch; None if no eviction is pending."""
        if self.admission is None or not self.is_true("EvictionPending") or self.preemption is None:
            return None
        return self.preemption.evict_at

    @property
    def preempted(self) -> float | None:
        """When it was preempted, in seconds since the epoch; None once it is admitted again."""
        if not self.is_true(ConditionType.PREEMPTED):
            return None
        return seconds(self.condition(ConditionType.PREEMPTED)["lastTransitionTime"])

    @property
    def evictions(self) -> tuple[float, ...]:
        """When it was evicted for others, in seconds since the epoch, the oldest first."""
        times = self.status.get("evictedAt")
        return tuple(sorted(map(seconds, times))) if times else ()

    @property
    def preemption(self) -> PreemptionStatus | None:
        """Its preemptor; None once it is admitted again, or if it was evicted for another reason."""
        raw = self.status.get("preemption")
        if not raw:
            return None
        return PreemptionStatus(
            (raw["namespace"], raw["name"]),
            raw["uid"],
            workloads.admission(raw["admission"]),
            raw.get("generation") or 0,
            seconds(raw["evictAt"]) if raw.get("evictAt") else None,
            str(raw.get("message") or ""),
        )

    @property
    def back_off(self) -> BackOff | None:
        """For how long nothing is evicted for it, if it waits for the end of that."""
        raw = self.status.get("backOff")
        return BackOff(raw["count"], seconds(raw["until"])) if raw else None

    @property
    def readiness(self) -> ReadinessStatus:
        """Until when its pods have to be ready, and how often they were not."""
        return read(self.status.get("readiness"))

    @property
    def evicted_for(self) -> tuple[str, int]:
        """UID and generation in `preemption`, in a tenth of the time; an empty UID without it."""
        raw = self.status.get("preemption") or {}
        return raw.get("uid", ""), raw.get("generation") or 0

    @property
    def reservation(self) -> ReservationStatus:
        """Its last pending reservation."""
        raw = self.status.get("place")
        if not raw:
            return ReservationStatus()
        admission = raw.get("admission")
        return ReservationStatus(raw["generation"], workloads.admission(admission) if admission else None)

    def condition(self, kind: str) -> Json:
        conditions: Iterable[Json] = self.status.get("conditions") or ()
        for condition in conditions:
            if condition["type"] == kind:
                return condition
        return {}

    def is_true(self, kind: str) -> bool:
        return kind in self.true


_sets = lru_cache(maxsize=1024)(frozenset[str])
"""The same set for all that are equal: many Workloads have few different ones."""


def parse_workload(raw: Json) -> WorkloadView:
    metadata, status = raw["metadata"], raw.get("status") or {}
    labels = metadata.get("labels") or {}
    marked, group = labels.get(JOB_LABEL), labels.get(POD_GROUP_LABEL)
    made_for = titled(POD_GROUP.group, POD_GROUP.kind, group) if group else ""
    owner = owner_of(metadata)
    if owner is not None and owner.uid != marked and (owner.group, owner.kind) != (JOB.group, JOB.kind):
        owner = None
    true = frozenset(c["type"] for c in status.get("conditions") or () if c["status"] == "True")
    finished = ConditionType.FINISHED in true
    admission = None if finished else status.get("admission")
    view = WorkloadView(
        *meta(metadata),
        created=seconds(metadata["creationTimestamp"]),
        job=(owner.title, owner.uid) if owner is not None else (made_for, marked) if marked else None,
        spec=shared(raw["spec"]),
        admission=workloads.admission(admission) if admission else None,
        status=shared(status),
        true=_sets(true),
        finished=finished,
        size=len(orjson.dumps(raw["spec"])),
        capacity=capacity(metadata),
        group=owner.group if owner is not None else POD_GROUP.group if group else JOB.group,
        retriable=(metadata.get("annotations") or {}).get(RETRIABLE_ANNOTATION) != "false",
    )
    # A Workload can be read if all of them can.
    _ = (view.since, view.preempted, view.preemption, view.back_off, view.reservation, view.readiness)
    _ = (view.evictions, run_time_of(status))
    return view
