"""Connections are kept for the next call, given up when no good, and reach a server through a proxy."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from admitter.client.http import Client, HttpError, Server, encoded
from admitter.sandbox.certificates import Authority
from tests.patience import PATIENCE_SECONDS

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
NO_TLS = ssl.create_default_context()


async def request(reader: asyncio.StreamReader) -> bytes:
    """All of a request."""
    head = await reader.readuntil(b"\r\n\r\n")
    lengths = [line for line in head.split(b"\r\n") if line.startswith(b"content-length:")]
    return head + (await reader.readexactly(int(lengths[0].split(b":")[1])) if lengths else b"")


@asynccontextmanager
async def serving(talk: Talk, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """The URL of a server that talks to each connection as it is told."""
    talks: set[asyncio.Task[None] | None] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.add(asyncio.current_task())
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await talk(reader, writer)
        writer.close()
        with suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    host, port = server.sockets[0].getsockname()[:2]
    async with server:
        yield f"{'https' if tls else 'http'}://{host}:{port}"
    async with asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.gather(*(talk for talk in talks if talk is not None))


class Counting:
    """Answers every request, and remembers them by connection."""

    def __init__(self, answer: bytes = OK, calls: int = 1000) -> None:
        self.connections: list[list[bytes]] = []
        self._answer = answer
        self._calls = calls

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen: list[bytes] = []
        self.connections.append(seen)
        for _ in range(self._calls):
            seen.append(await request(reader))
            writer.write(self._answer)


async def call(client: Client, path: str = "/thing", body: bytes | None = None) -> bytes:
    answer = await client.call(
        "GET" if body is None else "POST", path, {"accept": "x/y"}, body, PATIENCE_SECONDS
    )
    assert answer.status == 200
    return answer.body


async def test_calls_one_after_the_other_share_a_connection() -> None:
    server = Counting()
    async with serving(server) as url:
        client = Client(Server(url, NO_TLS))
        assert [await call(client), await call(client, "/other?a=b", b"{}")] == [b"ok", b"ok"]
        await client.close()
    ((first, second),) = server.connections
    assert first.startswith(b"GET /thing HTTP/1.1\r\nHost: 127.0.0.1:")
    assert second.startswith(b"POST /other?a=b HTTP/1.1\r\n")
    assert second.endswith(b"content-length: 2\r\n\r\n{}")


async def test_calls_at_a_time_have_a_connection_each() -> None:
    server = Counting()
    async with serving(server) as url:
        client = Client(Server(url, NO_TLS))
        await asyncio.gather(*(call(client) for _ in range(5)))
        await client.close()
    assert len(server.connections) == 5


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    ],
    ids=["announced", "not announced"],
)
async def test_a_connection_that_the_server_closes_is_not_used_again(answer: bytes) -> None:
    server = Counting(answer, calls=1)
    async with serving(server) as url:
        client = Client(Server(url, NO_TLS))
        await call(client)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while client.connections:  # noqa: ASYNC110  # each turn of the loop lets the end of the connection arrive
                await asyncio.sleep(0)
        await call(client)
        await client.close()
    assert len(server.connections) == 2


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nok", b"SSH-2.0\r\n"])
async def test_an_answer_that_is_none_is_an_error(answer: bytes) -> None:
    async with serving(Counting(answer, calls=1)) as url:
        client = Client(Server(url, NO_TLS))
        with pytest.raises(HttpError):
            await call(client)
        await client.close()


async def test_a_caller_that_gives_up_waiting_does_not_leave_an_answer_to_the_next_call() -> None:
    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b"/slow" in await request(reader):
            await reader.read()  # until the connection is closed
        else:
            writer.write(OK)

    async with serving(slow) as url:
        client = Client(Server(url, NO_TLS))
        with pytest.raises(TimeoutError):
            await client.call("GET", "/slow", {}, None, 0.05)
        assert await call(client) == b"ok"
        await client.close()


async def test_a_stream_is_read_as_it_comes_and_its_loss_is_told() -> None:
    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        await writer.drain()
        writer.write(b"3\r\ntwo\r\n")

    async with serving(stream) as url:
        client = Client(Server(url, NO_TLS))
        seen: list[bytes] = []
        with pytest.raises(HttpError):
            await read(client, seen)
        await client.close()
    assert b"".join(seen) == b"onetwo"


async def read(client: Client, seen: list[bytes]) -> None:
    async with client.stream("/watch", {}, PATIENCE_SECONDS) as (answer, body):
        assert answer.status == 200
        async for piece in body:
            seen.append(piece)  # noqa: PERF401  # what came before the end counts


async def test_a_slow_reader_holds_the_server_up_instead_of_filling_memory() -> None:
    size, sent = 1_000_000, 0

    async def stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (60 * size))
        for _ in range(60):
            writer.write(bytes(size))
            await writer.drain()
            sent += 1

    async with serving(stream) as url:
        client = Client(Server(url, NO_TLS))
        async with client.stream("/watch", {}, PATIENCE_SECONDS) as (_, body):
            held = -1
            while held != sent:  # until the server can send no more
                held = sent
                await asyncio.sleep(0.2)
            assert held < 40, "of 60 MB most have not been taken"
            assert sum([len(piece) async for piece in body]) == 60 * size
        await client.close()


async def test_a_server_with_tls_is_reached_through_a_proxy(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.issue_server("server", ["cluster.invalid"])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    asked: list[bytes] = []

    async with serving(Counting(), tls) as inner:

        async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await request(reader))
            host, _, port = inner.removeprefix("https://").partition(":")
            there = await asyncio.open_connection(host, int(port))
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(pipe(reader, there[1]), pipe(there[0], writer))

        async with serving(proxy) as url:
            there = url.replace("http://", "http://me:pass%20word@")
            trusted = ssl.create_default_context(cafile=str(tmp_path / "ca.crt"))
            client = Client(Server("https://cluster.invalid:6443", trusted, proxy=there))
            assert [await call(client), await call(client)] == [b"ok", b"ok"]
            await client.close()
    assert len(asked) == 1
    assert asked[0].startswith(b"CONNECT cluster.invalid:6443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6cGFzcyB3b3Jk\r\n" in asked[0]


async def pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()


async def test_a_proxy_that_refuses_is_named() -> None:
    async with serving(Counting(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")) as url:
        host = url.removeprefix("http://")
        client = Client(Server("https://cluster.invalid", NO_TLS, proxy=f"http://me:secret@{host}"))
        with pytest.raises(HttpError, match=rf"^the proxy {host} answers 407$"):
            await call(client)
        await client.close()


async def test_a_connection_to_a_proxy_that_says_nothing_is_closed() -> None:
    closed = asyncio.Event()

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await request(reader)
        with suppress(ConnectionError):
            assert await reader.read() == b""
        closed.set()
        writer.close()

    async with serving(proxy) as url:
        client = Client(Server("https://cluster.invalid", NO_TLS, proxy=url))
        with pytest.raises(TimeoutError):
            await client.call("GET", "/", {}, None, 0.1)
        await asyncio.wait_for(closed.wait(), PATIENCE_SECONDS)


async def test_a_name_can_not_end_a_request() -> None:
    assert encoded("/a/b?labelSelector=c%3Dd&x=y") == "/a/b?labelSelector=c%3Dd&x=y"
    assert encoded("/a b\r\nHost: c") == "/a%20b%0D%0AHost:%20c"
    assert encoded("/ä") == "/%C3%A4"
