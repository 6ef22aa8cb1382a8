"""What the objects of one namespace tell of its queues: all that its users may read, without further rights.

A LocalQueue says what its namespace may know of the ClusterQueue (docs/design/tenants.md). Next step:
`admitter.insight.stand_in`, which tries out Jobs on that.
"""

from collections.abc import Iterator
from typing import Any, Final

from admitter.api.conditions import ActiveReason
from admitter.cache.views import ObjectView, WorkloadView
from admitter.client.store import Key
from admitter.insight.listing import Row, in_order, job_name
from admitter.names import ELASTIC_QUOTA_QUEUE
from admitter.policy.snapshot import QUEUED_PODS, Facts

Json = dict[str, Any]

TOLD: Final = {"workloads", "localqueues", "elasticquotas"}
"""Plurals of kinds that tell users of a namespace what becomes of their Jobs."""
OF_A_NAMESPACE: Final = TOLD | {"jobs", "pods", QUEUED_PODS, "statefulsets", "limitranges"}
"""Plurals of kinds that the role `view` in a namespace lets read."""


def cluster_queue_of(known: Facts, local_queue: Key) -> str:
    """The ClusterQueue that a LocalQueue leads to; empty: there is no such LocalQueue."""
    view = known.views["localqueues"].get(local_queue)
    return str(view.spec["clusterQueue"]) if view is not None else ""


def told_of(known: Facts, local_queue: Key) -> Json | None:
    """What a LocalQueue says of its ClusterQueue; None if it says nothing."""
    view: ObjectView | None = known.views["localqueues"].get(local_queue)
    found: Json | None = view.status.get("clusterQueue") if view is not None else None
    return found


def obstacle_of(known: Facts, local_queue: Key) -> str:
    """Why its ClusterQueue admits nothing, as a LocalQueue says it; empty if it does not say so."""
    view: ObjectView | None = known.views["localqueues"].get(local_queue)
    conditions = (view.status.get("conditions") or ()) if view is not None else ()
    inactive = (each for each in conditions if each["reason"] == ActiveReason.CLUSTER_QUEUE_INACTIVE)
    return next((str(each["message"]) for each in inactive), "")


def position(known: Facts, workload: WorkloadView) -> int | None:
    """Its place in line, if it waits and its LocalQueue tells it.

    A LocalQueue's list is written after a Workload's status: it may still name one that has been admitted.
    """
    if workload.admission is not None or workload.finished:
        return None
    line = (told_of(known, (workload.namespace, workload.queue)) or {}).get("line") or ()
    return next((int(each["position"]) for each in line if each["name"] == workload.name), None)


def rows(known: Facts) -> Iterator[Row]:
    """Unfinished Workloads as their status and their LocalQueues have them."""
    found = []
    for view in known.views["workloads"].values():
        if view.finished:
            continue
        queue = cluster_queue_of(known, (view.namespace, view.queue))
        queue = view.admission.queue if view.admission is not None else queue
        state, reason = str(view.status.get("state") or "Pending"), view.status.get("reason") or ""
        found.append(Row(view, job_name(view), queue, position(known, view), state, reason))
    yield from in_order(found)


def lines(known: Facts, workload: WorkloadView) -> Iterator[str]:
    """What is known of the queue of a Workload, a line at a time."""
    key = (workload.namespace, workload.queue)
    if workload.queue == ELASTIC_QUOTA_QUEUE:
        yield from _elastic(known, workload.namespace)
        return
    queue, told = cluster_queue_of(known, key), told_of(known, key)
    if not queue:
        return
    if told is None:
        yield f"LocalQueue {workload.queue} leads to ClusterQueue {queue}, and tells no more of it."
        return
    place = position(known, workload)
    if place is not None:
        yield f"It is number {place} in line."
    counts = f"{told['pendingWorkloads']} wait, {told['admittedWorkloads']} hold quota"
    yield f"ClusterQueue {queue}, as LocalQueue {workload.queue} told it last: {counts}"
    for flavor in told["flavors"]:
        for each in flavor["resources"]:
            borrowed = f", {each['borrowed']} of that borrowed" if str(each["borrowed"]) != "0" else ""
            used = f"{each['used']} of {each['quota']} {each['name']} in use{borrowed}"
            yield f"  {flavor['name']}: {used}; {each['free']} free, at most {each['max']}"


def _elastic(known: Facts, namespace: str) -> Iterator[str]:
    """What the ElasticQuota of a namespace says, if it has one of its own."""
    for (_, name), view in known.views["elasticquotas"].items():
        status, least, most = view.status, view.spec.get("min") or {}, view.spec.get("max") or {}
        counts = f"{status.get('pendingWorkloads', 0)} wait, {status.get('admittedWorkloads', 0)} hold quota"
        yield f"ElasticQuota {namespace}/{name}: {counts}"
        for resource, used in (status.get("used") or {}).items():
            limit = f", at most {most[resource]}" if resource in most else ""
            yield f"  {used} of {least.get(resource, 0)} {resource} in use{limit}"
