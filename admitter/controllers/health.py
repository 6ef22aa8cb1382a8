"""What the kubelet and Prometheus ask: alive, ready, and the process's own figures."""

from collections.abc import Callable

from aiohttp import web
from prometheus_client import REGISTRY
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest


async def serve(address: str, port: int, ready: Callable[[], bool]) -> web.AppRunner:
    """Answer `/healthz`, `/readyz` and `/metrics` until the returned runner is cleaned up.

    Args:
        address: the interface to bind to.
        port: 0 picks a free one.
        ready: whether all stores are filled and decisions are made.

    Raises:
        OSError: the address is in use.
    """

    async def alive(_request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readiness(_request: web.Request) -> web.Response:
        if ready():
            return web.Response(text="ready\n")
        return web.Response(status=503, text="not synced with the API server yet\n")

    async def metrics(_request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(REGISTRY), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/healthz", alive), web.get("/readyz", readiness), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, address, port).start()
    return runner
