"""A Workload as the engine sees it."""

from typing import Any

from admitter.controllers.views import JobView, Json, WorkloadView
from admitter.engine import model
from admitter.engine.amounts import to_amount


def engine_workload(workload: WorkloadView, job: JobView | None, queue: str) -> model.Workload:
    """What competes for quota.

    Args:
        workload: the Workload.
        job: its Job, whose age counts: a Workload may have been made much later.
        queue: the ClusterQueue it competes in.
    """
    return model.Workload(
        uid=workload.uid,
        queue=queue,
        priority=workload.spec.get("priority", 0),
        created=job.created if job else workload.created,
        pod_sets=tuple(pod_set(raw) for raw in workload.spec["podSets"]),
    )


def pod_set(raw: Json) -> model.PodSet:
    """A pod set from a Workload's spec."""
    requests = raw.get("requests") or {}
    required = ((raw.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    return model.PodSet(
        name=raw["name"],
        count=raw["count"],
        requests=tuple((resource, to_amount(resource, requests[resource])) for resource in sorted(requests)),
        node_selector=tuple(sorted((raw.get("nodeSelector") or {}).items())),
        terms=tuple(_term(term) for term in required.get("nodeSelectorTerms") or ()),
        tolerations=tuple(_toleration(toleration) for toleration in raw.get("tolerations") or ()),
    )


def _term(raw: dict[str, Any]) -> model.Term:
    return tuple(
        model.Requirement(e["key"], e["operator"], tuple(e.get("values") or ()))
        for e in raw.get("matchExpressions") or ()
    )


def _toleration(raw: dict[str, Any]) -> model.Toleration:
    return model.Toleration(
        raw.get("key") or "", raw.get("operator") or "Equal", raw.get("value") or "", raw.get("effect") or ""
    )
