"""What goes wrong between the controller and the API server, and for which calls."""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

import orjson

WRITES: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True)
class Call:
    """A request of the controller's.

    Attributes:
        method: of HTTP.
        path: without the query.
        query: as it was sent.
        body: as it was sent.
    """

    method: str
    path: str
    query: str = ""
    body: bytes = b""

    @property
    def watches(self) -> bool:
        """Whether it follows changes: its answer has no end."""
        return "watch=true" in self.query

    @property
    def writes(self) -> bool:
        """Whether it changes something."""
        return self.method in WRITES

    @property
    def kind(self) -> str:
        """What the controller does by it, in a word or two."""
        if self.watches:
            return "watch"
        if not self.writes:
            return "read"
        found = next(kind for pattern, kind in _KINDS if re.search(pattern, self.path))
        return found or _of_status(orjson.loads(self.body)["status"])


_KINDS: Final = (
    (r"/events$", "event"),
    (r"/leases(/|$)", "lease"),
    (r"/workloads$", "new workload"),
    (r"/jobs/", "job"),
    (r"/workloads/[^/]+/status$", ""),
    (r"/workloads/", "workload"),
    (r"/status$", "queue status"),
    (r"", "other"),
)
"""Paths of writes, and what they are; empty where the body tells."""


def _of_status(status: dict[str, Any]) -> str:
    """What the status of a Workload is written for."""
    if status.get("admission"):
        return "admission"
    return {"Finished": "finish", "Pending": "reason"}.get(status.get("state", ""), "eviction")


@dataclass(frozen=True)
class Answer:
    """What the controller gets.

    Attributes:
        status: of HTTP.
        headers: those that count.
        body: as it is sent.
    """

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


class CutError(Exception):
    """The connection is cut instead of an answer."""


Forward = Callable[[], Awaitable[Answer]]
"""Has the API server answer the call."""
Fault = Callable[[Forward, Random], Awaitable[Answer]]
"""Answers a call, with the API server or without it."""


def refused(status: int, reason: str, retry_after: int | None = None) -> Fault:
    """The call never reaches the API server."""
    content = {
        "kind": "Status",
        "status": "Failure",
        "code": status,
        "reason": reason,
        "message": f"made to fail: {reason}",
    }
    headers = {"Content-Type": "application/json"}
    if retry_after is not None:
        headers["Retry-After"] = str(retry_after)

    async def fault(_forward: Forward, _random: Random) -> Answer:
        return Answer(status, headers, orjson.dumps(content))

    return fault


def throttled(retry_after: int | None = 1) -> Fault:
    """Too many requests; `retry_after` in seconds, None to leave it open."""
    return refused(429, "TooManyRequests", retry_after)


def slow(shortest: float, longest: float) -> Fault:
    """The call waits so many seconds on its way."""

    async def fault(forward: Forward, random: Random) -> Answer:
        await asyncio.sleep(random.uniform(shortest, longest))
        return await forward()

    return fault


def held_up(until: threading.Event) -> Fault:
    """The call waits on its way until it is let go; its sender may be gone by then."""

    async def fault(forward: Forward, _random: Random) -> Answer:
        await asyncio.to_thread(until.wait)
        return await forward()

    return fault


async def cut_after(forward: Forward, _random: Random) -> Answer:
    """The API server acts on the call, but its answer never arrives."""
    await forward()
    raise CutError


async def cut_before(_forward: Forward, _random: Random) -> Answer:
    """The connection is cut before the call arrives."""
    raise CutError


async def truncated(forward: Forward, _random: Random) -> Answer:
    """The API server acts on the call, and half of its answer arrives."""
    answer = await forward()
    return Answer(answer.status, answer.headers, answer.body[: len(answer.body) // 2])


def late(seconds: float) -> Fault:
    """The call arrives when the controller no longer waits for an answer, and is acted on then."""

    async def fault(forward: Forward, _random: Random) -> Answer:
        await asyncio.sleep(seconds)
        return await forward()

    return fault


class EveryNth:
    """Which calls a rule concerns: every nth write, but never the same one twice in a row.

    What the server fails at again and again is put aside for a while, and others may pass it: that is a
    fault of another kind than these.
    """

    def __init__(self, nth: int) -> None:
        self._nth = nth
        self._number = 0
        self._failed: set[str] = set()

    def __call__(self, call: Call) -> bool:
        if not call.writes:
            return False
        self._number += 1
        if self._number % self._nth or call.path in self._failed:
            self._failed.discard(call.path)
            return False
        self._failed.add(call.path)
        return True


@dataclass(frozen=True)
class Rule:
    """A fault for some calls.

    Attributes:
        name: what the proxy counts it as.
        fault: what happens.
        concerns: which calls.
        chance: how many of them, from 0 to 1.
    """

    name: str
    fault: Fault
    concerns: Callable[[Call], bool] = lambda call: call.writes
    chance: float = 1.0
