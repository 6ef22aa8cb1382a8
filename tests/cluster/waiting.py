"""Waiting for a condition: the one place of ring 2 that sleeps."""

import time
from collections.abc import Callable

LOOK_SECONDS = 0.2


def eventually(condition: Callable[[], object], *, timeout: float = 120, what: str = "the condition") -> None:
    """Wait until a condition holds.

    Raises:
        AssertionError: it does not within the timeout, in seconds.
    """
    end = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < end, f"waited {timeout:.0f} s for {what}"
        time.sleep(LOOK_SECONDS)
