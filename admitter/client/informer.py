"""Keeps a store equal to what the API server has: list in pages, watch, resume, list again.

Next step: the listeners of the store (`admitter.controllers`).
"""

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Callable, Iterator
from random import Random
from typing import Final, Generic

import structlog

from admitter.client.decoding import decoded
from admitter.client.errors import ClusterError, GoneError, NotFoundError, UnreachableError, api_error
from admitter.client.pages import pages
from admitter.client.source import Source
from admitter.client.store import Rest, Unreadable, V
from admitter.client.transport import Transport

WATCH_SECONDS: Final = 300
SILENCE_SECONDS: Final = 90.0
"""A watch that brings nothing for this long is opened again, in case its connection is dead.

Most servers send a bookmark a minute. Before Kubernetes 1.36 they send none for a kind that has not changed
since they started.
"""
FIRST_PAUSE_SECONDS: Final = 0.2
LONGEST_PAUSE_SECONDS: Final = 10.0
TURN_SECONDS: Final = 0.02
"""After so long in which a list is read others get their turn: some objects take as long to read."""
MISSING_PAUSE_SECONDS: Final = 0.7
"""How often a kind is looked for that the API server does not serve; it says so at once."""

log = structlog.get_logger(__name__)


class Informer(Generic[V]):
    """Lists and watches one collection, for as long as `run` is not cancelled."""

    def __init__(
        self,
        transport: Transport,
        source: Source[V],
        random: Random,
        returned: Callable[[], None] = lambda: None,
    ) -> None:
        """Call `run` to begin to read; `random` spreads the ends of watches over time.

        `returned` is called when the API server serves the collection again, after it did not, and what there
        is of it has been read.
        """
        self.synced = asyncio.Event()  # set once all of it has been read
        self.tried = asyncio.Event()  # set once that was tried
        # why it is not followed now; None: it is, or nothing has been heard of it yet
        self.failure: ClusterError | None = None
        self.path = source.path
        self.store = source.store
        self._transport = transport
        self._source = source
        self._random = random
        self._version = ""
        self._watched = False
        self._missing = False
        self._returned = returned

    async def run(self) -> None:
        """List and watch until cancelled; failures are logged and tried again with growing pauses.

        A kind that the API server does not serve, since its definition has been deleted or is yet to be
        applied, is looked for without growing pauses, and listed anew when it is there.
        """
        pause = FIRST_PAUSE_SECONDS
        while True:
            try:
                if not self._version:
                    with _without_collection():
                        self._version = await read_all(self._transport, self._source)
                    self.synced.set()
                    self.tried.set()
                    self._found()
                await self._watch()
                pause = FIRST_PAUSE_SECONDS
            except NotFoundError as error:
                self._miss(error)
                await asyncio.sleep(MISSING_PAUSE_SECONDS * (1 + self._random.random()))
            except ClusterError as error:
                if isinstance(error, GoneError):
                    self._version = ""
                self.failure = error
                self.tried.set()
                self._transport.metrics.watch_failed(self.path)
                log.warning("watch interrupted", path=self.path, error=str(error))
                await asyncio.sleep(pause * (1 + self._random.random()))
                pause = min(pause * 2, LONGEST_PAUSE_SECONDS)

    def _miss(self, error: ClusterError) -> None:
        """Note that the API server does not serve the collection; what it had is gone or will be."""
        self._version = ""
        self.failure = None if self._source.optional else error
        self.tried.set()
        if self._source.optional:
            self.synced.set()
        if not self._missing:
            self._missing = True
            self._transport.metrics.watch_failed(self.path)
            log.warning("kind missing", path=self.path, error=str(error))

    def _found(self) -> None:
        """Note that it serves the collection."""
        if self._missing:
            self._missing = False
            log.info("kind is back", path=self.path, objects=len(self.store))
            self._returned()

    async def _watch(self) -> None:
        if self._watched:
            self._transport.metrics.watch_restarted(self.path)
        self._watched = True
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(WATCH_SECONDS + self._random.randrange(WATCH_SECONDS)),
            **self._source.query,
        }
        async with self._transport.stream(self.path, query) as body:
            self.failure = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SILENCE_SECONDS) as silence:
                    await self._read(body, silence)

    async def _read(self, body: AsyncIterator[bytes], silence: asyncio.Timeout) -> None:
        """Take the events of a watch, one a line; each piece that comes puts off the end by silence."""
        loop, rest = asyncio.get_running_loop(), b""
        async for piece in body:
            silence.reschedule(loop.time() + SILENCE_SECONDS)
            *lines, rest = (rest + piece).split(b"\n")
            for line in filter(None, lines):
                self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            event = decoded(line)
        except ValueError as error:
            raise UnreachableError(f"watching {self.path}: an event is cut off") from error
        kind, item = event["type"], event["object"]
        if kind == "ERROR":
            raise api_error(int(item.get("code", 500)), item)
        version = item["metadata"]["resourceVersion"]
        if kind == "DELETED":
            self.store.delete(self.store.key_of(item["metadata"]), item["metadata"]["uid"])
        elif kind in {"ADDED", "MODIFIED"} and not self.store.knows(item["metadata"]):
            found = self._source.seen(item)
            if isinstance(found, Unreadable):
                self.store.mark_unreadable(found, self._source.rest_of(item))
            elif found is not None:
                self.store.apply(found)
        self._version = version
        if kind in {"DELETED", "BOOKMARK"}:
            self.store.heard(int(version))


async def read_all(transport: Transport, source: Source[V]) -> str:
    """Replace what is known of a collection by all that the API server has of it; returns its version."""
    views: list[V] = []
    unreadable: list[tuple[Unreadable, Rest[V]]] = []
    version, clock = "0", asyncio.get_running_loop().time
    async for page in pages(transport, source.path, source.query):
        turn = clock()
        for item in page["items"]:
            if clock() - turn > TURN_SECONDS:
                await asyncio.sleep(0)
                turn = clock()
            found = source.seen(item)
            if isinstance(found, Unreadable):
                unreadable.append((found, source.rest_of(item)))
            elif found is not None:
                views.append(source.store.keep(found))
        version = page["metadata"]["resourceVersion"]
    source.store.replace(views, int(version), unreadable)
    return version


_listing = 0


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Look for no garbage while any list is read: all of it stays, and looking takes longer than reading."""
    global _listing  # noqa: PLW0603  # there is one collector a process
    _listing += 1
    gc.disable()
    try:
        yield
    finally:
        _listing -= 1
        if not _listing:
            gc.enable()
