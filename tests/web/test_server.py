"""Which user is told what."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from structlog.testing import capture_logs

from admitter.client.access import Access
from admitter.client.errors import ClusterError
from admitter.web.routes import GET
from admitter.web.server import MOST_STREAMS_OF_ONE
from tests.patience import PATIENCE_SECONDS
from tests.web.pages import ADMIN, TENANT, Rights, Served, department, served

Json = dict[str, Any]


@pytest.fixture
async def page() -> AsyncIterator[Served]:
    async with served(department()) as made:
        yield made


async def ask(page: Served, path: str, token: str = ADMIN, status: int = 200, **query: str) -> Json:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(page.address + path, params=query) as answer,
    ):
        assert answer.status == status, await answer.text()
        found: Json = await answer.json()
        return found


async def test_the_tree_is_for_users_that_may_list_cluster_queues(page: Served) -> None:
    tree = await ask(page, "/api/tree")
    lines = {line["title"]: line for line in tree["lines"]}
    assert list(lines) == ["Cohort research", "ClusterQueue a", "ClusterQueue b"]
    (use,) = lines["ClusterQueue a"]["uses"]
    assert (use["used"], use["min"], use["borrowed"], use["words"]["used"]) == (10.0, 8.0, 2.0, "10")
    assert lines["ClusterQueue b"]["uses"][0]["lent"] == 2.0
    refused = await ask(page, "/api/tree", TENANT, 403)
    assert "may not list ClusterQueues: choose a namespace" in str(refused["error"])


async def test_no_client_is_told_anything_without_a_token(page: Served) -> None:
    for path in ("/api/me", *GET):
        for token in ("", "another"):
            assert await ask(page, path, token, 401) == {"error": "log in with a token"}
    async with aiohttp.ClientSession() as session, session.get(f"{page.address}/api/changes") as answer:
        assert answer.status == 401


async def explained(page: Served, token: str) -> Json:
    """All that is told of a Workload; on a busy machine a first answer goes before it is worked out."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            answer = await ask(page, "/api/workload", token, namespace="team-a", name="train-0")
            if answer["complete"]:
                return answer


async def test_an_explanation_hides_workloads_that_may_not_be_seen(page: Served) -> None:
    mine, all_of_it = await explained(page, TENANT), await explained(page, ADMIN)
    assert [(each["namespace"], each["name"]) for each in all_of_it["ahead"]] == [("team-b", "secret")]
    assert "secret" not in str(mine)
    assert [each["visible"] for each in mine["ahead"]] == [False]
    await ask(page, "/api/workload", TENANT, 403, namespace="team-b", name="secret")
    missing = await ask(page, "/api/workload", TENANT, 404, namespace="team-a", name="trian-0")
    assert "train-0" in str(missing["error"])


async def test_what_has_happened_is_in_the_order_of_time(page: Served) -> None:
    done = await ask(page, "/api/workload", namespace="team-a", name="done")
    assert [each["what"] for each in done["timeline"]] == ["Created", "Admitted", "Finished"]


async def test_a_session_lasts_until_its_token_expires_or_the_user_logs_out(page: Served) -> None:
    jar = aiohttp.CookieJar(unsafe=True, treat_as_secure_origin=page.address)
    async with aiohttp.ClientSession(page.address, cookie_jar=jar) as session:
        async with session.post("/api/session", data="another") as answer:
            assert answer.status == 401
            assert "does not know this token" in await answer.text()
        async with session.post("/api/session", data=ADMIN) as answer:
            cookie = answer.headers["Set-Cookie"]
        assert {"HttpOnly", "Secure", "SameSite=Strict", "Path=/"} <= {
            part.strip() for part in cookie.split(";")
        }
        assert ADMIN not in cookie
        async with session.get("/api/me") as answer:
            assert await answer.json() == {"name": "admin", "tree": True}
        page.rights.expired.add(ADMIN)
        async with session.get("/api/me") as answer:
            assert answer.status == 401
        page.rights.expired.clear()
        async with session.delete("/api/session") as answer:
            assert answer.status == 200
        async with session.get("/api/me") as answer:
            assert answer.status == 401


async def test_another_sites_page_can_not_log_a_user_in_or_out(page: Served) -> None:
    async with aiohttp.ClientSession(page.address, headers={"Sec-Fetch-Site": "cross-site"}) as session:
        for method in ("POST", "DELETE"):
            async with session.request(method, "/api/session", data=ADMIN) as answer:
                assert answer.status == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://queues.example.com.evil.example"}, 403),
        ({"Origin": "http://queues.example.com:8443"}, 403),
        ({"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "https://queues.example.com", "Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "https://queues.example.com"}, 200),
        ({"Origin": "http://QUEUES.example.com"}, 200),
        ({"Origin": "https://before-a-proxy.example", "Sec-Fetch-Site": "same-origin"}, 200),
        ({}, 200),
    ],
)
async def test_an_older_browser_tells_the_address_of_the_page_that_logs_in(
    headers: dict[str, str], status: int, page: Served
) -> None:
    headers = {"Host": "queues.example.com", **headers}
    async with (
        aiohttp.ClientSession(page.address, headers=headers) as session,
        session.post("/api/session", data=ADMIN) as answer,
    ):
        assert answer.status == status
        assert ("Set-Cookie" in answer.headers) == (status == 200)


def unknown_to_all(page: Served) -> None:
    """Tokens are looked up as those of a cluster are, and it knows none."""

    class Nothing:
        async def create(self, _path: str, _body: Json) -> Json:
            return {"status": {"authenticated": False}}

    page.page._access = Access(Nothing(), lambda: 0.0)  # type: ignore[arg-type]  # one method is used


