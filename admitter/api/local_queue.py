"""LocalQueue: where the users of a namespace submit."""

from admitter.api.base import (
    STATE_COLUMNS,
    Model,
    Name,
    PrinterColumn,
    PriorityClassNames,
    Resource,
)
from admitter.api.cluster_queue import QueueStatus, StopPolicy


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
    status: QueueStatus | None = None
    """What is in the queue now. Written by the controller."""
