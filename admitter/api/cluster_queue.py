"""ClusterQueue: quota for a pool of resources, and the namespaces that may use it (docs/concepts.md).

LocalQueue: where the users of a namespace submit to one.
"""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final, Self

from pydantic import ConfigDict, Field, model_validator

from admitter.api.base import (
    STATE_COLUMNS,
    Conditions,
    GeneratedName,
    Int32,
    LabelSelector,
    Model,
    Name,
    Place,
    PreemptionTerms,
    PrinterColumn,
    PriorityClassNames,
    Quantity,
    Resource,
    ResourceName,
    atomic_list,
    in_parts,
    map_list,
    named_twice,
    refuse,
)
from admitter.api.eviction_limits import (
    MOST_EVICTIONS_OF_QUEUE,
    CommonEvictionLimit,
    EvictionLimit,
    RecordedEviction,
)
from admitter.api.lifecycle import Lifecycle
from admitter.engine.policy import BorrowWithin, Reclaim, Strategy, WithinQueue
from admitter.names import ELASTIC_QUOTA_QUEUE
from admitter.quantities.amounts import parse_quantity

NO_LOCAL_QUEUE: Final = f"{ELASTIC_QUOTA_QUEUE} means the elastic quota of a namespace: choose another name"


class NamespaceOrdering(StrEnum):
    """Whether namespaces take turns in a queue."""

    NONE = "None"
    WEIGHTED_SHARE = "WeightedShare"


class WhenCanBorrow(StrEnum):
    """What to do with a flavor that fits by borrowing."""

    BORROW = "Borrow"
    TRY_NEXT_FLAVOR = "TryNextFlavor"


class WhenCanPreempt(StrEnum):
    """What to do with a flavor that fits by preempting."""

    PREEMPT = "Preempt"
    TRY_NEXT_FLAVOR = "TryNextFlavor"


class StopPolicy(StrEnum):
    """Whether a queue is stopped."""

    NONE = "None"
    HOLD = "Hold"
    HOLD_AND_DRAIN = "HoldAndDrain"


class Visibility(StrEnum):
    """What namespaces may see of a queue."""

    QUEUE = "Queue"
    NAMESPACE = "Namespace"


class Quota(Model):
    """How much of a resource there is in a flavor."""

    min: Quantity = 0
    """Its own quota. What is unused of it, others of the cohort may borrow."""
    max: Quantity | None = None
    """The most that may be used, borrowed quota included; at least min. Absent: no limit."""
    lending_limit: Quantity | None = None
    """The most of an unused min that others may borrow. Absent: all of it."""

    def wrong(self, resource: str) -> Iterator[tuple[Place, str]]:
        """What is wrong with it as the quota of a resource."""
        written = self.model_dump(by_alias=True).items()
        parts = [((field,), why) for field, quantity in written if (why := in_parts(resource, quantity))]
        if parts:
            yield from parts
        elif self.max is not None and parse_quantity(self.max) < parse_quantity(self.min):
            yield (), f"max {self.max} is less than min {self.min}"


class FlavorQuota(Model):
    """A flavor of a resource, and its quota."""

    name: Name
    """The name of a ResourceFlavor."""
    quota: Quota = Quota()
    """How much of the resource there is in this flavor; of its own nothing."""


class ResourceQuota(Model):
    """A resource that the queue counts."""

    name: ResourceName
    """The resource, such as cpu, memory or nvidia.com/gpu."""
    flavors: list[FlavorQuota] = Field(min_length=1, json_schema_extra=map_list("name", most=64))
    """The flavors that the resource comes in, tried in this order. Resources that share a flavor must list
    the same flavors in the same order: a pod set gets one flavor for all of them."""

    @model_validator(mode="after")
    def _quotas_are_sound(self) -> Self:
        refuse(
            (("flavors", index, "quota", *place), wrong)
            for index, flavor in enumerate(self.flavors)
            for place, wrong in flavor.quota.wrong(self.name)
        )
        return self


