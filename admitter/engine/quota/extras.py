"""Pods that workloads run beyond their admission, on idle quota (docs/design/growing.md).

They count in real use alone. By the plan they do not exist: what waits is decided as if they were gone, and
they end if they are in its way.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final

from admitter.engine.model import Usage
from admitter.engine.quota.book import Book

GROWTH_SECONDS: Final = 30.0
"""For so long after its admission, and after its number of pods was changed, a workload does not grow."""

Shape = tuple[str, Usage]  # the queue of a workload, and what one more pod of it uses

Part = tuple[str, str]  # the UID of a workload, and its pod set that grows: "" if it grows as a whole


@dataclass(frozen=True, slots=True)
class Extra:
    """What a workload may run beyond its admission, in pods, or in replicas of several pods each."""

    each: Usage  # what one of them uses
    base: int  # with how many it was admitted: extra ones are shared in proportion to that
    most: int  # how many extra ones it could use
    granted: int = 0  # how many may live
    kept: int = 0  # how many of these are to go on; the others end
    since: float = 0.0  # when it was admitted, or these were changed last, in seconds since the epoch

    @property
    def grows_at(self) -> float:
        """From when on it may get more, in seconds since the epoch."""
        return self.since + GROWTH_SECONDS

    @property
    def wants(self) -> bool:
        """Whether it could use more than it is granted, and is granted what it has been told."""
        return self.most > self.granted == self.kept

    def use(self, pods: int) -> Usage:
        """What so many of them use."""
        return tuple((key, amount * pods) for key, amount in self.each)


class Extras:
    """The extra pods of all workloads, kept up in real use."""

    def __init__(self, real: Book) -> None:
        self._real = real
        self._of: dict[Part, tuple[str, Extra]] = {}  # with the queue
        self._parts: dict[str, frozenset[str]] = {}  # the pod sets that grow, by the UID of the workload
        # those with extra pods, by queue, and those that may grow now, by queue and shape
        self._granted: defaultdict[str, set[Part]] = defaultdict(set)
        self._wanting: defaultdict[str, defaultdict[Usage, set[Part]]] = defaultdict(lambda: defaultdict(set))
        # how many extra pods are to go on, by queue and shape
        self._kept: defaultdict[str, Counter[Usage]] = defaultdict(Counter)
        self._timers: list[tuple[float, Part]] = []  # when others may grow
        # queues of which something may have become idle, and those of which extra pods may be too many
        self.touched: set[str] = set()
        self.doubtful: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._of)

    def get(self, holder: str, part: str = "") -> Extra | None:
        """What a workload may run beyond its admission, of one pod set; None if it can use no more."""
        found = self._of.get((holder, part))
        return found[1] if found is not None else None

    def parts(self, holder: str) -> list[str]:
        """The pod sets of which a workload may run more than was admitted, now or later."""
        return sorted(self._parts.get(holder, ()))

    def has(self, holder: str) -> bool:
        """Whether extra pods of a workload may live."""
        return bool(self._granted) and any(
            extra.granted for part in self.parts(holder) if (extra := self.get(holder, part)) is not None
        )

    def __iter__(self) -> Iterator[tuple[Part, Extra]]:
        return iter(sorted((part, extra) for part, (_, extra) in self._of.items()))

    def put(self, part: Part, queue: str, extra: Extra) -> None:
        """Set what a workload that holds quota in a queue may run beyond that."""
        self.drop(part)
        self._of[part] = (queue, extra)
        self._parts[part[0]] = self._parts.get(part[0], frozenset()) | {part[1]}
        if extra.granted:
            self._granted[queue].add(part)
            self._kept[queue][extra.each] += extra.kept
            self._real.add(queue, extra.use(extra.granted))
        if extra.wants:
            heappush(self._timers, (extra.grows_at, part))

    def drop_all(self, holder: str) -> None:
        """A workload has no admission any more."""
        for part in self.parts(holder):
            self.drop((holder, part))

    def drop(self, part: Part) -> None:
        """A workload has nothing beyond its admission any more."""
        queue, extra = self._of.pop(part, ("", None))
        if extra is None:
            return
        left = self._parts.pop(part[0]) - {part[1]}
        if left:
            self._parts[part[0]] = left
        if extra.granted:
            self._granted[queue].discard(part)
            if not self._granted[queue]:
                del self._granted[queue]
            self._keep_fewer(queue, extra)
            self._real.add(queue, extra.use(extra.granted), -1)
        shapes = self._wanting.get(queue)
        if shapes is not None and extra.each in shapes:
            shapes[extra.each].discard(part)
            if not shapes[extra.each]:
                del shapes[extra.each]
            if not shapes:
                del self._wanting[queue]
        self.touch(queue)
        if not self._of:
            self.touched.clear()
            self.doubtful.clear()
            self._timers.clear()

    def _keep_fewer(self, queue: str, extra: Extra) -> None:
        kept = self._kept[queue]
        kept[extra.each] -= extra.kept
        if not kept[extra.each]:
            del kept[extra.each]
        if not kept:
            del self._kept[queue]

    def touch(self, queue: str) -> None:
        """More of the tree of a queue may be idle than before."""
        if self._wanting or self._granted:
            self.touched.add(queue)

    @property
    def due(self) -> float | None:
        """When the next one may grow, in seconds since the epoch."""
        return self._timers[0][0] if self._timers else None

    def turn(self, now: float) -> None:
        """Time has passed: some may grow now."""
        while self._timers and self._timers[0][0] <= now:
            time, part = heappop(self._timers)
            queue, extra = self._of.get(part, ("", None))
            if extra is not None and extra.wants and extra.grows_at == time:
                self._wanting[queue][extra.each].add(part)
                self.touched.add(queue)

    def redefined(self) -> None:
        """Limits are other ones: more may be idle, and less."""
        self.touched |= self._wanting.keys()
        self.doubtful |= self._granted.keys()

    def wanting(self, queues: Iterable[str]) -> Iterator[tuple[Shape, set[Part]]]:
        """What may grow now in some queues, by shape."""
        for queue in self._among(queues, self._wanting):
            for each, parts in sorted(self._wanting[queue].items()):
                yield (queue, each), parts

    def kept(self, queues: Iterable[str]) -> Iterator[tuple[Shape, int]]:
        """How many extra pods of some queues are to go on, by their shape, those of victims included."""
        for queue in self._among(queues, self._kept):
            for each, pods in sorted(self._kept[queue].items()):
                yield (queue, each), pods

    def granted(self, queues: Iterable[str]) -> Iterator[Part]:
        """What has extra pods in some queues."""
        for queue in self._among(queues, self._granted):
            yield from sorted(self._granted[queue])

    def any_in(self, queues: Iterable[str]) -> bool:
        """Whether a workload in one of some queues has extra pods."""
        return bool(self._granted) and any(queue in self._granted for queue in queues)

    def queue_of(self, part: Part) -> str:
        """The queue of a workload that has extra pods, or could use them."""
        return self._of[part][0]

    @staticmethod
    def _among(queues: Iterable[str], known: Mapping[str, object]) -> list[str]:
        return [queue for queue in queues if queue in known] if known else []
