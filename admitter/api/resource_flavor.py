"""ResourceFlavor: one kind of hardware (docs/concepts.md)."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from admitter.api.base import (
    STATE_COLUMNS,
    Conditions,
    Int32,
    LabelKey,
    LabelValue,
    Model,
    PrinterColumn,
    Resource,
    Toleration,
    atomic_list,
)


class NodeTaint(Model):
    """A taint of the flavor's nodes."""

    key: LabelKey
    """The taint's key."""
    value: LabelValue | None = None
    """The taint's value."""
    effect: Annotated[str, Field(pattern="^(NoSchedule|PreferNoSchedule|NoExecute)$")]
    """NoSchedule, PreferNoSchedule or NoExecute."""


class NodeProvisioning(StrEnum):
    """Whether a flavor's nodes are all there."""

    STATIC = "Static"
    ON_DEMAND = "OnDemand"


class ResourceFlavorSpec(Model):
    """Which nodes the flavor stands for; an empty one stands for all nodes of a uniform cluster."""

    node_labels: dict[LabelKey, LabelValue] = Field(default={}, max_length=16)
    """Labels that all of its nodes have, and no others. A pod set that selects other values gets another
    flavor. On admission they are added to the nodeSelector of the Job's pods."""
    node_taints: list[NodeTaint] = Field(default=[], json_schema_extra=atomic_list(16))
    """Taints that all of its nodes have. A pod set gets the flavor only if it, or the flavor, tolerates them.
    They are not written to any node."""
    tolerations: list[Toleration] = Field(default=[], json_schema_extra=atomic_list(16))
    """Tolerations that the Job's pods get on admission, so that users need not write them."""
    gpu_memory_gb: Int32 | None = Field(default=None, alias="gpuMemoryGB", ge=1, le=2**31 - 1)
    """Memory of one whole GPU of its nodes, in GB: what a GPU counts where memory of GPUs is counted. Absent:
    the controller's default, 32 unless configured otherwise."""
    node_provisioning: NodeProvisioning | None = None
    """Static: a pod that is larger than each of the flavor's nodes never fits (NeverFits), as long as there
    are any. OnDemand: nodes are made for pods that wait, so a pod of any size may fit. Absent: Static."""


class ResourceFlavorStatus(Model):
    """Whether the flavor can be used, and how many elastic quotas need it."""

    conditions: Conditions
    busy_elastic_quotas: int = 0
    """How many of the elastic quotas that name it have Workloads, admitted or waiting. What ClusterQueues use
    of it is in their own status."""


class ResourceFlavor(Resource):
    """A kind of hardware that quota is counted in, such as spot machines or one model of GPU.

    ClusterQueues name flavors; a Job that is admitted gets one for each resource it requests, and its pods
    run on that flavor's nodes.
    """

    plural = "resourceflavors"
    short_name = "rf"
    columns = (
        PrinterColumn("Node Labels", "string", ".spec.nodeLabels"),
        PrinterColumn("GPU GB", "integer", ".spec.gpuMemoryGB"),
        *STATE_COLUMNS,
    )

    spec: ResourceFlavorSpec = ResourceFlavorSpec()
    """What the flavor is."""
    status: ResourceFlavorStatus | None = None
    """Whether the flavor can be used. Written by the controller."""
