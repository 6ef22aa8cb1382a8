"""Pods that are queued by themselves, and in groups, through the whole of it on a real API server.

People create 2,000 single pods, then 200 groups of 10, through 30 queues, and what stands in for the kubelet
ends each a moment after its gate is gone. No scheduler takes part: its writes would be counted too.
Before that, single pods come one after the other to a system that is otherwise idle.
"""

import asyncio
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final

from admitter.client.transport import HttpTransport, Transport
from admitter.install.apply import install
from admitter.sandbox.control_plane import ControlPlane
from benchmarks.crowd import Course, Crowd, Task
from benchmarks.jobs import COHORTS, QUEUES, define, spread
from benchmarks.server import Server, commit, machine, spent

Json = dict[str, Any]

PODS: Final = "/api/v1/pods"
SINGLE, GROUPS, SIZE = 2_000, 200, 10
"""Single pods, groups, and pods of a group."""
EVERY: Final = 0.5
"""Seconds between two single pods of a queue; between two groups of one it is as long a pod."""
RUNS: Final = 0.3
ONE_BY_ONE: Final = 200
GROUP: Final = "group"
GATE: Final = "admitter.dev/admission"
OURS_OF_A_POD, OURS_OF_A_GROUP, CPU_MS = 4.0, 3.0 + SIZE, 4.0
P50_MS, P99_MS = 20.0, 60.0
"""What is asked: our writes of a pod and of a group, CPU of a pod, and how soon a pod starts."""


def pod(task: Task) -> Json:
    """The pod of a task: by itself, or one of the group that its name begins with."""
    labels, annotations = {"admitter.dev/queue-name": "main"}, {}
    if task.kind == GROUP:
        labels["admitter.dev/pod-group"] = task.name.rpartition("-")[0]
        annotations["admitter.dev/pod-group-size"] = str(SIZE)
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": str(task.cpu)}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": task.name, "labels": labels, "annotations": annotations},
        "spec": {
            "restartPolicy": "Never",
            "schedulerName": "none",
            "priorityClassName": task.priority_class,
            "containers": [container],
        },
    }


@dataclass
class PodDriver(Crowd):
    """Creates queued pods, and stands in for what runs them.

    Attributes:
        answered: when the API server had created each pod, by namespace and name.
    """

    collection: ClassVar[str] = PODS
    own_writes: ClassVar[tuple[str, ...]] = ("POST pods", "PATCH pods/status")
    """How its own writes begin in the counts of the API server."""

    answered: dict[tuple[str, str], float] = field(default_factory=dict)

    def waits(self, seen: Json) -> bool:
        """Whether a pod has our gate."""
        return any(gate["name"] == GATE for gate in seen["spec"].get("schedulingGates") or ())

    async def make(self, task: Task) -> None:
        """Create a pod."""
        await self.transport.create(f"/api/v1/namespaces/{task.namespace}/pods", pod(task))
        self.answered[task.namespace, task.name] = self.now()

    async def begin(self, course: Course) -> None:
        """Nothing waits for that to be said."""

    async def stop(self, course: Course) -> None:
        """No pod has its gate put back."""

    async def end(self, course: Course) -> None:
        """As the kubelet does when a pod has succeeded."""
        task = course.task
        path = f"/api/v1/namespaces/{task.namespace}/pods/{task.name}/status"
        await self.transport.patch(path, {"status": {"phase": "Succeeded"}})


def singles(scale: float) -> Iterator[Task]:
    """Single pods, evenly through all queues."""
    for number in range(round(SINGLE * scale)):
        turn, queue = divmod(number, COHORTS * QUEUES)
        yield Task(EVERY * turn, f"team-{queue}", f"pod-{turn}", "single", 1, RUNS, "small")


def groups(scale: float) -> Iterator[Task]:
    """The pods of groups, evenly through all queues."""
    for number in range(round(GROUPS * scale)):
        turn, queue = divmod(number, COHORTS * QUEUES)
        at = EVERY * SIZE * (turn + queue / COHORTS / QUEUES)
        for each in range(SIZE):
            yield Task(at, f"team-{queue}", f"tune-{turn}-{each}", GROUP, 1, RUNS, "small")


def of_course(what: str) -> bool:
    """Whether a write belongs to the course of one Workload: no event, and no status of a queue."""
    return what.split(" ")[1].partition("/")[0] in {"pods", "workloads"}


