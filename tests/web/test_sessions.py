"""What is remembered of those who were there, and for how long."""

from itertools import count
from typing import Any

from admitter.web.access import REMEMBERED_SECONDS, Access
from admitter.web.sessions import IDLE_SECONDS, MOST, Sessions


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_who_has_been_idle_for_too_long_leaves_no_token_behind() -> None:
    clock, numbers = Clock(), count()
    sessions = Sessions(clock, lambda: f"session-{next(numbers)}")
    idle, busy = sessions.begin("one"), sessions.begin("two")
    clock.now = IDLE_SECONDS
    assert sessions.token(busy) == "two"
    clock.now += 1
    sessions.begin("three")
    assert len(sessions) == 2
    assert sessions.token(idle) is None
    assert sessions.token(busy) == "two"


def test_of_too_many_the_idlest_ends() -> None:
    numbers = count()
    sessions = Sessions(Clock(), lambda: f"session-{next(numbers)}")
    first, second = sessions.begin("one"), sessions.begin("two")
    assert sessions.token(first) == "one"
    for _ in range(MOST - 1):
        sessions.begin("another")
    assert (len(sessions), sessions.token(first), sessions.token(second)) == (MOST, "one", None)


class Knowing:
    """An API server that knows everybody."""

    async def create(self, _: str, body: dict[str, Any]) -> dict[str, Any]:
        return {"status": {"authenticated": True, "user": {"username": body["spec"]["token"]}}}


async def test_tokens_that_come_no_more_are_forgotten() -> None:
    clock = Clock()
    access = Access(Knowing(), clock)  # type: ignore[arg-type]  # all that is called of it
    for second in range(300):
        clock.now = float(second)
        assert await access.user(f"user-{second}") is not None
    assert len(access._users._known) == REMEMBERED_SECONDS
