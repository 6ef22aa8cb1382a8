"""Slow work beside the screen, abandoned once its result is not needed any more."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


class AbandonedError(Exception):
    """The result is not needed any more."""


async def in_background(work: Callable[[Callable[[], None]], T]) -> T:
    """The result of some work in a thread of its own.

    The end of the process waits for threads of a pool. This one ends with the process, or as soon as it looks
    whether it should: the work gets a function to call now and then, which ends it (AbandonedError) if the
    task that waits for it was cancelled.
    """
    future: Future[T] = Future()

    def proceed() -> None:
        if future.cancelled():
            raise AbandonedError

    def run() -> None:
        with suppress(InvalidStateError):  # it was cancelled
            try:
                result = work(proceed)
            except Exception as error:  # noqa: BLE001  # reported to the waiting task
                future.set_exception(error)
            else:
                future.set_result(result)

    Thread(target=run, name="top-background", daemon=True).start()
    return await asyncio.wrap_future(future)
