"""The view of a node: what quotas that follow the nodes go by."""

from dataclasses import dataclass

from admitter.cache.views import Json, Meta, meta
from admitter.engine.model import Taint
from admitter.quotas.nodes import NodeCapacity, amounts


@dataclass(frozen=True, slots=True)
class NodeView(Meta):
    """A node: what quota sees of it."""

    node: NodeCapacity


def parse_node(raw: Json) -> NodeView:
    """A view of a node; one that says nothing of its condition is ready."""
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    ready = [c["status"] for c in status.get("conditions") or () if c["type"] == "Ready"]
    taints = (Taint(t["key"], t.get("value") or "", t["effect"]) for t in spec.get("taints") or ())
    node = NodeCapacity(
        raw["metadata"].get("labels") or {},
        tuple(taint for taint in taints if taint.repels),
        not spec.get("unschedulable") and ready in ([], ["True"]),
        amounts(status.get("allocatable") or status.get("capacity") or {}),
    )
    return NodeView(*meta(raw["metadata"]), node)
