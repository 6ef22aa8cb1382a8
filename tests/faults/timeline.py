"""Puts what several watches bring into one order: that of resource versions.

All objects of a cluster are in one store, so the resource versions of all kinds count the same writes. Each
watch brings its events in order, but one may be behind another. So an event is checked when every watch has
got past it, as its events and bookmarks tell.

An API server that was started anew does not remember what happened before. A client that had not heard it
lists again, and takes the differences for events: what it finds is true, but in between nothing is known of
the order. Such an interval is blind: what happens in it is entered, and checked when all is known again.
"""

import asyncio
import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any, Protocol

Entry = tuple[int, int, str, Any, float]
"""Resource version, number, UID, what became of it, and when that was heard of."""


@dataclass(frozen=True, slots=True)
class Moment:
    """When something was so.

    Attributes:
        version: the resource version since which it is. heard: when the auditor heard of it, in seconds.
        exact: whether everything before it is known; otherwise it is checked later, and only by what is
        beyond doubt.
    """

    version: int
    heard: float
    exact: bool = True


class Checker(Protocol):
    """Is told everything in order."""

    def take(self, uid: str, fact: Any, moment: Moment) -> None:
        """Something became of an object, as an auditor reads it; None if it was deleted or does not count."""

    def settle(self, moment: Moment) -> None:
        """Everything up to a moment is known again: check what happened while it was not."""


class Timeline:
    """Feeds a checker in order.

    Attributes:
        blind: the intervals of which only the end is known: after a version, up to another.
    """

    def __init__(self, checker: Checker, collections: Iterable[str]) -> None:
        """Prepare; nothing is known of any of the collections yet."""
        self.blind: list[tuple[int, int]] = []
        self._told = checker
        self._reached = dict.fromkeys(collections, 0)
        self._entries: list[Entry] = []
        self._numbers = count()
        self._moved = asyncio.Event()
        self._unsettled: Moment | None = None

    @property
    def waiting(self) -> int:
        """How many events are not checked yet."""
        return len(self._entries)

    async def has_reached(self, collection: str, version: int) -> None:
        """Wait until a watch has got up to a version."""
        while self._reached[collection] < version:
            self._moved.clear()
            await self._moved.wait()

    def event(self, version: int, uid: str, fact: Any, heard: float) -> None:
        """Something became of an object; None if it was deleted. `progress` follows."""
        heapq.heappush(self._entries, (version, next(self._numbers), uid, fact, heard))

    def gap(self, after: int, until: int) -> None:
        """Of what happened after a version up to another only the differences are known."""
        if until > after:
            self.blind.append((after, until))

    def progress(self, collection: str, version: int) -> None:
        """A watch brings nothing more up to this version; check what all have got past."""
        self._reached[collection] = max(version, self._reached[collection])
        self._moved.set()
        self._check(min(self._reached.values()))

    def _check(self, until: int) -> None:
        while self._entries and self._entries[0][0] <= until:
            version, _, uid, fact, heard = heapq.heappop(self._entries)
            exact = not any(after < version <= end for after, end in self.blind)
            moment = Moment(version, heard, exact)
            if exact and self._unsettled is not None:
                self._told.settle(self._unsettled)
            self._unsettled = None if exact else moment
            self._told.take(uid, fact, moment)
        if self._unsettled is not None and not any(after < until < end for after, end in self.blind):
            self._told.settle(self._unsettled)
            self._unsettled = None
