"""Single calls are repeated when that can help, and only then."""

from collections import deque
from typing import Any

import pytest
from kubernetes_asyncio import client

from admitter.client.errors import (
    ApiError,
    ConfigurationError,
    ConflictError,
    NotFoundError,
    UnreachableError,
)
from admitter.client.transport import HttpTransport, _proxy
from tests.client.faulty_server import FaultyServer, connected

OK: tuple[int, dict[str, str], Any] = (200, {}, {"kind": "Thing"})


def refusal(status: int, reason: str, **headers: str) -> tuple[int, dict[str, str], Any]:
    return status, headers, {"kind": "Status", "reason": reason, "message": f"it said {reason}"}


@pytest.mark.parametrize(
    "fault",
    [
        refusal(429, "TooManyRequests", **{"Retry-After": "0"}),
        refusal(500, "InternalError"),
        refusal(503, "ServiceUnavailable"),
        (0, {}, b""),
        (200, {}, b'{"kind": "Th'),
    ],
    ids=["throttled", "failed", "unavailable", "connection lost", "cut off"],
)
async def test_a_call_is_repeated_after(fault: tuple[int, dict[str, str], Any]) -> None:
    server = FaultyServer(calls=deque([fault, OK]))
    async with connected(server) as transport:
        assert await transport.get("/thing") == {"kind": "Thing"}
    assert len(server.seen) == 2


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (refusal(409, "Conflict"), ConflictError),
        (refusal(404, "NotFound"), NotFoundError),
        (refusal(422, "Invalid"), ApiError),
        (refusal(403, "Forbidden"), ApiError),
    ],
)
async def test_a_call_is_not_repeated_after(
    answer: tuple[int, dict[str, str], Any], expected: type[ApiError]
) -> None:
    server = FaultyServer(calls=deque([answer]))
    async with connected(server) as transport:
        with pytest.raises(expected, match="it said") as caught:
            await transport.patch("/thing", {})
    assert caught.value.reason == answer[2]["reason"]
    assert len(server.seen) == 1


async def test_a_name_that_is_taken_is_told_from_a_conflict() -> None:
    server = FaultyServer(calls=deque([refusal(409, "AlreadyExists")]))
    async with connected(server) as transport:
        with pytest.raises(ConflictError) as caught:
            await transport.create("/things", {})
    assert caught.value.reason == "AlreadyExists"


async def test_a_server_that_never_answers_is_given_up_with_its_name() -> None:
    server = FaultyServer(calls=deque([(0, {}, b"")]))
    async with connected(server) as transport:
        with pytest.raises(UnreachableError, match=transport.host):
            await transport.get("/thing")
    assert len(server.seen) >= 5


async def test_the_proxy_that_the_environment_names_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    proxy = FaultyServer(calls=deque([OK]))
    async with connected(proxy) as direct:
        monkeypatch.setenv("http_proxy", direct.host)
        monkeypatch.setenv("no_proxy", "other.invalid")
        settings = client.Configuration()
        settings.host = "http://cluster.invalid"
        async with HttpTransport(settings) as transport:
            assert await transport.get("/thing") == {"kind": "Thing"}
    assert len(proxy.seen) == 1


async def test_a_server_on_the_own_machine_is_reached_without_the_proxy_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:1")
    monkeypatch.delenv("no_proxy", raising=False)
    server = FaultyServer(calls=deque([OK]))
    async with connected(server) as transport:
        assert await transport.get("/thing") == {"kind": "Thing"}


@pytest.mark.parametrize(
    ("host", "direct"),
    [
        ("https://127.0.0.1:6443", True),
        ("https://127.8.8.8", True),
        ("https://[::1]:6443/path", True),
        ("https://LOCALHOST:6443", True),
        ("https://excepted.invalid:6443", True),
        ("https://localhost.invalid", False),
        ("https://10.0.0.1:6443", False),
        ("https://[fd00::1]:6443", False),
    ],
)
def test_for_which_hosts_the_proxy_of_the_environment_is(
    monkeypatch: pytest.MonkeyPatch, host: str, direct: bool
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.invalid:1")
    monkeypatch.setenv("no_proxy", "excepted.invalid")
    configuration = client.Configuration(host=host)
    assert _proxy(configuration, host) == ("" if direct else "http://proxy.invalid:1")
    configuration.proxy = "http://stated.invalid:1"
    assert _proxy(configuration, host) == "http://stated.invalid:1"


@pytest.mark.parametrize("proxy", ["https://me:secret@proxy.example:3128", "me:secret@proxy.example:3128"])
def test_a_proxy_that_is_not_reached_by_http_is_refused(proxy: str) -> None:
    configuration = client.Configuration(host="http://cluster.invalid")
    configuration.proxy = proxy
    with pytest.raises(ConfigurationError, match=r"proxy\.example:3128: can be reached") as caught:
        HttpTransport(configuration)
    assert "secret" not in str(caught.value)
