"""The evictions for others that limits of queues and Cohorts count (docs/design/eviction-limits.md).

An eviction counts from its decision on: first as one that is *in flight*, at whatever time it will begin,
then with the time that its queue's record has of it. Times are in seconds since the epoch.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, KeysView

from admitter.engine.quota.eviction_limits import Window
from admitter.engine.quota.tree import Node, Tree

Past = tuple[tuple[float, str], ...]
"""Evictions, the oldest first: when each began at the latest, and the UID of the workload."""


class EvictionHistory:
    """What the records of queues say, and what is in flight."""

    def __init__(self, tree: Tree) -> None:
        """Begin with nothing."""
        self._tree = tree
        self._records: dict[str, Past] = {}
        self._in_flight: dict[str, str] = {}  # by UID, the queue
        self._flying: Counter[str] = Counter()
        self._windows: dict[Node, tuple[tuple[float, int, int], Window]] = {}
        self._version = 0  # changes with all that counts
        # queues of which limits may count fewer evictions than before, or these at other times; what looks at
        # that takes them out
        self.fewer: set[str] = set()
        self.moved: set[str] = set()

    @property
    def in_flight(self) -> KeysView[str]:
        """The UIDs of workloads with an eviction that is decided and in no record yet."""
        return self._in_flight.keys()

    @property
    def differ(self) -> bool:
        """Whether a limit may count other evictions than before, or at other times."""
        return bool(self.fewer or self.moved)

    def decide(self, uid: str, queue: str) -> None:
        """The eviction of a workload of a queue is decided."""
        self._land(uid)
        self._in_flight[uid] = queue
        self._flying[queue] += 1
        self._version += 1

    def settle(self, uid: str) -> None:
        """An eviction is cancelled, or has begun: a record has it now, or never."""
        queue = self._land(uid)
        if queue is not None:
            self._differs(queue, self.fewer)

    def _land(self, uid: str) -> str | None:
        """An eviction flies no longer; returns the queue, if it did."""
        queue = self._in_flight.pop(uid, None)
        if queue is not None:
            self._flying[queue] -= 1
            if not self._flying[queue]:
                del self._flying[queue]
        return queue

    def _differs(self, queue: str, noted: set[str]) -> None:
        self._version += 1
        if self._tree.limiting(queue):
            noted.add(queue)

    def of(self, queue: str) -> Past:
        """What the record of a queue says."""
        return self._records.get(queue, ())

    def records(self) -> Iterator[tuple[str, Past]]:
        """All records that say something, by queue."""
        yield from self._records.items()

    def set(self, queue: str, record: Past) -> bool:
        """Set what the record of a queue says; returns whether that is something else.

        What is new in it flies no longer: a record is written before the eviction begins.
        """
        before = self.of(queue)
        if record == before:
            return False
        for each in set(record) - set(before):
            if self._in_flight.get(each[1]) == queue:
                self._land(each[1])
        self._records[queue] = record
        if not record:
            del self._records[queue]
        gone = set(before) - set(record)
        self._differs(queue, self.fewer if gone and len(record) < len(before) else self.moved)
        return True

    def window(self, node: Node, now: float) -> Window:
        """What counts now in the limit of a queue or a Cohort, which has one.

        What is in flight counts as if it began now: later it can only be.
        """
        key = (now, self._version, self._tree.version)
        known = self._windows.get(node)
        if known is not None and known[0] == key:
            return known[1]
        limit = self._tree.eviction_limits[node]
        below = self._tree.below(node)
        names = below if len(below) == 1 else (self._records.keys() | self._flying.keys()).intersection(below)
        times, flying = list[float](), 0
        for name in names:
            record = self.of(name)
            times += [at for at, _ in record[bisect_right(record, now - limit.per, key=lambda e: e[0]) :]]
            flying += self._flying[name]
        times.sort()
        made = Window(limit, (*times, *[max([now, *times[-1:]])] * flying))
        self._windows[node] = (key, made)
        return made
