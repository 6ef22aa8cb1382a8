"""An event loop for a course of calls over TLS, some of which are cut off."""

import asyncio
import gc
import warnings
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run(course: Coroutine[Any, Any, T]) -> T:
    """Run a course in an event loop of its own, and end the connections that the loop has left.

    A call that is cancelled while asyncio opens its connection leaves that connection without an owner: no
    session closes it. Collected later, it would fail the test that happens to run then.
    """
    try:
        return asyncio.run(course)
    finally:
        collect_connections()


def collect_connections() -> None:
    """End connections of a loop that is closed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
