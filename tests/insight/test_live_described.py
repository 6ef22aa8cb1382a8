"""A cluster that is followed has the objects of described kinds too, as kinds come and go."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest
from structlog.testing import capture_logs

from admitter.client.errors import api_error
from admitter.convert.settings import DEFAULTS
from admitter.insight.live import Mirror
from admitter.insight.taking import take
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


async def with_an_experiment_that_runs() -> Lab:
    lab = Lab()
    lab.operator.lasts = 1000.0
    lab.experiment("first", control=2, probe=2, copies=2)
    await lab.start()
    await lab.settled(lambda: lab.runs("first") == 3)
    return lab


def test_what_is_followed_has_objects_of_described_kinds() -> None:
    async def story() -> None:
        lab = await with_an_experiment_that_runs()
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


LACKS = "A right is missing: to list jobkinds in the whole cluster; ClusterRole admitter-reader gives it."


def forbid(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Forbid to list JobKinds, as a role of an older release does; returns what is not forbidden any more."""
    get, allowed = lab.server.get, list[str]()

    async def forbidden(path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        if path == JOB_KINDS and path not in allowed:
            raise api_error(403, {"reason": "Forbidden", "message": "may not"})
        return await get(path, query)

    monkeypatch.setattr(lab.server, "get", forbidden)
    return allowed


def test_answers_without_the_right_to_list_job_kinds_say_that_it_is_missing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        lab = await with_an_experiment_that_runs()
        forbid(lab, monkeypatch)
        with caplog.at_level(logging.WARNING):
            taken = await take(lab.server, DEFAULTS, lambda: clock().timestamp())
        assert (taken.objects["jobkinds"], len(taken.objects["workloads"])) == ([], 1)
        assert [record.getMessage().endswith(LACKS) for record in caplog.records] == [True]
        mirror = Mirror(lab.server, DEFAULTS, Random(1), lambda: clock().timestamp())
        with capture_logs() as said:
            await mirror.check()
        assert [each["event"].endswith(LACKS) for each in said] == [True]
        async with mirror.following():
            known = mirror.facts()
            assert (len(known.views["workloads"]), known.read) == (1, None)
            assert mirror.failure is not None
            assert mirror.failure[0] == JOB_KINDS
        await lab.kill()

    run(story())


def test_a_controller_without_the_right_to_list_job_kinds_waits_and_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        lab = Lab()
        allowed = forbid(lab, monkeypatch)
        with capture_logs() as said:
            starting = asyncio.create_task(lab.start())
            async with asyncio.timeout(600):
                while not any(each["event"] == "waiting for a right" for each in said):  # noqa: ASYNC110  # a log tells no event
                    await asyncio.sleep(0.1)
            allowed.append(JOB_KINDS)
            await starting
        (line,) = [each for each in said if each["event"] == "waiting for a right"]
        assert (line["path"], line["log_level"]) == (JOB_KINDS, "error")
        assert "admitter install" in line["remedy"]
        lab.experiment("first", control=1, probe=1)
        await lab.settled(lambda: lab.runs("first") == 2)
        await lab.kill()

    run(story())
