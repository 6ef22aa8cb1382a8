"""A server that can't take calls is left alone by all of the process together."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from admitter.client.errors import ApiError, ClusterError, ConflictError, UnreachableError, api_error
from admitter.client.throttle import ATTEMPTS, LONGEST_PAUSE_SECONDS, MOST_CREDIT, Throttle, patient
from tests.client.virtual_time import VirtualTime

Fault = Callable[[], ClusterError | None]


def refused(retry_after: str | None = None) -> Fault:
    return lambda: api_error(429, {"message": "too many requests"}, retry_after)


def fine() -> None:
    return None


class Server:
    """Answers, or fails as the test says, and takes some time for it.

    Attributes:
        fault: what it fails with now.
        seconds: how long an answer takes.
        seen: when it was called, and by which caller.
        answered: the callers with an answer, in order.
    """

    def __init__(self, fault: Fault, seconds: float = 0.01) -> None:
        self.time = VirtualTime()
        self.throttle = Throttle(self.time.sleep)
        self.fault = fault
        self.seconds = seconds
        self.seen: list[tuple[float, str]] = []
        self.answered: list[str] = []
        self.under_way = 0
        self.tasks: set[asyncio.Task[None]] = set()

    async def call(self, who: str) -> None:
        async def attempt() -> None:
            self.seen.append((self.time.now, who))
            self.under_way += 1
            await self.time.sleep(self.seconds)
            self.under_way -= 1
            error = self.fault()
            if error is not None:
                raise error
            self.answered.append(who)

        await self.throttle.call(attempt)

    async def keep_calling(self, who: str) -> None:
        """As callers do with work that is not done before it has succeeded."""
        while True:
            try:
                await self.call(who)
            except ClusterError:
                continue
            return

    async def calm_caller(self, who: str) -> None:
        patient.set(True)
        await self.keep_calling(who)

    def callers(self, *names: str, can_wait: bool = False) -> None:
        for name in names:
            call = self.calm_caller(name) if can_wait else self.keep_calling(name)
            self.tasks.add(asyncio.create_task(call))

    def between(self, begin: float, end: float) -> list[str]:
        return [who for when, who in self.seen if begin <= when < end]


@asynccontextmanager
async def serving(fault: Fault, seconds: float = 0.01) -> AsyncIterator[Server]:
    server = Server(fault, seconds)
    yield server
    for task in server.tasks:
        task.cancel()
    await asyncio.gather(*server.tasks, return_exceptions=True)


def names(number: int, prefix: str = "call") -> list[str]:
    return [f"{prefix}-{n:03}" for n in range(number)]


async def test_a_server_that_is_well_is_asked_by_all_at_once() -> None:
    async with serving(fine) as server:
        server.callers(*names(200))
        await server.time.pass_until(0.005)
        assert server.under_way == 200
        await server.time.pass_until(0.02)
        assert len(server.answered) == 200


@pytest.mark.parametrize(
    ("retry_after", "pause"),
    [("1", 1.0), ("7", 7.0), (None, LONGEST_PAUSE_SECONDS), ("0", LONGEST_PAUSE_SECONDS)],
)
async def test_a_server_that_refuses_everything_is_asked_once_a_pause(
    retry_after: str | None, pause: float
) -> None:
    async with serving(refused(retry_after)) as server:
        server.callers(*names(120))
        await server.time.pass_until(600)
        assert server.throttle.credit == 1
        assert len(server.between(500, 600)) == pytest.approx(100 / (pause + 0.01), abs=2)
        assert len(server.between(0, 60)) < 120 + 2 * MOST_CREDIT + 60 / pause, "no storm before that either"


async def test_after_a_refusal_of_everything_all_catch_up_within_seconds() -> None:
    async with serving(refused("1")) as server:
        server.callers(*names(300))
        await server.time.pass_until(300)
        server.fault = fine
        await server.time.pass_until(303)
        assert len(server.answered) == 300
        assert server.throttle.credit == MOST_CREDIT


async def test_a_server_that_takes_half_is_not_left_alone() -> None:
    tosses = 0

    def half() -> ClusterError | None:
        nonlocal tosses
        tosses += 1
        return refused("1")() if tosses % 2 else None

    async with serving(half) as server:
        server.callers(*names(400))
        await server.time.pass_until(20)
        assert len(server.answered) == 400


async def test_a_refused_call_goes_before_later_ones() -> None:
    async with serving(refused("1")) as server:
        server.callers(*names(25, "early"))
        await server.time.pass_until(3.5)
        server.callers(*names(25, "late"))
        await server.time.pass_until(4)
        server.fault = fine
        await server.time.pass_until(8)
        assert server.answered == [*names(25, "early"), *names(25, "late")]


async def test_a_call_that_can_wait_gets_no_attempt_while_others_want_one() -> None:
    async with serving(refused("1")) as server:
        server.callers(*names(30, "urgent"))
        await server.time.pass_until(100)
        server.callers(*names(30, "patient"), can_wait=True)
        await server.time.pass_until(160)
        assert [who for who in server.between(101, 160) if who.startswith("patient")] == []
        server.fault = fine
        await server.time.pass_until(170)
        assert len(server.answered) == 60, "and when the server is well again, all of them"
        assert all(who.startswith("urgent") for who in server.answered[:30])


async def test_calls_that_can_wait_take_half_of_the_places_at_most() -> None:
    async with serving(refused("1")) as server:
        server.callers(*names(60, "patient"), can_wait=True)
        await server.time.pass_until(100)
        assert server.throttle.credit == 1
        assert server.under_way <= 1
        assert len(server.between(50, 100)) <= 51, "they alone ask once a pause"
        server.callers("urgent")
        await server.time.pass_until(102.1)
        assert server.between(100, 102.1).count("urgent") >= 1


async def test_a_call_that_can_wait_is_made_once() -> None:
    server = Server(refused())

    async def once() -> None:
        patient.set(True)
        await server.call("event")

    tried = asyncio.create_task(once())
    await server.time.pass_until(1)
    with pytest.raises(ApiError, match="too many requests"):
        await tried
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("fault", "attempts"),
    [
        (refused(), ATTEMPTS),
        (lambda: UnreachableError("no answer"), ATTEMPTS),
        (lambda: api_error(500, {}), ATTEMPTS),
        (lambda: api_error(409, {}), 1),
        (lambda: api_error(403, {}), 1),
    ],
    ids=["throttled", "no answer", "failed", "conflict", "forbidden"],
)
async def test_a_call_is_made_so_often_before_its_caller_is_told(fault: Fault, attempts: int) -> None:
    server = Server(fault)
    call = asyncio.create_task(server.call("it"))
    await server.time.pass_until(60)
    with pytest.raises(ClusterError):
        await call
    assert len(server.seen) == attempts


async def test_what_fails_for_one_object_holds_no_other_back() -> None:
    async with serving(lambda: api_error(500, {})) as server:
        server.callers(*names(5))
        await server.time.pass_until(30)
        assert server.throttle.credit == MOST_CREDIT
        server.fault = fine
        server.callers("other")
        await server.time.pass_until(30.02)
        assert "other" in server.answered


async def test_a_conflict_is_the_answer_of_a_server_that_is_well() -> None:
    async with serving(refused("1")) as server:
        server.callers(*names(100))
        await server.time.pass_until(100)
        server.fault = lambda: ConflictError(409, "Conflict", "changed")
        await server.time.pass_until(101.3)
        assert server.throttle.credit == MOST_CREDIT


async def test_a_caller_that_is_cancelled_in_line_leaves_no_gap() -> None:
    async with serving(refused("1")) as server:
        server.callers(*names(100))
        await server.time.pass_until(100)
        for task in list(server.tasks):
            task.cancel()
        await asyncio.gather(*server.tasks, return_exceptions=True)
        server.fault = fine
        server.callers("next")
        await server.time.pass_until(100.1)
        assert server.answered == ["next"]
