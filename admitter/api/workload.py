"""Workload: what asks for admission, and what it got."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from admitter.api import weights
from admitter.api.base import (
    AGE,
    LONGEST_NAME,
    Conditions,
    GeneratedName,
    Int32,
    Int64,
    LabelKey,
    LabelValue,
    Model,
    Moment,
    Name,
    PrinterColumn,
    Quantity,
    Resource,
    ResourceName,
    Toleration,
    atomic_list,
    map_list,
)
from admitter.api.conditions import WorkloadState
from admitter.api.eviction_limits import MOST_EVICTIONS
from admitter.api.lifecycle import RunTime


class NodeRequirement(Model):
    """A requirement on a node's label."""

    key: LabelKey
    """The label's key."""
    operator: Annotated[str, Field(pattern="^(In|NotIn|Exists|DoesNotExist|Gt|Lt)$")]
    """How the label compares with values: In, NotIn, Exists, DoesNotExist, Gt or Lt."""
    values: list[LabelValue] = Field(default=[], json_schema_extra=atomic_list(256))
    """The values to compare with."""


class NodeFieldRequirement(Model):
    """A requirement on a node's field."""

    key: str = Field(max_length=253)
    """The field, such as metadata.name."""
    operator: str = Field(max_length=32)
    """How the field compares with values: In or NotIn."""
    values: list[Annotated[str, Field(max_length=253)]] = Field(default=[], json_schema_extra=atomic_list(4))
    """The values to compare with; Kubernetes takes one."""


class NodeTerm(Model):
    """Requirements of which all must hold."""

    match_expressions: list[NodeRequirement] = Field(default=[], json_schema_extra=atomic_list(16))
    """Requirements on labels, of which all must hold."""
    match_fields: list[NodeFieldRequirement] = Field(default=[], json_schema_extra=atomic_list(16))
    """Requirements on fields; no flavor is chosen by them."""


class NodeSelector(Model):
    """Terms of which one must hold."""

    node_selector_terms: list[NodeTerm] = Field(json_schema_extra=atomic_list(16))
    """Alternatives: a node must satisfy one of them."""


class NodeAffinity(Model):
    """Required affinity to nodes."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    """What a node must satisfy. Flavors that can have no such node are passed over."""


class Affinity(Model):
    """The part of pods' affinity that limits their flavors."""

    node_affinity: NodeAffinity | None = None
    """Required affinity to nodes."""


class PodSet(Model):
    """Pods that are alike."""

    name: Name
    """Unique within the Workload; main for a Job's pods."""
    count: Int32 = Field(ge=0, le=2**31 - 1)
    """How many pods run at a time."""
    min_count: Int32 | None = Field(default=None, ge=1, le=2**31 - 1)
    """With how many pods it can do, if not all of them fit. Absent: with count alone."""
    requests: dict[ResourceName, Quantity] = Field(default={}, max_length=64)
    """What one pod requests, as the scheduler counts it: init and sidecar containers, overhead, and defaults
    by limits and LimitRanges included."""
    node_selector: dict[LabelKey, LabelValue] = Field(default={}, max_length=64)
    """Labels that its nodes must have."""
    affinity: Affinity | None = None
    """The part of the pods' affinity that says which nodes they may run on."""
    tolerations: list[Toleration] = Field(default=[], json_schema_extra=atomic_list(64))
    """Tolerations of its pods."""


class WorkloadSpec(Model):
    """What is asked for."""

    model_config = ConfigDict(
        json_schema_extra={"x-kubernetes-validations": [{"rule": weights.RULE, "message": weights.MESSAGE}]}
    )

    queue_name: str = Field(min_length=1, max_length=253)
    """The LocalQueue, in the same namespace, that it waits in."""
    priority: Int32 = Field(default=0, ge=-(2**31), le=2**31 - 1)
    """Higher goes first; the value of its WorkloadPriorityClass, or else of its PriorityClass."""
    priority_class_name: str | None = Field(default=None, max_length=253)
    """The PriorityClass of its pods, from which the priority comes if it names no WorkloadPriorityClass."""
    workload_priority_class: Name | None = None
    """The WorkloadPriorityClass that the priority comes from. The controller keeps the priority equal to its
    value."""
    active: bool = True
    """False pauses it: it is not admitted, and evicted if it was. So users pause a Job."""
    pod_sets: list[PodSet] = Field(min_length=1, json_schema_extra=map_list("name", most=8))
    """What its pods ask for; all of them are admitted together."""

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        pod_sets = [pod_set.model_dump(by_alias=True, exclude_none=True) for pod_set in self.pod_sets]
        if weights.weight(pod_sets) > weights.HEAVIEST:
            raise ValueError(weights.MESSAGE)
        return self


