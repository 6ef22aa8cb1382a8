"""The people and the Job controller of a benchmark: create Jobs on schedule, run and complete them.

It knows nothing of Admitter but the label that names a queue: it sees that a Job is no longer suspended, lets
it run for its time, and says so in its status. `spec.managedBy` keeps the real Job controller off these Jobs.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from admitter.client.transport import Transport
from benchmarks.crowd import Course, Crowd, Task

Json = dict[str, Any]

JOBS: Final = "/apis/batch/v1/jobs"
MANAGER: Final = "example.com/benchmark"
QUEUE_LABEL: Final = "admitter.dev/queue-name"


@dataclass
class Driver(Crowd):
    """Creates Jobs, and stands in for what runs them."""

    collection: ClassVar[str] = JOBS
    own_writes: ClassVar[tuple[str, ...]] = ("POST jobs", "PATCH jobs/status")
    """How its own writes begin in the counts of the API server."""

    @staticmethod
    async def prepare(transport: Transport) -> None:
        """Make what the load needs beside queues, once Admitter is installed: nothing for Jobs."""

    def waits(self, seen: Json) -> bool:
        """Whether a Job is suspended."""
        return bool(seen["spec"].get("suspend"))

    async def make(self, task: Task) -> None:
        """Create a suspended Job."""
        await self.transport.create(f"/apis/batch/v1/namespaces/{task.namespace}/jobs", job(task))

    async def begin(self, course: Course) -> None:
        """Nothing: a Job's start and its end are written at once when it has ended, a write a Job less.

        An eviction waits for the start, so a victim runs on to its end: see `FaithfulDriver`.
        """

    async def stop(self, course: Course) -> None:
        """As the Job controller does when a Job is suspended."""
        conditions = [_condition("Suspended", _stamp())]
        await self._write(course, {"startTime": None, "active": 0, "conditions": conditions})

    async def end(self, course: Course) -> None:
        """As the Job controller does when a Job has succeeded."""
        stamp = _stamp()
        conditions = [_condition(kind, stamp) for kind in ("SuccessCriteriaMet", "Complete")]
        body = {"completionTime": stamp, "active": 0, "succeeded": 1, "conditions": conditions}
        await self._write(course, body | self._start(stamp))

    def _start(self, stamp: str) -> Json:
        """What is said of the start when a Job has ended."""
        return {"startTime": stamp}

    async def _write(self, course: Course, status: Json) -> None:
        task = course.task
        path = f"/apis/batch/v1/namespaces/{task.namespace}/jobs/{task.name}/status"
        await self.transport.patch(path, {"status": status})


class FaithfulDriver(Driver):
    """Also says that a Job begins, as a Job controller does: a victim then stops, and starts anew."""

    async def begin(self, course: Course) -> None:
        """As the Job controller does when a suspension has ended."""
        conditions = [_condition("Suspended", _stamp(), "False")]
        await self._write(course, {"startTime": _stamp(), "active": 1, "conditions": conditions})

    def _start(self, _: str) -> Json:
        return {}


def job(task: Task) -> Json:
    """The manifest of a Job."""
    container = {
        "name": "main",
        "image": "registry.example/work:1",
        "resources": {"requests": {"cpu": str(task.cpu)}},
    }
    return {
        "metadata": {"name": task.name, "labels": {QUEUE_LABEL: "main"}},
        "spec": {
            "suspend": True,
            "managedBy": MANAGER,
            "template": {
                "spec": {
                    "restartPolicy": "Never",
                    "priorityClassName": task.priority_class,
                    "containers": [container],
                }
            },
        },
    }


def _stamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _condition(kind: str, stamp: str, status: str = "True") -> Json:
    return {
        "type": kind,
        "status": status,
        "reason": "Benchmark",
        "message": "",
        "lastTransitionTime": stamp,
        "lastProbeTime": stamp,
    }
