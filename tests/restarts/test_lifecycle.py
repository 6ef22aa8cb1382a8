"""Random histories in a simulation and with a controller: every workload is in the same phase in both."""

import asyncio
from collections import Counter
from datetime import datetime
from itertools import count
from math import inf
from random import Random
from typing import Any

import pytest

from admitter.cache.run_time_status import RunTimeStatus, run_time_of
from admitter.convert.settings import DEFAULTS
from admitter.policy.lifecycle import Phase, phase_of
from admitter.policy.snapshot import Facts, Snapshot
from admitter.quantities.durations import parse_duration
from admitter.simulate.manifests import Change, Timeline
from admitter.simulate.simulator import Simulator
from tests.apiserver.loop import run
from tests.apiserver.server import BEGIN, clock
from tests.restarts.server import TEAM, Server
from tests.restarts.team import CLASSES, Controller, asks, thing
from tests.restarts.test_histories import QUEUES, many, policies, seeds

Json = dict[str, Any]

SECONDS = 200
START = BEGIN.timestamp()
LONGEST = 120
LIFECYCLES: list[Json] = [
    {},
    {"maxRuntime": "35s"},
    {"maxRuntime": 50, "onMaxRuntime": "Finish"},
    {"maxRuntime": "40s", "onMaxRuntime": "Requeue"},
]


class Walk:
    """What users do in a history: Workloads that they create with a runtime, and delete, by second."""

    def __init__(self, random: Random, *, limited: bool = False) -> None:
        """With `limited` queues may have a maximum run time."""
        self.queues = policies(random)
        for each in self.queues if limited else ():
            each["spec"]["lifecycle"] = random.choice(LIFECYCLES)
        self.specs: dict[str, Json] = {}
        self.lasts: dict[str, int] = {}
        self.created: dict[int, str] = {}
        self.deleted: dict[int, str] = {}
        for second in range(0, SECONDS - 60, 10):
            if random.random() < 0.6:
                name = f"w{second:03}"
                priority = random.choice(["", *CLASSES])
                self.specs[name] = asks(random.choice(QUEUES), random.randint(1, 4), priority)
                self.lasts[name] = random.randint(20, LONGEST)
                self.created[second] = name
                if random.random() < 0.3:
                    self.deleted[second + random.randint(5, 100)] = name

    def simulator(self) -> Simulator:
        """A simulation of it."""
        found = [
            *(_manifest("PriorityClass", name) | {"value": value} for name, value in CLASSES.items()),
            _manifest("ResourceFlavor", "any"),
            *({"kind": "ClusterQueue"} | each for each in self.queues),
            *(_manifest("LocalQueue", name, {"clusterQueue": name}, TEAM) for name in QUEUES),
        ]
        changes = [Change(START, number, each) for number, each in enumerate(found)]
        for times, gone in ((self.created, False), (self.deleted, True)):
            changes += [Change(START + at, at, self._workload(name), gone) for at, name in times.items()]
        return Simulator(Timeline(START, sorted(changes), []), Snapshot(Facts(START, DEFAULTS)))

    def _workload(self, name: str) -> Json:
        lasts = {"annotations": {"admitter.dev/simulated-runtime": f"{self.lasts[name]}s"}}
        metadata = {"name": name, "namespace": TEAM} | lasts
        return {"kind": "Workload", "metadata": metadata, "spec": self.specs[name]}

    def is_clear(self) -> bool:
        """Whether not two things happen in one second: a controller may learn of either first."""
        times = Counter([*self.created, *self.deleted])
        pending, started = set(), set()
        for event in self.simulator().run(until=START + SECONDS):
            pending |= {event.key} if event.kind == "EvictionPending" else set()
            started |= (
                {(event.time, event.preemptor)}
                if event.kind == "Preempted" and event.key in pending
                else set()
            )
            ends = event.kind == "Evicted" or (event.kind, event.reason) == ("Finished", "JobSucceeded")
            times[int(event.time - START)] += ends
        times.update(int(time - START) for time, _ in started)
        return max(times.values()) == 1


