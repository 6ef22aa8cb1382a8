"""Changed objects of every kind that is read: `make test-abuse-mutated OBJECTS=10000 SEED=1`.

A controller, the page, explain and what-if read them, on a control plane of their own, while Jobs of another
namespace go on. Writes `benchmarks/results/abuse-mutated.md` and `.json`. Ends with 1 if anything was not as
promised.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from admitter.client.transport import HttpTransport
from admitter.install.apply import install
from admitter.names import NAMESPACE as SYSTEM
from admitter.sandbox.control_plane import ControlPlane
from benchmarks.server import commit, machine
from tests.abuse import experiments, feeding, neighbours
from tests.abuse.in_flight import InFlight
from tests.abuse.samples import QUEUE
from tests.abuse.waiting import until
from tests.cluster.objects import job
from tests.cluster.pages import ACCOUNT, ADDRESS, DEPLOYED, Web
from tests.faults.api import BATCH, CORE, OWN, Api, everything_allowed
from tests.faults.controlled import Controlled, controlled
from tests.faults.keeper import ROOT
from tests.faults.loop import run
from tests.faults.report import dump

Json = dict[str, Any]

RESULTS: Final = ROOT / "benchmarks" / "results"
BOUND_SECONDS: Final = 2.0
RATE: Final = 20.0
"""Objects a second: the proxy that changes them shares two cores with what reads them."""
WHOLE_SECONDS: Final = 120.0
_DEFECTS: Final = ('"exception":', "Traceback")
_GUARDED: Final = "an object breaks its parser"
"""The one place that may meet an exception: where an object is read."""


@dataclass
class Outcome:
    """What became of a run.

    Attributes:
        seed: of all chance.
        objects: how many were to be fed.
        bound: within how many seconds each sound Job has to start.
        rate: how many objects are fed in a second at the most.
        seconds: how long feeding took.
        told: what became of what was fed.
        classes: how many changes of each class were read, in how many versions of objects.
        waits: for how many seconds each sound Job waited.
        unstarted: the sound Jobs that did not start.
        answers: of the page, explain and what-if about sound Jobs.
        ended: the processes that ended.
        errors: lines of logs with an exception.
        guarded: how often the guarded place met one.
        unreadable: how often it was logged that an object can't be read.
        lost: what there was of a Job for all of the quota, if it did not run in the end.
    """

    seed: int
    objects: int
    bound: float = BOUND_SECONDS
    rate: float = RATE
    seconds: float = 0.0
    told: feeding.Told = field(default_factory=feeding.Told)
    classes: Counter[str] = field(default_factory=Counter)
    versions: int = 0
    waits: list[float] = field(default_factory=list)
    unstarted: list[str] = field(default_factory=list)
    answers: neighbours.Answers = field(default_factory=neighbours.Answers)
    ended: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    guarded: int = 0
    unreadable: int = 0
    lost: str = ""

    @property
    def wrong(self) -> list[str]:
        """All that is not as promised, in words."""
        words = [f"{name} ended" for name in self.ended]
        words += [f"exception in a log: {line[:2_000]}" for line in self.errors]
        words += [f"sound Job {name} did not start" for name in self.unstarted]
        late = [each for each in self.waits if each > self.bound]
        words += (
            [f"{len(late)} sound Jobs waited more than {self.bound} s, {max(late):.2f} s"] if late else []
        )
        words += [f"wrong answer: {answer}" for answer in self.answers.wrong]
        words += [f"nothing read {name}" for name in self.told.unseen]
        words += [f"a Job for all of the quota did not run: {self.lost}"] if self.lost else []
        return words


async def play(plane: ControlPlane, folder: Path, outcome: Outcome) -> None:
    """Feed what a seed means on a fresh control plane.

    Args:
        plane: one with nothing installed.
        folder: for logs; is made.
        outcome: says the seed and the objects; gets what came of them.
    """
    await asyncio.to_thread(experiments.define, plane)
    async with await HttpTransport.connect(plane.kubeconfig, plane.context) as transport:
        await install(transport, deployment=False)
        await experiments.install(transport)
    people = await asyncio.to_thread(everything_allowed, plane, folder / "people")
    account = await asyncio.to_thread(_account_of_page, plane, folder)
    flight = InFlight(outcome.seed)
    with controlled(plane, folder / "controller", outcome.seed, flight) as controller:
        through = controller.proxy.kubeconfig(account, folder / "page-proxied")
        asking = controller.proxy.kubeconfig(people, folder / "people-proxied")
        with neighbours.page(through, folder / "page.log") as process:
            async with Api(people) as api:
                await feeding.build(api)
                await neighbours.build(api)
                token = await asyncio.to_thread(_token, plane)
                web = await _served(folder / "page.log", token)
                await _course(api, people, flight, outcome, (web, token, asking, folder))
                outcome.lost = await _lost(api)
            ended = {
                "the controller": not controller.process.is_running(),
                "the page": process.poll() is not None,
            }
            outcome.ended = [name for name, has in ended.items() if has]
            _logs(controller, folder / "page.log", outcome)
    outcome.classes, outcome.versions = flight.classes, flight.objects


async def _course(
    api: Api, people: Path, flight: InFlight, outcome: Outcome, asked: tuple[Web, str, Path, Path]
) -> None:
    """Feed all objects while Jobs start and questions are answered."""
    over, began = asyncio.Event(), time.monotonic()
    async with neighbours.observed(people) as found, asyncio.TaskGroup() as group:
        asking = group.create_task(neighbours.ask(*asked, over))
        outcome.told = await feeding.feed(api, flight, outcome.seed, outcome.objects, outcome.rate)
        outcome.seconds = time.monotonic() - began
        over.set()
        outcome.answers = await asking
    outcome.waits, outcome.unstarted = found["waits"], found["unstarted"]


def _account_of_page(plane: ControlPlane, folder: Path) -> Path:
    documents = [each for each in yaml.safe_load_all(DEPLOYED.read_text()) if each["kind"] in ACCOUNT]
    plane.run_kubectl("apply", "--filename=-", content=yaml.safe_dump_all(documents))
    return plane.service_account_kubeconfig(SYSTEM, "admitter-web", folder / "page")


def _token(plane: ControlPlane) -> str:
    return plane.run_kubectl("create", "token", "people", "--namespace=default", "--duration=24h").strip()


async def _served(log: Path, token: str) -> Web:
    """The page, once it has read the cluster."""

    async def served() -> bool:
        return await asyncio.to_thread(_is_read, log, token)

    assert await until(served, WHOLE_SECONDS), "the page has not read the cluster"
    return await asyncio.to_thread(_web, log)


def _web(log: Path) -> Web:
    found = ADDRESS.search(log.read_text())
    return Web(found.group() if found is not None else "")


def _is_read(log: Path, token: str) -> bool:
    web = _web(log)
    if not web.address:
        return False
    status, found = web.ask("/api/workload", token, namespace=neighbours.NAMESPACE, name="waits")
    return status == 200 and "sound-narrow" in str(found)


async def _lost(api: Api) -> str:
    """What there is of a Job for all that the changed ones could use, unless it runs once they are gone."""
    collection = f"{BATCH}/namespaces/{feeding.NAMESPACE}/jobs"
    made = job(feeding.NAMESPACE, "whole", requests={"cpu": feeding.CPUS}, queue="whole")
    await api.create(collection, made)

    async def ran() -> bool:
        return bool((await api.get(f"{collection}/whole")).get("status", {}).get("succeeded"))

    return "" if await until(ran, WHOLE_SECONDS) else json.dumps(await _left(api))


async def _left(api: Api) -> Json:
    """What may use the quota of changed Jobs: the statuses in their namespace, and of their queue."""
    inside = f"namespaces/{feeding.NAMESPACE}"
    paths = (f"{BATCH}/{inside}/jobs", f"{OWN}/{inside}/workloads", f"{CORE}/{inside}/pods")
    left = {
        f"{path.rpartition('/')[2]} {each['metadata']['name']}": each.get("status")
        for path in paths
        for each in (await api.get(path))["items"]
    }
    queue = await api.get(f"{OWN}/clusterqueues/{QUEUE}")
    return left | {f"clusterqueues {QUEUE}": queue.get("status")}


def _logs(controller: Controlled, page: Path, outcome: Outcome) -> None:
    lines = [*controller.log.splitlines(), *page.read_text().splitlines()]
    outcome.errors = list(defects(lines))
    outcome.guarded = sum(_GUARDED in line for line in lines)
    outcome.unreadable = sum("an object can't be read" in line for line in lines)


def defects(lines: Iterable[str]) -> Iterable[str]:
    """The lines of a log that tell of an exception, but for those of the place that reads objects."""
    return (line for line in lines if any(word in line for word in _DEFECTS) and _GUARDED not in line)


def summary(outcome: Outcome) -> Json:
    """All that there is to tell."""
    waits, told = outcome.waits, outcome.told
    return {
        "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": commit(),
        "machine": machine(),
        "seed": outcome.seed,
        "objects": sum(told.kinds.values()),
        "seconds": round(outcome.seconds, 1),
        "kinds": dict(sorted(told.kinds.items())),
        "taken_as_changed": told.taken,
        "refused_by_status": {str(status): number for status, number in sorted(told.refused.items())},
        "versions_changed_in_flight": outcome.versions,
        "changes_in_flight": dict(sorted(outcome.classes.items())),
        "log_lines_of_unreadable_objects": outcome.unreadable,
        "log_lines_of_the_guarded_place": outcome.guarded,
        "sound_jobs": len(waits),
        "waited_median_s": round(waits[len(waits) // 2], 2) if waits else None,
        "waited_99th_s": round(waits[len(waits) * 99 // 100], 2) if waits else None,
        "waited_most_s": round(waits[-1], 2) if waits else None,
        "bound_s": outcome.bound,
        "answers": outcome.answers.asked,
        "wrong": outcome.wrong,
    }


def markdown(found: Json) -> str:
    """The same for people."""
    command = f"make test-abuse-mutated OBJECTS={found['objects']} SEED={found['seed']}"
    made = f"Made by `{command}` at {found['at']}, commit {found['commit']}, on {found['machine']}."
    rows = [(name.replace("_", " "), found[name]) for name in found if isinstance(found[name], int | float)]
    tables = ("kinds", "refused_by_status", "changes_in_flight", "answers")
    lines = ["# Changed objects", "", made, "", f"**Not as promised: {len(found['wrong'])}.**", "", "| | |"]
    lines += ["|---|---:|", *(f"| {name} | {value} |" for name, value in rows)]
    for name in tables:
        lines += ["", f"| {name.replace('_', ' ')} | |", "|---|---:|"]
        lines += [f"| {each} | {number} |" for each, number in found[name].items()]
    return "\n".join([*lines, "", *(f"- {words}" for words in found["wrong"])]).rstrip() + "\n"


def main() -> int:
    """Play one seed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--objects", type=int, default=10_000, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="of all chance")
    parser.add_argument(
        "--bound", type=float, default=BOUND_SECONDS, help="seconds in which sound Jobs start"
    )
    parser.add_argument("--rate", type=float, default=RATE, help="how many a second at the most")
    parser.add_argument("--folder", type=Path, help="where to keep logs; by default nowhere")
    parser.add_argument("--dry", action="store_true", help="no report is written")
    options = parser.parse_args()
    outcome = Outcome(options.seed, options.objects, options.bound, options.rate)
    with tempfile.TemporaryDirectory() as text:
        folder = options.folder or Path(text) / "run"
        folder.mkdir(parents=True)
        with ControlPlane.start(folder / "plane", owner=os.getpid()) as plane:
            run(play(plane, folder, outcome))
    found = summary(outcome)
    print(markdown(found))
    if not options.dry:
        (RESULTS / "abuse-mutated.json").write_text(dump(found))
        (RESULTS / "abuse-mutated.md").write_text(markdown(found))
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
