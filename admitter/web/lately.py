"""What was lately: a namespace with very much of it displaces its own, and nothing of the others."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Generic, Protocol, TypeVar

Key = tuple[str, float]
"""The UID of a Workload and a time, in seconds since the epoch."""


class Happened(Protocol):
    """What is kept here."""

    @property
    def namespace(self) -> str:
        """It counts in the share of this namespace."""

    @property
    def key(self) -> Key:
        """No other one has it."""


T = TypeVar("T", bound=Happened)


class Lately(Generic[T]):
    """Keeps what is not old, each namespace's in the order in which it came."""

    def __init__(self, most: int, time: Callable[[T], float]) -> None:
        """Keep so many in all, and one of each namespace at least; `time` says when something was."""
        self._most = most
        self._time = time
        self._of: dict[str, dict[Key, T]] = {}  # by namespace
        self._gone: list[Key] = []

    def __iter__(self) -> Iterator[T]:
        for kept in self._of.values():
            yield from kept.values()

    def __contains__(self, each: T) -> bool:
        return self.has(each.namespace, each.key)

    def has(self, namespace: str, key: Key) -> bool:
        return key in self._of.get(namespace, ())

    def add(self, each: T) -> None:
        self._of.setdefault(each.namespace, {})[each.key] = each

    def restore(self, earlier: Iterable[T]) -> None:
        """Take up what was known earlier, before all that has come since."""
        since = list(self)
        self._of = {}
        for each in (*sorted(earlier, key=lambda each: (self._time(each), each.key)), *since):
            self.add(each)

    def gone(self) -> list[Key]:
        """What was dropped for others since this was last asked, and not for its age."""
        found, self._gone = self._gone, []
        return found

    def forget(self, oldest: float) -> None:
        """Drop what was before a moment, and the oldest of the namespaces with most of what is too much."""
        for namespace, kept in list(self._of.items()):
            while kept and self._time(next(iter(kept.values()))) < oldest:
                del kept[next(iter(kept))]
            if not kept:
                del self._of[namespace]
        share = share_of_one(map(len, self._of.values()), self._most)
        for kept in self._of.values():
            for key in list(islice(kept, max(0, len(kept) - share))):
                del kept[key]
                self._gone.append(key)


def share_of_one(counts: Iterable[int], most: int) -> int:
    """How much each may keep so that all together have no more than `most`: those with little keep all."""
    ordered = sorted(counts)
    left = most
    for place, count in enumerate(ordered):
        share = left // (len(ordered) - place)
        if count > share:
            return max(1, share)
        left -= count
    return most
