"""HTTP/1.1 to one server: connections that are kept, calls one after the other on each, and streams.

Calls are most of what the controller's CPU is spent on, and a client for all of the web takes three times as
much for one. httptools parses; here are the connections.
"""

import asyncio
import base64
import ssl
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import quote, unquote, urlsplit

import httptools

MOST_UNREAD: Final = 4_000_000
"""Bytes of a stream that wait to be read before the server is asked to wait."""

_UNENCODED: Final = "/:?=&%@!$'()*+,;~-._"
_SPECIAL: Final = frozenset(' "#<>[]\\^`{|}')


class HttpError(Exception):
    """There is no connection, or it was lost, or what came over it is no HTTP."""


@dataclass(slots=True)
class HttpAnswer:
    """What a server said: headers by their names in small letters, and all of the body but of a stream."""

    status: int
    headers: dict[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class Server:
    """Where a server is, and how it is reached."""

    url: str  # scheme, host and port, and the path that all paths begin with, if any
    tls: ssl.SSLContext  # what is trusted, and the client's certificate; unused without TLS
    name: str = ""  # in its certificate, if that is not the host
    proxy: str = ""  # the URL of a proxy on the way to it; reached without TLS itself

    @property
    def secure(self) -> bool:
        return self.url.startswith("https:")

    @property
    def address(self) -> tuple[str, int]:
        return _address(self.url)


@dataclass(slots=True)
class _Exchange:
    """A request that waits for its answer.

    It is answered when all of the answer has come. A stream is when its answer has begun: then `body` is what
    has not been read yet, and `more` is set when there is more, or no more.
    """

    answered: "asyncio.Future[HttpAnswer]"
    more: asyncio.Event | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: deque[bytes] = field(default_factory=deque)
    unread: int = 0
    over: bool = False
    error: Exception | None = None


class _Connection(asyncio.Protocol):
    """One connection; it carries one exchange at a time."""

    def __init__(self, closed: Callable[["_Connection"], None]) -> None:
        self.usable = True
        self._closed = closed
        self._parser = httptools.HttpResponseParser(self)
        self._exchange: _Exchange | None = None
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def send(self, data: bytes, exchange: _Exchange) -> None:
        self._exchange = exchange
        self.transport.write(data)

    def secured(self, transport: asyncio.Transport) -> None:
        """From now on the connection leads to the server that the proxy has opened it to."""
        self.transport = transport
        self._parser, self._exchange = httptools.HttpResponseParser(self), None

    def resume(self) -> None:
        """Read on, if reading has paused."""
        if self._paused:
            self._paused = False
            self.transport.resume_reading()

    def close(self) -> None:
        self.usable = False
        self.transport.abort()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._end(HttpError(f"no HTTP: {error}"))
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.usable = False
        self._closed(self)
        self._end(HttpError(str(error or "the connection was closed")))

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._exchange is not None:
            self._exchange.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        exchange = self._exchange
        if exchange is not None and exchange.more is not None and not exchange.answered.done():
            exchange.answered.set_result(HttpAnswer(self._parser.get_status_code(), exchange.headers))

    def on_body(self, data: bytes) -> None:
        exchange = self._exchange
        if exchange is None:
            return
        exchange.body.append(data)
        if exchange.more is not None:
            exchange.unread += len(data)
            exchange.more.set()
            if exchange.unread > MOST_UNREAD and not self._paused:
                self._paused = True
                self.transport.pause_reading()

    def on_message_complete(self) -> None:
        if not self._parser.should_keep_alive():
            self.usable = False
        exchange = self._exchange
        if exchange is not None and exchange.more is None and not exchange.answered.done():
            body = b"".join(exchange.body)
            exchange.answered.set_result(HttpAnswer(self._parser.get_status_code(), exchange.headers, body))
        self._end(None)

    def _end(self, error: HttpError | None) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is None:
            return
        exchange.over, exchange.error = True, error
        if exchange.more is not None:
            exchange.more.set()
        if error is not None and not exchange.answered.done():
            exchange.answered.set_exception(error)


class Client:
    """Calls and streams to one server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._idle: list[_Connection] = []
        self.connections: set[_Connection] = set()
        host, port = server.address
        self._host = f"Host: {_authority(host, port)}\r\n"
        forwards = server.proxy and not server.secure
        self._base = server.url if forwards else urlsplit(server.url).path.rstrip("/")
        if forwards:
            self._host += _proxy_credentials(server.proxy)

    async def call(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        body: bytes | None,
        seconds: float,
        permit: Callable[[], Awaitable[None]] | None = None,
    ) -> HttpAnswer:
        """Send a request and wait for all of its answer, for so many seconds all in all.

        The path has its query, and the headers are all but those of the connection. `permit` is waited for
        when there is a connection, just before the request is sent.

        Raises:
            HttpError: none has come; whether the request has reached the server is unknown.
            TimeoutError: none has come within so many seconds; as above.
        """
        exchange = _Exchange(asyncio.get_running_loop().create_future())
        async with asyncio.timeout(seconds):
            connection = await self._connected()
            try:
                if permit is not None:
                    await permit()
                connection.send(self._request(method, path, headers, body), exchange)
                answer = await exchange.answered
            except BaseException:
                connection.close()
                raise
        if connection.usable:
            self._idle.append(connection)
        else:
            connection.close()
        return answer

    @asynccontextmanager
    async def stream(
        self, path: str, headers: dict[str, str], seconds: float
    ) -> AsyncIterator[tuple[HttpAnswer, AsyncIterator[bytes]]]:
        """Send a request; the answer has begun, and its body is read piece by piece.

        Raises:
            HttpError: there is no answer, or the connection was lost while it was read.
            TimeoutError: no answer has begun within so many seconds.
        """
        exchange = _Exchange(asyncio.get_running_loop().create_future(), asyncio.Event())
        async with asyncio.timeout(seconds):
            connection = await self._connected()
            try:
                connection.send(self._request("GET", path, headers, None), exchange)
                answer = await exchange.answered
            except BaseException:
                connection.close()
                raise
        try:
            yield answer, _pieces(exchange, connection)
        finally:
            connection.close()

    async def close(self) -> None:
        for connection in list(self.connections):
            connection.close()
        await asyncio.sleep(0)  # they take notice of it in the next turn of the loop

    async def _connected(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.usable:
                return connection
        try:
            connection = await self._connect()
        except (OSError, ssl.SSLError) as error:
            raise HttpError(str(error) or type(error).__name__) from error
        self.connections.add(connection)
        return connection

    async def _connect(self) -> _Connection:
        loop, server = asyncio.get_running_loop(), self._server
        host, port = server.address
        name = server.name or host

        def made() -> _Connection:
            return _Connection(self.connections.discard)

        if not server.proxy:
            tls = server.tls if server.secure else None
            of_tls = name if server.secure else None
            _, connection = await loop.create_connection(made, host, port, ssl=tls, server_hostname=of_tls)
            return connection
        _, connection = await loop.create_connection(made, *_address(server.proxy))
        if server.secure:
            try:
                await self._pass_through(connection, name)
            except BaseException:  # also when time is up: no other code has this connection
                connection.close()
                raise
        return connection

    async def _pass_through(self, connection: _Connection, name: str) -> None:
        """Have the proxy open the way to the server, and speak TLS from then on."""
        loop, server = asyncio.get_running_loop(), self._server
        there = _authority(*server.address)
        request = f"CONNECT {there} HTTP/1.1\r\nHost: {there}\r\n{_proxy_credentials(server.proxy)}\r\n"
        exchange = _Exchange(loop.create_future(), asyncio.Event())
        connection.send(request.encode(), exchange)
        answer = await exchange.answered
        if answer.status != 200:
            raise HttpError(f"the proxy {_authority(*_address(server.proxy))} answers {answer.status}")
        secured = await loop.start_tls(connection.transport, connection, server.tls, server_hostname=name)
        assert secured is not None
        connection.secured(secured)

    def _request(self, method: str, path: str, headers: dict[str, str], body: bytes | None) -> bytes:
        lines = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        length = f"content-length: {len(body)}\r\n" if body is not None else ""
        head = f"{method} {self._base}{encoded(path)} HTTP/1.1\r\n{self._host}{lines}{length}\r\n"
        return head.encode("latin-1") + (body or b"")


async def _pieces(exchange: _Exchange, connection: _Connection) -> AsyncIterator[bytes]:
    assert exchange.more is not None
    while True:
        while exchange.body:
            piece = exchange.body.popleft()
            exchange.unread -= len(piece)
            if not exchange.body and not exchange.over:
                connection.resume()
            yield piece
        if exchange.over:
            if exchange.error is not None:
                raise exchange.error
            return
        exchange.more.clear()
        await exchange.more.wait()


def encoded(path: str) -> str:
    """A path with its query, as it may stand in a request: a name may have what HTTP has a meaning for."""
    plain = path.isascii() and path.isprintable() and not set(path) & _SPECIAL
    return path if plain else quote(path, safe=_UNENCODED)


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _proxy_credentials(proxy: str) -> str:
    parts = urlsplit(proxy)
    if parts.username is None:
        return ""
    text = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Proxy-Authorization: Basic {base64.b64encode(text.encode()).decode()}\r\n"
