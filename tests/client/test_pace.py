"""Writes that can wait give way to a busy API server."""

import asyncio
from contextlib import suppress

import pytest

from admitter.client.pace import LONGEST_PAUSE_SECONDS, PAUSES, Pace
from admitter.client.throttle import patient
from tests.apiserver.loop import run


class Server:
    """A server with answers that take as long as the test says; time passes only by them and by pauses."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self.pace = Pace(lambda: self.now, self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    async def answer(self, *seconds: float) -> None:
        for took in seconds:
            async with self.pace.turn():
                self.now += took


async def test_an_idle_server_gets_all_without_pauses() -> None:
    server = Server()
    await server.answer(0.004, 0.005, 0.003, 0.008)
    assert server.pauses == []


async def test_the_slower_the_answer_the_longer_the_pause() -> None:
    server = Server()
    await server.answer(0.004, 0.02, 0.04)
    assert server.pauses == pytest.approx([0.02 * PAUSES, 0.04 * PAUSES])


async def test_no_pause_is_longer_than_the_longest() -> None:
    server = Server()
    await server.answer(0.004, 30.0)
    assert server.pauses == [LONGEST_PAUSE_SECONDS]


async def test_a_server_that_is_far_away_is_not_taken_for_a_busy_one() -> None:
    server = Server()
    await server.answer(0.004, *[0.1] * 3000)
    assert len(server.pauses) < 1500, "what was good once is forgotten"
    server.pauses.clear()
    await server.answer(*[0.1] * 10)
    assert server.pauses == []


def test_time_passes_as_timers_of_the_loop_count_it() -> None:
    async def writes() -> float:
        pace = Pace()
        for took in (0.004, 0.02):
            async with pace.turn():
                await asyncio.sleep(took)
        return asyncio.get_running_loop().time()

    assert run(writes()) == pytest.approx(0.004 + 0.02 + 0.02 * PAUSES)


async def refused(server: Server, seconds: float) -> None:
    with suppress(ValueError):
        async with server.pace.turn():
            server.now += seconds
            raise ValueError("refused")


async def test_a_write_that_fails_counts_too() -> None:
    server = Server()
    await server.answer(0.004)
    await refused(server, 0.05)
    assert server.pauses == pytest.approx([0.05 * PAUSES])


async def test_a_server_that_refuses_fast_is_not_taken_for_a_fast_one() -> None:
    server = Server()
    await server.answer(0.004)
    await refused(server, 0.0001)
    await server.answer(0.004, 0.004)
    assert server.pauses == []


async def test_what_is_written_in_a_turn_can_wait_and_nothing_else() -> None:
    server = Server()
    async with server.pace.turn():
        assert patient.get()
    assert not patient.get()
    await refused(server, 0.0)
    assert not patient.get()
