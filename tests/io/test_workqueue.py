"""Keys are handled once, never twice at a time, and again after a failure."""

import asyncio
from collections.abc import Callable

from admitter.cluster.errors import UnreachableError
from admitter.cluster.workqueue import WorkQueue


async def handled_until(queue: WorkQueue[str], done: Callable[[], bool]) -> None:
    running = asyncio.create_task(queue.run())
    async with asyncio.timeout(5):
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
