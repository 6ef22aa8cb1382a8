"""ElasticQuota and CompositeElasticQuota: quota of namespaces, without queues (docs/elastic-quota.md)."""

from collections.abc import Iterator
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from admitter.api.base import (
    ACTIVE,
    AGE,
    MESSAGE,
    REASON,
    SET_LIST,
    Conditions,
    Model,
    Name,
    NamespaceName,
    Place,
    PreemptionTerms,
    PrinterColumn,
    Quantity,
    Resource,
    ResourceName,
    distinct,
    in_parts,
    named_twice,
    refuse,
)
from admitter.quantities.amounts import parse_quantity


class SharedQuotaSpec(Model):
    """A share: what both kinds of quota say of it."""

    min: dict[ResourceName, Quantity] = Field(default={}, max_length=64)
    """What is guaranteed of each resource. What is unused of it, other elastic quotas may borrow until it is
    needed. Absent: 0."""
    max: dict[ResourceName, Quantity] = Field(default={}, max_length=64)
    """The most of each resource that may be used, borrowed quota included; at least min. Absent: no limit.
    What neither min nor max names is not limited."""
    flavors: Annotated[list[Name], AfterValidator(distinct)] = Field(
        default=[], max_length=64, json_schema_extra=SET_LIST
    )
    """The ResourceFlavors that may be used, tried in this order; the quota limits their sum. Absent: any
    node."""
    manage_all_jobs: bool = False
    """Queue the Jobs that name no queue too, from now on. False: only those with the label
    admitter.dev/queue-name: elastic-quota."""
    preemption: PreemptionTerms = PreemptionTerms()
    """What Workloads over the quota are granted when others need what they borrow."""

    @model_validator(mode="after")
    def _limits_are_sound(self) -> Self:
        refuse(self._wrong())
        return self

    def _wrong(self) -> Iterator[tuple[Place, str]]:
        resources = list(dict.fromkeys([*self.min, *self.max]))
        if twice := named_twice(resources):
            yield (), twice
        for resource in resources:
            limits = {"min": self.min.get(resource, 0), "max": self.max.get(resource)}
            parts = {field: in_parts(resource, limit) for field, limit in limits.items()}
            for field, wrong in parts.items():
                if wrong is not None:
                    yield (field, resource), wrong
            least, most = limits["min"], limits["max"]
            if any(parts.values()) or least is None or most is None:
                continue
            if parse_quantity(most) < parse_quantity(least):
                yield ("max", resource), f"max {most} is less than min {least}"


class ElasticQuotaSpec(SharedQuotaSpec):
    """The share, and where it counts."""

    manage_all_pods: bool | None = None
    """Queue the pods that name no queue too, from now on, but not those that count with a Job or another
    object. It needs a managed namespace: one with the label admitter.dev/managed: "true". Absent: false."""


class CompositeElasticQuotaSpec(SharedQuotaSpec):
    """The share, and the namespaces that have it together."""

    namespaces: Annotated[list[NamespaceName], AfterValidator(distinct)] = Field(
        min_length=1, max_length=1024, json_schema_extra=SET_LIST
    )
    """The namespaces that share the quota. One that is in an older elastic quota keeps all of this one from
    working."""


class ElasticQuotaStatus(Model):
    """What is used of it now."""

    conditions: Conditions
    used: dict[ResourceName, Quantity] = Field(default={}, max_length=128)
    """What admitted Workloads, and pods that outlive theirs, use of each resource that the quota limits."""
    pending_workloads: int = 0
    """How many Workloads wait."""
    admitted_workloads: int = 0
    """How many Workloads hold quota."""
    managed_since: dict[NamespaceName, str] = Field(default={}, max_length=1024)
    """With manageAllJobs, since when which namespace's Jobs are the quota's: older ones are left alone."""


_COLUMNS = (
    PrinterColumn("Used", "string", ".status.used"),
    PrinterColumn("Min", "string", ".spec.min"),
    PrinterColumn("Max", "string", ".spec.max"),
    ACTIVE,
    REASON,
    PrinterColumn("Pending", "integer", ".status.pendingWorkloads", wide=True),
    PrinterColumn("Admitted", "integer", ".status.admittedWorkloads", wide=True),
    MESSAGE,
    AGE,
)


class ElasticQuota(Resource):
    """A namespace's share of the cluster: guaranteed up to min, borrowed up to max.

    Its Jobs have the label admitter.dev/queue-name: elastic-quota, and need no other queue.
    """

    plural = "elasticquotas"
    short_name = "eq"
    namespaced = True
    columns = _COLUMNS

    spec: ElasticQuotaSpec = ElasticQuotaSpec()
    """The share, and where it counts."""
    status: ElasticQuotaStatus | None = None
    """What is used of it now. Written by the controller."""


class CompositeElasticQuota(Resource):
    """A share of the cluster that several namespaces have together: guaranteed up to min, borrowed up to max.

    Their Jobs have the label admitter.dev/queue-name: elastic-quota, and need no other queue.
    """

    plural = "compositeelasticquotas"
    short_name = "ceq"
    namespaced = True
    columns = (
        PrinterColumn("Namespaces", "string", ".spec.namespaces"),
        *_COLUMNS,
    )

    spec: CompositeElasticQuotaSpec
    """The share, and the namespaces that have it together."""
    status: ElasticQuotaStatus | None = None
    """What is used of it now. Written by the controller."""
