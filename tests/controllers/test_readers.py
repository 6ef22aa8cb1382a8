"""Which users read metrics, and what others are told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import aiohttp
import pytest

from admitter.client.access import LONGEST_TOKEN, OF_AN_ADDRESS, REMEMBERED_SECONDS, Access
from admitter.client.errors import UnreachableError
from admitter.controllers.telemetry.health import Probes, ProcessState, is_local, serve

Json = dict[str, Any]


@dataclass
class Reviewing:
    """An API server that knows some tokens, and the users that may read metrics.

    Attributes:
        known: users by token.
        readers: those that may.
        away: whether it does not answer.
        asked: the kinds of what it was asked.
    """

    known: dict[str, str] = field(default_factory=lambda: {"good": "prometheus", "poor": "tenant"})
    readers: set[str] = field(default_factory=lambda: {"prometheus"})
    away: bool = False
    asked: list[str] = field(default_factory=list)

    async def create(self, _path: str, body: Json) -> Json:
        self.asked.append(body["kind"])
        if self.away:
            raise UnreachableError("gone fishing")
        spec = body["spec"]
        if body["kind"] == "TokenReview":
            user = self.known.get(spec["token"])
            return {"status": {"authenticated": user is not None, "user": {"username": user}}}
        assert spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
        return {"status": {"allowed": spec["user"] in self.readers}}


@dataclass
class Asking:
    """A controller that shows metrics to those that may.

    Attributes:
        server: the API server that it asks.
        session: asks it.
        url: where it answers.
        now: seconds that pass when a test says so.
    """

    server: Reviewing
    session: aiohttp.ClientSession
    url: str = ""
    now: float = 0.0

    async def get(self, token: str | None = None, path: str = "/metrics", scheme: str = "Bearer") -> int:
        """The status of an answer."""
        headers = {"Authorization": f"{scheme} {token}"} if token is not None else {}
        async with self.session.get(f"{self.url}{path}", headers=headers) as answer:
            assert (await answer.text() == "figures") == (answer.status == 200 and path == "/metrics")
            return answer.status


async def page() -> bytes:
    return b"figures"


@asynccontextmanager
async def asking() -> AsyncIterator[Asking]:
    async with aiohttp.ClientSession() as session:
        made = Asking(Reviewing(), session)
        access = Access(cast("Any", made.server), lambda: made.now)
        state = ProcessState(ready=True, words="leader")
        runner = await serve("127.0.0.1", 0, Probes(lambda: None, lambda: state, page, access))
        made.url = "http://{}:{}".format(*runner.addresses[0][:2])
        try:
            yield made
        finally:
            await runner.cleanup()


async def test_metrics_are_for_users_that_may_get_them_and_probes_for_all() -> None:
    async with asking() as each:
        assert [await each.get(token) for token in ("good", "poor", "none", None)] == [200, 403, 401, 401]
        assert await each.get("good", scheme="Basic") == 401
        assert [await each.get(path=path) for path in ("/healthz", "/readyz")] == [200, 200]


async def test_answers_count_for_a_while_also_those_that_refuse() -> None:
    async with asking() as each:
        for _ in range(10):
            assert [await each.get(token) for token in ("good", "poor", "none")] == [200, 403, 401]
        assert sorted(each.server.asked) == ["SubjectAccessReview"] * 2 + ["TokenReview"] * 3
        each.server.readers.clear()
        assert await each.get("good") == 200
        each.now = REMEMBERED_SECONDS
        assert await each.get("good") == 403


async def test_an_api_server_that_is_away_lets_no_user_read() -> None:
    async with asking() as each:
        each.server.away = True
        assert [await each.get("good"), await each.get(path="/healthz")] == [503, 200]
        each.server.away = False
        assert await each.get("good") == 200, "a failure is no answer to remember"


async def test_unknown_tokens_are_asked_about_so_often_and_no_more() -> None:
    async with asking() as each:
        answers = [await each.get(f"garbage-{number}") for number in range(40)]
        most = int(OF_AN_ADDRESS.at_once)
        assert answers == [401] * most + [429] * (40 - most)
        assert len(each.server.asked) == most


async def test_what_is_no_token_is_not_asked_about() -> None:
    async with asking() as each:
        assert await each.get("") == 401
        assert each.server.asked == []
    assert LONGEST_TOKEN > 4096, "more than servers take in a header"


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("localhost", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),  # noqa: S104  # what the Deployment binds to
        ("::", False),
        ("10.0.0.7", False),
        ("localhost.example.com", False),
    ],
)
def test_only_an_address_of_the_own_machine_is_open(address: str, *, local: bool) -> None:
    assert is_local(address) == local
