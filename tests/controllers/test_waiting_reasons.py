"""Reasons to wait reach the API server in the end, unless it says that it will never take them."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from admitter.api.conditions import WaitingReason
from admitter.cache.views import parse_workload
from admitter.cache.world import World
from admitter.client.errors import FENCE, ClusterError, UnreachableError, api_error
from admitter.client.pace import Pace
from admitter.client.transport import Json, Transport
from admitter.controllers.telemetry.events import Events
from admitter.controllers.telemetry.makers import Makers
from admitter.controllers.workload import waiting
from admitter.controllers.workload.waiting import WaitingReasons
from admitter.convert.gpus import DEFAULT_GPUS
from admitter.engine.cycle import Engine
from admitter.policy.catalog import Catalog
from admitter.policy.gate import Gate, Waiting
from tests.patience import PATIENCE_SECONDS

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = ("finance", "report")
WORKLOAD: dict[str, Any] = {
    "metadata": {
        "name": "report",
        "namespace": "finance",
        "uid": "uid-1",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T11:00:00Z",
    },
    "spec": {"queueName": "main", "podSets": [{"name": "main", "count": 1}]},
}


class Server:
    """Refuses so many patches, and takes the next."""

    def __init__(self, error: ClusterError, refusals: int) -> None:
        self.error = error
        self.refusals = refusals
        self.told: list[str] = []
        self.took = asyncio.Event()  # a patch
        self.events: list[tuple[str, str, str]] = []
        self.meanwhile: Callable[[], None] = lambda: None  # called before a patch is answered
        self.version = 1

    async def patch(self, _path: str, body: Json) -> Json:
        if self.refusals:
            self.refusals -= 1
            raise self.error
        self.told.append(body["status"]["message"])
        self.took.set()
        self.version += 1
        metadata = WORKLOAD["metadata"] | {"resourceVersion": str(self.version)}
        self.meanwhile()
        return WORKLOAD | {"metadata": metadata, "status": body["status"]}

    async def create(self, _path: str, body: Json) -> Json:
        self.events.append((body["type"], body["reason"], body["message"]))
        return body


def reasons_of(server: Server) -> WaitingReasons:
    """Those of a controller that knows the Workload."""
    transport, pace, world = cast("Transport", server), Pace(), World()
    world.workloads.apply(parse_workload(WORKLOAD))
    gate = Gate(world, Catalog(world, Engine(), DEFAULT_GPUS))
    events = Events(transport, lambda: NOON, pace)
    makers = Makers(world, events, transport)
    return WaitingReasons(world, gate, events, transport, lambda: NOON, pace, makers)


async def told(
    error: ClusterError, refusals: int, monkeypatch: pytest.MonkeyPatch, *, taken: bool = False
) -> Server:
    """A server that has refused a reason so often, and taken it after that, or not."""
    monkeypatch.setattr(waiting, "PAUSE_SECONDS", 0.001)
    server = Server(error, refusals)
    reasons = reasons_of(server)
    reasons.want(KEY, Waiting(WaitingReason.INSUFFICIENT_QUOTA, "too much is in use"))
    running = asyncio.create_task(reasons.run())
    with suppress(TimeoutError):
        await asyncio.wait_for(server.took.wait(), PATIENCE_SECONDS if taken else 0.2)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    await reasons.events.flush()
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
    server = await told(error, 3, monkeypatch, taken=True)
    assert server.told == ["too much is in use"]
    assert [reason for _, reason, _ in server.events] == ["InsufficientQuota"]


async def test_what_may_not_be_told_any_more_is_not_told_though_the_reason_is_equal() -> None:
    """An administrator hides the use while the API server answers to a message with it."""
    server = Server(UnreachableError("not raised"), 0)
    reasons, words = reasons_of(server), ["3 of 4 cpu in use"]
    reasons.gate.message_at = lambda *_: words[-1]  # type: ignore[method-assign]  # the words, without a queue

    def hide() -> None:
        server.meanwhile = lambda: None
        words.append("too much is in use")
        reasons.want(KEY, Waiting(WaitingReason.INSUFFICIENT_QUOTA, "too much is in use"))

    server.meanwhile = hide
    reasons.want(KEY, Waiting(WaitingReason.INSUFFICIENT_QUOTA, "too much is in use"))
    await reasons.flush()
    await reasons.flush()
    assert server.told == words


async def test_a_reason_that_is_forbidden_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    server = await told(api_error(403, {"message": "policy gold forbids it"}), 1, monkeypatch)
    assert server.told == []
    words = "the API server refuses the status of its Workload: policy gold forbids it"
    assert server.events == [("Warning", "WriteRefused", words)]


@pytest.mark.parametrize(
    "error",
    [api_error(409, {}), api_error(404, {}), api_error(422, {"message": FENCE}), api_error(500, {})],
    ids=["changed meanwhile", "gone", "another leads", "failed"],
)
async def test_what_is_no_refusal_is_not_told_and_hides_none(error: ClusterError) -> None:
    server = Server(error, 0)
    reasons = reasons_of(server)
    for _ in range(3):
        reasons.failed("admission not written", KEY, error)
    await reasons.events.flush()
    assert server.events == []
    for _ in range(3):
        reasons.failed("admission not written", KEY, api_error(403, {"message": "policy gold forbids it"}))
    await reasons.events.flush()
    assert [reason for _, reason, _ in server.events] == ["WriteRefused"]


async def test_nothing_is_kept_of_a_workload_that_is_gone() -> None:
    """The answer to a write may come after the event of the deletion."""
    reasons, gone = reasons_of(Server(api_error(404, {}), 0)), api_error(404, {})
    reasons.failed("place not written", KEY, gone)
    assert KEY in reasons.failures
    reasons.world.workloads.delete(KEY, "uid-1")
    reasons.gone(KEY)
    reasons.failed("place not written", KEY, gone)
    assert KEY not in reasons.failures
