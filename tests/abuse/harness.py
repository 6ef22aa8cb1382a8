"""A run of operations of tenants, from an empty control plane to what came of it: `make test-abuse`."""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from admitter.client.transport import HttpTransport
from admitter.install.apply import install
from admitter.sandbox.control_plane import ControlPlane
from tests.abuse import experiments
from tests.abuse.closing import clear, lost_quota, sound_jobs, sound_jobs_end
from tests.abuse.crowd import LOST, Crowd
from tests.abuse.plan import Course, digest, plan
from tests.abuse.scene import build, tenants, token
from tests.abuse.watcher import Watcher
from tests.faults.api import BATCH, Api, everything_allowed
from tests.faults.follow import Auditor
from tests.faults.replicas import Replica, awaited_leader, kill_leader, replicas

REPLICAS: Final = 2
TRAIL: Final = 40
"""So many operations are told of each finding."""
TRAILS: Final = 5
USED_TO_THE_FULL: Final = 90
"""In hundredths: a limit that use came less near to has not been tried."""


@dataclass
class Outcome:
    """What became of a run.

    Attributes:
        seed: of all chance.
        operations: how many were asked for.
        plan: digest of what was planned.
        seconds: how long they took.
        answers: how many operations got each status.
        refusals: the beginnings of answers that refused, and how often.
        counts: what the watcher counted.
        highest: of each limit, the most that was used of it, in hundredths.
        findings: where more was used than there is, in words.
        trails: the last operations on the Jobs of each finding.
        kills: how many leaders were killed, as planned.
        take_overs: how long no replica led after it, in seconds.
        restarts: how often a controller ended by itself.
        errors: lines of controllers' logs with an exception.
        sound: how many sound Jobs were made.
        waited: for how many seconds one of them waited at the most.
        unfinished: the sound Jobs that did not end.
        left: what could not be deleted in the end.
        lost: Jobs that did not run in the end, though nothing else used quota.
    """

    seed: int
    operations: int
    plan: str = ""
    seconds: float = 0.0
    answers: Counter[int] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    highest: dict[str, int] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    trails: list[str] = field(default_factory=list)
    kills: int = 0
    take_overs: list[float] = field(default_factory=list)
    restarts: int = 0
    errors: list[str] = field(default_factory=list)
    sound: int = 0
    waited: float = 0.0
    unfinished: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> list[str]:
        """All that is not as promised, in words."""
        words = [f"excess {finding}" for finding in self.findings]
        words += [f"a controller ended by itself {self.restarts} times"] if self.restarts else []
        words += [f"exception in the log: {line}" for line in self.errors]
        words += [f"sound Job {name} did not end" for name in self.unfinished]
        words += [f"{name} could not be deleted" for name in self.left]
        words += [
            f"Job {name} did not run, though its quota is free: some of it is lost" for name in self.lost
        ]
        answered = sum(number for status, number in self.answers.items() if status != LOST)
        if answered != self.operations:
            words.append(f"{answered} of {self.operations} operations were answered")
        return words

    @property
    def untried(self) -> list[str]:
        """Limits that use did not come near to, so that the run shows nothing of them."""
        return [f"{name}: {most} %" for name, most in self.highest.items() if most < USED_TO_THE_FULL]


async def play(plane: ControlPlane, folder: Path, outcome: Outcome, rate: float, kills: int) -> None:
    """Have tenants do what a seed means on a fresh control plane.

    Args:
        plane: one with nothing installed.
        folder: for logs; is made.
        outcome: says the seed and the operations; gets what came of them.
        rate: how many operations a second there are at the most.
        kills: how often the leading controller is killed.
    """
    await asyncio.to_thread(experiments.define, plane)
    async with await HttpTransport.connect(plane.kubeconfig, plane.context) as transport:
        await install(transport, deployment=False)
        await experiments.install(transport)
    with experiments.operated(plane, folder):
        await _operated(plane, folder, outcome, rate, kills)


async def _operated(plane: ControlPlane, folder: Path, outcome: Outcome, rate: float, kills: int) -> None:
    """The same once all kinds are there, and their operators run."""
    everything = await asyncio.to_thread(everything_allowed, plane, folder / "people")
    (folder / "replicas").mkdir()
    users, watcher = tenants(), Watcher()
    courses = plan(outcome.seed, outcome.operations, users)
    outcome.plan = digest(courses)
    async with Api(everything) as api, asyncio.TaskGroup() as background:
        auditor = Auditor(api, watcher, watcher.scope)
        looking = background.create_task(auditor.run())
        await auditor.synced()
        await build(api)
        tokens = [await token(api, user.ground.namespace, user.name) for user in users]
        own = folder / "replicas"
        async with replicas(plane, own, REPLICAS, outcome.seed, direct=True) as controllers:
            await awaited_leader(controllers)
            crowd = Crowd(api.server, api.trusted, rate)
            await _course(api, crowd, list(zip(courses, tokens, strict=True)), outcome, (controllers, kills))
            listed = await api.get(f"{BATCH}/jobs", limit="1")
            await auditor.catch_up(int(listed["metadata"]["resourceVersion"]))
            outcome.restarts = sum(each.starts for each in controllers) - len(controllers) - outcome.kills
            outcome.errors = [line for each in controllers for line in exceptions(each.log)]
        looking.cancel()
    outcome.counts, outcome.highest = watcher.counts, dict(sorted(watcher.highest.items()))
    outcome.findings = [finding.words for finding in watcher.findings]
    for finding in watcher.findings[:TRAILS]:
        outcome.trails.append("\n".join([finding.words, *crowd.trail(finding.about, TRAIL)]))


async def _course(
    api: Api,
    crowd: Crowd,
    courses: list[tuple[Course, str]],
    outcome: Outcome,
    killing: tuple[list[Replica], int],
) -> None:
    """All operations, and what is looked at afterwards."""
    over, began = asyncio.Event(), time.monotonic()
    async with asyncio.TaskGroup() as group:
        sound = group.create_task(sound_jobs(api, over))
        group.create_task(_kill(crowd, outcome, *killing))
        await crowd.run(courses)
        over.set()
    outcome.seconds = time.monotonic() - began
    outcome.answers, outcome.refusals = crowd.answers, crowd.refusals
    outcome.sound = sound.result()
    outcome.unfinished, outcome.waited = await sound_jobs_end(api)
    outcome.left = await clear(api)
    outcome.lost = await lost_quota(api)


async def _kill(crowd: Crowd, outcome: Outcome, controllers: list[Replica], kills: int) -> None:
    """Kill the leader at moments that are spread over the operations."""
    for number in range(1, kills + 1):
        await crowd.reached(outcome.operations * number // (kills + 1))
        outcome.kills += await kill_leader(controllers, outcome.take_overs)


def exceptions(log: str) -> Iterable[str]:
    """The lines of a log that tell of an exception that was not expected."""
    return [line for line in log.splitlines() if '"exception":' in line or "Traceback" in line]
