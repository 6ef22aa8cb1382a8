"""Keys are handled once, never twice at a time, and again after a failure."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest
from structlog.testing import capture_logs

from admitter.client.errors import ClusterError, UnreachableError, api_error
from admitter.client.failures import FAILURES_TOLD
from admitter.client.workqueue import FIRST_PAUSE_SECONDS, LEFTOVERS, WorkQueue
from tests.apiserver.loop import run
from tests.patience import PATIENCE_SECONDS


async def handled_until(queue: WorkQueue[str], done: Callable[[], bool]) -> None:
    running = asyncio.create_task(queue.run())
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not done():  # noqa: ASYNC110  # each turn of the loop lets the queue's own tasks go on
            await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_key_added_twice_is_handled_once() -> None:
    seen: list[str] = []

    async def handle(key: str) -> None:
        seen.append(key)

    queue = WorkQueue(handle, workers=2)
    for key in ("a", "a", "b"):
        queue.add(key)
    await handled_until(queue, lambda: not len(queue))
    assert sorted(seen) == ["a", "b"]


async def test_a_key_added_while_it_is_handled_is_handled_again_afterwards() -> None:
    at_once = 0
    most_at_once = 0
    rounds = 0

    async def handle(key: str) -> None:
        nonlocal at_once, most_at_once, rounds
        at_once += 1
        most_at_once = max(most_at_once, at_once)
        rounds += 1
        if rounds < 3:
            queue.add(key)
        await asyncio.sleep(0)
        at_once -= 1

    queue = WorkQueue(handle, workers=4)
    queue.add("a")
    await handled_until(queue, lambda: not len(queue) and rounds == 3)
    assert most_at_once == 1


async def test_a_failing_key_comes_back_and_does_not_hold_up_others() -> None:
    seen: list[str] = []

    async def handle(key: str) -> None:
        seen.append(key)
        if key == "bad" and seen.count("bad") == 1:
            raise UnreachableError("no answer")
        if key == "broken" and seen.count("broken") == 1:
            raise ValueError("a defect")

    queue = WorkQueue(handle, workers=1)
    for key in ("bad", "broken", "good"):
        queue.add(key)
    await handled_until(queue, lambda: len(seen) == 5)
    assert seen[:3] == ["bad", "broken", "good"]
    assert sorted(seen[3:]) == ["bad", "broken"]


async def pauses_after(error: ClusterError, failures: int, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What is waited before a key is handled again, each time that it has failed."""
    pauses: list[float] = []

    async def handle(_key: str) -> None:
        raise error

    def at_once(key: str, seconds: float) -> None:
        pauses.append(seconds)
        asyncio.get_running_loop().call_soon(queue.add, key)

    queue = WorkQueue(handle, workers=1)
    monkeypatch.setattr(queue, "add_later", at_once)
    queue.add("key")
    await handled_until(queue, lambda: len(pauses) == failures)
    return pauses