class FlavorFungibility(Model):
    """When a flavor that could do is passed over for the next one."""

    when_can_borrow: WhenCanBorrow = WhenCanBorrow.BORROW
    """Borrow: take a flavor that fits by borrowing. TryNextFlavor: see whether a later one fits without."""
    when_can_preempt: WhenCanPreempt = WhenCanPreempt.TRY_NEXT_FLAVOR
    """Preempt: take a flavor that fits by preempting. TryNextFlavor: see whether a later one fits without."""


class BorrowWithinCohort(Model):
    """Preempting in other queues in order to borrow."""

    policy: BorrowWithin = BorrowWithin.NEVER
    """Never. LowerPriority: Workloads of lower priority in queues that borrow. GuaranteedShare: those of
    queues that borrow more than their guaranteed part of what is unused, as long as this one stays within its
    own; parts are in proportion to min. Means Never where fairSharing is enabled."""
    max_priority_threshold: Int32 | None = None
    """The highest priority of a Workload that is preempted so. Absent: any that is lower."""

    @model_validator(mode="after")
    def _threshold_is_for_lower_priority(self) -> Self:
        if self.max_priority_threshold is not None and self.policy is BorrowWithin.GUARANTEED_SHARE:
            raise ValueError(
                "maxPriorityThreshold means nothing with GuaranteedShare, which ignores priority"
            )
        return self


class QueuePreemption(PreemptionTerms):
    """Workloads that the queue's own may preempt to fit, and what the queue's own are granted."""

    within_cluster_queue: WithinQueue = WithinQueue.NEVER
    """In the same queue. Never, LowerPriority, or LowerOrNewerEqualPriority: those of equal priority too that
    are newer."""
    reclaim_within_cohort: Reclaim = Reclaim.NEVER
    """In queues of the cohort that borrow, while this queue stays within its min. Never, LowerPriority or
    Any."""
    borrow_within_cohort: BorrowWithinCohort = BorrowWithinCohort()
    """In queues of the cohort that borrow, in order to borrow instead of them."""
    max_evictions: CommonEvictionLimit | None = None
    """How many evictions for others there may be of all Workloads of this queue together. Absent: any
    number."""
    max_evictions_per_workload: EvictionLimit | None = None
    """How often each Workload of this queue may be evicted for others. Absent: as often as it has to."""


class FairSharing(Model):
    """How much a queue may borrow in comparison with others of its cohort."""

    weight: Quantity = 1
    """How much more than one of weight 1 it may borrow, such as 2 or 500m. 0: only what no other queue
    wants."""


class LocalQueues(Model):
    """LocalQueues that the controller makes."""

    model_config = ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {"rule": f"self.name != '{ELASTIC_QUOTA_QUEUE}'", "message": NO_LOCAL_QUEUE}
            ]
        }
    )

    name: Name
    """How each is called."""
    namespace_selector: LabelSelector | None = None
    """The namespaces that get one, of those that the ClusterQueue selects. Absent: all of these."""

    @model_validator(mode="after")
    def _is_no_elastic_quota(self) -> Self:
        if self.name == ELASTIC_QUOTA_QUEUE:
            raise ValueError(NO_LOCAL_QUEUE)
        return self


