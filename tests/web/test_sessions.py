"""What is remembered of users that were there, and for how long."""

from itertools import count
from typing import Any

import pytest

from admitter.client.access import (
    OF_ALL,
    OF_AN_ADDRESS,
    REMEMBERED_SECONDS,
    Access,
    Rate,
    Rates,
    TooManyTokensError,
)
from admitter.web.sessions import IDLE_SECONDS, MOST, MOST_OF_ONE, PartyShares, Sessions


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_session_that_is_idle_for_too_long_leaves_no_token_behind() -> None:
    clock, numbers = Clock(), count()
    sessions = Sessions(clock, lambda: f"session-{next(numbers)}")
    idle, busy = sessions.begin("one", "anna"), sessions.begin("two", "bert")
    clock.now = IDLE_SECONDS
    assert sessions.token(busy) == "two"
    clock.now += 1
    sessions.begin("three", "cleo")
    assert len(sessions) == 2
    assert sessions.token(idle) is None
    assert sessions.token(busy) == "two"


def test_of_too_many_the_idlest_ends() -> None:
    numbers = count()
    sessions = Sessions(Clock(), lambda: f"session-{next(numbers)}")
    first, second = sessions.begin("one", "anna"), sessions.begin("two", "bert")
    assert sessions.token(first) == "one"
    for number in range(MOST - 1):
        sessions.begin("another", f"user-{number}")
    assert (len(sessions), sessions.token(first), sessions.token(second)) == (MOST, "one", None)


def test_one_party_logs_out_only_itself() -> None:
    """All service accounts of a namespace are one: its tenant may make any number."""
    numbers = count()
    sessions = Sessions(Clock(), lambda: f"session-{next(numbers)}")
    admin, tenant = sessions.begin("admins", "admin"), sessions.begin("tenant", account(0))
    for number in range(1, 2 * MOST):
        sessions.begin("tenant", account(number))
    assert len(sessions) == 1 + MOST_OF_ONE
    assert (sessions.token(admin), sessions.token(tenant)) == ("admins", None)


def account(number: int) -> str:
    return f"system:serviceaccount:team-a:user-{number}"


def test_of_too_many_that_party_gives_that_has_most() -> None:
    shares = PartyShares(most=4, most_of_one=3)
    for name, user in (("a1", "anna"), ("b1", "bert"), ("b2", "bert"), ("b3", "bert")):
        assert shares.take(name, user) is None
    shares.use("b1")
    assert shares.take("c1", "cleo") == "b2", "of bert's that was used last longest ago"
    assert shares.take("b4", "bert") == "b3"
    shares.leave("b3")
    assert len(shares) == 4
    assert [name for name in ("a1", "b1", "b4", "c1") if name not in shares] == []


class Knowing:
    """An API server that knows everybody."""

    async def create(self, _: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"status": {"authenticated": True, "user": {"username": body["spec"]["token"]}}}


async def test_tokens_that_come_no_more_are_forgotten() -> None:
    clock = Clock()
    access = Access(Knowing(), clock)  # type: ignore[arg-type]  # all that is called of it
    for second in range(300):
        clock.now = float(second)
        assert await access.user(f"user-{second}", "192.0.2.1") is not None
    assert len(access._users._known) == REMEMBERED_SECONDS


class Counting(Knowing):
    """An API server that knows the tokens that begin with `good`, and counts what it is asked."""

    asked = 0

    async def create(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        good = body["spec"]["token"].startswith("good")
        return await super().create(path, body) if good else {"status": {}}


async def test_unknown_tokens_of_one_address_keep_no_other_user_out() -> None:
    clock, server = Clock(), Counting()
    access = Access(server, clock)  # type: ignore[arg-type]  # all that is called of it
    assert await access.user("good-old", "192.0.2.1") is not None
    refused = 0
    for tenth in range(600):
        clock.now = tenth / 10
        try:
            assert await access.user(f"garbage-{tenth}", "192.0.2.66") is None
        except TooManyTokensError:
            refused += 1
    most = OF_AN_ADDRESS.at_once + 60 * OF_AN_ADDRESS.a_second
    assert most - 1 <= server.asked - 1 <= most
    assert refused == 600 - (server.asked - 1)
    assert await access.user("good-new", "192.0.2.1") is not None, "of another address"
    assert await access.user("good-old", "192.0.2.66") is not None, "a token that was good, from there too"
    with pytest.raises(TooManyTokensError):
        await access.user("garbage", "192.0.2.66")


async def test_all_addresses_together_ask_no_more_than_the_api_server_should_be_asked() -> None:
    server = Counting()
    access = Access(server, Clock())  # type: ignore[arg-type]
    refused = 0
    for number in range(500):
        try:
            await access.user(f"garbage-{number}", f"192.0.2.{number}")
        except TooManyTokensError:
            refused += 1
    assert (server.asked, refused) == (OF_ALL.at_once, 500 - OF_ALL.at_once)


def test_a_rate_fills_up_again_and_not_beyond() -> None:
    clock = Clock()
    rates = Rates(Rate(2, 1), Rate(100, 100), clock)
    assert [rates.allows("a") for _ in range(3)] == [True, True, False]
    assert rates.allows("b")
    clock.now = 1.0
    assert [rates.allows("a") for _ in range(2)] == [True, False]
    clock.now = 1000.0
    assert [rates.allows("a") for _ in range(3)] == [True, True, False]
