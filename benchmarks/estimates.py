"""How true estimates of starts are: `make bench-estimates`.

The Jobs of `benchmarks.jobs` at a tenth, sixty times as slow, so that quota is short and not the API server;
each runs up to 30 % shorter or longer than its kind. At some moments the cluster is read as `admitter
snapshot` reads it, and the next start of each Job that waits is estimated; afterwards that is compared with
what came. It is unknown what comes later and goes first. So what is estimated while more come and when all
have come is told apart, and both are compared with what an estimate would be if it were known when more
come: what is still wrong then is the fault of the estimate. Prints the figures and writes
`benchmarks/results/estimates.json`.
"""

import argparse
import asyncio
import json
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import quantiles
from typing import Any, Final

import uvloop

from admitter.client.transport import HttpTransport, Transport
from admitter.convert.settings import DEFAULTS
from admitter.insight.forecast.arrivals import arrival
from admitter.insight.forecast.durations import Durations
from admitter.insight.forecast.estimates import Estimator
from admitter.insight.snapshot_file import SnapshotFile, facts
from admitter.insight.taking import take
from admitter.install.apply import install
from admitter.policy.snapshot import Snapshot
from admitter.sandbox.control_plane import ControlPlane
from admitter.simulate.manifests import Change
from benchmarks.crowd import Task
from benchmarks.driver import Driver, FaithfulDriver
from benchmarks.jobs import bound, define, schedule
from benchmarks.server import Server, commit, machine

RESULTS: Final = Path(__file__).parent / "results" / "estimates.json"
SCALE: Final = 0.1
SLOWER: Final = 60.0
SPREAD: Final = 0.3
MOMENTS: Final = (0.15, 0.3, 0.45, 0.6, 0.75, 0.9)
"""When is asked, as parts of the time that all takes at the least."""

ENOUGH: Final = 10
"""Of fewer estimates nothing is said."""

Json = dict[str, Any]


def tasks() -> Iterator[Task]:
    """All Jobs."""
    random = Random(1)  # noqa: S311  # the same in every run
    for task in schedule(SCALE):
        runs = task.runs * SLOWER * random.uniform(1 - SPREAD, 1 + SPREAD)
        yield replace(task, at=task.at * SLOWER, runs=runs)


async def looked(transport: Transport, driver: Driver) -> list[tuple[float, SnapshotFile]]:
    """The cluster at each moment, and when that was by the driver's clock."""
    found = []
    for part in MOMENTS:
        await asyncio.sleep(max(0.0, part * bound(SCALE) * SLOWER - driver.now()))
        found.append((driver.now(), await take(transport, DEFAULTS, time.time)))
    return found


@dataclass(frozen=True, slots=True)
class Sample:
    """An estimate and what came, in seconds.

    Attributes:
        coming: whether more came later.
        error: by how much the estimate was wrong.
        left: how long it still had to wait.
        waited: how long it waited in all.
        within: whether its start was in the range, which is told in whole seconds.
    """

    coming: bool
    error: float
    left: float
    waited: float
    within: bool


def compared(driver: Driver, moment: float, snapshot: SnapshotFile, *, told: bool) -> Iterator[Sample]:
    """Of each that waits at a moment: its estimate and its next start.

    Args:
        driver: knows when Jobs came and started.
        moment: when that was by its clock.
        snapshot: the cluster then.
        told: whether the estimate is told when more come.
    """
    known = facts(snapshot)
    picture = Snapshot(known)
    waiting = [each for each in picture.world.workloads if each.admission is None and not each.finished]
    to_come = list(later(driver, moment, picture))
    estimates = Estimator(known, picture, expected=to_come if told else None).of(waiting)
    for view in waiting:
        assert view.job is not None
        course = driver.outcomes[view.namespace, view.job[0]]
        estimate = estimates[view.uid]
        start = next((start for start in course.starts if start > moment), None)
        # One that was started while the lists were read has not waited.
        if start is not None and course.created is not None and estimate.median is not None:
            left = start - moment
            within = (estimate.earliest or 0.0) - 1 <= left <= (estimate.latest or float("inf")) + 1
            error = abs(estimate.median - left)
            yield Sample(bool(to_come), error, left, start - course.created, within)


def later(driver: Driver, moment: float, picture: Snapshot) -> Iterator[Change]:
    """The Jobs that came after a moment, in order; for how long they run is drawn, as for all others."""
    durations, random = Durations(picture), Random(1)  # noqa: S311  # the same in every run
    like = {}
    for view in picture.world.workloads:
        assert view.job is not None
        like[view.namespace, driver.outcomes[view.namespace, view.job[0]].task.kind] = view
    for course in sorted(driver.outcomes.values(), key=lambda course: course.created or 0.0):
        if course.created is None or course.created <= moment:
            continue
        view = like[course.task.namespace, course.task.kind]
        runtimes = durations.of(view)
        if runtimes is not None:
            manifest = arrival(view, f"to come: {course.task.name}", runtimes.draw(random, 0.0))
            yield Change(picture.now + course.created - moment, 0, manifest)


def summary(samples: list[Sample]) -> Json:
    """Median and 90th percentile of errors, as parts of the wait, and how many starts were in their range."""
    if len(samples) < ENOUGH:
        return {}
    of_all = quantiles((sample.error / max(1.0, sample.waited) for sample in samples), n=10)
    of_rest = quantiles((sample.error / max(1.0, sample.left) for sample in samples), n=10)
    return {
        "estimates": len(samples),
        "error_of_the_wait": {"median": round(of_all[4], 3), "p90": round(of_all[8], 3)},
        "error_of_what_is_left_of_it": {"median": round(of_rest[4], 3), "p90": round(of_rest[8], 3)},
        "in_range": round(sum(sample.within for sample in samples) / len(samples), 3),
    }


async def measure(cluster: ControlPlane, folder: Path) -> Json:
    """All figures."""
    server, made = Server(cluster, folder), list(tasks())
    last = max(task.at for task in made)
    async with await HttpTransport.connect(cluster.kubeconfig, cluster.context) as transport:
        await install(transport, deployment=False)
        await define(transport)
        await server.quiet()
        driver = FaithfulDriver(transport)
        with server.controller():
            await server.quiet()
            async with driver.watching(), asyncio.TaskGroup() as group:
                looks = group.create_task(looked(transport, driver))
                await driver.run(made)
    result: Json = {"jobs": len(made), "last_comes_s": round(last, 1), "wall_s": round(driver.now(), 1)}
    for told, name in ((False, "estimates"), (True, "if_told_when_more_come")):
        found = [(at, list(compared(driver, at, snapshot, told=told))) for at, snapshot in looks.result()]
        samples = [sample for _, at_moment in found for sample in at_moment]
        result[name] = {
            "all": summary(samples),
            "while_more_come": summary([sample for sample in samples if sample.coming]),
            "when_all_have_come": summary([sample for sample in samples if not sample.coming]),
            "at": [{"s": round(at, 1)} | summary(at_moment) for at, at_moment in found],
        }
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