class ClusterQueueSpec(Model):
    """The queue's quota and rules."""

    cohort: Name | None = None
    """Queues of the same cohort borrow unused quota from each other. A Cohort object is only needed for quota
    or a parent of its own. Absent: nothing is borrowed."""

    namespace_selector: LabelSelector | None = None
    """The namespaces that may use the queue. Absent: none. Empty ({}): all."""
    local_queues: LocalQueues | None = None
    """LocalQueues that lead to this queue: made in the namespaces that it selects, and removed where it does
    so no more, once nothing is in them. A LocalQueue that was made otherwise is left alone. Absent: none."""
    queueing_strategy: Strategy = Strategy.BEST_EFFORT_FIFO
    """BestEffortFIFO: what does not fit lets others pass. StrictFIFO: it blocks the rest."""
    namespace_ordering: NamespaceOrdering = NamespaceOrdering.NONE
    """None: priority and age decide which is next. WeightedShare: of the namespaces that wait, the one that
    uses least of the queue in proportion to its weight goes first, and priority decides only within a
    namespace."""
    resources: list[ResourceQuota] = Field(default=[], json_schema_extra=map_list("name", most=64))
    """The resources that the queue counts. What requests any other is not admitted. Absent: those of the
    nearest Cohort above that has any, with nothing of its own."""
    limits: dict[ResourceName, Quantity] = Field(default={}, max_length=64)
    """The most of a resource that may be used in all flavors together, what is borrowed included."""
    flavor_fungibility: FlavorFungibility = FlavorFungibility()
    """When a flavor that could do is passed over for the next one."""
    preemption: QueuePreemption = QueuePreemption()
    """Which Workloads the queue's own may preempt when they do not fit, and what they are granted when others
    preempt them."""
    lifecycle: Lifecycle | None = None
    """What becomes of its Workloads after their admission: until when they have to be ready, and how long
    they go on at most."""
    fair_sharing: FairSharing = FairSharing()
    """The queue's weight, if what is borrowed in its cohort's tree is shared by weight (fairSharing.enabled
    of the Cohort at the top)."""
    priority_classes: PriorityClassNames | None = None
    """The PriorityClasses of Workloads that the queue takes; what is of another one waits. One without a
    class, which has priority 0, is always taken. Absent: all but those of Kubernetes itself (system-...),
    which are taken only if they are listed."""
    stop_policy: StopPolicy = StopPolicy.NONE
    """None: works. Hold: nothing new is admitted. HoldAndDrain: what runs is evicted too."""
    visibility: Visibility | None = None
    """What the status of a LocalQueue tells its namespace. Queue: the quota and use of this queue, how many
    Workloads wait in it, and the positions of the namespace's own. Namespace: nothing but the counts of the
    namespace's own Workloads; messages of these do not tell how much is in use either. Absent: Queue."""

    @model_validator(mode="after")
    def _lists_are_sound(self) -> Self:
        lists = {resource.name: [flavor.name for flavor in resource.flavors] for resource in self.resources}
        if len(lists) < len(self.resources):
            raise ValueError("resources: a resource is listed twice")
        if wrong := named_twice(lists):
            raise ValueError(f"resources: {wrong}")
        if wrong := named_twice(self.limits):
            raise ValueError(f"limits: {wrong}")
        refuse((("limits", name), why) for name, most in self.limits.items() if (why := in_parts(name, most)))
        for name, flavors in lists.items():
            if len(set(flavors)) < len(flavors):
                raise ValueError(f"resources: {name} lists a flavor twice")
            for other, others in lists.items():
                shared = sorted(set(flavors) & set(others))
                if flavors != others and shared:
                    raise ValueError(
                        f"resources: {name} and {other} share flavor {shared[0]}, so they must list the same "
                        "flavors in the same order"
                    )
        return self


class ResourceUsage(Model):
    """Use of a resource."""

    name: ResourceName
    """The resource."""
    used: Quantity
    """What admitted Workloads, and pods that outlive theirs, use."""
    borrowed: Quantity = 0
    """How much of that is not the queue's own."""


class FlavorUsage(Model):
    """Use of a flavor."""

    name: GeneratedName
    """The flavor."""
    resources: list[ResourceUsage] = Field(default=[], json_schema_extra=map_list("name", most=64))
    """What is used of each resource."""


class QueueStatus(Model):
    """What is in a queue now."""

    conditions: Conditions
    pending_workloads: int = 0
    """How many Workloads wait."""
    admitted_workloads: int = 0
    """How many Workloads hold quota."""


class ClusterQueueStatus(QueueStatus):
    """What is in the queue now, and what of its quota is used."""

    flavors: list[FlavorUsage] = Field(default=[], json_schema_extra=map_list("name", most=64))
    """What is used, by flavor."""
    scarcest: str | None = Field(default=None, max_length=1024)
    """The resource and flavor of which the largest part is used, as 6/9 cpu of on-demand: what is used, and
    min; where min is 0, the most that may be borrowed. Absent: there is no quota at all."""
    evictions: list[RecordedEviction] = Field(
        default=[], json_schema_extra=atomic_list(MOST_EVICTIONS_OF_QUEUE)
    )
    """The last evictions of its Workloads for others, the oldest first, where maxEvictions of the queue or of
    a Cohort above it counts them. Each is written before it begins."""


