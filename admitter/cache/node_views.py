"""The view of a node: what quotas that follow the nodes go by, and whether it can be used."""

from dataclasses import dataclass
from typing import Final

from admitter.cache.timestamps import seconds
from admitter.cache.views import Json, Meta, meta
from admitter.engine.model import Taint
from admitter.quotas.nodes import NodeCapacity, amounts

LONGEST_TROUBLE: Final = 200
"""Characters of what is said of a node that is not ready."""


@dataclass(frozen=True, slots=True)
class NodeView(Meta):
    """A node: what quota sees of it, and what users ask about it."""

    node: NodeCapacity
    ready: bool = True
    since: float = 0.0  # since when it is ready or not, in seconds since the epoch; 0: it is not said
    cordoned: bool = False  # whether it takes no new pods because an administrator said so
    trouble: str = ""  # why it is not ready, in the words of its kubelet or of Kubernetes


def parse_node(raw: Json) -> NodeView:
    """A view of a node; one that says nothing of its condition is ready."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    said: Json = next((c for c in status.get("conditions") or () if c["type"] == "Ready"), {})
    ready, cordoned = said.get("status", "True") == "True", bool(spec.get("unschedulable"))
    taints = (Taint(t["key"], t.get("value") or "", t["effect"]) for t in spec.get("taints") or ())
    node = NodeCapacity(
        raw["metadata"].get("labels") or {},
        tuple(taint for taint in taints if taint.repels),
        ready and not cordoned,
        amounts(status.get("allocatable") or status.get("capacity") or {}),
    )
    return NodeView(
        *meta(raw["metadata"]),
        node,
        ready,
        seconds(said["lastTransitionTime"]) if said.get("lastTransitionTime") else 0.0,
        cordoned,
        "" if ready else str(said.get("message") or said.get("reason") or "")[:LONGEST_TROUBLE],
    )
