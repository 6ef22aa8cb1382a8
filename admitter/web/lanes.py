"""Bars in lanes, and what of them is in view: nothing here knows of clusters.

Bars of one group are put into lanes so that no two overlap. Of a picture only lanes with a bar in its range
of time are there. Bars too narrow to be seen are drawn together with their neighbours in the same lane.
"""

import heapq
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

SHORTEST: Final = 1.0
"""Seconds that a bar takes in its lane at least: times of a cluster are no finer."""
COARSER: Final = 1.4
"""By how much longer ones are joined if too many are left."""


class Spanning(Protocol):
    """Something that takes some lanes of a group for a while. Times are in seconds."""

    @property
    def group(self) -> str: ...

    @property
    def begins(self) -> float: ...

    @property
    def ends(self) -> float | None:
        """When it ends; None: never."""

    @property
    def high(self) -> int:
        """How many lanes it takes, at least one."""


B = TypeVar("B", bound=Spanning)


@dataclass(frozen=True, slots=True)
class Placed(Generic[B]):
    """A bar, and the first of its lanes in its group."""

    bar: B
    lane: int


@dataclass(frozen=True, slots=True)
class Group:
    """Lanes of one group that are in view: those of its head, then those of its bars."""

    name: str
    first: int  # its first lane, among those of all groups
    lanes: int  # with the head


@dataclass(frozen=True, slots=True)
class Drawn(Generic[B]):
    """One bar of a picture: a bar, or several narrow ones together."""

    lane: int  # the first of its lanes, among those of all groups
    begins: float
    ends: float
    bars: tuple[B, ...]


@dataclass(frozen=True, slots=True)
class View(Generic[B]):
    """What of some bars is in a range of time."""

    begins: float
    ends: float
    groups: tuple[Group, ...]
    bars: Sequence[Placed[B]]  # with lanes among those of all groups; in order of lane, then of time

    @property
    def lanes(self) -> int:
        return sum(group.lanes for group in self.groups)

    def rows(self, first: int, rows: int) -> list[Placed[B]]:
        """The bars that are in some of the lanes, in the same order."""
        return [each for each in self.bars if each.lane < first + rows and each.lane + each.bar.high > first]


def packed(bars: Iterable[B]) -> list[Placed[B]]:
    """Every bar in the lowest free lanes of its group, in order of its beginning.

    So what comes later moves nothing that is there. A bar that ends when another begins is no obstacle.
    """
    groups: defaultdict[str, list[B]] = defaultdict(list)
    for bar in bars:
        groups[bar.group].append(bar)
    return [placed for group in groups.values() for placed in _packed(group)]


def _packed(bars: list[B]) -> Iterator[Placed[B]]:
    bars.sort(key=lambda bar: bar.begins)
    lanes = _Lanes() if all(bar.high == 1 for bar in bars) else _HighLanes()
    for bar in bars:
        yield Placed(bar, lanes.take(bar.begins, _until(bar), bar.high))


def _until(bar: Spanning) -> float:
    """Until when a bar takes its lanes."""
    return max(bar.begins + SHORTEST, inf if bar.ends is None else bar.ends)


class _Lanes:
    """Lanes for bars that take one each."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._taken: list[tuple[float, int]] = []  # until when, and the lane

    def take(self, begins: float, ends: float, _high: int) -> int:
        while self._taken and self._taken[0][0] <= begins:
            heapq.heappush(self._free, heapq.heappop(self._taken)[1])
        lane = heapq.heappop(self._free) if self._free else len(self._taken)
        heapq.heappush(self._taken, (ends, lane))
        return lane


class _HighLanes:
    """Lanes for bars that take several beside each other."""

    def __init__(self) -> None:
        self._taken_until: list[float] = []

    def take(self, begins: float, ends: float, high: int) -> int:
        free = 0  # how many lanes up to this one are free
        lanes = self._taken_until
        for lane, until in enumerate(lanes):
            free = free + 1 if until <= begins else 0
            if free == high:
                lanes[lane - high + 1 : lane + 1] = [ends] * high
                return lane - high + 1
        first = len(lanes) - free
        lanes[first:] = [ends] * high
        return first


def in_range(
    placed: Sequence[Placed[B]], begins: float, ends: float, order: Mapping[str, int], head: int = 0
) -> View[B]:
    """What of bars is in a range of time; the groups come in an order, those without a place in it last.

    Lanes without a bar in this range are left out. Each group begins with `head` lanes without bars.
    """
    groups: defaultdict[str, list[Placed[B]]] = defaultdict(list)
    for each in placed:
        if each.bar.begins < ends and _until(each.bar) > begins:
            groups[each.bar.group].append(each)
    names = sorted(groups, key=lambda name: (order.get(name, len(order)), name))
    used = [_used(groups[name]) for name in names]
    firsts = accumulate((head + len(lanes) for lanes in used), initial=0)
    shown = tuple(
        Group(name, first, head + len(lanes)) for name, first, lanes in zip(names, firsts, used, strict=False)
    )
    bars = [
        Placed(each.bar, group.first + head + bisect_left(lanes, each.lane))
        for group, lanes in zip(shown, used, strict=True)
        for each in sorted(groups[group.name], key=lambda each: (each.lane, each.bar.begins))
    ]
    return View(begins, ends, shown, bars)


def _used(group: Iterable[Placed[B]]) -> list[int]:
    """The lanes that some bars take, in order."""
    return sorted({lane for each in group for lane in range(each.lane, each.lane + each.bar.high)})


def drawn(bars: Sequence[Placed[B]], view: View[B], narrow: float, most: int) -> tuple[list[Drawn[B]], float]:
    """What is drawn of bars that are in order of lane and time, and below what length bars are joined.

    Bars shorter than `narrow` seconds are joined with such neighbours in their lane if these are nearer than
    that.
    If more than `most` were left, somewhat longer ones are joined as well.
    """
    marks = [
        _Mark((each.lane, each.bar.high), each.bar.begins, _end(each.bar, view), each.bar.ends is None)
        for each in bars
    ]
    runs = _runs(marks, narrow)
    while len(runs) > most and narrow <= view.ends - view.begins:
        narrow = max(narrow * COARSER, SHORTEST)
        runs = _runs(marks, narrow)
    ends = [*runs[1:], len(bars)] if runs else []
    return [_drawn(bars, marks, first, end) for first, end in zip(runs, ends, strict=True)], narrow


class _Mark(NamedTuple):
    """What of a bar decides whether it is joined."""

    lanes: tuple[int, int]
    begins: float
    ends: float
    is_open: bool


def _runs(marks: Sequence[_Mark], narrow: float) -> list[int]:
    """Where those begin that are drawn as one: narrow ones near each other in the same lanes."""
    found = []
    before: _Mark | None = None  # the bar before, if others may be joined to it
    for place, mark in enumerate(marks):
        is_narrow = mark.ends - mark.begins < narrow and not mark.is_open
        if (
            before is None
            or not is_narrow
            or before.lanes != mark.lanes
            or mark.begins - before.ends >= narrow
        ):
            found.append(place)
        before = mark if is_narrow else None
    return found


def _drawn(bars: Sequence[Placed[B]], marks: Sequence[_Mark], first: int, end: int) -> Drawn[B]:
    return Drawn(
        bars[first].lane,
        marks[first].begins,
        max(mark.ends for mark in marks[first:end]),
        tuple(each.bar for each in bars[first:end]),
    )


def _end(bar: Spanning, view: View[B]) -> float:
    """The end of a bar; of one without an end that of the picture."""
    return max(bar.begins, view.ends if bar.ends is None else bar.ends)
