"""Waiting for what becomes true some time."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

LOOK_SECONDS: Final = 0.1


async def until(condition: Callable[[], Awaitable[bool]], seconds: float) -> bool:
    """Wait until a condition holds; False if it does not within so many seconds."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        if await condition():
            return True
        if loop.time() > end:
            return False
        await asyncio.sleep(LOOK_SECONDS)
