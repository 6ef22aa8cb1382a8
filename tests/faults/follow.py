"""Follows collections of the API server without losing an event, or says which it has lost."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from tests.faults.api import BATCH, CORE, OWN, PAUSE_SECONDS, Api, RefusedError
from tests.faults.facts import parse, quota_name
from tests.faults.timeline import Checker, Timeline

Json = dict[str, Any]


@dataclass(frozen=True)
class Scope:
    """What an auditor looks at.

    Attributes:
        paths: collection → where it is.
        parse: what counts of an object of a collection; None if nothing does.
    """

    paths: Mapping[str, str]
    parse: Callable[[str, Json], object]


EVERYTHING: Final = Scope(
    {
        "jobs": f"{BATCH}/jobs",
        "workloads": f"{OWN}/workloads",
        "pods": f"{CORE}/pods",
        "clusterqueues": f"{OWN}/clusterqueues",
        "elasticquotas": f"{OWN}/elasticquotas",
    },
    parse,
)
"""What the ledger is told."""
WATCH_SECONDS: Final = 4
"""Two seconds before its end a watch gets a bookmark, which tells a quiet one from one that is late."""
NUDGE_SECONDS: Final = 2.0


class Follower:
    """Lists and watches one collection; what it hears goes to the timeline."""

    def __init__(self, api: Api, collection: str, scope: Scope, timeline: Timeline) -> None:
        self.synced = asyncio.Event()
        self._api = api
        self._collection = collection
        self._path = scope.paths[collection]
        self._parse = scope.parse
        self._timeline = timeline
        self._version = 0
        self._known: dict[str, int] = {}

    async def run(self) -> None:
        """List and watch until cancelled."""
        stale = True
        while True:
            try:
                if stale:
                    await self._list()
                    stale = False
                    self.synced.set()
                async for event in self._api.watch(self._path, str(self._version), WATCH_SECONDS):
                    self._take(event["type"], event["object"])
            except RefusedError as error:
                stale = stale or error.status == 410
                await asyncio.sleep(PAUSE_SECONDS)
            except (aiohttp.ClientError, TimeoutError, OSError):
                await asyncio.sleep(PAUSE_SECONDS)

    def _take(self, change: str, raw: Json) -> None:
        version = int(raw["metadata"]["resourceVersion"])
        if change == "DELETED":
            self._gone(raw, version)
        elif change != "BOOKMARK":
            self._seen(raw, version)
        self._version = version
        self._timeline.progress(self._collection, version)

    def _identity(self, raw: Json) -> str:
        return quota_name(self._collection, raw) or str(raw["metadata"]["uid"])

    def _seen(self, raw: Json, version: int) -> None:
        uid = self._identity(raw)
        self._known[uid] = version
        self._timeline.event(version, uid, self._parse(self._collection, raw), time.monotonic())

    def _gone(self, raw: Json, version: int) -> None:
        uid = self._identity(raw)
        self._known.pop(uid, None)
        self._timeline.event(version, uid, None, time.monotonic())

    async def _list(self) -> None:
        """Take the differences from what is known for events that happened at some time in between."""
        present: set[str] = set()
        until = 0
        async for page in self._api.pages(self._path):
            until = int(page["metadata"]["resourceVersion"])
            for raw in page["items"]:
                uid, version = self._identity(raw), int(raw["metadata"]["resourceVersion"])
                present.add(uid)
                if self._known.get(uid) != version:
                    self._seen(raw, version)
        for uid in self._known.keys() - present:
            del self._known[uid]
            self._timeline.event(until, uid, None, time.monotonic())
        if self._version:
            self._timeline.gap(self._version, until)
        self._version = until
        self._timeline.progress(self._collection, until)


class Auditor:
    """Follows everything that counts, and checks it.

    Attributes:
        timeline: where it goes, and the checker behind.
    """

    def __init__(self, api: Api, checker: Checker, scope: Scope = EVERYTHING) -> None:
        self.timeline = Timeline(checker, scope.paths)
        self._api = api
        self._scope = scope
        self._followers = [Follower(api, collection, scope, self.timeline) for collection in scope.paths]

    async def run(self) -> None:
        """Look until cancelled; an auditor that can't look fails, since it would find nothing."""
        async with asyncio.TaskGroup() as group:
            for follower in self._followers:
                group.create_task(follower.run())
            group.create_task(self._nudge())

    async def synced(self) -> None:
        """Wait until everything is seen that was there at first."""
        for follower in self._followers:
            await follower.synced.wait()

    async def _nudge(self) -> None:
        """Have the API server ask etcd how far it is: bookmarks of quiet collections tell what it knows."""
        while True:
            await asyncio.sleep(NUDGE_SECONDS)
            for path in self._scope.paths.values():
                await self._api.get(path, limit="1")

    async def catch_up(self, version: int) -> None:
        """Wait until everything up to a version has been checked."""
        for collection in self._scope.paths:
            await self.timeline.has_reached(collection, version)