def whole_seconds() -> datetime:
    """The time of a controller that writes exactly what it knows: statuses have whole seconds."""
    return clock().replace(microsecond=0)


def _manifest(kind: str, name: str, spec: Json | None = None, namespace: str = "") -> Json:
    made = thing(name, spec or {}, namespace)
    del made["metadata"]["uid"]
    return {"kind": kind} | made


async def settle(controller: Controller) -> None:
    """Everything is written; what must stop does so, and has no pods."""
    for _ in range(3):
        await asyncio.sleep(0.1)
        await controller.stop_what_must()
        names = [name for name in controller.server.workloads if controller.view(name).evicting]
        await asyncio.gather(*map(controller.gone, names))


async def second(controller: Controller, walk: Walk, at: int) -> None:
    """One second of a history."""
    server = controller.server
    for name in list(server.workloads):
        view = controller.view(name)
        if phase_of(view).runs and view.since + walk.lasts[name] <= START + at:
            controller.finish(name)
    if at in walk.created:
        server.submit(walk.created[at], walk.specs[walk.created[at]])
    if at in walk.deleted:
        server.drop(walk.deleted[at])
    await settle(controller)
    await asyncio.sleep(max(0.0, at + 1 - asyncio.get_running_loop().time()))


def phases(controller: Controller) -> dict[str, Phase]:
    """The phases of all Workloads, by their statuses."""
    return {name: phase_of(controller.view(name)) for name in controller.server.workloads}


@many
@seeds
def test_the_simulator_and_the_controllers_agree_on_every_phase(seed: int) -> None:
    random = Random(seed)
    walk = next(walk for walk in (Walk(random) for _ in count()) if walk.is_clear())

    async def history() -> None:
        simulator, controller = walk.simulator(), Controller(Server(), walk.queues, whole_seconds)
        for at in range(SECONDS):
            await second(controller, walk, at)
            for _ in simulator.run(until=START + at):
                pass
            simulated = {item.view.name: item.phase for item in simulator.items.values()}
            assert simulated == phases(controller), f"after {at} seconds"
        controller.keeps_to_the_table()
        await controller.kill()

    run(history())


def run_times(controller: Controller) -> dict[str, RunTimeStatus]:
    """What each Workload has used up, and until when it may go on, by their statuses."""
    return {name: run_time_of(controller.view(name).status) for name in controller.server.workloads}


def longest(walk: Walk, queue: str) -> float:
    """For how long a Workload of a queue may hold quota in all, in seconds; without end if it is requeued."""
    (spec,) = (each["spec"] for each in walk.queues if each["metadata"]["name"] == queue)
    rules = spec["lifecycle"]
    ends = "maxRuntime" in rules and rules.get("onMaxRuntime") != "Requeue"
    return parse_duration(str(rules["maxRuntime"])) if ends else inf


@pytest.mark.long
@many
@seeds
def test_both_agree_on_maximum_run_times_and_none_holds_quota_for_longer(seed: int) -> None:
    random = Random(seed)
    walk = next(walk for walk in (Walk(random, limited=True) for _ in count()) if walk.is_clear())

    async def history() -> None:
        simulator, controller = walk.simulator(), Controller(Server(), walk.queues, whole_seconds)
        for at in range(SECONDS):
            await second(controller, walk, at)
            for _ in simulator.run(until=START + at):
                pass
            items = {item.view.name: item for item in simulator.items.values()}
            assert {name: item.phase for name, item in items.items()} == phases(controller), f"after {at} s"
            simulated = {name: run_time_of(item.view.status) for name, item in items.items()}
            assert simulated == run_times(controller), f"after {at} seconds"
            for name, item in items.items():
                ends = ((run.start, START + at if run.end is None else run.end) for run in item.runs)
                held = sum(end - start for start, end in ends)
                assert held <= longest(walk, walk.specs[name]["queueName"]), name
        controller.keeps_to_the_table()
        await controller.kill()

    run(history())
