"""Requests of one party do not keep those of others waiting."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import aiohttp
import pytest

from admitter.insight.forecast.deadline import NO_LIMIT, Deadline
from admitter.web.party_requests import AT_ONCE, MOST, PartyRequests, TooManyRequestsError
from admitter.web.turns import Turns
from admitter.web.views import workload
from tests.web.pages import ADMIN, TENANT, department, served
from tests.web.test_server import ask


def account(number: int) -> str:
    return f"system:serviceaccount:team-a:runner-{number}"


async def test_a_party_has_so_many_places_and_others_have_theirs() -> None:
    requests, go_on, inside = PartyRequests(), asyncio.Event(), list[str]()

    async def request(user: str) -> None:
        async with requests.place(user):
            inside.append(user)
            await go_on.wait()

    async with asyncio.TaskGroup() as group:
        for number in range(MOST):
            group.create_task(request(account(number)))
        group.create_task(request("ann"))
        await asyncio.sleep(0)
        assert inside == [*map(account, range(AT_ONCE)), "ann"]
        with pytest.raises(TooManyRequestsError):
            await request(account(MOST))
        go_on.set()
    assert len(inside) == MOST + 1, "those that waited came in"
    assert len(requests) == 0


async def test_one_that_leaves_while_it_waits_gives_its_place_up() -> None:
    requests = PartyRequests()
    async with AsyncExitStack() as stack:
        for _ in range(AT_ONCE):
            await stack.enter_async_context(requests.place("ann"))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01), requests.place("ann"):
                pass
        assert len(requests) == AT_ONCE
    assert len(requests) == 0


@pytest.fixture
async def go_on() -> AsyncIterator[threading.Event]:
    """Set when work in threads may come to its end; at last it is, since threads have to end."""
    event = threading.Event()
    yield event
    event.set()


async def test_parties_have_turns_in_turn(go_on: threading.Event) -> None:
    turns, order = Turns(), list[str]()

    async def do(user: str, name: str) -> None:
        def work(_: Deadline) -> bool:
            order.append(name)
            return go_on.wait()

        await turns.result(work, NO_LIMIT, 60.0, user)

    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(do(account(number), f"tenant-{number}"))
        for user in ("ann", "bob", "ann"):
            group.create_task(do(user, user))
        await asyncio.sleep(0.01)
        go_on.set()
    assert order == ["tenant-0", "tenant-1", "ann", "bob", "tenant-2", "ann", "tenant-3"]


async def test_a_turn_that_comes_to_one_that_has_left_goes_to_the_next(go_on: threading.Event) -> None:
    turns = Turns()

    def works(_: Deadline) -> bool:
        return go_on.wait()

    first = asyncio.create_task(turns.result(works, NO_LIMIT, 60.0, "ann"))
    await asyncio.sleep(0)
    left = [asyncio.create_task(turns.result(works, NO_LIMIT, 60.0, "bob")) for _ in range(3)]
    stays = asyncio.create_task(turns.result(lambda _: 7, NO_LIMIT, 60.0, "eve"))
    await asyncio.sleep(0)
    left[0].cancel()
    assert await turns.result(lambda _: 7, NO_LIMIT, 0.01, "bob") is None, "it was not in time"
    go_on.set()
    await first
    left[1].cancel()  # as its turn comes, or soon after
    assert await stays == 7
    assert await left[2] is True
    assert await turns.result(lambda _: 8, NO_LIMIT, 60.0) == 8, "the line goes on"


@pytest.mark.long
async def test_a_tenant_with_many_requests_gets_refusals_and_others_their_answers(
    go_on: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, explain, refusals = list[str](), workload.Explanations.blocking, asyncio.Semaphore(0)

    def slow(self: workload.Explanations, namespace: str, name: str, deadline: Deadline) -> object:
        begun.append(name)
        if len(begun) == 1:
            go_on.wait()
        return explain(self, namespace, name, deadline)

    monkeypatch.setattr(workload.Explanations, "blocking", slow)
    monkeypatch.setattr(workload, "QUEUEING_SECONDS", 60.0)
    async with (
        served(department()) as page,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):

        async def outlook(token: str, name: str) -> int:
            query, headers = {"namespace": "team-a", "name": name}, {"Authorization": f"Bearer {token}"}
            async with session.get(f"{page.address}/api/outlook", params=query, headers=headers) as answer:
                await answer.read()
                if answer.status == 429:
                    refusals.release()
                return answer.status

        tenants = [asyncio.create_task(outlook(TENANT, "train-0")) for _ in range(MOST + 5)]
        for _ in range(5):
            await refusals.acquire()
        admins = asyncio.create_task(outlook(ADMIN, "train-1"))
        assert (await ask(page, "/api/queue", ADMIN, name="a"))["told"], "what is quick is there at once"
        go_on.set()
        assert await admins == 200
        assert sorted(await asyncio.gather(*tenants)) == [200] * MOST + [429] * 5
        assert begun.index("train-1") <= 3, "it had the next turn but one at the latest"
