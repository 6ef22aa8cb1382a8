"""Requests that are answered at the same time: so many of each party, so that none keeps others waiting."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from admitter.web.sessions import party

AT_ONCE: Final = 8
"""Requests of one party that are answered at the same time; further ones wait for these."""
MOST: Final = 50
"""Requests of one party that are there, those that wait included."""


class TooManyRequestsError(Exception):
    """The party has as many requests as it may."""


@dataclass
class _Own:
    """The requests of one party."""

    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    count: int = 0


class PartyRequests:
    """How many requests each party has."""

    def __init__(self) -> None:
        self._of: dict[str, _Own] = {}

    def __len__(self) -> int:
        return sum(own.count for own in self._of.values())

    @asynccontextmanager
    async def place(self, user: str) -> AsyncIterator[None]:
        """Wait for a place, and have it.

        Raises:
            TooManyRequestsError: so many of the same party are there already.
        """
        owner = party(user)
        own = self._of.setdefault(owner, _Own())
        if own.count >= MOST:
            raise TooManyRequestsError
        own.count += 1
        try:
            async with own.places:
                yield
        finally:
            own.count -= 1
            if own.count == 0:
                del self._of[owner]
