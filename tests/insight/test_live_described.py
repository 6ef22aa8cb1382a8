"""A cluster that is followed has the objects of described kinds too, as kinds come and go."""

import asyncio
from collections.abc import Callable
from random import Random

from admitter.convert.settings import DEFAULTS
from admitter.insight.live import Mirror
from admitter.policy.snapshot import Facts, Snapshot
from admitter.top.scene import scene
from tests.apiserver.experiments import GROUP, JOB_KINDS
from tests.apiserver.loop import run
from tests.apiserver.server import clock
from tests.convergence.lab import EXPERIMENTS, Lab
from tests.convergence.scene import TEAM

KIND = f"experiments.{GROUP}"


async def followed(mirror: Mirror, condition: Callable[[Facts], bool]) -> None:
    """Wait, in virtual time, until something is known."""
    async with asyncio.timeout(600):
        while not condition(mirror.facts()):  # noqa: ASYNC110  # what is known changes by itself
            await asyncio.sleep(0.01)


def test_what_is_followed_has_objects_of_described_kinds() -> None:
    async def story() -> None:
        lab = Lab()
        lab.operator.lasts = 1000.0
        lab.experiment("first", control=2, probe=2, copies=2)
        await lab.start()
        await lab.settled(lambda: lab.runs("first") == 3)
        mirror = Mirror(lab.server, DEFAULTS, Random(1), lambda: clock().timestamp())
        async with mirror.following():
            known = mirror.facts()
            assert known.read == frozenset({KIND})
            assert known.views["jobs"][TEAM, "experiment/first"].count() == 3
            assert [row.job for row in scene(known, Snapshot(known)).rows["a"]] == ["experiment/first"]
            before = mirror.revision
            lab.server.write(f"{EXPERIMENTS}/first", {"metadata": {"annotations": {"any": "one"}}})
            await followed(mirror, lambda _: mirror.revision > before)
            lab.server.remove(f"{JOB_KINDS}/experiment")
            await followed(mirror, lambda known: (TEAM, "experiment/first") not in known.views["jobs"])
            assert mirror.facts().read is None
        await lab.kill()

    run(story())