@dataclass
class Load:
    """A controller under load."""

    server: Server
    transport: Transport
    pid: int

    async def run(self, tasks: list[Task], objects: int) -> Json:
        """Have pods run, and count what that takes.

        Args:
            tasks: one a pod.
            objects: how many Workloads they have.
        """
        driver, server = PodDriver(self.transport), self.server
        before, controller, components = await server.writes(), spent(self.pid), server.components()
        async with driver.watching():
            began = time.monotonic()
            await driver.run(tasks)
            wall = time.monotonic() - began
            await server.quiet()
        written = await server.writes() - before
        pods = len(tasks)
        ours = Counter({what: n for what, n in written.items() if not what.startswith(driver.own_writes)})
        courses = driver.outcomes.values()
        waits = [c.started - c.created for c in courses if c.started is not None and c.created is not None]
        return {
            "pods": pods,
            "workloads": objects,
            "wall_s": round(wall, 1),
            "wait_s": spread(waits),
            "writes_per_workload": {
                "its_course": round(sum(n for what, n in ours.items() if of_course(what)) / objects, 2),
                "events": round(sum(n for what, n in ours.items() if "events" in what) / objects, 2),
                "all": round(ours.total() / objects, 2),
            },
            "writes": dict(sorted(ours.items())),
            "controller_cpu_ms_per_pod": round((spent(self.pid).cpu_s - controller.cpu_s) * 1000 / pods, 2),
            "cpu_ms_per_pod": {
                name: round((used.cpu_s - components[name].cpu_s) * 1000 / pods, 2)
                for name, used in server.components().items()
            },
            "controller_peak_mb": round(spent(self.pid).peak_mb),
        }

    async def one_by_one(self, name: str, number: int) -> Json:
        """How long single pods wait, one after the other: until a watch shows them without their gate.

        Args:
            name: with which the names of pods begin.
            number: how many.
        """
        asked, answered = [], []
        driver = PodDriver(self.transport)
        async with driver.watching():
            for each in range(number):
                namespace = f"team-{each % (COHORTS * QUEUES)}"
                task = Task(0.0, namespace, f"{name}-{each}", "single", 1, 0.0, "small")
                await driver.run([task])
                course = driver.outcomes[namespace, task.name]
                assert course.started is not None
                assert course.created is not None
                asked.append((course.started - course.created) * 1000)
                since = course.started - driver.answered[namespace, task.name]
                answered.append(max(since, 0.0) * 1000)
        return {"since_the_request_ms": spread(asked), "since_its_answer_ms": spread(answered)}


async def measure(cluster: ControlPlane, scale: float, folder: Path) -> Json:
    """One run on a fresh API server."""
    server = Server(cluster, folder)
    async with await HttpTransport.connect(cluster.kubeconfig, cluster.context) as transport:
        await install(transport, deployment=False)
        await define(transport)
    await server.quiet()
    async with await HttpTransport.connect(await server.people()) as transport:
        speed = await server.speed(transport)
        with server.controller() as pid:
            await server.quiet()
            load = Load(server, transport, pid)
            number = round(ONE_BY_ONE * min(scale, 1.0))
            loads = [os.getloadavg()[0]]
            idle = await load.one_by_one("before", number)
            alone = await load.run(list(singles(scale)), round(SINGLE * scale))
            together = await load.run(list(groups(scale)), round(GROUPS * scale))
            after = await load.one_by_one("after", number)
            loads.append(os.getloadavg()[0])
    return {
        "scale": scale,
        "queues": COHORTS * QUEUES,
        "load_at_start_and_end": [round(each, 1) for each in loads],
        "commit": commit(),
        "machine": machine(),
        "api_server_speed": speed,
        "single_pods": alone,
        "groups": together,
        "one_pod_when_idle": idle,
        "one_pod_after_the_run": after,
        "asked": {
            "writes_of_a_pod": OURS_OF_A_POD,
            "writes_of_a_group": OURS_OF_A_GROUP,
            "controller_cpu_ms_per_pod": CPU_MS,
            "one_pod_when_idle_ms": {"p50": P50_MS, "p99": P99_MS},
        },
    }


def run(cluster: ControlPlane, scale: float, folder: Path) -> Json:
    """The same, in an event loop of its own."""
    return asyncio.run(measure(cluster, scale, folder))