class PodSetAssignment(Model):
    """What a pod set got."""

    name: Name
    """The pod set."""
    count: Int32 = Field(ge=0, le=2**31 - 1)
    """How many pods were admitted."""
    flavors: dict[ResourceName, GeneratedName] = Field(default={}, max_length=64)
    """The flavor that it got for each resource."""
    usage: dict[ResourceName, Quantity] = Field(default={}, max_length=64)
    """What all of its pods use of each resource."""

    @model_validator(mode="after")
    def _used_in_a_flavor(self) -> Self:
        for resource in self.usage:
            if resource not in self.flavors:
                raise ValueError(f"usage of {resource} is in no flavor: flavors does not name it")
        return self


class Admission(Model):
    """The quota that is reserved."""

    cluster_queue: GeneratedName
    """The ClusterQueue of the quota, or the queue that an elastic quota is turned into."""
    pool: str | None = Field(default=None, max_length=LONGEST_NAME)
    """The name under which use is counted, if not by flavor: an elastic quota limits the sum of its
    flavors."""
    pod_sets: list[PodSetAssignment] = Field(json_schema_extra=map_list("name", most=8))
    """What each pod set got."""
    epoch: int | None = Field(default=None, ge=0)
    """When the controller that decided began to lead, in milliseconds since 1970. The API server takes no
    admission of an earlier one."""
    shard: int | None = Field(default=None, ge=0)
    """For which shard it decided, if controllers share the cohort trees; absent: 0."""


class Place(Model):
    """Its last pending reservation. Written so that a restarted controller keeps it."""

    generation: Int64 = Field(ge=1)
    """Goes up by one with each pending reservation that it gets. The Workloads that make room for it name the
    same number."""
    admission: Admission | None = None
    """What it will get. Absent: the reservation was used, or given up."""


class Preemption(Model):
    """The Workload that it was preempted for."""

    namespace: str = Field(max_length=63)
    """The namespace of the Workload that needs the quota."""
    name: Name
    """The name of that Workload."""
    uid: str = Field(max_length=128)
    """The UID of that Workload."""
    admission: Admission
    """What that Workload will get."""
    generation: Int64 | None = Field(default=None, ge=1)
    """For which pending reservation of that Workload. It is void once the status.place of that Workload names
    a later one, or this one without an admission."""
    message: str | None = Field(default=None, max_length=2048)
    """By which rule it was allowed, and what was compared."""
    evict_at: Moment | None = None
    """Until when the eviction is pending. Absent: it was evicted at once."""


class BackOff(Model):
    """For how long nothing is evicted for it. Kept so that a restarted controller keeps to it."""

    count: Int32 = Field(ge=1)
    """How often places that evictions had made were given back unused lately, by Workloads of its namespace
    in its ClusterQueue or elastic quota."""
    until: Moment
    """When others may be evicted for it again."""


class Readiness(Model):
    """Until when its pods have to be ready. Kept so that a restarted controller keeps to it."""

    deadline: Moment | None = None
    """When all pods of its present or last admission had to be ready at the latest. Absent: there is no
    limit."""
    ready_at: Moment | None = None
    """When it was known to be ready: written at the deadline, or when a pod is lost after it was ready."""
    recover_by: Moment | None = None
    """When all pods have to be ready again. Absent: none has been lost."""
    attempts: Int32 | None = Field(default=None, ge=1)
    """How often in a row it was evicted since its pods were not ready. Absent: it was not, or it was ready at
    a deadline since."""
    failures: Int32 | None = Field(default=None, ge=1)
    """For how many of these its own pods were to blame, and not the want of a node."""
    since: Moment | None = None
    """When the admission was that the first of these has ended."""
    next_try: Moment | None = None
    """When it competes again after such an eviction."""
    tried_last: list[GeneratedName] = Field(default=[], json_schema_extra=atomic_list(64))
    """Flavors of the admission that such an eviction ended: at the next try others go first."""
    gave_up: str | None = Field(default=None, max_length=1024)
    """Why it is not tried again: its spec.active was set to false. Absent: it is."""


class EndedPods(Model):
    """Pods of a pod set that have succeeded, and places that are given back."""

    name: Name
    """The pod set."""
    pods: list[Annotated[str, Field(max_length=16)]] = Field(json_schema_extra=atomic_list(100_000))
    """Digests of their UIDs."""
    earlier: list[Annotated[str, Field(max_length=16)]] | None = Field(
        default=None, json_schema_extra=atomic_list(100_000)
    )
    """Of those that had succeeded before the admission: it is for the others."""
    lapsed: Int32 | None = Field(default=None, ge=0, le=2**31 - 1)
    """So many places of the admission have been given back since no pod took them for five minutes."""


class HeldPods(Model):
    """Pods of a pod set that quota is held for."""

    name: Name
    """The pod set."""
    count: Int32 = Field(ge=0, le=2**31 - 1)
    """How many pods of it may still live."""


