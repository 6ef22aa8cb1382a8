"""How true estimates of starts are: `make bench-estimates`.

The Jobs of `benchmarks.jobs` at a tenth, twenty times as slow, so that quota is short and not the API server;
each runs up to 30 % shorter or longer than its kind. At some moments the cluster is read as `admitter
snapshot` reads it, and the start of each Job that waits is estimated; afterwards that is compared with its
start. Before all have come, Jobs that come later and go first make estimates too early: those moments are
told apart. Prints the figures and writes `benchmarks/results/estimates.json`.
"""

import argparse
import asyncio
import json
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from statistics import quantiles
from typing import Any, Final

import uvloop

from admitter.cluster.transport import Transport
from admitter.convert.settings import DEFAULTS
from admitter.insight.estimates import Estimate, Estimator
from admitter.insight.snapshot import Snapshot, facts, take
from admitter.install.apply import install
from admitter.sandbox.control_plane import ControlPlane
from admitter.simulate.picture import Picture
from benchmarks.crowd import Task
from benchmarks.driver import Driver
from benchmarks.jobs import bound, define, schedule
from benchmarks.server import Server, commit, machine

RESULTS: Final = Path(__file__).parent / "results" / "estimates.json"
SCALE: Final = 0.1
SLOWER: Final = 20.0
SPREAD: Final = 0.3
MOMENTS: Final = (0.15, 0.3, 0.45, 0.6, 0.75, 0.9)
"""When is asked, as parts of the time that all takes at the least."""

Json = dict[str, Any]
Key = tuple[str, str]


def tasks() -> Iterator[Task]:
    """All Jobs."""
    random = Random(1)  # noqa: S311  # the same in every run
    for task in schedule(SCALE):
        runs = task.runs * SLOWER * random.uniform(1 - SPREAD, 1 + SPREAD)
        yield replace(task, at=task.at * SLOWER, runs=runs)


async def looked(transport: Transport, driver: Driver) -> list[tuple[float, Snapshot]]:
    """The cluster at each moment, and when that was by the driver's clock."""
    found = []
    for part in MOMENTS:
        await asyncio.sleep(max(0.0, part * bound(SCALE) * SLOWER - driver.now()))
        found.append((driver.now(), await take(transport, DEFAULTS, time.time)))
    return found


def compared(driver: Driver, moment: float, snapshot: Snapshot) -> list[tuple[float, bool]]:
    """Of each that waits: by how much of its wait the estimate is wrong, and whether it was in the range."""
    known = facts(snapshot)
    picture = Picture(known)
    waiting = [each for each in picture.world.workloads if each.admission is None and not each.finished]
    found = []
    estimates = Estimator(known, picture).of(waiting)
    for view in waiting:
        assert view.job is not None
        course = driver.courses[view.namespace, view.job[0]]
        estimate = estimates[view.uid]
        # One that was started while the lists were read has not waited.
        if course.started is not None and course.started > moment and estimate.median is not None:
            found.append(_error(estimate, course.started - moment))
    return found


def _error(estimate: Estimate, waited: float) -> tuple[float, bool]:
    assert estimate.median is not None
    within = (
        (estimate.earliest or 0.0) - 1 <= waited <= (estimate.latest or float("inf")) + 1
    )  # whole seconds
    return abs(estimate.median - waited) / max(1.0, waited), within


def summary(found: list[tuple[float, bool]]) -> Json:
    """Median and 90th percentile of errors, and how many starts were in their range."""
    errors = sorted(error for error, _ in found)
    cuts = quantiles(errors, n=10)
    return {
        "estimates": len(found),
        "error_median": round(cuts[4], 3),
        "error_p90": round(cuts[8], 3),
        "in_range": round(sum(within for _, within in found) / len(found), 3),
    }


async def measure(cluster: ControlPlane, folder: Path) -> Json:
    """All figures."""
    server, made = Server(cluster, folder), list(tasks())
    last = max(task.at for task in made)
    async with await Transport.connect(cluster.kubeconfig, cluster.context) as transport:
        await install(transport, deployment=False)
        await define(transport)
        await server.quiet()
        driver = Driver(transport)
        with server.controller():
            await server.quiet()
            async with driver.watching(), asyncio.TaskGroup() as group:
                looks = group.create_task(looked(transport, driver))
                await driver.run(made)
    result: Json = {
        "jobs": len(made),
        "last_comes_s": round(last, 1),
        "wall_s": round(driver.now(), 1),
        "at": [],
    }
    errors: dict[bool, list[tuple[float, bool]]] = {False: [], True: []}
    for moment, snapshot in looks.result():
        found = compared(driver, moment, snapshot)
        errors[moment > last] += found
        result["at"].append({"s": round(moment, 1)} | (summary(found) if len(found) > 1 else {}))
    for after, name in ((False, "while_others_come"), (True, "when_all_have_come")):
        result[name] = summary(errors[after]) if len(errors[after]) > 1 else {}
    return result


def main() -> None:
    """Run, print and save."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--dry", action="store_true", help="nothing is saved")
    options = parser.parse_args()
    result: Json = {
        "command": "make bench-estimates",
        "commit": commit(),
        "machine": machine(),
        "python": platform.python_version(),
    }
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        with ControlPlane.start(folder / "sandbox", nodes=None, owner=os.getpid()) as cluster:
            result |= uvloop.run(measure(cluster, folder))
    print(json.dumps(result, indent=2))
    if not options.dry:
        RESULTS.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
