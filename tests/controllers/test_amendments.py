"""What has changed of an eviction reaches the status in the end, unless it is of the past by then."""

import asyncio
from typing import Any, cast

import pytest

from admitter.cache.preemption_status import PreemptionStatus
from admitter.cache.views import WorkloadView
from admitter.cache.world import World
from admitter.client.errors import ClusterError, NotFoundError, UnreachableError, api_error
from admitter.client.transport import Json, Transport
from admitter.controllers.workload import amendments
from admitter.controllers.workload.amendments import Amendments
from admitter.controllers.workload.writes import StatusWrites
from admitter.engine.model import Workload
from admitter.engine.tree_cycle import Plan, Reassignment
from admitter.policy import status
from tests.patience import PATIENCE_SECONDS
from tests.policy.test_status import ADMISSION, at, view


def displaced(generation: int) -> Json:
    """The status of the Workload, evicted for a reservation of Workload h."""
    by = PreemptionStatus(("team", "h"), "h", ADMISSION, generation)
    written: Json = status.reassigned(view({}), by)["status"]["preemption"]
    return {"preemption": {name: value for name, value in written.items() if value is not None}}


class Scene:
    """A Workload that was evicted for another one, and an API server that refuses some writes."""

    def __init__(self, errors: list[ClusterError], monkeypatch: pytest.MonkeyPatch) -> None:
        for pause in ("PAUSE_SECONDS", "REFUSED_SECONDS"):
            monkeypatch.setattr(amendments, pause, 0.0)
        self.errors = errors
        self.patches: list[Json] = []
        self.failed: list[str] = []
        self.world = World()
        self.stored = view(displaced(2))
        self.world.workloads.apply(self.stored)
        writes = StatusWrites(self.world, cast("Transport", self), lambda: at(0))
        self.due = asyncio.Event()
        failures: Any = type("Failures", (), {"over": lambda *_: None})()
        reasons: Any = type("Reasons", (), {"failures": failures, "failed": self.note})()
        self.amendments = Amendments(self.world, reasons, writes)
        self.amendments.on_due.listen(self.due.set)

    def note(self, what: str, _key: object, _error: ClusterError) -> None:
        self.failed.append(what)

    async def patch(self, _path: str, body: Json, *, query: Json | None = None) -> Json:
        assert query is None
        if self.errors:
            raise self.errors.pop(0)
        self.patches.append(body)
        return raw("4", {})

    async def decides(self, plan: Plan, rounds: int) -> None:
        """Take a plan in, and write each time when something is due."""
        keys = {self.stored.uid: self.stored.key, "other": ("team", "other")}
        self.amendments.decided(plan, keys, lambda *_: 7)
        for number in range(rounds):
            if number:
                await asyncio.wait_for(self.due.wait(), PATIENCE_SECONDS)
                self.due.clear()
            async with asyncio.TaskGroup() as group:
                self.amendments.write(group)


def raw(version: str, status_: Json) -> Json:
    """The Workload as the API server has it."""
    metadata = {"name": "w", "namespace": "team", "uid": "u", "resourceVersion": version}
    created = {"creationTimestamp": "2026-01-01T00:00:00Z"}
    spec = {"queueName": "q", "podSets": [{"name": "main", "count": 1}]}
    return {"metadata": metadata | created, "spec": spec, "status": status_}


@pytest.mark.parametrize(
    "error",
    [
        api_error(409, {}),
        api_error(429, {}),
        api_error(500, {}),
        UnreachableError("none"),
        api_error(403, {}),
    ],
    ids=["changed meanwhile", "throttled", "failed", "no answer", "forbidden"],
)
async def test_what_fails_is_written_in_the_end(error: ClusterError, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene([error, error, error], monkeypatch)
    await scene.decides(Plan(restored=["u"]), rounds=4)
    assert [body["status"] for body in scene.patches] == [{"preemption": None}]
    assert scene.failed == ["eviction not amended"] * 3
    assert await is_quiet(scene)


async def test_the_newer_of_two_changes_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene([api_error(409, {})], monkeypatch)
    await scene.decides(Plan(restored=["u"]), rounds=1)
    other = Workload("other", "q", 0, 0.0, (), "team")
    await scene.decides(Plan(reassigned=[Reassignment("u", other, ADMISSION)]), rounds=1)
    (body,) = scene.patches
    told = body["status"]["preemption"]
    assert (told["name"], told["uid"], told["generation"]) == ("other", "other", 7)


async def test_what_is_of_the_past_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """While the API server can't be reached, the Workload is evicted for another one, or is deleted."""
    for past in (evicted_again, deleted):
        scene = Scene([api_error(409, {})], monkeypatch)
        await scene.decides(Plan(restored=["u"]), rounds=1)
        past(scene.world, scene.stored)
        await asyncio.wait_for(scene.due.wait(), PATIENCE_SECONDS)
        async with asyncio.TaskGroup() as group:
            scene.amendments.write(group)
        assert scene.patches == []
        scene.due.clear()
        assert await is_quiet(scene)


async def test_what_can_not_be_found_is_given_up_once_its_end_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gone = api_error(404, {})
    assert isinstance(gone, NotFoundError)
    scene = Scene([gone], monkeypatch)
    await scene.decides(Plan(restored=["u"]), rounds=1)
    scene.world.workloads.delete(scene.stored.key, "u")
    await scene.decides(Plan(), rounds=2)
    assert scene.patches == []


def evicted_again(world: World, stored: WorkloadView) -> None:
    world.read_workloads.take(raw("5", displaced(3)))
    assert world.workloads.get(stored.key) != stored


def deleted(world: World, stored: WorkloadView) -> None:
    world.workloads.delete(stored.key, stored.uid)


async def is_quiet(scene: Scene) -> bool:
    """Whether nothing is due any more."""
    for _ in range(5):
        await asyncio.sleep(0)
    return not scene.due.is_set()
