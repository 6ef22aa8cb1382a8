"""People that create Jobs, and, for Jobs that have no pods, what stands in for the Job controller.

It does what the Job controller does with a suspended Job, and says so in the Job's status: it acts on the
end of the suspension, on a new suspension after the time that pods take to end, and on the end of the work.
Whatever fails is done again by what the Job is then.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any, Final

import aiohttp

from tests.cluster.objects import job
from tests.faults.api import BATCH, PAUSE_SECONDS, Api, RefusedError
from tests.faults.plan import Task
from tests.faults.scene import MANAGER

Json = dict[str, Any]

AT_A_TIME: Final = 48
WATCH_SECONDS: Final = 300
KEPT_SECONDS: Final = 45
"""A finished Job is deleted by the cluster after so long."""
LONGEST_END_SECONDS: Final = 0.5


@dataclass(slots=True)
class Course:
    """A Job without pods, as it is now.

    Attributes:
        path: of the Job.
        runs: for how long it runs, in seconds.
        version: its resource version.
        suspended: whether it may not run.
        active: whether it says that it runs.
        finished: whether it is over, or gone.
        over: whether it has run for its time.
        busy: whether a task is at it.
        timer: ends its work.
    """

    path: str
    runs: float
    version: str = ""
    suspended: bool = True
    active: bool = False
    finished: bool = False
    over: bool = False
    busy: bool = False
    timer: asyncio.TimerHandle | None = None

    def see(self, raw: Json) -> None:
        """Take in what the Job is now."""
        self.version = raw["metadata"]["resourceVersion"]
        self.suspended = bool(raw["spec"].get("suspend"))
        status = raw.get("status") or {}
        self.active = bool(status.get("active"))
        conditions = status.get("conditions") or ()
        self.finished = any(c["type"] in {"Complete", "Failed"} and c["status"] == "True" for c in conditions)


@dataclass
class Crowd:
    """All users that ask for something.

    Attributes:
        api: to the API server.
        random: of how long pods take to end.
        created: how many Jobs were created.
    """

    api: Api
    random: Random
    created: int = 0
    _courses: dict[str, Course] = field(default_factory=dict)
    _group: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_A_TIME))

    async def create(self, tasks: Iterable[Task]) -> None:
        """Create all at their times, and return when the last one is there."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.TaskGroup() as group:
            for task in tasks:
                await asyncio.sleep(max(0.0, began + task.at - loop.time()))
                group.create_task(self._create(task))

    async def _create(self, task: Task) -> None:
        async with self._slots:
            await self.api.create(f"{BATCH}/namespaces/{task.place}/jobs", manifest(task))
        self.created += 1

    async def run(self) -> None:
        """Stand in for the Job controller until cancelled."""
        version = ""
        async with asyncio.TaskGroup() as self._group:
            while True:
                try:
                    if not version:
                        version = await self._list()
                    async for event in self.api.watch(f"{BATCH}/jobs", version, WATCH_SECONDS):
                        version = event["object"]["metadata"]["resourceVersion"]
                        if event["type"] != "BOOKMARK":
                            self._see(event["object"], gone=event["type"] == "DELETED")
                except RefusedError as error:
                    version = "" if error.status == 410 else version
                    await asyncio.sleep(PAUSE_SECONDS)
                except (aiohttp.ClientError, TimeoutError, OSError):
                    await asyncio.sleep(PAUSE_SECONDS)

    async def _list(self) -> str:
        present, version = set(), ""
        async for page in self.api.pages(f"{BATCH}/jobs"):
            version = page["metadata"]["resourceVersion"]
            for raw in page["items"]:
                present.add(raw["metadata"]["uid"])
                self._see(raw, gone=False)
        for uid in self._courses.keys() - present:
            self._forget(uid)
        return str(version)

    def _forget(self, uid: str) -> None:
        course = self._courses.pop(uid)
        course.finished = True
        if course.timer is not None:
            course.timer.cancel()

    def _see(self, raw: Json, *, gone: bool) -> None:
        metadata = raw["metadata"]
        if raw["spec"].get("managedBy") != MANAGER:
            return
        uid = metadata["uid"]
        if gone:
            if uid in self._courses:
                self._forget(uid)
            return
        course = self._courses.get(uid)
        if course is None:
            path = f"{BATCH}/namespaces/{metadata['namespace']}/jobs/{metadata['name']}"
            course = self._courses[uid] = Course(path, float(metadata["annotations"]["runs"]))
        course.see(raw)
        self._wake(course)

    def _wake(self, course: Course) -> None:
        if not course.busy:
            course.busy = True
            self._group.create_task(self._converge(course))

    async def _converge(self, course: Course) -> None:
        """Do what the Job asks for, until it asks for nothing."""
        try:
            while not course.finished and (body := await self._next(course)) is not None:
                try:
                    metadata = {"resourceVersion": course.version}
                    course.see(
                        await self.api.patch(f"{course.path}/status", {"metadata": metadata, "status": body})
                    )
                except RefusedError as error:
                    if error.status == 404:
                        return
                    if error.status != 409:
                        raise
                    course.see(await self.api.get(course.path))
        except RefusedError as error:
            if error.status != 404:
                raise
        finally:
            course.busy = False

    async def _next(self, course: Course) -> Json | None:
        """The status to write now; None if there is nothing to say."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if course.suspended and course.active:
            if course.timer is not None:
                course.timer.cancel()
            course.over = False
            await asyncio.sleep(self.random.uniform(0.0, LONGEST_END_SECONDS))
            stopped = [_condition("Suspended", now)]
            return {"active": 0, "ready": 0, "startTime": None, "conditions": stopped}
        if not course.suspended and not course.active:
            course.over = False
            course.timer = asyncio.get_running_loop().call_later(course.runs, self._over, course)
            resumed = [_condition("Suspended", now, holds=False)]
            return {"active": 1, "startTime": now, "conditions": resumed}
        if not course.suspended and course.over:
            kinds = ("SuccessCriteriaMet", "Complete")
            conditions = [_condition(kind, now) for kind in kinds]
            return {
                "active": 0,
                "ready": 0,
                "succeeded": 1,
                "completionTime": now,
                "conditions": [_condition("Suspended", now, holds=False), *conditions],
            }
        return None

    def _over(self, course: Course) -> None:
        course.over = True
        self._wake(course)


def _condition(kind: str, now: str, *, holds: bool = True) -> Json:
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "reason": "Crowd",
        "message": "",
        "lastTransitionTime": now,
        "lastProbeTime": now,
    }


def manifest(task: Task) -> Json:
    """The Job of a task."""
    elastic = task.place.startswith("elastic-")
    made = job(
        task.place,
        task.name,
        pods=task.pods,
        requests={"cpu": str(task.cpu)},
        seconds=max(1, round(task.runs)),
        queue="elastic-quota" if elastic else "main",
        pod={"priorityClassName": task.priority},
        ttlSecondsAfterFinished=KEPT_SECONDS,
    )
    if not task.real:
        made["spec"]["managedBy"] = MANAGER
        made["metadata"]["annotations"] = {"runs": str(task.runs)}
    return made