@pytest.mark.parametrize(
    "request_",
    [
        b"POST /api/session HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n\xff\xfe",
        b"POST /api/session HTTP/1.1\r\nHost: x\r\nContent-Type: a; charset=c\r\nContent-Length: 1\r\n\r\na",
        b"GET /api/me HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \xff\xfe\r\n\r\n",
        b"GET /api/me HTTP/1.1\r\nHost: x\r\nCookie: admitter-session=\xff\r\n\r\n",
    ],
    ids=["body", "charset", "header", "cookie"],
)
async def test_bytes_that_are_no_token_are_refused_as_an_unknown_one(request_: bytes, page: Served) -> None:
    unknown_to_all(page)
    where = urlsplit(page.address)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write(request_)
    head = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    assert head.startswith(b"HTTP/1.1 401 ")
    assert b"Content-Security-Policy: default-src 'none'" in head


async def test_a_defect_is_an_answer_with_the_headers_of_all_and_a_line_in_the_log(
    page: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: Any) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(Rights, "may_list", fails)
    headers = {"Authorization": f"Bearer {ADMIN}"}
    with capture_logs() as logged:
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.get(f"{page.address}/api/me") as it,
        ):
            assert it.status == 500
            assert await it.json() == {"error": "this could not be answered: the log of the console says why"}
            assert it.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert [(each["event"], each["path"]) for each in logged] == [("a request failed", "/api/me")]


async def test_a_stream_goes_on_while_the_api_server_does_not_answer(
    page: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def down(*_: Any) -> None:
        raise ClusterError("down")

    headers = {"Authorization": f"Bearer {ADMIN}"}
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"{page.address}/api/changes") as answer,
    ):
        assert await answer.content.readuntil(b"\n\n") == b"data: 1\n\n"
        with monkeypatch.context() as failing:
            failing.setattr(Rights, "user", down)
            for number in (2, 3):
                page.stage.show(department(number))
                assert await answer.content.readuntil(b"\n\n") == f"data: {number}\n\n".encode()
            await ask(page, "/api/me", status=502)
        page.rights.expired.add(ADMIN)
        page.stage.show(department())
        assert await answer.content.read() in {b"", b"data: 4\n\n"}, "it ends, and has no second head"


async def test_every_answer_forbids_what_it_does_not_need(page: Served) -> None:
    async with aiohttp.ClientSession(page.address) as session:
        for path in ("/", "/app.js", "/view.js", "/app.css", "/icon.svg", "/api/tree", "/nothing"):
            async with session.get(path) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
                assert "unsafe" not in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def test_changes_are_told_as_they_come(page: Served) -> None:
    headers = {"Authorization": f"Bearer {ADMIN}"}
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"{page.address}/api/changes") as answer,
    ):
        assert answer.content_type == "text/event-stream"
        assert await answer.content.readline() == b"data: 1\n"
        assert await answer.content.readline() == b"\n"
        page.stage.show(department(4))
        assert await answer.content.readline() == b"data: 2\n"


async def test_the_streams_of_one_user_end_only_its_own(page: Served) -> None:
    """The newest of too many has the place of the same user's oldest one, and another's goes on."""

    def follow(session: aiohttp.ClientSession, token: str) -> Any:  # what aiohttp makes
        headers = {"Authorization": f"Bearer {token}"}
        return session.get(f"{page.address}/api/changes", headers=headers)

    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        follow(session, ADMIN) as admins,
    ):
        streams = [await follow(session, TENANT) for _ in range(MOST_STREAMS_OF_ONE + 1)]
        for stream in (admins, *streams):
            assert stream.status == 200
            assert await stream.content.readline() == b"data: 1\n"
        page.stage.show(department(4))
        told = [(await stream.content.read()).endswith(b"data: 2\n\n") for stream in streams[:1]]
        assert told == [True], "it ends once it has been told"
        for stream in (admins, *streams[1:]):
            await stream.content.readline()
            assert await stream.content.readline() == b"data: 2\n"
        for stream in streams:
            stream.close()


async def test_another_name_than_its_own_is_refused() -> None:
    """As where another site lets its own name lead to the page's address."""
    async with served(department(), hosts=("queues.example.com",)) as page:
        for host, status in {
            "queues.example.com": 401,
            "QUEUES.example.com:8443": 401,
            "localhost:8090": 401,
            "[::1]:8090": 401,
            "evil.example.com": 421,
            "queues.example.com.evil.example.com": 421,
            "": 421,
            "[": 421,
        }.items():
            headers = {"Host": host}
            async with aiohttp.ClientSession() as session:
                async with session.get(f"{page.address}/api/me", headers=headers) as answer:
                    assert answer.status in {status, 400 if host == "[" else status}, host
                async with session.get(f"{page.address}/healthz", headers=headers) as answer:
                    assert answer.status == 200 or host == "[", "probes go to an address"


async def test_before_the_cluster_has_been_read_that_is_said() -> None:
    async with served(None) as page:
        assert await ask(page, "/api/tree", status=503) == {"error": "the cluster has not been read yet"}
        async with aiohttp.ClientSession(page.address) as session, session.get("/healthz") as answer:
            assert (answer.status, await answer.text()) == (503, "not read yet\n")


async def test_use_over_time_is_collected() -> None:
    async with served(department()) as page:
        queue = await ask(page, "/api/queue", name="a")
        course = queue["course"]
        used = {"flavor": "default", "resource": "cpu", "used": [10]}
        assert course == {"times": [1767225600.0], "waiting": [4], "used": [used]}