class PodSetResize(Model):
    """The same of one pod set, which grows and shrinks by itself."""

    name: Name
    """The pod set."""
    wanted: Int32 = Field(ge=0, le=2**31 - 1)
    """How many pods it is to have."""
    granted: Int32 = Field(ge=0, le=2**31 - 1)
    """How many of its pods may live."""


class Resize(Model):
    """How many pods a Job that can use more than it asks for may run, beyond its admission."""

    wanted: Int32 = Field(ge=0, le=2**31 - 1)
    """How many pods it is to have. More than granted: the others wait for idle quota. Fewer: as many as are
    granted beyond that have to end, since their quota is needed."""
    granted: Int32 = Field(ge=0, le=2**31 - 1)
    """How many of its pods may live, those of the admission included. Lowered once the others are gone."""
    changed_at: Moment
    """When either was decided last. It does not grow again in the 30 seconds after that."""
    pod_sets: list[PodSetResize] = Field(default=[], json_schema_extra=map_list("name", most=8))
    """Of an object of a described kind: the same for each pod set that has grown. The others have the pods of
    the admission."""


class WorkloadStatus(Model):
    """Where it stands."""

    state: WorkloadState = WorkloadState.PENDING
    """Its life in one word: Pending, Admitted, Evicted or Finished."""
    reason: str | None = Field(default=None, max_length=1024)
    """Why it waits, was evicted, or was ended before its Job was over, in one CamelCase word."""
    message: str | None = Field(default=None, max_length=32768)
    """Why it waits, was evicted, or was ended before its Job was over, in a sentence; of one that is
    admitted, that it runs with fewer pods, or with extra ones."""
    cluster_queue: GeneratedName | None = None
    """The ClusterQueue that it waits in or was admitted by last, or the queue that an elastic quota is turned
    into. Absent: its LocalQueue leads nowhere."""
    admission: Admission | None = None
    """The quota that it holds. Written before its Job may start, and removed only when no pod of it is left;
    a finished Workload keeps it as a record and holds nothing."""
    held: list[HeldPods] = Field(default=[], json_schema_extra=map_list("name", most=8))
    """For how many pods of each pod set it holds quota still, since the others have ended for good: what they
    used is free. Absent: for all that were admitted. A finished Workload keeps it as a record."""
    resize: Resize | None = None
    """How many pods it may run while it holds quota, with extra ones on idle quota. Absent: as many as were
    admitted."""
    preemption: Preemption | None = None
    """Its last preemptor, until it is admitted again."""
    evicted_at: list[Moment] = Field(default=[], json_schema_extra=atomic_list(MOST_EVICTIONS))
    """When it was evicted for others, the oldest first: the last ten times. Limits on evictions use it."""
    place: Place | None = None
    """Its last pending reservation; absent: it never had one."""
    back_off: BackOff | None = None
    """For how long nothing is evicted for it; absent: it does not wait for the end of that."""
    run_time: RunTime | None = None
    """How long it has held quota, and how long it may. Absent: there is no maximum."""
    readiness: Readiness | None = None
    """Until when its pods have to be ready, and how often they were not; absent: there is no limit."""
    succeeded_pods: list[EndedPods] = Field(default=[], json_schema_extra=map_list("name", most=8))
    """Of a group of queued pods: those that have succeeded, also if they have been deleted since, and how
    many places no pod took for a while. They hold nothing of the admission."""
    conditions: Conditions


class Workload(Resource):
    """A request for quota: made by the controller for every queued Job.

    Kubernetes has an alpha kind of the same name: `kubectl get wl` and `kubectl get workloads.admitter.dev`
    mean this one in every cluster.
    """

    plural = "workloads"
    short_name = "wl"
    namespaced = True
    selectable = (".status.state",)
    columns = (
        PrinterColumn("Kind", "string", ".metadata.annotations.admitter\\.dev/kind"),
        PrinterColumn("Object", "string", ".metadata.annotations.admitter\\.dev/object"),
        PrinterColumn("Queue", "string", ".spec.queueName"),
        PrinterColumn("ClusterQueue", "string", ".status.clusterQueue"),
        PrinterColumn("Priority", "integer", ".spec.priority"),
        PrinterColumn("Status", "string", ".status.state"),
        PrinterColumn("Reason", "string", ".status.reason"),
        AGE,
        PrinterColumn("Deadline", "string", ".status.runTime.deadline", wide=True),
        PrinterColumn("Message", "string", ".status.message", wide=True),
    )

    spec: WorkloadSpec
    """What is asked for."""
    status: WorkloadStatus | None = Field(default=None, json_schema_extra={"default": {}})
    """Where it stands. Written by the controller."""
