"""Cohort: queues that share quota, under other cohorts or with quota of their own (docs/hierarchy.md)."""

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from admitter.api.base import (
    STATE_COLUMNS,
    Conditions,
    Duration,
    GeneratedName,
    Model,
    Name,
    PrinterColumn,
    Quantity,
    Resource,
    ResourceName,
    map_list,
    named_twice,
    refuse,
)
from admitter.api.cluster_queue import ResourceQuota
from admitter.api.eviction_limits import CommonEvictionLimit
from admitter.api.lifecycle import Lifecycle
from admitter.quantities.amounts import parse_quantity


class CapacityFrom(StrEnum):
    """What says how much there is in a tree."""

    QUOTAS = "Quotas"
    NODES = "Nodes"


class OnShrink(StrEnum):
    """What to do when nodes go and more is in use than is left."""

    WAIT = "Wait"
    EVICT = "Evict"


class CohortFairSharing(Model):
    """How what is borrowed is shared."""

    enabled: bool = False
    """Share what is borrowed below this cohort by weight, at every level. Read only at the top of a tree."""
    weight: Quantity = 1
    """How much more than one of weight 1 it may borrow, such as 2 or 500m. 0: only what no other queue
    wants."""


class CohortPreemption(Model):
    """The most that queues may grant their Workloads before these are evicted for others, and how often."""

    grace_period: Duration | None = None
    """The longest gracePeriod, such as 30s, 5m or 1h30m. Absent: no cap."""
    min_runtime: Duration | None = None
    """The longest minRuntime, such as 30s, 5m or 1h30m. Absent: no cap."""
    max_evictions: CommonEvictionLimit | None = None
    """How many evictions for others there may be of all Workloads of queues below together, at all levels.
    Absent: any number."""


class CohortSpec(Model):
    """Where the cohort stands, and what it has."""

    parent: Name | None = None
    """The cohort above, with which unused quota is shared. Absent: this is the top."""
    resources: list[ResourceQuota] = Field(default=[], json_schema_extra=map_list("name", most=64))
    """Quota of the cohort itself: min belongs to all queues below it, max caps what they use together,
    lendingLimit what the cohort above gets."""
    capacity_from: CapacityFrom = CapacityFrom.QUOTAS
    """Quotas: the tree has what its min add up to. Nodes: it has what its schedulable nodes can allocate, and
    what no queue below has as its min belongs to all of them. Only at the top of a tree, where resources then
    names flavors and max, but no min; absent: everything on any node."""
    on_shrink: OnShrink = OnShrink.WAIT
    """With capacityFrom Nodes, when more is in use than there is: Wait admits nothing more, Evict evicts as
    well."""
    evict_after: Duration = 60
    """With onShrink Evict, how long there has to be too little before Workloads are evicted, such as 30s, 5m
    or 1h30m."""
    fair_sharing: CohortFairSharing = CohortFairSharing()
    """Whether the tree shares what is borrowed by weight, and this cohort's weight among its siblings."""
    preemption: CohortPreemption = CohortPreemption()
    """The most that queues below may grant their Workloads, where what they grant beyond is cut; and how many
    of these Workloads may be evicted."""
    lifecycle: Lifecycle | None = None
    """What becomes of Workloads after their admission, where no queue or Cohort below says so."""

    @model_validator(mode="after")
    def _resources_are_different(self) -> Self:
        if wrong := named_twice(resource.name for resource in self.resources):
            raise ValueError(f"resources: {wrong}")
        return self

    @model_validator(mode="after")
    def _nodes_say_what_there_is(self) -> Self:
        if self.capacity_from is CapacityFrom.NODES:
            if self.parent is not None:
                raise ValueError("capacityFrom: Nodes is for the top of a tree, and this has a parent")
            refuse(
                (("resources", r, "flavors", f, "quota", "min"), "with capacityFrom Nodes the nodes say it")
                for r, resource in enumerate(self.resources)
                for f, flavor in enumerate(resource.flavors)
                if parse_quantity(flavor.quota.min)
            )
        return self


class CohortResource(Model):
    """A resource, in all that is below a Cohort."""

    name: ResourceName
    """The resource."""
    total: Quantity
    """What its min and all those below come to; with capacityFrom Nodes what nodes have. At most its max."""
    used: Quantity
    """What is in use below."""
    borrowed: Quantity = 0
    """How much of that comes from the Cohort above."""


class CohortFlavor(Model):
    """A flavor, in all that is below a Cohort."""

    name: GeneratedName
    """The flavor."""
    resources: list[CohortResource] = Field(default=[], json_schema_extra=map_list("name", most=64))
    """What there is and is used of each resource."""


class CohortStatus(Model):
    """Whether it works, and what there is and is used in its tree."""

    conditions: Conditions
    flavors: list[CohortFlavor] = Field(default=[], json_schema_extra=map_list("name", most=64))
    """What there is and is used, by flavor."""
    pending_workloads: int = 0
    """How many Workloads wait in all queues below it that are not stopped."""


class Cohort(Resource):
    """Queues that share quota. A cohort that ClusterQueues only name works without such an object."""

    plural = "cohorts"
    columns = (
        PrinterColumn("Parent", "string", ".spec.parent"),
        *STATE_COLUMNS,
    )

    spec: CohortSpec = CohortSpec()
    """Where the cohort stands, and what it has."""
    status: CohortStatus | None = None
    """Whether it works, and what there is and is used in its tree. Written by the controller."""
