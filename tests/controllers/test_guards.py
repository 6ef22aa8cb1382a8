"""What the API server and Kueue have done to a Job: what is asked, and what if they come and go."""

from datetime import UTC, datetime
from typing import cast

import pytest

from admitter.cache.views import at, timestamp
from admitter.client.errors import NotFoundError, UnreachableError
from admitter.client.transport import Json, Transport
from admitter.controllers.placement.guards import BINDINGS, KUEUE, POLICIES, kueue, marking

POLICY, BINDING = (f"{plural}/admitter-place-jobs" for plural in (POLICIES, BINDINGS))


class Server:
    """Answers in the place of an API server, which can't be made to fail or to age at will."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.there: dict[str, float] = {}
        self.asked: list[str] = []
        self.gone = False
        transport, clock = cast("Transport", self), lambda: datetime.fromtimestamp(self.now, UTC)
        self.marking, self.kueue = marking(transport, clock), kueue(transport, clock)

    async def get(self, path: str) -> Json:
        self.asked.append(path)
        if self.gone:
            raise UnreachableError("gone")
        if path not in self.there:
            raise NotFoundError(404, "NotFound", path)
        return {"metadata": {"creationTimestamp": timestamp(at(self.there[path]))}}

    async def marked(self, *moments: float) -> list[bool]:
        return [await self.marking.at(moment) for moment in moments]


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.mark.parametrize("there", [{}, {POLICY: 0.0}, {BINDING: 0.0}], ids=["nothing", "policy", "binding"])
async def test_without_policy_or_binding_no_job_has_been_looked_at(
    server: Server, there: dict[str, float]
) -> None:
    server.there = there
    assert await server.marked(0, 999, 2000) == [False] * 3


async def test_jobs_have_been_looked_at_once_the_api_server_must_have_taken_notice(server: Server) -> None:
    server.there = {POLICY: 100, BINDING: 200}
    assert await server.marked(259, 260, 5000) == [False, True, True]
    assert server.asked == [POLICY, BINDING], "they are not asked for again at once"


async def test_what_was_looked_at_stays_so_when_the_policy_goes_and_what_comes_later_is_not(
    server: Server,
) -> None:
    server.there = {POLICY: 100, BINDING: 100}
    assert await server.marked(900, 1100) == [True, True]
    del server.there[BINDING]
    server.now = 1011
    assert await server.marked(900, 1000, 1001) == [True, True, False]
    server.there[BINDING] = 1100
    server.now = 1200
    assert await server.marked(900, 1001, 1159, 1160) == [True, False, False, True]


async def test_policies_that_are_made_anew_between_two_looks_leave_a_gap(server: Server) -> None:
    server.there = {POLICY: 100, BINDING: 100}
    assert await server.marked(900) == [True]
    server.there = {POLICY: 1500, BINDING: 1500}
    server.now = 2000
    assert await server.marked(900, 1001, 1559, 1560) == [True, False, False, True]


async def test_no_answer_is_no_answer_and_asked_for_again(server: Server) -> None:
    server.there = {POLICY: 100, BINDING: 100}
    server.gone = True
    with pytest.raises(UnreachableError):
        await server.marked(900)
    server.gone = False
    assert await server.marked(900) == [True]


async def test_kueue_has_jobs_with_its_label_as_long_as_its_interface_is_served(server: Server) -> None:
    assert await server.kueue.at(990) is False
    server.there = {KUEUE: 0}
    server.now = 1010
    assert [await server.kueue.at(moment) for moment in (5, 1010)] == [True, True]
    server.there = {}
    server.now = 1020
    assert [await server.kueue.at(moment) for moment in (5, 1010, 1011)] == [True, True, False]
