"""Whether a user may submit: what is asked, for how long the answer counts, and what if there is none."""

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from admitter.client.access import ACCESS_REVIEWS, Access, User
from admitter.client.errors import UnreachableError
from admitter.client.transport import Json, Transport
from admitter.controllers.placement.placement import REMEMBERED_SECONDS

ALICE = User("alice", ("data", "system:authenticated"))


class Authorizer:
    """Answers in the place of an API server, which can't be made to fail at will."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)
        self.asked: list[Json] = []
        self.allowed: bool | None = True
        self.access = Access(
            cast("Transport", self), lambda: datetime.timestamp(self.now), REMEMBERED_SECONDS
        )

    async def create(self, path: str, body: Json) -> Json:
        assert path == ACCESS_REVIEWS
        self.asked.append(body["spec"])
        if self.allowed is None:
            raise UnreachableError("gone")
        return {"status": {"allowed": self.allowed}}

    def says(self, user: User = ALICE, queue: str = "gold") -> bool:
        return run(self.access.may_submit(user, "finance", queue))


def run(question: Coroutine[Any, Any, bool]) -> bool:
    return asyncio.run(question)


def test_the_verb_is_asked_for_the_user_with_its_groups() -> None:
    authorizer = Authorizer()
    assert authorizer.says()
    (spec,) = authorizer.asked
    assert (spec["user"], spec["groups"]) == ("alice", ["data", "system:authenticated"])
    assert spec["resourceAttributes"] == {
        "verb": "submit",
        "group": "admitter.dev",
        "resource": "localqueues",
        "namespace": "finance",
        "name": "gold",
    }


def test_an_answer_counts_for_a_moment_and_for_its_question_alone() -> None:
    authorizer = Authorizer()
    assert authorizer.says()
    authorizer.allowed = False
    assert authorizer.says()
    assert not authorizer.says(queue="iron")
    assert not authorizer.says(User("alice", ()))
    authorizer.now += timedelta(seconds=11)
    assert not authorizer.says()
    assert len(authorizer.asked) == 4


def test_no_answer_is_not_remembered() -> None:
    authorizer = Authorizer()
    authorizer.allowed = None
    with pytest.raises(UnreachableError):
        authorizer.says()
    authorizer.allowed = True
    assert authorizer.says()
