"""People that make Workloads by hand, with no Job, and delete each when its time is over.

A Workload without a Job has no other end than its deletion: `Finished` is written for Jobs alone, and
`spec.active: false` only makes it wait. They see by `status.admission` that one runs, and by `Evicted` that
it must stop.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from admitter.names import API_VERSION
from benchmarks.crowd import Course, Crowd, Task
from benchmarks.fleet import LOCAL_QUEUE, OWN, RESOURCE

WORKLOADS: Final = f"{OWN}/workloads"

Json = dict[str, Any]


@dataclass
class People(Crowd):
    """Create Workloads on schedule, and delete them when they have run.

    Attributes:
        priorities: the value of each PriorityClass.
    """

    collection: ClassVar[str] = WORKLOADS

    priorities: dict[str, int] = field(default_factory=dict)

    def waits(self, seen: Json) -> bool:
        """Whether a Workload holds no quota, or has to give it back."""
        return not runs(seen.get("status") or {})

    async def make(self, task: Task) -> None:
        """Create a Workload."""
        body = workload(task, self.priorities[task.priority_class])
        await self.transport.create(f"{OWN}/namespaces/{task.namespace}/workloads", body)

    async def begin(self, course: Course) -> None:
        """Nothing waits for that to be said."""

    async def stop(self, course: Course) -> None:
        """Nothing runs, so there is nothing to stop."""

    async def end(self, course: Course) -> None:
        """Delete a Workload."""
        task = course.task
        await self.transport.delete(f"{OWN}/namespaces/{task.namespace}/workloads/{task.name}")


def runs(status: Json) -> bool:
    """Whether a Workload with this status may run."""
    conditions = status.get("conditions") or ()
    evicted = any(c["type"] == "Evicted" and c["status"] == "True" for c in conditions)
    return bool(status.get("admission")) and not evicted


def workload(task: Task, priority: int) -> Json:
    """The manifest of a Workload of one pod."""
    pod_set = {"name": "main", "count": 1, "requests": {RESOURCE: str(task.cpu)}}
    spec = {
        "queueName": LOCAL_QUEUE,
        "priority": priority,
        "priorityClassName": task.priority_class,
        "podSets": [pod_set],
    }
    return {"apiVersion": API_VERSION, "kind": "Workload", "metadata": {"name": task.name}, "spec": spec}
