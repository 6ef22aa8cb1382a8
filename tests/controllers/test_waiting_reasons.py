"""Reasons to wait reach the API server in the end, unless it says that it will never take them."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from admitter.api.conditions import WaitingReason
from admitter.cache.views import parse_workload
from admitter.cache.world import World
from admitter.client.errors import ClusterError, UnreachableError, api_error
from admitter.client.pace import Pace
from admitter.client.transport import Json, Transport
from admitter.controllers.telemetry.events import Events
from admitter.controllers.workload import waiting
from admitter.controllers.workload.waiting import WaitingReasons
from admitter.convert.gpus import DEFAULT_GPUS
from admitter.engine.cycle import Engine
from admitter.policy.catalog import Catalog
from admitter.policy.gate import Gate, Waiting

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
WORKLOAD: dict[str, Any] = {
    "metadata": {
        "name": "report",
        "namespace": "finance",
        "uid": "uid-1",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T11:00:00Z",
    },
    "spec": {"queueName": "main", "podSets": []},
}


class Server:
    """Refuses so many patches, and takes the next."""

    def __init__(self, error: ClusterError, refusals: int) -> None:
        self.error = error
        self.refusals = refusals
        self.told: list[str] = []
        self.events: list[tuple[str, str, str]] = []

    async def patch(self, _path: str, body: Json) -> Json:
        if self.refusals:
            self.refusals -= 1
            raise self.error
        self.told.append(body["status"]["message"])
        metadata = WORKLOAD["metadata"] | {"resourceVersion": "2"}
        return WORKLOAD | {"metadata": metadata, "status": body["status"]}

    async def create(self, _path: str, body: Json) -> Json:
        self.events.append((body["type"], body["reason"], body["message"]))
        return body


async def told(error: ClusterError, refusals: int, monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setattr(waiting, "PAUSE_SECONDS", 0.001)
    server, world = Server(error, refusals), World()
    world.workloads.apply(parse_workload(WORKLOAD))
    transport, pace = cast("Transport", server), Pace()
    events = Events(transport, lambda: NOON, pace)
    gate = Gate(world, Catalog(world, Engine(), DEFAULT_GPUS))
    reasons = WaitingReasons(world, gate, events, transport, lambda: NOON, pace)
    reasons.want(("finance", "report"), Waiting(WaitingReason.INSUFFICIENT_QUOTA, "too much is in use"))
    with suppress(TimeoutError):
        await asyncio.wait_for(reasons.run(), 0.2)
    await events.flush()
    return server


@pytest.mark.parametrize(
    "error",
    [
        api_error(429, {}),
        api_error(503, {}),
        api_error(500, {}),
        api_error(409, {}),
        UnreachableError("no answer"),
    ],
    ids=["throttled", "unavailable", "failed", "changed meanwhile", "no answer"],
)
async def test_a_reason_is_told_when_the_server_takes_it_again(
    error: ClusterError, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await told(error, 3, monkeypatch)
    assert server.told == ["too much is in use"]


async def test_a_reason_that_is_forbidden_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    server = await told(api_error(403, {"message": "policy gold forbids it"}), 1, monkeypatch)
    assert server.told == []
    words = "the API server refuses the status of its Workload: policy gold forbids it"
    assert server.events == [("Warning", "WriteRefused", words)]
