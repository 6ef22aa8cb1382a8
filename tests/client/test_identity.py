"""The controller calls under its installed account, or says what is missing."""

from collections import deque
from typing import Any

import pytest

from admitter.client.errors import ApiError, ConfigurationError
from admitter.client.identity import controller_account
from admitter.names import CONTROLLER_USER
from tests.client.faulty_server import FaultyServer, connected

ANSWER = tuple[int, dict[str, str], Any]


def caller(name: str) -> ANSWER:
    return 201, {}, {"status": {"userInfo": {"username": name}}}


def allowed(*, yes: bool) -> ANSWER:
    return 201, {}, {"status": {"allowed": yes}}


def refusal(status: int, reason: str) -> ANSWER:
    return status, {}, {"kind": "Status", "reason": reason, "message": reason}


ACCOUNT: ANSWER = (200, {}, {"kind": "ServiceAccount"})


async def account(*answers: ANSWER) -> str:
    async with connected(FaultyServer(calls=deque(answers))) as transport:
        return await controller_account(transport)


async def test_the_account_itself_impersonates_none() -> None:
    assert not await account(caller(CONTROLLER_USER))


async def test_an_administrator_impersonates_the_account() -> None:
    assert await account(caller("admin"), ACCOUNT, allowed(yes=True)) == CONTROLLER_USER


async def test_a_caller_that_may_not_read_the_account_may_still_impersonate_it() -> None:
    answers = (caller("admin"), refusal(403, "Forbidden"), allowed(yes=True))
    assert await account(*answers) == CONTROLLER_USER


async def test_a_caller_that_may_not_impersonate_is_told_what_to_do() -> None:
    with pytest.raises(ConfigurationError, match=r"alice is not the controller's account .* create token"):
        await account(caller("alice"), ACCOUNT, allowed(yes=False))


async def test_a_cluster_without_the_account_is_told_to_be_installed() -> None:
    with pytest.raises(ConfigurationError, match="run admitter install"):
        await account(caller("admin"), refusal(404, "NotFound"))


async def test_a_server_that_is_down_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("admitter.client.identity.LONGEST_PAUSE_SECONDS", 0.0)
    assert not await account(refusal(503, "ServiceUnavailable"), (0, {}, b""), caller(CONTROLLER_USER))


async def test_a_server_that_refuses_to_say_is_not_asked_again() -> None:
    with pytest.raises(ApiError, match="Unauthorized"):
        await account(refusal(401, "Unauthorized"))


async def test_calls_name_the_impersonated_user() -> None:
    server = FaultyServer(calls=deque([ACCOUNT]))
    async with connected(server) as transport:
        transport.impersonated = CONTROLLER_USER
        await transport.get("/thing")
    assert server.impersonated == [CONTROLLER_USER]
