"""What the kubelet and Prometheus ask: alive, ready, and the figures.

Metrics name queues, namespaces and what these use, and every pod of a cluster can reach the port. So only
users get them that may get the path `/metrics`, as the API server says.
"""

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from admitter.client.access import Access, TooManyTokensError, bearer
from admitter.client.errors import ClusterError

PERIOD_SECONDS: Final = 1.0
MOST_LATE_SECONDS: Final = 30.0
"""An event loop that is later than that is taken for stuck. To read 100,000 Jobs at the start takes less."""
PATH: Final = "/metrics"
ROLE: Final = "admitter-metrics-reader"
"""The ClusterRole that lets read them."""


class ProcessState(NamedTuple):
    """Whether a process can do what it is there for, and in words what it does."""

    ready: bool
    words: str


@dataclass(frozen=True)
class Probes:
    """The answers to the probes."""

    problem: Callable[[], str | None]  # why the process has to be started again; None if it works
    state: Callable[[], ProcessState]  # what the process does, and whether that is what it is there for
    page: Callable[[], Awaitable[bytes]]  # all metrics, in Prometheus' text format
    access: Access | None = None  # asks the API server which users may read the metrics; None: all may


class Pulse:
    """Measures by how much the event loop is late."""

    def __init__(self, lagged: Callable[[float], None] = lambda _: None) -> None:
        """`lagged` is called at each beat with the seconds that it came late."""
        self._lagged = lagged
        self._lag = 0.0
        self._due: float | None = None

    async def run(self) -> None:
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


def is_local(address: str) -> bool:
    """Whether only programs of the same machine, or pod, reach an address."""
    try:
        return ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:
        return address == "localhost"


async def _refusal(access: Access, request: web.Request) -> web.Response | None:
    """Why a request gets no metrics; None if it gets them."""
    token = bearer(request.headers.get("Authorization", ""))
    if not token:
        return _refused(401, "a bearer token is needed: docs/metrics.md#who-may-read-them")
    try:
        user = await access.user(token, request.remote or "")
        if user is None:
            return _refused(401, "the API server does not know this token, or it has expired")
        if not await access.may_get(user, PATH):
            return _refused(403, f"{user.name} may not get {PATH}: the ClusterRole {ROLE} allows it")
    except TooManyTokensError:
        return _refused(429, "too many unknown tokens were tried: try again in a minute")
    except ClusterError as error:
        return _refused(503, f"the API server does not identify the user: {error}")
    return None


def _refused(status: int, words: str) -> web.Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return web.Response(status=status, text=f"{words}\n", headers=headers)


async def serve(address: str, port: int, probes: Probes) -> web.AppRunner:
    """Answer `/healthz`, `/readyz` and `/metrics` until the runner is cleaned up; port 0 picks a free one."""

    async def alive(_request: web.Request) -> web.Response:
        problem = probes.problem()
        return web.Response(status=200 if problem is None else 503, text=f"{problem or 'ok'}\n")

    async def ready(_request: web.Request) -> web.Response:
        state = probes.state()
        return web.Response(status=200 if state.ready else 503, text=f"{state.words}\n")

    async def metrics(request: web.Request) -> web.Response:
        refused = await _refusal(probes.access, request) if probes.access is not None else None
        if refused is not None:
            return refused
        return web.Response(body=await probes.page(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    app = web.Application()
    app.add_routes([web.get("/healthz", alive), web.get("/readyz", ready), web.get(PATH, metrics)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, address, port).start()
    return runner
