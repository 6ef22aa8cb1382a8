"""WorkloadPriorityClass: a priority in queues, apart from that of pods (docs/design/people.md)."""

from pydantic import Field

from admitter.api.base import (
    AGE,
    SET_LIST,
    Int32,
    LabelSelector,
    Model,
    Name,
    PrinterColumn,
    Resource,
)


class WorkloadPriorityClassSpec(Model):
    """The priority, and where it may be used."""

    value: Int32 = Field(ge=-(2**31), le=10**9)
    """The priority of Workloads of this class: higher goes first. A change of it counts at once, for those
    that wait and for those that are admitted."""
    description: str | None = Field(default=None, max_length=1024)
    """What the class is for, in words for its users."""
    cluster_queues: list[Name] | None = Field(
        default=None, max_length=1024, json_schema_extra={**SET_LIST, "maxItems": 1024}
    )
    """The ClusterQueues that may use the class. Workloads of this class in any other wait, and so do those of
    elastic quotas. Absent: all ClusterQueues and elastic quotas. Empty: none."""
    namespace_selector: LabelSelector | None = None
    """The namespaces that may use the class, by their labels. Absent: all that may use the queue."""


class WorkloadPriorityClass(Resource):
    """A priority in queues. Jobs name it in their label admitter.dev/priority-class."""

    plural = "workloadpriorityclasses"
    short_name = "wpc"
    columns = (
        PrinterColumn("Value", "integer", ".spec.value"),
        PrinterColumn("Queues", "string", ".spec.clusterQueues"),
        AGE,
        PrinterColumn("Description", "string", ".spec.description", wide=True),
    )

    spec: WorkloadPriorityClassSpec
    """The priority, and where it may be used."""