async def test_a_key_that_is_refused_comes_back_later_and_later(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = await pauses_after(api_error(403, {}), 4, monkeypatch)
    assert pauses == [FIRST_PAUSE_SECONDS * factor for factor in (2, 4, 8, 16)]


@pytest.mark.parametrize("error", [api_error(429, {}), api_error(503, {}), UnreachableError("no answer")])
async def test_a_busy_server_is_no_failure_of_a_key(
    error: ClusterError, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = await pauses_after(error, 20, monkeypatch)
    assert pauses == [FIRST_PAUSE_SECONDS] * 20


async def test_keys_that_become_urgent_while_others_are_handled_leave_nothing_behind() -> None:
    urgent: set[str] = set()

    async def handle(key: str) -> None:
        urgent.discard(key)

    queue = WorkQueue(handle, workers=1, urgency=lambda key: (0,) if key in urgent else (1,))
    for number in range(1000):
        queue.add(f"never-urgent-{number % 10}")
        key = f"key-{number}"
        queue.add(key)
        urgent.add(key)
        queue.add(key)
        await handled_until(queue, lambda: not urgent)
    assert len(queue) <= 10
    assert len(queue._waiting) <= LEFTOVERS * (len(queue) + 1 + LEFTOVERS)


async def test_a_key_with_nothing_left_to_do_is_forgotten_with_its_failures() -> None:
    wanted = {"key"}

    async def handle(_key: str) -> None:
        wanted.clear()
        queue.add("key")
        raise api_error(403, {})

    queue = WorkQueue(handle, workers=1, urgency=lambda key: () if key in wanted else None)
    queue.add("key")
    await handled_until(queue, lambda: not len(queue) and not wanted)
    assert "key" not in queue._failures


async def test_to_finish_is_to_begin_nothing_and_to_wait_for_what_has_begun() -> None:
    began, may_end, seen = asyncio.Event(), asyncio.Event(), list[str]()

    async def handle(key: str) -> None:
        began.set()
        await may_end.wait()
        seen.append(key)

    queue = WorkQueue(handle, workers=1)
    queue.add("a")
    queue.add("b")
    running = asyncio.create_task(queue.run())
    await began.wait()
    finishing = asyncio.create_task(queue.finish())
    await asyncio.sleep(0)
    assert not finishing.done()
    may_end.set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await finishing
        await running
    assert seen == ["a"]
    await queue.finish()


async def test_hurried_keys_do_not_wait_for_the_end_of_their_pause() -> None:
    """Only those that have failed: others wait for a time of their own."""
    seen: list[str] = []

    async def handle(key: str) -> None:
        seen.append(key)
        if seen.count(key) <= 12:
            raise api_error(404, {})

    queue = WorkQueue(handle, workers=1)
    queue.add("failing")
    queue.add_later("later", 60)

    def waits(times: int) -> bool:
        return len(seen) == times and not len(queue)

    for times in range(1, 14):
        await handled_until(queue, partial(waits, times))
        queue.hurry()
    assert seen == ["failing"] * 13


async def test_an_answer_is_logged_once_and_its_key_is_told_after_some_seconds() -> None:
    """The third answer is another one, so it is logged too."""
    answers = [api_error(403, {"message": text}) for text in ("no", "no", "never", *["never"] * 9)]
    told: list[tuple[str, str]] = []
    failed = 0

    async def handle(_: str) -> None:
        nonlocal failed
        failed += 1
        raise answers[failed - 1]

    def has_failed(times: int) -> bool:
        return failed == times and not len(queue)

    queue = WorkQueue(handle, workers=1, refused=lambda key, error: told.append((key, str(error))))
    queue.add("a")
    with capture_logs() as lines:
        for number in range(1, FAILURES_TOLD + 3):
            await handled_until(queue, partial(has_failed, number))
            queue.add("a")
    warned = [line["error"] for line in lines if line["log_level"] == "warning"]
    assert warned == ["no", "never"]
    assert told == [("a", "never")], "once"


async def test_a_busy_api_server_is_no_refusal() -> None:
    told: list[str] = []
    failed = 0

    async def handle(_: str) -> None:
        nonlocal failed
        failed += 1
        raise UnreachableError("it does not answer")

    def has_failed(times: int) -> bool:
        return failed == times and not len(queue)

    queue = WorkQueue(handle, workers=1, refused=lambda key, _: told.append(key))
    queue.add("a")
    for number in range(1, FAILURES_TOLD + 3):
        await handled_until(queue, partial(has_failed, number))
        queue.add("a")
    assert told == []


def test_a_key_is_handled_at_latest_when_the_earliest_call_asks_for_it() -> None:
    async def story() -> None:
        loop, handled = asyncio.get_running_loop(), []
        begun = loop.time()

        async def handle(key: str) -> None:
            handled.append((key, round(loop.time() - begun)))

        queue: WorkQueue[str] = WorkQueue(handle, workers=1)
        working = asyncio.create_task(queue.run())
        queue.add_later("soon", 20)
        queue.add_at_latest("soon", 300)
        queue.add_later("late", 300)
        queue.add_at_latest("late", 40)
        queue.add_at_latest("alone", 60)
        await asyncio.sleep(1000)
        assert handled == [("soon", 20), ("late", 40), ("alone", 60)]
        working.cancel()

    run(story())
