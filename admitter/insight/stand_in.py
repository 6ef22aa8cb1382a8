"""ClusterQueues made of what LocalQueues tell, so that a user of one namespace can try out further Jobs.

Each stands for the real one at this moment: its quota is what the real one could have at most, and a Workload
of no user holds what is neither free nor the namespace's own. For one that admits nothing it is on hold.
Previous step: `admitter.insight.tenant`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from admitter.api.cluster_queue import StopPolicy
from admitter.cache.views import at, timestamp
from admitter.engine.refusal import HOPELESS
from admitter.insight.snapshot_file import SnapshotFile, facts
from admitter.insight.tenant import cluster_queue_of, obstacle_of, told_of
from admitter.policy.growing import extra_usage
from admitter.policy.held import left_of
from admitter.policy.priorities import CLASS_FIELD
from admitter.policy.snapshot import Facts
from admitter.quantities.amounts import to_amount, to_quantity

Json = dict[str, Any]
Cells = Mapping[tuple[str, str], Json]
"""What is told of each resource in a flavor, by the names of both."""

OTHERS: Final = "all-others"
"""The name of a Workload that holds what others use, in front of that of the ClusterQueue."""


def stand_in(
    snapshot: SnapshotFile,
    namespace: str,
    priority_classes: Iterable[str] = (),
    workload_classes: Iterable[str] = (),
) -> SnapshotFile:
    """A snapshot of one namespace without ClusterQueues and flavors, with all that its Jobs need beside.

    PriorityClasses with these further names count as there, and WorkloadPriorityClasses too; their values
    are not known.
    """
    known = facts(snapshot)
    made = _Made(snapshot.taken)
    made.put("namespaces", namespace)
    values, of_labels = dict.fromkeys(priority_classes, 0), dict.fromkeys(workload_classes, 0)
    for view in known.views["workloads"].values():
        value = int(view.spec.get("priority", 0))
        if name := view.spec.get(CLASS_FIELD):
            of_labels[name] = value
        elif name := view.spec.get("priorityClassName"):
            values[name] = value
        if (name := view.spec.get("priorityClassName")) and name not in values:
            values[name] = 0
    for name, value in values.items():
        made.put("priorityclasses", name, value=value)
    for name, value in of_labels.items():
        made.put("workloadpriorityclasses", name, spec={"value": value})
    queues = {
        cluster_queue_of(known, key): (key[1], told)
        for key in known.views["localqueues"]
        if (told := told_of(known, key)) is not None
    }
    for queue, (local, told) in queues.items():
        _put_queue(made, known, queue, namespace, local, told)
    flavors = {flavor["name"] for _, told in queues.values() for flavor in told["flavors"]}
    for flavor in sorted(flavors):
        made.put("resourceflavors", flavor, spec={})
    there = {**snapshot.objects, "workloads": [*map(_without_hope, snapshot.objects["workloads"])]}
    more = {plural: [*there[plural], *objects] for plural, objects in made.objects.items()}
    return replace(snapshot, objects={**there, **more})


def _without_hope(workload: Json) -> Json:
    """A Workload; one that can never run by its status is paused.

    Its status knows the labels and taints of flavors. Here, without them, it would take quota.
    """
    if (workload.get("status") or {}).get("reason") not in HOPELESS:
        return workload
    return {**workload, "spec": {**workload["spec"], "active": False}}


class _Made:
    """Objects with what an API server would have added."""

    def __init__(self, now: float) -> None:
        self._created = timestamp(at(now))
        self.objects: dict[str, list[Json]] = {}

    def put(self, plural: str, name: str, namespace: str = "", **body: Any) -> None:  # noqa: ANN401
        metadata = {"name": name, "uid": f"{plural}/{name}", "resourceVersion": "1"}
        metadata |= {"creationTimestamp": self._created, **({"namespace": namespace} if namespace else {})}
        self.objects.setdefault(plural, []).append({"metadata": metadata, **body})


def _put_queue(made: _Made, known: Facts, queue: str, namespace: str, local: str, told: Json) -> None:
    cells = {
        (flavor["name"], each["name"]): each for flavor in told["flavors"] for each in flavor["resources"]
    }
    resources: dict[str, list[Json]] = {}
    for (flavor, resource), each in cells.items():
        resources.setdefault(resource, []).append({"name": flavor, "quota": {"min": each["max"]}})
    spec = [{"name": resource, "flavors": flavors} for resource, flavors in resources.items()]
    keys = (key for key in known.views["localqueues"] if cluster_queue_of(known, key) == queue)
    policy = StopPolicy.HOLD if any(obstacle_of(known, key) for key in keys) else StopPolicy.NONE
    made.put(
        "clusterqueues", queue, spec={"namespaceSelector": {}, "resources": spec, "stopPolicy": str(policy)}
    )
    used: dict[str, dict[str, str]] = {}
    for (flavor, resource), amount in _of_others(known, queue, cells):
        used.setdefault(flavor, {})[resource] = to_quantity(resource, amount)
    if used:
        made.put("workloads", f"{OTHERS}-{queue}", namespace, **_workload(queue, local, used, known.taken))


def _of_others(known: Facts, queue: str, cells: Cells) -> Iterator[tuple[tuple[str, str], int]]:
    """What is neither free nor held by the namespace's own Workloads."""
    own: dict[tuple[str, str], int] = {}
    for view in known.views["workloads"].values():
        if view.admission is not None and view.admission.queue == queue:
            for key, amount in (*left_of(view.admission, view).usage, *extra_usage(view)):
                own[key] = own.get(key, 0) + amount
    for key, each in cells.items():
        most, free = (to_amount(key[1], each[field]) for field in ("max", "free"))
        if (rest := most - free - own.get(key, 0)) > 0:
            yield key, rest


def _workload(queue: str, local: str, used: Mapping[str, Mapping[str, str]], now: float) -> Json:
    """A Workload without a Job that holds so much of each flavor."""
    pod_sets = [{"name": flavor, "count": 1, "requests": usage} for flavor, usage in used.items()]
    admitted = [
        {"name": flavor, "count": 1, "flavors": dict.fromkeys(usage, flavor), "usage": usage}
        for flavor, usage in used.items()
    ]
    since = {"lastTransitionTime": timestamp(at(now)), "status": "True"}
    conditions = [
        {"type": kind, "reason": kind, "message": "held", **since} for kind in ("QuotaReserved", "Admitted")
    ]
    admission = {"clusterQueue": queue, "podSets": admitted}
    return {
        "spec": {"queueName": local, "podSets": pod_sets},
        "status": {"state": "Admitted", "conditions": conditions, "admission": admission},
    }