class VisibleUsage(ResourceUsage):
    """Quota and use of a resource."""

    quota: Quantity = 0
    """The queue's own quota (min)."""
    max: Quantity = 0
    """The most that the queue could use if nothing else were in use: what its Cohort lends is included."""
    free: Quantity = 0
    """The most that a Workload could get now without eviction, borrowed quota included. Other Workloads that
    wait may be entitled to it."""


class VisibleFlavor(Model):
    """Quota and use of a flavor."""

    name: GeneratedName
    """The flavor."""
    resources: list[VisibleUsage] = Field(default=[], json_schema_extra=map_list("name", most=64))
    """Quota and use of each resource."""


class Position(Model):
    """Where a Workload is in line."""

    name: Name
    """The Workload."""
    position: Int32 = Field(ge=1)
    """Its place among all that wait in the ClusterQueue, from 1."""


class VisibleQueue(Model):
    """What a namespace may see of its ClusterQueue."""

    pending_workloads: int = 0
    """How many Workloads wait in it, those of other namespaces included."""
    admitted_workloads: int = 0
    """How many Workloads hold its quota, those of other namespaces included."""
    flavors: list[VisibleFlavor] = Field(default=[], json_schema_extra=map_list("name", most=64))
    """Its quota and use, by flavor."""
    line: list[Position] = Field(default=[], json_schema_extra=map_list("name", most=10))
    """The positions of the first ten Workloads that wait in this LocalQueue."""


class LocalQueueStatus(QueueStatus):
    """What is in the queue now, and what is to be seen of its ClusterQueue."""

    cluster_queue: VisibleQueue | None = None
    """The ClusterQueue, as of some seconds ago. Absent: there is none that works, it does not select this
    namespace, or its visibility is Namespace."""


class ClusterQueue(Resource):
    """A pool of resources with its quota, and the rules by which Jobs are admitted to it."""

    plural = "clusterqueues"
    short_name = "cq"
    columns = (
        PrinterColumn("Cohort", "string", ".spec.cohort"),
        PrinterColumn("Strategy", "string", ".spec.queueingStrategy"),
        PrinterColumn("Pending", "integer", ".status.pendingWorkloads"),
        PrinterColumn("Admitted", "integer", ".status.admittedWorkloads"),
        PrinterColumn("Scarcest", "string", ".status.scarcest"),
        *STATE_COLUMNS,
    )

    spec: ClusterQueueSpec = ClusterQueueSpec()
    """The queue's quota and rules."""
    status: ClusterQueueStatus | None = None
    """What is in the queue now. Written by the controller."""


class LocalQueueSpec(Model):
    """Where the queue leads."""

    cluster_queue: Name
    """The ClusterQueue that admits what is submitted here."""
    priority_classes: PriorityClassNames | None = None
    """The PriorityClasses of Workloads that may be submitted here, of those that the ClusterQueue takes; one
    without a class always may. Absent: all of them."""
    stop_policy: StopPolicy = StopPolicy.NONE
    """None: works. Hold: nothing new is admitted. HoldAndDrain: what runs is evicted too."""


class LocalQueue(Resource):
    """A namespace's entrance to a ClusterQueue; Jobs name it in their label admitter.dev/queue-name."""

    plural = "localqueues"
    short_name = "lq"
    namespaced = True
    columns = (
        PrinterColumn("ClusterQueue", "string", ".spec.clusterQueue"),
        PrinterColumn("Pending", "integer", ".status.pendingWorkloads"),
        PrinterColumn("Admitted", "integer", ".status.admittedWorkloads"),
        *STATE_COLUMNS,
    )

    spec: LocalQueueSpec
    """Where the queue leads."""
    status: LocalQueueStatus | None = None
    """What is in the queue now. Written by the controller."""
