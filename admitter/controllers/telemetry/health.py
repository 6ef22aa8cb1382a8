"""What the kubelet and Prometheus ask: alive, ready, and the figures."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

PERIOD_SECONDS: Final = 1.0
MOST_LATE_SECONDS: Final = 30.0
"""An event loop that is later than that is taken for stuck. To read 100,000 Jobs at the start takes less."""


class ProcessState(NamedTuple):
    """Whether a process can do what it is there for, and in words what it does."""

    ready: bool
    words: str


async def _open(_request: web.Request) -> web.Response | None:
    return None


@dataclass(frozen=True)
class Probes:
    """The answers to the probes.

    Attributes:
        problem: why the process has to be started again; None if it works.
        state: what it does, and whether that is what it is there for.
        page: all metrics, in Prometheus' text format.
        refusal: why a request gets none of them, as an answer; None if it gets them.
    """

    problem: Callable[[], str | None]
    state: Callable[[], ProcessState]
    page: Callable[[], Awaitable[bytes]]
    refusal: Callable[[web.Request], Awaitable[web.Response | None]] = _open


class Pulse:
    """Measures by how much the event loop is late."""

    def __init__(self, lagged: Callable[[float], None] = lambda _: None) -> None:
        """`lagged` is called at each beat with the seconds that it came late."""
        self._lagged = lagged
        self._lag = 0.0
        self._due: float | None = None

    async def run(self) -> None:
        """Beat until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            self._due = loop.time() + PERIOD_SECONDS
            await asyncio.sleep(PERIOD_SECONDS)
            self._lag = max(0.0, loop.time() - self._due)
            self._lagged(self._lag)

    def problem(self) -> str | None:
        """Why the loop is to be taken for stuck; None if it turns."""
        late = self._lag
        if self._due is not None:
            late = max(late, asyncio.get_running_loop().time() - self._due)
        return f"the event loop is {late:.0f} s late" if late > MOST_LATE_SECONDS else None


def ended(tasks: Iterable["asyncio.Task[None]"]) -> str | None:
    """Which task has ended that should run; None if all of them do."""
    return next((f"{task.get_name()} has ended" for task in tasks if task.done()), None)


async def serve(address: str, port: int, probes: Probes) -> web.AppRunner:
    """Answer `/healthz`, `/readyz` and `/metrics` until the returned runner is cleaned up.

    Args:
        address: the interface to bind to.
        port: 0 picks a free one.
        probes: answer.

    Raises:
        OSError: the address is in use.
    """

    async def alive(_request: web.Request) -> web.Response:
        problem = probes.problem()
        return web.Response(status=200 if problem is None else 503, text=f"{problem or 'ok'}\n")

    async def ready(_request: web.Request) -> web.Response:
        state = probes.state()
        return web.Response(status=200 if state.ready else 503, text=f"{state.words}\n")

    async def metrics(request: web.Request) -> web.Response:
        refused = await probes.refusal(request)
        if refused is not None:
            return refused
        return web.Response(body=await probes.page(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/healthz", alive), web.get("/readyz", ready), web.get("/metrics", metrics)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, address, port).start()
    return runner
