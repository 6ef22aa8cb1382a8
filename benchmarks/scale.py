"""Very many Workloads, queues and waiting Jobs, on a real API server: `make bench-scale`.

Two parts, each on a control plane of its own, the controller as a process of its own, with an observer:

- 50,000 Workloads with no Job over 1,000 queues in 10 cohorts, at the rates of the engine's benchmark: people
  create them, see them admitted, and delete them when their time is over.
- 100,000 Jobs wait while the controller is started, killed and started again (`benchmarks.restart`).

Prints the figures and writes `benchmarks/results/scale.json`. `--quick` takes a hundredth of the Workloads
and a twentieth of the Jobs, and saves nothing.
"""

import argparse
import asyncio
import json
import os
import platform
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from admitter.client.transport import HttpTransport
from admitter.install.apply import install
from admitter.sandbox.control_plane import ControlPlane
from benchmarks import restart
from benchmarks.crowd import Course, Task
from benchmarks.engine import KINDS
from benchmarks.fleet import Fleet
from benchmarks.jobs import spread, waits
from benchmarks.observer import Observer
from benchmarks.server import Server, commit, machine, spent
from benchmarks.workloads import People

RESULTS: Final = Path(__file__).parent / "results" / "scale.json"
QUOTA: Final = 20
LONGEST_PART_SECONDS: Final = 7200.0
PEOPLES_WRITES: Final = ("POST workloads", "DELETE workloads")

Json = dict[str, Any]
Part = Callable[[ControlPlane, Server], Awaitable[Json]]


def schedule(fleet: Fleet) -> Iterator[Task]:
    """All Workloads, and when they come."""
    for name in fleet.names():
        for kind in KINDS:
            for index in range(kind.count):
                at, runs = kind.every_ms * index / 1000, kind.lasts_ms / 1000
                yield Task(at, name, f"{kind.name}-{index}", kind.name, kind.units, runs, kind.name)


def bound() -> float:
    """The seconds that it takes at the least: the last arrival and its run, or all work on all quota."""
    arrival = max(kind.every_ms * (kind.count - 1) + kind.lasts_ms for kind in KINDS)
    work = sum(kind.count * kind.units * kind.lasts_ms for kind in KINDS)
    return max(arrival, work / QUOTA) / 1000


async def workloads(fleet: Fleet, cluster: ControlPlane, server: Server) -> Json:
    """All Workloads, from the first arrival to the last end."""
    async with await HttpTransport.connect(cluster.kubeconfig, cluster.context) as transport:
        await fleet.define(transport, QUOTA)
        await server.quiet()
    async with await HttpTransport.connect(await server.people()) as transport:
        observer = Observer(transport, fleet.limits(QUOTA))
        for number, name in enumerate(fleet.names()):
            observer.follow(name, fleet.cohort_of(number))
        people = People(transport, priorities={kind.name: kind.priority for kind in KINDS})
        with server.controller() as pid:
            await server.quiet()
            async with AsyncExitStack() as watches:
                await watches.enter_async_context(observer.watching())
                await watches.enter_async_context(people.watching())
                return await run(server, people, observer, fleet, pid)


