"""ClusterQueue: quota for a pool of resources, and who may use it (003, *Cluster Queue*)."""

from enum import StrEnum
from typing import ClassVar, Self

from pydantic import Field, model_validator

from admitter.api.base import (
    AGE,
    Column,
    Conditions,
    LabelSelector,
    Model,
    Name,
    Quantity,
    Resource,
    ResourceName,
    map_list,
)
from admitter.engine.amounts import parse_quantity


class QueueingStrategy(StrEnum):
    """What a workload that does not fit means for those behind it."""

    BEST_EFFORT_FIFO = "BestEffortFIFO"
    STRICT_FIFO = "StrictFIFO"


class StopPolicy(StrEnum):
    """Whether a queue is stopped."""

    NONE = "None"
    HOLD = "Hold"
    HOLD_AND_DRAIN = "HoldAndDrain"


class Quota(Model):
    """How much of a resource there is in a flavor."""

    min: Quantity = Field(description="The queue's own quota.")
    max: Quantity | None = Field(
        default=None, description="The most that the queue may use; at least min. Absent: no further limit."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.max is not None and parse_quantity(self.max) < parse_quantity(self.min):
            raise ValueError(f"max {self.max} is less than min {self.min}")
        return self


class FlavorQuota(Model):
    """A flavor of a resource, and its quota."""

    name: Name = Field(description="The name of a ResourceFlavor.")
    quota: Quota = Field(description="How much of the resource there is in this flavor.")


class ResourceQuota(Model):
    """A resource that the queue counts."""

    name: ResourceName = Field(description="The resource, such as cpu, memory or nvidia.com/gpu.")
    flavors: list[FlavorQuota] = Field(
        min_length=1,
        description="The flavors that the resource comes in, tried in this order. Resources that share a "
        "flavor must list the same flavors in the same order: a pod set gets one flavor for all of them.",
        json_schema_extra=map_list("name", most=64),
    )


class ClusterQueueSpec(Model):
    """The queue's quota and rules."""

    namespace_selector: LabelSelector | None = Field(
        default=None,
        description="The namespaces that may use the queue. Absent: none. Empty ({}): all.",
    )
    queueing_strategy: QueueingStrategy = Field(
        default=QueueingStrategy.BEST_EFFORT_FIFO,
        description="BestEffortFIFO: what does not fit lets others pass. StrictFIFO: it blocks the rest.",
    )
    resources: list[ResourceQuota] = Field(
        default=[],
        description="The resources that the queue counts. What requests any other is not admitted.",
        json_schema_extra=map_list("name", most=64),
    )
    stop_policy: StopPolicy = Field(
        default=StopPolicy.NONE,
        description="None: works. Hold: nothing new is admitted. HoldAndDrain: what runs is evicted too.",
    )

    @model_validator(mode="after")
    def _lists_are_sound(self) -> Self:
        lists = {resource.name: [flavor.name for flavor in resource.flavors] for resource in self.resources}
        if len(lists) < len(self.resources):
            raise ValueError("resources: a resource is listed twice")
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

    name: ResourceName = Field(description="The resource.")
    used: Quantity = Field(description="What admitted Workloads, and pods that outlive theirs, use.")


class FlavorUsage(Model):
    """Use of a flavor."""

    name: Name = Field(description="The flavor.")
    resources: list[ResourceUsage] = Field(
        default=[], description="Use by resource.", json_schema_extra=map_list("name", most=64)
    )


class ClusterQueueStatus(Model):
    """What is in the queue now."""

    conditions: Conditions
    pending_workloads: int = Field(default=0, description="How many Workloads wait.")
    admitted_workloads: int = Field(default=0, description="How many Workloads hold quota.")
    flavors: list[FlavorUsage] = Field(
        default=[], description="Use by flavor.", json_schema_extra=map_list("name", most=64)
    )


class ClusterQueue(Resource):
    """A pool of resources with its quota, and the rules by which Jobs are admitted to it."""

    plural: ClassVar[str] = "clusterqueues"
    short_name: ClassVar[str] = "cq"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Strategy", "string", ".spec.queueingStrategy"),
        Column("Pending", "integer", ".status.pendingWorkloads"),
        Column("Admitted", "integer", ".status.admittedWorkloads"),
        Column("Active", "string", '.status.conditions[?(@.type=="Active")].status'),
        Column("Message", "string", '.status.conditions[?(@.type=="Active")].message', wide=True),
        AGE,
    )

    spec: ClusterQueueSpec = Field(default=ClusterQueueSpec(), description="The queue's quota and rules.")
    status: ClusterQueueStatus | None = Field(default=None, description="Written by the controller.")
