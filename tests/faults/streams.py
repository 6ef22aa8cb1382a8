"""What happens to the watches that pass a fault proxy."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any, Final

import orjson
from aiohttp import StreamReader, web

from tests.faults.rules import CutError

Json = dict[str, Any]

Change = Callable[[str, bytes], bytes]
"""From the path of a call, and an event or an answer, to what is passed on instead of it."""


def unchanged(_path: str, text: bytes) -> bytes:
    """The same text."""
    return text


GONE: Final[Json] = {
    "type": "ERROR",
    "object": {
        "kind": "Status",
        "status": "Failure",
        "code": 410,
        "reason": "Expired",
        "message": "made to fail: too old resource version",
    },
}


class Streams:
    """All watches of one controller; to be used in the proxy's own event loop.

    Attributes:
        bookmarks: whether they are passed on.
        gone: whether watches end with 410, also new ones.
        late: the most seconds by which each watch holds back what comes, by chance.
    """

    def __init__(self, change: Change = unchanged) -> None:
        """Begin with nothing that happens to watches, but what is changed on their way.

        Args:
            change: gets the path of a watch and one event, and returns what is passed on.
        """
        self._change = change
        self.bookmarks = True
        self.gone = False
        self.late = 0.0
        self._random = Random(1)
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._open: set[asyncio.BaseTransport] = set()

    def silence(self, *, silent: bool) -> None:
        """Hold everything back, with the connections open, or let it flow again."""
        if silent:
            self._flowing.clear()
        else:
            self._flowing.set()

    def cut(self) -> None:
        """Cut all connections that watches have now."""
        for transport in list(self._open):
            assert isinstance(transport, asyncio.Transport)
            transport.abort()

    async def pass_on(
        self, request: web.Request, upstream: StreamReader, downstream: web.StreamResponse
    ) -> None:
        """Pass on what the API server sends, as things are.

        Raises:
            CutError: the watch ends here.
        """
        transport = request.transport
        if transport is None:
            raise CutError  # the controller has gone already
        self._open.add(transport)
        try:
            await downstream.prepare(request)
            if self.gone:
                await self._end(downstream)
            rest = b""
            async for chunk in upstream.iter_any():
                await self._flowing.wait()
                await asyncio.sleep(self._random.random() * self.late)
                if self.gone:
                    await self._end(downstream)
                *lines, rest = (rest + chunk).split(b"\n")
                kept = lines if self.bookmarks else [line for line in lines if not _is_bookmark(line)]
                if kept:
                    passed = [self._change(request.path, line) for line in kept]
                    await downstream.write(b"\n".join(passed) + b"\n")
        finally:
            self._open.discard(transport)

    @staticmethod
    async def _end(downstream: web.StreamResponse) -> None:
        await downstream.write(orjson.dumps(GONE) + b"\n")
        await downstream.write_eof()
        raise CutError


def _is_bookmark(line: bytes) -> bool:
    return b'"BOOKMARK"' in line[:40]
