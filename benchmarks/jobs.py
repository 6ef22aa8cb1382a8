"""Jobs through the whole of it, on a real API server: `make bench-jobs SCALE=0.2`.

30 ClusterQueues in 5 cohorts; per queue, at scale 1, 350 small, 100 medium and 50 large Jobs that come on
schedule, with reclaim and preemption. A black box: people create suspended Jobs, what runs them sees that
the suspension ends, and completes each after its time, and with `FAITHFUL=1` also says that it has begun, so
that a victim stops before its end; an observer adds up what is admitted. What is
measured: wall time against its bound, waits, use, writes, CPU and memory. Prints the figures, writes
`benchmarks/results/jobs-SCALE.json` and `.svg`, and appends to `benchmarks/results/log.jsonl`.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import uvloop

from admitter.client.transport import HttpTransport, Transport
from admitter.install.apply import install
from admitter.names import API_VERSION
from admitter.sandbox.control_plane import ControlPlane
from benchmarks.crowd import Course, Task
from benchmarks.driver import Driver, FaithfulDriver
from benchmarks.observer import Observer
from benchmarks.server import Server, setting, spent
from benchmarks.timeline import Steps, draw, running_total

RESULTS: Final = Path(__file__).parent / "results"
OWN: Final = f"/apis/{API_VERSION}"
COHORTS, QUEUES = 5, 6
MIN, MAX = 20, 120
ONE_BY_ONE: Final = 200
PROFILE_AFTER_SECONDS: Final = 5
PROFILE_SECONDS: Final = 20

Json = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """Jobs that are alike: how many a queue at scale 1, their CPU, how often they come, how long they run."""

    name: str
    count: int
    cpu: int
    every: float
    runs: float
    priority: int


KINDS: Final = (
    Kind("small", 350, 1, 0.1, 0.2, 50),
    Kind("medium", 100, 5, 0.5, 0.5, 100),
    Kind("large", 50, 20, 1.2, 1.0, 200),
)


def schedule(scale: float) -> Iterator[Task]:
    """All Jobs, and when they come."""
    for number in range(COHORTS * QUEUES):
        for kind in KINDS:
            for index in range(round(kind.count * scale)):
                name = f"{kind.name}-{index}"
                at = kind.every * index
                yield Task(at, f"team-{number}", name, kind.name, kind.cpu, kind.runs, kind.name)


def bound(scale: float) -> float:
    """The seconds that it takes at the least: the last arrival and its run, or all work on all quota."""
    counts = {kind.name: round(kind.count * scale) for kind in KINDS}
    arrival = max(kind.every * (counts[kind.name] - 1) + kind.runs for kind in KINDS)
    work = sum(counts[kind.name] * kind.cpu * kind.runs for kind in KINDS) * COHORTS * QUEUES
    return max(arrival, work / (COHORTS * QUEUES * MIN))


async def define(transport: Transport) -> None:
    """Flavor, priorities, cohorts and queues."""

    async def create(path: str, kind: str, name: str, **fields: object) -> None:
        version = path.removeprefix("/apis/").removeprefix("/api/").split("/namespaces")[0].rsplit("/", 1)[0]
        await transport.create(
            path, {"apiVersion": version, "kind": kind, "metadata": {"name": name}, **fields}
        )

    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    for each in KINDS:
        await create(classes, "PriorityClass", each.name, value=each.priority)
    await create(f"{OWN}/resourceflavors", "ResourceFlavor", "default", spec={})
    quota = {"name": "cpu", "flavors": [{"name": "default", "quota": {"min": str(MIN), "max": str(MAX)}}]}
    preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"}
    for number in range(COHORTS):
        await create(f"{OWN}/cohorts", "Cohort", f"cohort-{number}", spec={})
    for number in range(COHORTS * QUEUES):
        name = f"team-{number}"
        await create("/api/v1/namespaces", "Namespace", name)
        cohort = f"cohort-{number // QUEUES}"
        spec = {"cohort": cohort, "namespaceSelector": {}, "resources": [quota], "preemption": preemption}
        await create(f"{OWN}/clusterqueues", "ClusterQueue", name, spec=spec)
        path = f"{OWN}/namespaces/{name}/localqueues"
        await transport.create(path, local_queue(name))


def local_queue(cluster_queue: str) -> Json:
    """A LocalQueue."""
    return {
        "apiVersion": API_VERSION,
        "kind": "LocalQueue",
        "metadata": {"name": "main"},
        "spec": {"clusterQueue": cluster_queue},
    }


class Bench:
    """One run: people, observer and controller on one API server."""

    def __init__(self, server: Server, transport: Transport, driver: type[Driver] = Driver) -> None:
        self._server = server
        limits = {f"cohort-{cohort}": {("default", "cpu"): float(QUEUES * MIN)} for cohort in range(COHORTS)}
        self._observer = Observer(transport, limits)
        for number in range(COHORTS * QUEUES):
            self._observer.follow(f"team-{number}", f"cohort-{number // QUEUES}")
        self.driver = driver(transport)
        self._began = 0.0

    async def run(self, scale: float, pid: int) -> Json:
        """All Jobs of a scale, from the first arrival to the last completion."""
        server, driver, observer = self._server, self.driver, self._observer
        tasks = list(schedule(scale))
        writes, components, controller = await server.writes(), server.components(), spent(pid)
        own = time.process_time()
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(observer.watching())
            await stack.enter_async_context(driver.watching())
            await driver.run(tasks)
            wall, self._began = driver.now(), driver.began
            await server.quiet()
        written = await server.writes() - writes
        now = server.components()
        courses = list(driver.outcomes.values())
        jobs = len(tasks)
        of_controller = sum(n for what, n in written.items() if not what.startswith(driver.own_writes))
        return {
            "scale": scale,
            "jobs": jobs,
            "wall_s": round(wall, 1),
            "bound_s": round(bound(scale), 1),
            "jobs_per_s": round(jobs / wall, 1),
            "waits_s": {kind.name: waits(courses, kind.name) for kind in KINDS},
            "created_late_s": spread([c.created - c.task.at for c in courses if c.created is not None]),
            "preemptions": observer.preemptions,
            "suspended_again": sum(course.evictions for course in courses),
            "mean_use": round(self._mean_use(wall), 3),
            "excesses": observer.excesses,
            "admitted_more_than_once": sum(n > 1 for n in observer.admissions.values()),
            "writes_per_job": round(of_controller / jobs, 2),
            "writes_per_job_by_kind": {what: round(n / jobs, 2) for what, n in sorted(written.items())},
            "cpu_ms_per_job": {
                name: round((used.cpu_s - components[name].cpu_s) * 1000 / jobs, 1)
                for name, used in now.items()
            }
            | {
                "controller": round((spent(pid).cpu_s - controller.cpu_s) * 1000 / jobs, 1),
                "driver_and_observer": round((time.process_time() - own) * 1000 / jobs, 1),
            },
            "peak_mb": {"controller": round(spent(pid).peak_mb)}
            | {name: round(used.peak_mb) for name, used in now.items()},
        }

    async def one_by_one(self, name: str) -> Json:
        """How long one Job that fits waits in an idle system: from its creation to its start.

        Args:
            name: with which the Jobs' names begin.
        """
        latencies = []
        async with self.driver.watching():
            for number in range(ONE_BY_ONE):
                namespace = f"team-{number % (COHORTS * QUEUES)}"
                task = Task(0.0, namespace, f"{name}-{number}", "single", 1, 0.0, "small")
                await self.driver.run([task])
                course = self.driver.outcomes[namespace, task.name]
                assert course.started is not None
                assert course.created is not None
                latencies.append((course.started - course.created) * 1000)
        return spread(latencies)

    def timeline(self) -> list[tuple[float, float]]:
        """Use of quota, as pairs of seconds since the start and CPU."""
        return [(moment - self._began, used) for moment, used in self._observer.use]

    def waiting(self, kind: str) -> Steps:
        """How many of a kind wait over time."""
        changes = []
        for course in self._of(kind):
            changes += [(at, 1) for at in (course.created,) if at is not None]
            changes += [(at, -1) for at in (course.first_started,) if at is not None]
        return running_total(changes)

    def admitted(self, kind: str) -> Steps:
        """How many of a kind have started over time."""
        return running_total((c.first_started, 1) for c in self._of(kind) if c.first_started is not None)

    def _of(self, kind: str) -> list[Course]:
        return [course for course in self.driver.outcomes.values() if course.task.kind == kind]

    def _mean_use(self, wall: float) -> float:
        """The part of all quota that was in use on average, until the last completion."""
        steps = [*self.timeline(), (wall, 0.0)]
        used = sum(amount * (min(after, wall) - at) for (at, amount), (after, _) in pairwise(steps))
        return used / wall / (COHORTS * QUEUES * MIN)


def waits(courses: list[Course], kind: str) -> Json:
    """From the moment at which a Job is created to the (last) end of its suspension, in seconds."""
    times = [(c.created, c.started) for c in courses if c.task.kind == kind]
    found = [started - created for created, started in times if created is not None and started is not None]
    return {"mean": round(fmean(found), 2), **spread(found)} if found else {}


def spread(values: list[float]) -> Json:
    """Median, 99th percentile and maximum."""
    ordered = sorted(values)
    at_99 = ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)]
    return {
        "p50": round(ordered[len(ordered) // 2], 2),
        "p99": round(at_99, 2),
        "max": round(ordered[-1], 2),
    }


async def measure(
    cluster: ControlPlane,
    scale: float,
    folder: Path,
    options: tuple[str, ...] = (),
    *,
    driver: type[Driver] = Driver,
    profiled: bool = False,
) -> tuple[Json, Bench]:
    """One run on a fresh API server that is at rest, with a controller that has some options."""
    server = Server(cluster, folder)
    async with await HttpTransport.connect(cluster.kubeconfig, cluster.context) as transport:
        await install(transport, deployment=False)
        await define(transport)
        await driver.prepare(transport)
        await server.quiet()
    async with await HttpTransport.connect(await server.people()) as transport:
        speed = await server.speed(transport)
        bench = Bench(server, transport, driver)
        with server.controller(options) as pid:
            await server.quiet()
            idle = await Bench(server, transport).one_by_one("before")
            await server.quiet()
            profiles = asyncio.create_task(profile(server, pid)) if profiled else None
            result = {"api_server_speed": speed} | await bench.run(scale, pid)
            if profiles is not None:
                await profiles
            await server.quiet()
            result["one_job_when_idle_ms"] = idle
            result["one_job_after_the_run_ms"] = await Bench(server, transport).one_by_one("after")
    return result, bench


async def profile(server: Server, pid: int) -> None:
    """Write what controller and API server spend their CPU on, in the middle of a run."""
    await asyncio.sleep(PROFILE_AFTER_SECONDS)
    options = ["--duration", str(PROFILE_SECONDS), "--rate", "200", "--format", "flamegraph"]
    spy = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).parent / "py-spy"),
        *("record", "--pid", str(pid), *options, "--output", str(RESULTS / "jobs-controller.svg")),
    )
    await asyncio.to_thread(server.profile, PROFILE_SECONDS, RESULTS / "jobs-api-server.pprof")
    await spy.wait()


def save(result: Json, bench: Bench, kind: str) -> None:
    """Keep the figures, the picture and a line of the log."""
    name = f"jobs-{result['scale']:g}{kind}"
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=2) + "\n")
    with (RESULTS / "log.jsonl").open("a") as log:
        log.write(json.dumps(result) + "\n")
    kinds = [kind.name for kind in KINDS]
    waiting = {kind: bench.waiting(kind) for kind in kinds}
    admitted = {kind: bench.admitted(kind) for kind in kinds}
    title = f"{result['jobs']} Jobs, {result['wall_s']} s (bound {result['bound_s']} s), {result['commit']}"
    quota = COHORTS * QUEUES * MIN
    draw(RESULTS / f"{name}.svg", title, bench.timeline(), quota, waiting, admitted)


def main() -> None:
    """Run, print and save."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=0.2, help="how many of the Jobs of the baseline")
    parser.add_argument(
        "--faithful",
        action="store_true",
        help="also write when a Job begins, a write a Job more: a victim stops and starts anew",
    )
    parser.add_argument("--profile", action="store_true", help="keep profiles too; they cost some CPU")
    parser.add_argument("--dry", action="store_true", help="nothing is saved")
    options = parser.parse_args()
    result: Json = setting(
        f"make bench-jobs SCALE={options.scale:g}" + (" FAITHFUL=1" if options.faithful else "")
    )
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        with ControlPlane.start(folder / "sandbox", nodes=None, owner=os.getpid()) as cluster:
            driver = FaithfulDriver if options.faithful else Driver
            run = measure(cluster, options.scale, folder, driver=driver, profiled=options.profile)
            found, bench = uvloop.run(run)
    result |= found
    print(json.dumps(result, indent=2))
    if not options.dry:
        save(result, bench, "-faithful" if options.faithful else "")


if __name__ == "__main__":
    main()
