"""Users that make queued pods, by themselves and in groups, while things fail.

They do what a workflow engine does: a pod that has failed, or is gone before its end, is made anew by another
name, until as many have succeeded as were asked for. At times they delete pods that wait or run, or a whole
group, which they then begin anew. What the ledger takes for granted of Jobs does not hold for such pods, so
it is not told of their namespaces: the watcher of `tests.abuse` adds up those that are bound,
`tests.faults.starts` checks each start and each end, and here each look at all pods of a namespace is checked
for what a group promises.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests.abuse.scene import Ground
from tests.cluster.objects import cluster_queue, local_queue
from tests.faults.api import CORE, OWN, Api, RefusedError
from tests.faults.starts import is_evicted

Json = dict[str, Any]

FLAVOR: Final = "on-demand"
"""Which the scene of tenants has, with nodes."""
COHORT: Final = "pods"
LEAST, MOST = 6, 10
"""CPU of its own of each queue, and what it may use."""
GROUNDS: Final = (
    Ground("pods-a", {"main": "pods-a"}, managed=True, tenants=0),
    Ground("pods-b", {"main": "pods-b"}, managed=True, tenants=0),
)
TASK: Final = "task"
"""The label by which a user knows the pods of a task."""
GROUP_CHANCE: Final = 0.4
SIZES: Final = (2, 4, 4, 6)
TASKS_A_SECOND: Final = 0.5
LOOK_SECONDS: Final = 0.5
DELETES: Final = 0.04
"""How often a user deletes a pod of a task between two looks, or a tenth of that all of a group."""
FAILS: Final = 0.03
WHOLE_SECONDS: Final = 60.0
_ENDED: Final = frozenset(("Succeeded", "Failed"))
_GATE: Final = {"name": "admitter.dev/admission"}


@dataclass(frozen=True)
class PodTask:
    """What a user wants done by pods.

    Attributes:
        at: when, in seconds since the start.
        namespace: where.
        name: its name.
        size: how many pods; 0 for one by itself, without a group.
        runs: for how long each runs, in seconds.
        priority: the PriorityClass.
    """

    at: float
    namespace: str
    name: str
    size: int
    runs: int
    priority: str


def planned_pods(seed: int, seconds: float) -> tuple[PodTask, ...]:
    """What users want done by pods: a pure function of a seed."""
    random = Random(f"{seed}/pods")
    return tuple(_planned(random, seconds, round(seconds * TASKS_A_SECOND)))


def _planned(random: Random, seconds: float, number: int) -> Iterator[PodTask]:
    for index in range(number):
        at = round(seconds * (index + random.random()) / number, 2)
        size = random.choice(SIZES) if random.random() < GROUP_CHANCE else 0
        priority = "high" if random.random() < 0.25 else "low"
        namespace = random.choice(GROUNDS).namespace
        yield PodTask(at, namespace, f"task-{index:05}", size, random.choice((1, 2, 3, 6)), priority)


def manifest(task: PodTask, life: int, number: int) -> Json:
    """A pod of a task; those of two lives of a group are of two groups."""
    labels = {"admitter.dev/queue-name": "main", TASK: task.name}
    annotations = {
        "admitter.dev/simulated-runtime": str(task.runs),
        "admitter.dev/simulated-shutdown": str(number % 3),
    }
    if task.size:
        labels["admitter.dev/pod-group"] = f"{task.name}-{life}"
        annotations["admitter.dev/pod-group-size"] = str(task.size)
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{task.name}-{number}", "labels": labels, "annotations": annotations},
        "spec": {"restartPolicy": "Never", "priorityClassName": task.priority, "containers": [container]},
    }


@dataclass
class Course:
    """What has become of a task.

    Attributes:
        task: it.
        life: how often its group was begun anew.
        made: how many pods were made for it.
        of_life: how many of these in this life.
        succeeded: UIDs of its pods that have, in this life.
        done: whether enough have.
        seen: its pods at the last look, by name.
    """

    task: PodTask
    life: int = 0
    made: int = 0
    of_life: int = 0
    succeeded: set[str] = field(default_factory=set)
    done: bool = False
    seen: dict[str, Json] = field(default_factory=dict)

    @property
    def wanted(self) -> int:
        """How many pods have to succeed."""
        return max(self.task.size, 1)

    def told(self) -> str:
        """It in words."""
        pods = ", ".join(f"{name} {_state(pod)}" for name, pod in sorted(self.seen.items()))
        return (
            f"{self.task.namespace}/{self.task.name}: {len(self.succeeded)} of {self.wanted} pods have "
            f"succeeded, life {self.life}, made {self.made}; there: {pods or 'none'}"
        )


def _gated(pod: Json) -> bool:
    return _GATE in (pod["spec"].get("schedulingGates") or ())


def _phase(pod: Json) -> str:
    return str((pod.get("status") or {}).get("phase", ""))


def _state(pod: Json) -> str:
    deleting = " deleting" if "deletionTimestamp" in pod["metadata"] else ""
    return ("gated" if _gated(pod) else _phase(pod)) + deleting


@dataclass
class PodCrowd:
    """All users that make queued pods.

    Attributes:
        api: to the API server.
        random: of what they delete, and of what fails.
        tasks: what they want done.
        begun: what has become of those that were begun, by name.
        counts: pods that were made, deleted and so on.
        deleted: namespace and name of the pods that they have deleted, or were about to.
        findings: what groups promise and was not so, in words.
        is_done: whether all of a group has succeeded, by namespace and name: also pods that were gone before
            their user looked.
    """

    api: Api
    random: Random
    tasks: tuple[PodTask, ...]
    begun: dict[str, Course] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    deleted: set[str] = field(default_factory=set)
    findings: list[str] = field(default_factory=list)
    is_done: Callable[[str, str], bool] = lambda _namespace, _group: False
    _calm: bool = False

    async def build(self) -> None:
        """Make namespaces and queues, once there are the flavor and the PriorityClasses."""
        for ground in GROUNDS:
            name = ground.namespace
            labels = {"admitter.dev/managed": "true"}
            await self.api.create(f"{CORE}/namespaces", {"metadata": {"name": name, "labels": labels}})
            preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
            quota: Json = {"cohort": COHORT, "preemption": preemption}
            made = cluster_queue(name, {"cpu": {FLAVOR: str(LEAST)}}, **quota)
            made["spec"]["resources"][0]["flavors"][0]["quota"]["max"] = str(MOST)
            await self.api.create(f"{OWN}/clusterqueues", made)
            await self.api.create(f"{OWN}/namespaces/{name}/localqueues", local_queue(name, name))

    @property
    def left(self) -> int:
        """How many pods are still to succeed."""
        known = (self.begun.get(task.name) or Course(task) for task in self.tasks)
        return sum(each.wanted - len(each.succeeded) for each in known if not each.done)

    async def run(self) -> None:
        """Make pods as long as anything is to be done, until cancelled."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        while self.left:
            now = loop.time() - began
            for task in self.tasks:
                if task.at <= now and task.name not in self.begun:
                    self.begun[task.name] = Course(task)
            for ground in GROUNDS:
                await self._look(ground.namespace)
            await asyncio.sleep(LOOK_SECONDS)

    def calm(self) -> None:
        """From now on they delete nothing, and no pod fails."""
        self._calm = True

    async def _look(self, namespace: str) -> None:
        found: dict[str, dict[str, Json]] = {}
        for pod in (await self.api.get(f"{CORE}/namespaces/{namespace}/pods"))["items"]:
            name = pod["metadata"].get("labels", {}).get(TASK, "")
            found.setdefault(name, {})[pod["metadata"]["name"]] = pod
        here = [c for c in self.begun.values() if c.task.namespace == namespace and not c.done]
        for course in here:
            course.seen = found.get(course.task.name, {})
            self.check(course)
            await self._act(course)

    def check(self, course: Course) -> None:
        """A group starts with all of its pods, and no more of them run than it has."""
        group = f"{course.task.name}-{course.life}"
        pods = [
            p for p in course.seen.values() if p["metadata"]["labels"].get("admitter.dev/pod-group") == group
        ]
        started = [pod for pod in pods if not _gated(pod)]
        if started and course.of_life < course.task.size:
            self._find(f"a group started when {course.of_life} of its pods had been made: {course.told()}")
        running = [p for p in started if _phase(p) not in _ENDED and p["spec"].get("nodeName")]
        if len(running) > course.task.size > 0:
            self._find(f"{len(running)} pods of a group run: {course.told()}")

    def _find(self, words: str) -> None:
        if words not in self.findings:
            self.findings.append(words)

    async def _act(self, course: Course) -> None:
        """Make what is missing, delete what is over, or at times something else."""
        live = self._count(course)
        over = self.is_done(course.task.namespace, f"{course.task.name}-{course.life}")
        if len(course.succeeded) >= course.wanted or over:
            course.done = True
            self.counts["tasks of pods done"] += 1
            await self._delete_all(course)
        elif not self._calm and live and self.random.random() < DELETES:
            await self._harm(course, live)
        else:
            for _ in range(course.wanted - len(course.succeeded) - len(live)):
                await self._make(course)

    def _count(self, course: Course) -> list[Json]:
        """Note which pods have succeeded; returns those that may yet."""
        pods = course.seen.values()
        of_life = [p for p in pods if p["metadata"]["annotations"].get("life") == str(course.life)]
        course.succeeded |= {
            p["metadata"]["uid"] for p in of_life if _phase(p) == "Succeeded" and not is_evicted(p)
        }
        return [p for p in of_life if _phase(p) not in _ENDED and "deletionTimestamp" not in p["metadata"]]

    async def _make(self, course: Course) -> None:
        made = manifest(course.task, course.life, course.made)
        made["metadata"]["annotations"]["life"] = str(course.life)
        await self.api.create(f"{CORE}/namespaces/{course.task.namespace}/pods", made)
        course.made += 1
        course.of_life += 1
        self.counts["queued pods made"] += 1

    async def _harm(self, course: Course, live: list[Json]) -> None:
        """Delete a pod that waits or runs, have one that runs fail, or begin a group anew."""
        pod, way = self.random.choice(live), self.random.random()
        path = f"{CORE}/namespaces/{course.task.namespace}/pods/{pod['metadata']['name']}"
        if course.task.size and way < 0.1:
            await self._delete_all(course)
            course.life, course.of_life, course.succeeded = course.life + 1, 0, set()
            self.counts["groups begun anew"] += 1
        elif way < 0.4 and pod["spec"].get("nodeName"):
            seen = {"resourceVersion": pod["metadata"]["resourceVersion"]}  # it may have succeeded since
            try:
                await self.api.patch(f"{path}/status", {"metadata": seen, "status": {"phase": "Failed"}})
            except RefusedError as error:
                if error.status not in {404, 409}:
                    raise
                return
            self.counts["queued pods failed"] += 1
        else:
            self.deleted.add(f"{course.task.namespace}/{pod['metadata']['name']}")
            await self.api.delete(path, **self.random.choice(({}, {"gracePeriodSeconds": "0"})))
            self.counts["queued pods deleted"] += 1

    async def _delete_all(self, course: Course) -> None:
        namespace, name = course.task.namespace, course.task.name
        path = f"{CORE}/namespaces/{namespace}/pods"
        self.deleted.update(f"{namespace}/{name}-{number}" for number in range(course.made))
        await self.api.delete(path, labelSelector=f"{TASK}={name}")

    async def close(self) -> list[str]:
        """What is not as it has to be in the end; a pod for all of a queue's quota runs in each."""
        wrong = list(self.findings)
        wrong += [f"not done in the end: {c.told()}" for c in self.begun.values() if not c.done]
        for ground in GROUNDS:
            if not await self._whole(ground.namespace):
                wrong.append(f"a pod for all of queue {ground.namespace} did not run: some of it is lost")
        return wrong

    async def _whole(self, namespace: str) -> bool:
        """Whether a pod that asks for all that a queue may use runs to its end; it is deleted then."""
        made = manifest(PodTask(0.0, namespace, "whole", 0, 1, "low"), 0, 0)
        made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = str(MOST)
        path = f"{CORE}/namespaces/{namespace}/pods"
        await self.api.create(path, made)
        loop = asyncio.get_running_loop()
        end = loop.time() + WHOLE_SECONDS
        whole = f"{path}/{made['metadata']['name']}"
        while True:
            succeeded = _phase(await self.api.get(whole)) == "Succeeded"
            if succeeded or loop.time() > end:
                self.deleted.add(f"{namespace}/{made['metadata']['name']}")
                await self.api.delete(whole)
                return succeeded
            await asyncio.sleep(LOOK_SECONDS)
