"""Cohort: queues that share quota, under other cohorts or with quota of their own (003, *Cohort*)."""

from typing import ClassVar, Self

from pydantic import Field, model_validator

from admitter.api.base import (
    AGE,
    Column,
    Conditions,
    Duration,
    Model,
    Name,
    Quantity,
    Resource,
    map_list,
    named_twice,
)
from admitter.api.cluster_queue import WEIGHT, ResourceQuota


class CohortFairSharing(Model):
    """How what is borrowed is shared."""

    enabled: bool = Field(
        default=False,
        description="Share what is borrowed below this cohort by weight, at every level. Read only at the "
        "top of a tree.",
    )
    weight: Quantity = Field(default=1, description=WEIGHT)


class CohortPreemption(Model):
    """The most that queues may grant their Workloads before these are evicted for others."""

    grace_period: Duration | None = Field(
        default=None, description="The longest gracePeriod, such as 30s, 5m or 1h30m. Absent: no cap."
    )
    min_runtime: Duration | None = Field(
        default=None, description="The longest minRuntime, such as 30s, 5m or 1h30m. Absent: no cap."
    )


class CohortSpec(Model):
    """Where the cohort stands, and what it has."""

    parent: Name | None = Field(
        default=None,
        description="The cohort above, with which unused quota is shared. Absent: this is the top.",
    )
    resources: list[ResourceQuota] = Field(
        default=[],
        description="Quota of the cohort itself: min belongs to all queues below it, max caps what they use "
        "together, lendingLimit what the cohort above gets.",
        json_schema_extra=map_list("name", most=64),
    )
    fair_sharing: CohortFairSharing = Field(
        default=CohortFairSharing(),
        description="Whether the tree shares what is borrowed by weight, and this cohort's weight among "
        "its siblings.",
    )
    preemption: CohortPreemption = Field(
        default=CohortPreemption(),
        description="The most that queues below may grant their Workloads; what they grant beyond is cut.",
    )

    @model_validator(mode="after")
    def _resources_are_different(self) -> Self:
        if wrong := named_twice(resource.name for resource in self.resources):
            raise ValueError(f"resources: {wrong}")
        return self


class CohortStatus(Model):
    """Whether it works."""

    conditions: Conditions


class Cohort(Resource):
    """Queues that share quota. A cohort that ClusterQueues only name works without such an object."""

    plural: ClassVar[str] = "cohorts"
    columns: ClassVar[tuple[Column, ...]] = (
        Column("Parent", "string", ".spec.parent"),
        Column("Active", "string", '.status.conditions[?(@.type=="Active")].status'),
        Column("Message", "string", '.status.conditions[?(@.type=="Active")].message', wide=True),
        AGE,
    )

    spec: CohortSpec = Field(default=CohortSpec(), description="Where the cohort stands, and what it has.")
    status: CohortStatus | None = Field(default=None, description="Written by the controller.")
