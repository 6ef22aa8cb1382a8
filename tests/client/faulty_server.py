"""An API server that misbehaves on request: for faults that a real one can't be made to show."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web
from kubernetes_asyncio import client

from admitter.client.metrics import CallMetrics
from admitter.client.transport import HttpTransport

Answer = Callable[[web.Request], Any]


def thing(name: str, version: int, **metadata: str) -> dict[str, Any]:
    """A namespaced object of no particular kind."""
    fixed = {"namespace": "ns", "name": name, "uid": f"uid-{name}", "resourceVersion": str(version)}
    return {"metadata": fixed | {"creationTimestamp": "2026-01-01T00:00:00Z"} | metadata}


def event(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    """One event of a watch."""
    return {"type": kind, "object": item}


def bookmark(version: int) -> dict[str, Any]:
    """A watch's bookmark."""
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


@dataclass
class FaultyServer:
    """Answers from two scripts, one for calls and one for watches; the last of each repeats for ever.

    Attributes:
        calls: a status with headers and body for each call.
        watches: a list of events a watch; None at the end leaves the watch open and silent,
            bytes are sent as they are.
        seen: method and query of every request, in order.
        impersonated: the users that requests were made as, if they name one.
    """

    calls: deque[tuple[int, dict[str, str], Any]] = field(default_factory=deque)
    watches: deque[list[Any]] = field(default_factory=deque)
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    impersonated: list[str] = field(default_factory=list)
    closing: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        self.seen.append((request.method, dict(request.query)))
        self.impersonated += request.headers.getall("Impersonate-User", [])
        if request.query.get("watch"):
            return await self._watch(request)
        status, headers, body = self.calls.popleft() if len(self.calls) > 1 else self.calls[0]
        if status == 0:
            assert request.transport is not None
            request.transport.abort()
        content = body if isinstance(body, bytes) else orjson.dumps(body)
        return web.Response(status=status or 200, headers=headers, body=content)

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        events = self.watches.popleft() if len(self.watches) > 1 else self.watches[0]
        response = web.StreamResponse()
        await response.prepare(request)
        for item in events:
            if item is None:
                await self.closing.wait()
            else:
                await response.write(item if isinstance(item, bytes) else orjson.dumps(item) + b"\n")
        return response


@asynccontextmanager
async def connected(server: FaultyServer, metrics: CallMetrics | None = None) -> AsyncIterator[HttpTransport]:
    """Serve on loopback, and connect to it."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    settings = client.Configuration()
    settings.host = f"http://{host}:{port}"
    transport = HttpTransport(settings, metrics=metrics)
    try:
        yield transport
    finally:
        server.closing.set()
        await transport.close()
        await runner.cleanup()
