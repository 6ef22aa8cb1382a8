"""The controller's start among very many Jobs that wait: time, memory, and what it admits from then on.

1. In each queue a Job is created that holds all of its quota, and in one of them another, which has to wait.
   All others that wait are copies of it.
2. The controller starts among a quarter of them, among half and among all: how its start grows.
3. It is killed. While it is gone, those that hold quota end, so that its successor can admit at once.
4. From the first start of a Job on, more are created every second; each that is started runs for a second.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import psutil

from admitter.client.transport import HttpTransport, Transport
from admitter.sandbox.control_plane import ControlPlane
from benchmarks.copies import Storage, copy
from benchmarks.crowd import Course, StandstillError, Task
from benchmarks.driver import JOBS, Driver
from benchmarks.fleet import OWN, Fleet
from benchmarks.observer import WORKLOADS, Observer
from benchmarks.server import Server, Spent, spent

QUOTA: Final = 1
RUNS_SECONDS: Final = 1.0
HOLDS_SECONDS: Final = 1e6
ARRIVALS_A_SECOND: Final = 100
STANDSTILL_SECONDS: Final = 60.0
LONGEST_START_SECONDS: Final = 600.0
TICK_SECONDS: Final = 0.02
COPIES_AT_A_TIME: Final = 10_000
WAITS, HOLDS, COMES = "waits", "holds", "comes"
CLASS: Final = "small"

Json = dict[str, Any]


def say(what: str) -> None:
    """Tell readers what happens now."""
    print(f"{time.strftime('%H:%M:%S')} {what}", file=sys.stderr, flush=True)


async def until(none_left: Callable[[], int], what: str, patience: float = STANDSTILL_SECONDS) -> None:
    """Wait until a number is 0.

    Raises:
        StandstillError: it has not changed for so many seconds.
    """
    before, changed = none_left(), time.monotonic()
    while left := none_left():
        if left != before:
            before, changed = left, time.monotonic()
        elif time.monotonic() > changed + patience:
            raise StandstillError(f"for {patience:.0f} s nothing has happened: {left} left until {what}")
        await asyncio.sleep(TICK_SECONDS)


@dataclass
class Life:
    """A controller that runs.

    Attributes:
        pid: its process.
        began: when it started, by `time.monotonic`.
        ready_s: how long it took to be ready, by its log.
        at_ready: what it had used up to then.
    """

    pid: int
    began: float
    ready_s: float
    at_ready: Spent

    def since(self, moment: float) -> float:
        """Seconds from its start to a moment."""
        return round(moment - self.began, 2)


class Bench:
    """One run: people, observer and controllers on one API server."""

    def __init__(self, server: Server, transport: Transport, fleet: Fleet) -> None:
        self._server = server
        self._transport = transport
        self._names = list(fleet.names())
        self._observer = Observer(transport, fleet.limits(QUOTA))
        for number, name in enumerate(self._names):
            self._observer.follow(name, fleet.cohort_of(number))
        self._driver = Driver(transport, changed=self._note)
        self._started: dict[str, dict[str, Course]] = {kind: {} for kind in (WAITS, HOLDS, COMES)}

    async def run(self, count: int, seconds: float) -> Json:
        """All of it, with so many Jobs that wait, and so many seconds in which more arrive."""
        starts, there, filled = [], 1, 0.0
        async with AsyncExitStack() as watches:
            await watches.enter_async_context(self._observer.watching())
            await watches.enter_async_context(self._driver.watching())
            await self.first()
            for size in (count // 4, count // 2, count):
                filled += await self.fill(there, size)
                starts.append(await self.start(size))
                there = size
            successor = await self._successor(seconds)
            await until(self._running, "no Job runs")
        return {
            "filled_s": round(filled, 1),
            "starts": starts,
            "after_the_kill": successor,
            "excesses": self._observer.excesses,
        }

    async def first(self) -> None:
        """Fill the quota, and have one Job told why it waits."""
        say("all quota is taken")
        async with self._life():
            tasks = [self._task(HOLDS, number, HOLDS_SECONDS) for number in range(len(self._names))]
            await asyncio.gather(*(self._driver.create(task) for task in tasks))
            await until(lambda: len(tasks) - len(self._started[HOLDS]), "all hold their quota")
            await self._driver.create(self._task(WAITS, 0))
            await self._told()
            await self._at_rest()

    async def fill(self, there: int, count: int) -> float:
        """Copy the Job that waits.

        Args:
            there: how many there are.
            count: how many there are to be.

        Returns:
            How many seconds it took.
        """
        say(f"from {there} to {count} Jobs that wait")
        began = time.monotonic()
        tasks = [self._task(WAITS, number) for number in range(there, count)]
        for task in tasks:
            self._driver.outcomes[task.namespace, task.name] = Course(task)
        original = self._task(WAITS, 0)
        path = f"/apis/batch/v1/namespaces/{original.namespace}/jobs/{original.name}"
        job, workload = await self._transport.get(path), await self._told()
        places = [(task.namespace, number) for number, task in enumerate(tasks, there)]
        storage = Storage(self._server.cluster)
        for at in range(0, len(places), COPIES_AT_A_TIME):  # no more than watches can follow
            some = places[at : at + COPIES_AT_A_TIME]
            await asyncio.to_thread(copy, storage, job, workload["metadata"]["uid"], some)
            for collection in (JOBS, WORKLOADS):
                await self._counted(collection, len(self._names) + there + at + len(some))
        took = time.monotonic() - began
        await self._at_rest()
        return took

    async def start(self, count: int) -> Json:
        """Start the controller while nothing can be admitted, and kill it when it has no more to do."""
        say("the controller starts")
        async with self._life() as life:
            await self._at_rest()
            at_rest = spent(life.pid)
            os.kill(life.pid, signal.SIGKILL)
        return {
            "waiting": count,
            "ready_s": life.ready_s,
            "ready_cpu_s": round(life.at_ready.cpu_s, 1),
            "at_rest_cpu_s": round(at_rest.cpu_s, 1),
            "peak_mb_when_ready": round(life.at_ready.peak_mb),
            "peak_mb": round(at_rest.peak_mb),
        }

    async def _successor(self, seconds: float) -> Json:
        """Let those end that hold quota, start the controller, and have Jobs arrive for so many seconds."""
        say("those that hold quota end")
        for course in self._started[HOLDS].values():
            self._driver.complete(course)
        await self._at_rest()
        say("the controller starts again")
        async with self._life() as life:
            await until(
                lambda: not self._started[WAITS], "a Job that waited is started", LONGEST_START_SECONDS
            )
            await until(lambda: not self._growth(life.began), "its admission is seen")
            started = min(self._starts(WAITS))
            return {
                "ready_s": life.ready_s,
                "ready_cpu_s": round(life.at_ready.cpu_s, 1),
                "first_admission_s": life.since(self._growth(life.began)[0]),
                "first_job_started_s": life.since(self._driver.began + started),
                "peak_mb_when_ready": round(life.at_ready.peak_mb),
            } | await self._arrivals(seconds, life.pid)

    async def _arrivals(self, seconds: float, pid: int) -> Json:
        """Create Jobs for a while, and tell what happened in that time."""
        say(f"{ARRIVALS_A_SECOND} Jobs a second arrive for {seconds:.0f} s")
        server, driver, books = self._server, self._driver, self._observer.books.values()
        writes, components, controller = await server.writes(), server.components(), spent(pid)
        began, admitted = driver.now(), sum(each.admissions.total() for each in books)
        arrivals = round(seconds * ARRIVALS_A_SECOND)
        async with asyncio.TaskGroup() as group:
            for number in range(arrivals):
                await asyncio.sleep(max(0.0, began + number / ARRIVALS_A_SECOND - driver.now()))
                group.create_task(driver.create(self._task(COMES, number)))
        ended = driver.now()
        took, written, now = ended - began, await server.writes() - writes, server.components()
        admissions = sum(each.admissions.total() for each in books) - admitted
        starts = sum(began <= at <= ended for at in (*self._starts(WAITS), *self._starts(COMES)))
        if not starts:
            raise StandstillError(f"no Job was started for {took:.0f} s")
        cpu = {name: used.cpu_s - components[name].cpu_s for name, used in now.items()}
        cpu["controller"] = spent(pid).cpu_s - controller.cpu_s
        return {
            "arrivals": arrivals,
            "arrived_within_s": round(took, 1),
            "admissions_per_s": round(admissions / took, 1),
            "jobs_started_per_s": round(starts / took, 1),
            "writes_per_s_by_kind": {what: round(n / took, 1) for what, n in sorted(written.items())},
            "cpu_seconds_per_s": {name: round(used / took, 2) for name, used in cpu.items()},
            "peak_mb": {"controller": round(spent(pid).peak_mb)}
            | {name: round(used.peak_mb) for name, used in now.items()},
        }

    def _task(self, kind: str, number: int, runs: float = RUNS_SECONDS) -> Task:
        """One Job of a kind; they take turns in the queues."""
        namespace = self._names[number % len(self._names)]
        return Task(0.0, namespace, f"{kind}-{number:06}", kind, 1, runs, CLASS)

    def _note(self, course: Course) -> None:
        if course.first_started is not None:
            self._started[course.task.kind][course.task.name] = course

    def _starts(self, kind: str) -> list[float]:
        """When Jobs of a kind were started first."""
        times = (course.first_started for course in self._started[kind].values())
        return [at for at in times if at is not None]

    def _growth(self, since: float) -> list[float]:
        """When, after a moment, more was in use than before."""
        changes = pairwise(self._observer.use)
        return [at for (_, before), (at, used) in changes if used > before and at > since]

    def _running(self) -> int:
        """How many Jobs run."""
        courses = (course for kind in (WAITS, COMES) for course in self._started[kind].values())
        return sum(course.started is not None and course.completed is None for course in courses)

    async def _told(self) -> Json:
        """The first Workload that has been told why it waits."""
        deadline = time.monotonic() + STANDSTILL_SECONDS
        path = f"{OWN}/namespaces/{self._names[0]}/workloads"
        while time.monotonic() < deadline:
            listed = await self._transport.get(path)
            name = f"job-{WAITS}-000000-"
            found = [w for w in listed["items"] if w["metadata"]["name"].startswith(name)]
            if found and found[0].get("status", {}).get("reason"):
                return dict(found[0])
            await asyncio.sleep(1.0)
        raise StandstillError("the Job that waits is not told why")

    async def _counted(self, path: str, count: int) -> None:
        """Wait until the API server has taken in all objects of a kind."""
        found, deadline = 0, time.monotonic() + STANDSTILL_SECONDS
        while found != count:
            page = await self._transport.get(path, {"limit": "1"})
            found = 1 + page["metadata"].get("remainingItemCount", 0)
            if time.monotonic() > deadline:
                raise StandstillError(f"{found} of {count} are in {path}")
            await asyncio.sleep(TICK_SECONDS)

    async def _at_rest(self) -> None:
        await asyncio.wait_for(self._server.quiet(), LONGEST_START_SECONDS)

    @asynccontextmanager
    async def _life(self) -> AsyncIterator[Life]:
        """A controller that is ready, until the end of the block."""
        log = self._server.folder / "controller.log"
        before = log.stat().st_size if log.exists() else 0
        with self._server.controller() as pid:
            began, clock = time.monotonic(), time.time()

            def unready() -> bool:
                ended = psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
                assert not ended, f"the controller has ended: {log.read_text()[-2000:]}"
                return _ready(log, before) is None

            await until(unready, "the controller is ready", LONGEST_START_SECONDS)
            ready = _ready(log, before)
            assert ready is not None
            yield Life(pid, began, round(ready - clock, 2), spent(pid))


def _ready(log: Path, before: int) -> float | None:
    """When the controller has logged that it is ready, in seconds since the epoch.

    Args:
        log: its log.
        before: the length of what others have logged before.
    """
    for line in log.read_bytes()[before:].splitlines():
        if b'"ready"' in line:
            return datetime.fromisoformat(json.loads(line)["timestamp"]).timestamp()
    return None


async def measure(cluster: ControlPlane, fleet: Fleet, server: Server, count: int, seconds: float) -> Json:
    """All figures, on an API server that has Admitter's kinds and policies.

    Args:
        cluster: the control plane.
        fleet: the queues.
        server: the same, as it is asked and where it logs.
        count: how many Jobs wait.
        seconds: for how long more arrive.
    """
    async with await HttpTransport.connect(cluster.kubeconfig, cluster.context) as transport:
        await fleet.define(transport, QUOTA)
        await server.quiet()
    async with await HttpTransport.connect(await server.people()) as transport:
        found = await Bench(server, transport, fleet).run(count, seconds)
    stored = (cluster.folder / "data" / "member" / "snap" / "db").stat().st_size
    return {"jobs": count, "queues": fleet.count, **found, "storage_mb": round(stored / 1e6)}
