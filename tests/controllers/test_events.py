"""Events that tell what is so: said once, also by a controller that starts again."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import cast

from admitter.client.errors import ConflictError, api_error
from admitter.client.pace import Pace
from admitter.client.transport import Json, Transport
from admitter.controllers.telemetry.events import ATTEMPTS, LONGEST_PAUSE_SECONDS, Events, Subject

JOB = Subject("batch/v1", "Job", "finance", "report", "uid-1")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Server:
    """Keeps events by name, as an API server does."""

    def __init__(self) -> None:
        self.kept: dict[str, str] = {}
        self.refusals = 0
        self.slept = 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept += seconds

    async def create(self, path: str, body: Json) -> Json:
        assert path == "/api/v1/namespaces/finance/events"
        name = body["metadata"]["name"]
        if self.refusals:
            self.refusals -= 1
            raise api_error(429, {})
        if name in self.kept:
            raise ConflictError(409, "AlreadyExists", f"{name} exists")
        self.kept[name] = body["message"]
        return body

    def hears(self, *messages: str, lasting: bool = True) -> list[str]:
        """All that has been said once a controller has started and said these one after the other."""
        asyncio.run(self._hear(messages, lasting=lasting))
        return list(self.kept.values())

    async def _hear(self, messages: tuple[str, ...], *, lasting: bool) -> None:
        events = Events(cast("Transport", self), lambda: NOON, Pace(), self.sleep)
        for message in messages:
            events.record(JOB, "NotPlaced", message, lasting=lasting)
            with suppress(TimeoutError):
                await asyncio.wait_for(events.run(), 0.01)


def test_what_lasts_is_not_said_again_after_a_restart() -> None:
    server = Server()
    assert server.hears("no queue") == ["no queue"]
    assert server.hears("no queue") == ["no queue"]
    assert server.hears("no rule") == ["no queue", "no rule"]


def test_what_comes_true_again_is_said_again() -> None:
    assert Server().hears("no queue", "no rule", "no queue") == ["no queue", "no rule", "no queue"]


def test_what_happens_is_said_each_time() -> None:
    server = Server()
    assert server.hears("suspended", lasting=False) == ["suspended"]
    server.kept = {f"old-{name}": text for name, text in server.kept.items()}
    assert server.hears("suspended", lasting=False) == ["suspended", "suspended"]


def test_what_lasts_and_was_dropped_is_not_said_again_after_a_restart_either() -> None:
    server = Server()
    server.refusals = ATTEMPTS
    assert server.hears("no queue", "no queue") == ["no queue"]
    assert server.hears("no queue") == ["no queue"]


def test_an_event_comes_again_while_the_server_fails() -> None:
    server = Server()
    server.refusals = ATTEMPTS - 1
    assert server.hears("no queue") == ["no queue"]
    assert 50 < server.slept < 60
    server.refusals, server.slept = 1, 0.0
    assert server.hears("suspended", lasting=False) == ["no queue", "suspended"]
    assert server.slept < 1, "the pauses are short again"


async def test_however_many_fail_in_a_row_the_pauses_have_an_end() -> None:
    server = Server()
    events = Events(cast("Transport", server), lambda: NOON, Pace(), server.sleep)
    server.refusals = 200 * ATTEMPTS
    for number in range(200):
        events.record(replace(JOB, uid=f"uid-{number}"), "NotPlaced", "no queue", lasting=True)
    await events.flush()
    assert server.kept == {}
    assert server.slept <= 200 * ATTEMPTS * LONGEST_PAUSE_SECONDS


async def test_one_that_has_failed_is_dropped_once_another_leads() -> None:
    server = Server()
    events = Events(cast("Transport", server), lambda: NOON, Pace(), server.sleep)
    server.refusals = 1
    events.record(JOB, "NotPlaced", "no queue", lasting=True)
    events.closed = True
    await events.flush()
    assert server.kept == {}


async def test_one_that_fails_comes_after_those_that_wait() -> None:
    server = Server()
    events = Events(cast("Transport", server), lambda: NOON, Pace(), server.sleep)
    server.refusals = 1
    events.record(JOB, "NotPlaced", "no queue", lasting=True)
    events.record(replace(JOB, uid="uid-2", name="other"), "NotPlaced", "no rule", lasting=True)
    await events.flush()
    assert list(server.kept.values()) == ["no rule", "no queue"]


async def test_an_eviction_is_not_replaced_by_what_is_said_of_the_wait_that_follows() -> None:
    server = Server()
    events = Events(cast("Transport", server), lambda: NOON, Pace())
    events.record(JOB, "EvictionPending", "until noon", topic="eviction")
    events.record(JOB, "Preempted", "for another", topic="eviction")
    events.record(JOB, "InsufficientQuota", "2 CPUs are missing")
    events.record(JOB, "Blocked", "another is first")
    await events.flush()
    assert list(server.kept.values()) == ["for another", "another is first"]
