"""An informer is right again after whatever happens to its watch."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from admitter.cache.views import ObjectView, parse_object
from admitter.client import informer as informer_module
from admitter.client.informer import Informer
from admitter.client.metrics import CallMetrics
from admitter.client.source import Source
from tests.client.faulty_server import FaultyServer, bookmark, connected, event, thing
from tests.patience import PATIENCE_SECONDS


def page(version: int, *items: dict[str, Any], more: str = "") -> tuple[int, dict[str, str], Any]:
    return 200, {}, {"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(items)}


@asynccontextmanager
async def informed(
    server: FaultyServer,
    metrics: CallMetrics | None = None,
    returned: Callable[[str], None] = lambda _: None,
) -> AsyncIterator[Informer[ObjectView]]:
    """One that runs; `returned` is told what it has read when its kind is back."""
    async with connected(server, metrics) as transport:

        def back() -> None:
            returned(" ".join(view.name for view in informer.store))

        informer = Informer(transport, Source("/things", parse_object), Random(1), back)
        running = asyncio.create_task(informer.run())
        try:
            yield informer
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)


async def names(informer: Informer[ObjectView], *expected: str) -> None:
    """Wait until the store has just these objects."""
    changed = asyncio.Event()
    informer.store.listen(lambda _old, _new: changed.set())
    async with asyncio.timeout(PATIENCE_SECONDS):
        while sorted(view.name for view in informer.store) != sorted(expected):
            changed.clear()
            await changed.wait()


async def test_pages_are_joined_and_the_watch_goes_on_from_the_list() -> None:
    server = FaultyServer(
        calls=deque([page(7, thing("a", 3), more="next"), page(7, thing("b", 5))]),
        watches=deque([[event("ADDED", thing("c", 8)), event("DELETED", thing("a", 9)), None]]),
    )
    async with informed(server) as informer:
        await names(informer, "b", "c")
    lists, watch = server.seen[:2], server.seen[2][1]
    assert [query.get("continue") for _, query in lists] == [None, "next"]
    assert watch["resourceVersion"] == "7"
    assert watch["allowWatchBookmarks"] == "true"


async def test_a_watch_that_ends_is_resumed_where_its_last_bookmark_was() -> None:
    server = FaultyServer(
        calls=deque([page(7)]),
        watches=deque([[bookmark(40)], [event("ADDED", thing("late", 41)), None]]),
    )
    async with informed(server) as informer:
        await names(informer, "late")
    watches = [query["resourceVersion"] for _, query in server.seen if "watch" in query]
    assert watches == ["7", "40"]


async def test_history_that_is_gone_is_listed_again() -> None:
    gone = event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
    server = FaultyServer(
        calls=deque([page(7, thing("old", 3)), page(90, thing("new", 80))]),
        watches=deque([[gone], [None]]),
    )
    async with informed(server) as informer:
        await names(informer, "new")


async def test_a_cut_off_event_is_read_again() -> None:
    server = FaultyServer(
        calls=deque([page(7)]),
        watches=deque([[b'{"type": "ADDED", "obj\n'], [event("ADDED", thing("whole", 8)), None]]),
    )
    async with informed(server) as informer:
        await names(informer, "whole")


async def test_a_silent_watch_is_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer_module, "SILENCE_SECONDS", 0.05)
    server = FaultyServer(
        calls=deque([page(7)]), watches=deque([[None], [event("ADDED", thing("after", 8)), None]])
    )
    async with informed(server) as informer:
        await names(informer, "after")


async def test_an_object_that_cannot_be_read_harms_no_other() -> None:
    poisoned = thing("poisoned", 8, resourceVersion="not a number")
    server = FaultyServer(
        calls=deque([page(7, poisoned, thing("first", 5))]),
        watches=deque([[event("ADDED", poisoned), event("ADDED", thing("second", 9)), None]]),
    )
    async with informed(server) as informer:
        await names(informer, "first", "second")


async def test_a_kind_that_is_missing_is_looked_for_without_growing_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Thirty pauses that grow take minutes."""
    monkeypatch.setattr(informer_module, "MISSING_PAUSE_SECONDS", 0.005)
    missing: tuple[int, dict[str, str], object] = (404, {}, {"kind": "Status", "code": 404})
    server = FaultyServer(
        calls=deque([page(7, thing("old", 5)), *[missing] * 30, page(90, thing("new", 80))]),
        watches=deque([[event("ERROR", {"kind": "Status", "code": 404})], [None]]),
    )
    told: list[str] = []
    async with informed(server, returned=told.append) as informer:
        await names(informer, "new")
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not told:  # noqa: ASYNC110  # the store changes just before
                await asyncio.sleep(0)
    assert told == ["new"], "once, when it has been read, and not at the start"


async def test_why_it_does_not_follow_is_known_until_it_does() -> None:
    refused: tuple[int, dict[str, str], object] = (
        403,
        {},
        {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "you may not"},
    )
    server = FaultyServer(
        calls=deque([refused, page(7, thing("first", 5))]),
        watches=deque([[event("ADDED", thing("second", 8)), None]]),
    )
    async with informed(server) as informer:
        seen: list[str] = []
        informer.store.listen(lambda _old, _new: seen.append(str(informer.failure)))
        await names(informer, "first", "second")
    assert seen == ["you may not", "None"], "the first is listed, the second watched"
