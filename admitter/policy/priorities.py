"""Where the priority of a Workload comes from (docs/design/people.md).

Of a Workload that names a WorkloadPriorityClass the value that this has now counts, and not the one that is
written in its spec: the controller follows with that, Workload by Workload.
"""

from collections.abc import Mapping
from typing import Final

from admitter.cache.views import JobView, Json, ObjectView
from admitter.cache.world import World
from admitter.convert.workloads import expressions
from admitter.engine.model import Requirement

CLASS_FIELD: Final = "workloadPriorityClass"
"""In the spec of a Workload: the WorkloadPriorityClass that it names."""


def priority_of(job: JobView, world: World) -> int:
    """The value of the class that a job object's label names, or else of its pods' PriorityClass.

    It is 0 if it names none and there is no default of all, or if what it names does not exist.
    """
    if job.priority_class:
        found = world.workload_classes.get(("", job.priority_class))
        return int(found.spec["value"]) if found is not None else 0
    of_pods = _of_pods(job, world)
    return int(of_pods.body["value"]) if of_pods is not None else 0


def pods_class(job: JobView, world: World) -> str:
    """The PriorityClass of a job object's pods; empty if they have none."""
    of_pods = _of_pods(job, world)
    return of_pods.name if of_pods is not None else job.template.get("priorityClassName") or ""


def _of_pods(job: JobView, world: World) -> ObjectView | None:
    """The PriorityClass that pods name, or the one that is the default of all."""
    name = job.template.get("priorityClassName")
    if name:
        return world.priority_classes.get(("", name))
    defaults = [c for c in world.priority_classes if c.body.get("globalDefault")]
    return min(defaults, key=lambda c: c.body["value"], default=None)


def value_now(spec: Json, world: World) -> int:
    """The priority of a Workload with this spec; if its class does not exist, the one that is written."""
    named = spec.get(CLASS_FIELD)
    found = world.workload_classes.get(("", named)) if named else None
    return int(found.spec["value"] if found is not None else spec.get("priority", 0))


def valued(spec: Json, world: World) -> Json:
    """The spec of a Workload with the priority that it has now."""
    value = value_now(spec, world)
    return spec if spec.get("priority", 0) == value else spec | {"priority": value}


def not_for(found: ObjectView, queue: str, labels: Mapping[str, str], namespace: str) -> str:
    """What a WorkloadPriorityClass is not for, of a ClusterQueue and a namespace; empty: it is for both.

    `queue` is empty for an elastic quota, and `labels` are those of the namespace.
    """
    queues = found.spec.get("clusterQueues")
    if queues is not None and queue not in queues:
        return f"ClusterQueue {queue}" if queue else "elastic quotas"
    selector = found.spec.get("namespaceSelector")
    if selector is not None:
        same = selector.get("matchLabels") or {}
        equal = [Requirement(key, "In", (value,)) for key, value in same.items()]
        if not all(each.matches(labels) for each in (*equal, *expressions(selector))):
            return f"namespace {namespace}"
    return ""
