"""Stands between a controller and its API server, and makes calls fail by rules."""

import asyncio
import json
import ssl
import threading
import time
from base64 import b64decode
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Final, Self, TypeVar

import aiohttp
import yaml
from aiohttp import web

from admitter.sandbox.certificates import Authority
from admitter.sandbox.cluster import Cluster, token_kubeconfig, write_kubeconfig
from tests.faults.loop import collect_connections
from tests.faults.rules import Answer, Call, CutError, Rule
from tests.faults.streams import Change, Streams, unchanged

T = TypeVar("T")

PASSED: Final = "passed"
_REQUEST_HEADERS: Final = ("Authorization", "Content-Type", "Accept", "User-Agent")
_ANSWER_HEADERS: Final = ("Content-Type", "Retry-After")
_LARGEST_BODY: Final = 64 * 2**20
_START_SECONDS: Final = 10


@dataclass(frozen=True)
class Seen:
    """A call that the proxy had.

    Attributes:
        at: when, by the monotonic clock.
        kind: what the controller did by it.
        fate: the name of the rule that made it fail, or `passed`.
    """

    at: float
    kind: str
    fate: str


class FaultProxy:
    """Serves TLS on loopback for as long as a block lasts.

    Attributes:
        rules: the first that concerns a call and has its chance decides; replace them at any time.
        streams: what happens to watches; change it by `act`.
        seen: all calls, in the order in which they came.
        answered: how many calls of each kind the API server has answered, watches left out.
    """

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        seed: int,
        rules: Iterable[Rule] = (),
        change: Change = unchanged,
    ) -> None:
        """Prepare.

        Args:
            cluster: where calls go.
            folder: of the proxy's certificate; must not exist yet.
            seed: of chance.
            rules: what goes wrong from the start.
            change: what becomes of each answer, and of each event of a watch, on its way.
        """
        self.rules: tuple[Rule, ...] = tuple(rules)
        self.seen: list[Seen] = []
        self.streams = Streams(change)
        self._change = change
        self.answered: Counter[str] = Counter()
        self._random = Random(seed)
        view = cluster.run_kubectl("config", "view", "--raw", "--minify", "--flatten", "--output=json")
        self._upstream: dict[str, str] = json.loads(view)["clusters"][0]["cluster"]
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault proxy", daemon=True)

    def __enter__(self) -> Self:
        authority = Authority(self._folder)
        authority.issue_server("proxy", ["127.0.0.1"])
        self._thread.start()
        self._in_thread(self._start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._in_thread(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        collect_connections()  # those that were held up have no owner left to close them

    def count(self, since: float = 0.0) -> Counter[tuple[str, str]]:
        """How many calls of which kind had which fate, from a moment of the monotonic clock on."""
        return Counter((seen.kind, seen.fate) for seen in list(self.seen) if seen.at >= since)

    def now(self) -> float:
        """The clock of `Seen.at`."""
        return time.monotonic()

    def kubeconfig(self, account: Path, path: Path) -> Path:
        """Write a kubeconfig like another one that authenticates by a token, but through the proxy."""
        token = yaml.safe_load(account.read_text())["users"][0]["user"]["token"]
        authority = self._folder / "ca.crt"
        cluster = {"server": f"https://127.0.0.1:{self._port}", "certificate-authority": str(authority)}
        write_kubeconfig(path, token_kubeconfig(cluster, token))
        return path

    def act(self, change: Callable[[Streams], None]) -> None:
        """Change what happens to watches, in the proxy's own thread."""
        self._loop.call_soon_threadsafe(change, self.streams)

    def _in_thread(self, work: "Awaitable[T]") -> T:
        async def done() -> T:
            return await work

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(_START_SECONDS)

    async def _start(self) -> None:
        certificate = b64decode(self._upstream["certificate-authority-data"]).decode()
        trusted = ssl.create_default_context(cadata=certificate)
        connector = aiohttp.TCPConnector(limit=0, ssl=trusted)
        self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None))
        app = web.Application(client_max_size=_LARGEST_BODY)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await self._runner.setup()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self._folder / "proxy.crt", self._folder / "proxy.key")
        await web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=context).start()
        self._port = self._runner.addresses[0][1]

    async def _stop(self) -> None:
        await self._runner.cleanup()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        await asyncio.sleep(0.1)  # what was closed takes notice of it in the next turns of the loop
        await self._session.close()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        call = Call(request.method, request.path, request.query_string, await request.read())
        rule = next((r for r in self.rules if r.concerns(call) and self._random.random() < r.chance), None)
        self.seen.append(Seen(time.monotonic(), call.kind, rule.name if rule is not None else PASSED))
        headers = {name: request.headers[name] for name in _REQUEST_HEADERS if name in request.headers}
        headers["Accept-Encoding"] = "identity"
        try:
            if call.watches and rule is None:
                return await self._stream(request, headers)
            forward = partial(self._forward, request, call, headers)
            answer = await (rule.fault(forward, self._random) if rule is not None else forward())
        except (CutError, aiohttp.ClientError):  # the second: the API server is down
            if request.transport is not None:
                request.transport.abort()
            answer = Answer(502)
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)

    async def _forward(self, request: web.Request, call: Call, headers: dict[str, str]) -> Answer:
        url = self._upstream["server"] + request.raw_path
        body = call.body or None  # an empty one would get a Content-Type, which discovery refuses
        async with self._session.request(call.method, url, headers=headers, data=body) as response:
            kept = {name: response.headers[name] for name in _ANSWER_HEADERS if name in response.headers}
            answer = Answer(response.status, kept, self._change(request.path, await response.read()))
        self.answered[call.kind] += 1
        return answer

    async def _stream(self, request: web.Request, headers: dict[str, str]) -> web.StreamResponse:
        url = self._upstream["server"] + request.raw_path
        async with self._session.get(url, headers=headers) as upstream:
            content = upstream.headers.get("Content-Type", "application/json")
            downstream = web.StreamResponse(status=upstream.status, headers={"Content-Type": content})
            with suppress(ConnectionError, CutError):  # the controller has gone, or the watch is to end
                await self.streams.pass_on(request, upstream.content, downstream)
        return downstream