async def run(server: Server, people: People, observer: Observer, fleet: Fleet, pid: int) -> Json:
    """Run all, and tell what it took."""
    writes, components, controller = await server.writes(), server.components(), spent(pid)
    own, tasks = time.process_time(), list(schedule(fleet))
    await people.run(tasks)
    wall = people.now()
    await server.quiet()
    written, now, count = await server.writes() - writes, server.components(), len(tasks)
    courses, admitted = list(people.outcomes.values()), observer.admissions
    cpu_s = {name: used.cpu_s - components[name].cpu_s for name, used in now.items()}
    cpu_s["controller"] = spent(pid).cpu_s - controller.cpu_s
    cpu_s["people_and_observer"] = time.process_time() - own
    of_controller = sum(n for what, n in written.items() if not what.startswith(PEOPLES_WRITES))
    return {
        "workloads": count,
        "queues": fleet.count,
        "cohorts": fleet.cohorts,
        "wall_s": round(wall, 1),
        "bound_s": round(bound(), 1),
        "workloads_per_s": round(count / wall, 1),
        "admissions": admitted.total(),
        "admissions_per_s": round(admitted.total() / wall, 1),
        "waits_s": {kind.name: waits(courses, kind.name) for kind in KINDS},
        "created_late_s": late(courses),
        "evictions": sum(course.evictions for course in courses),
        "mean_use": round(mean_use(observer, people.began, wall) / (fleet.count * QUOTA), 3),
        "excesses": observer.excesses,
        "not_seen_by_the_observer": count - len(admitted),
        "writes_per_workload": round(of_controller / count, 2),
        "writes_per_workload_by_kind": {what: round(n / count, 2) for what, n in sorted(written.items())},
        "cpu_ms_per_workload": {name: round(used * 1000 / count, 1) for name, used in cpu_s.items()},
        "peak_mb": {"controller": round(spent(pid).peak_mb)}
        | {name: round(used.peak_mb) for name, used in now.items()},
    }


def late(courses: list[Course]) -> Json:
    """For how long it took people to create what was due, in seconds: the API server sets the pace."""
    return spread([c.created - c.task.at for c in courses if c.created is not None])


def mean_use(observer: Observer, began: float, wall: float) -> float:
    """How much was in use on average, until the last end."""
    steps = [(moment - began, used) for moment, used in observer.use]
    following = pairwise([*steps, (wall, 0.0)])
    return sum(used * (min(after, wall) - at) for (at, used), (after, _) in following) / wall


def on_its_own(part: Part) -> Json:
    """A part, on a fresh control plane with Admitter's kinds and policies."""

    async def measure(cluster: ControlPlane, folder: Path) -> Json:
        server = Server(cluster, folder)
        async with await HttpTransport.connect(cluster.kubeconfig, cluster.context) as transport:
            await install(transport, deployment=False)
        await server.quiet()
        return await part(cluster, server)

    load = round(os.getloadavg()[0], 1)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        with ControlPlane.start(folder / "sandbox", nodes=None, owner=os.getpid()) as cluster:
            found = asyncio.wait_for(measure(cluster, folder), LONGEST_PART_SECONDS)
            return {"load_before": load, **asyncio.run(found)}


def rows(result: Json, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The figures as names and values, those of a group under its name."""
    for name, value in result.items():
        if isinstance(value, dict):
            yield from rows(value, f"{prefix}{name}: ")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for number, each in enumerate(value, 1):
                yield from rows(each, f"{prefix}{name} {number}: ")
        else:
            yield f"{prefix}{name}", str(value)


def show(result: Json) -> None:
    """Print the figures as a table."""
    found = list(rows(result))
    width = max(len(name) for name, _ in found)
    for name, value in found:
        print(f"{name:{width}}  {value}")


def main() -> None:
    """Run, print and save."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a part of it, and nothing is saved")
    parser.add_argument(
        "--part", choices=("workloads", "restart"), help="only one; the other one's results stay"
    )
    options = parser.parse_args()
    fleet, jobs, seconds = (Fleet(2, 5), 5_000, 10.0) if options.quick else (Fleet(10, 100), 100_000, 60.0)
    parts: dict[str, Part] = {
        "workloads": lambda cluster, server: workloads(fleet, cluster, server),
        "restart": lambda cluster, server: restart.measure(cluster, fleet, server, jobs, seconds),
    }
    for name, part in parts.items():
        if options.part in {None, name}:
            about = {
                "command": f"python -m benchmarks.scale --part {name}"
                if options.part
                else "make bench-scale",
                "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "commit": commit(),
                "machine": machine(),
                "python": platform.python_version(),
            }
            result = about | on_its_own(part)
            print(f"\n{name}")
            show(result)
            if not options.quick:
                save(name, result)


def save(name: str, result: Json) -> None:
    """Keep the results of a part beside those of the other one."""
    saved: Json = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    RESULTS.write_text(json.dumps(saved | {name: result}, indent=2) + "\n")


if __name__ == "__main__":
    main()
