"""Numbers over time, coarser the older they are: what `admitter.web.history` keeps of use and waits."""

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

Key = tuple[str, str, str]
"""What is counted: a queue, a flavor and a resource; `history` says what empty ones mean."""
Values = list[float | None]
"""One for each time. None: nothing is known of it, as the page did not run, or there was no such queue."""

TIERS: Final = ((15.0, 3_600.0), (60.0, 6 * 3_600.0), (300.0, 24 * 3_600.0))
"""From one sample to the next, and how old they get, in seconds; older ones are put together for the next."""
KEPT_SECONDS: Final = TIERS[-1][1]
LEAST_GAP_SECONDS: Final = 120.0
"""A page on a slow machine has a sample a minute: with a longer pause it did not run."""


@dataclass(frozen=True, slots=True)
class Row:
    """All numbers of a moment. Rows share their keys where these are the same."""

    time: float  # in seconds since the epoch
    step: float  # for how many seconds it stands
    keys: tuple[Key, ...]
    values: "array[float]"


def mean(rows: list[Row], step: float) -> Row:
    """One row in place of several; what is missing in one of them counts as zero there."""
    first = rows[0]
    if all(row.keys is first.keys for row in rows):
        columns = zip(*(row.values for row in rows), strict=True)
        return Row(first.time, step, first.keys, array("d", (sum(each) / len(rows) for each in columns)))
    sums: dict[Key, float] = {}
    for row in rows:
        for key, value in zip(row.keys, row.values, strict=True):
            sums[key] = sums.get(key, 0.0) + value
    newest = rows[-1].keys
    keys = newest if len(newest) == len(sums) else tuple(sums)
    return Row(first.time, step, keys, array("d", (sums[key] / len(rows) for key in keys)))


class Samples:
    """Rows in order of time, as many as the tiers have room for."""

    def __init__(self) -> None:
        self._tiers: list[deque[Row]] = [deque() for _ in TIERS]

    def __iter__(self) -> Iterator[Row]:
        """All rows, the oldest first."""
        for tier in reversed(self._tiers):
            yield from tier

    def __len__(self) -> int:
        return sum(map(len, self._tiers))

    def newest(self) -> Row | None:
        return next((tier[-1] for tier in self._tiers if tier), None)

    def restore(self, rows: Iterable[Row]) -> None:
        """Take rows up that are older than all there are, each where its step belongs; others are dropped."""
        first = next(iter(self), None)
        steps = [step for step, _ in TIERS]
        found: list[list[Row]] = [[] for _ in TIERS]
        for row in rows:
            if row.step in steps and (first is None or row.time < first.time):
                found[steps.index(row.step)].append(row)
        later = first.time if first is not None else float("inf")
        for place, tier in enumerate(self._tiers):  # a coarse row lies before all that are finer
            kept = sorted((row for row in found[place] if row.time < later), key=lambda row: row.time)
            tier.extendleft(reversed(kept))
            later = kept[0].time if kept else later
        newest = self.newest()
        if newest is not None:
            self._age(newest.time)

    def add(self, time: float, amounts: Mapping[Key, float]) -> list[Row]:
        """Take the numbers of a moment; returns what is new: none if the last moment is close.

        A moment before the last one means that the clock was set back: what lies after it is dropped, since
        it would stay the newest for long.
        """
        last = self.newest()
        if last is not None and time < last.time:
            self._drop_from(time)
            last = self.newest()
        if last is not None and time - last.time < TIERS[0][0]:
            return []
        keys = tuple(amounts)
        if last is not None:
            keys = last.keys if last.keys == keys else _shared(keys, last.keys)
        row = Row(time, TIERS[0][0], keys, array("d", amounts.values()))
        self._tiers[0].append(row)
        return [row, *self._age(time)]

    def _drop_from(self, time: float) -> None:
        for tier in self._tiers:
            while tier and tier[-1].time >= time:
                tier.pop()

    def _age(self, now: float) -> list[Row]:
        """Put together what is old; returns the rows made."""
        made = []
        for (tier, coarser), (_, keep), (step, _) in zip(
            pairwise(self._tiers), TIERS, TIERS[1:], strict=False
        ):
            while tier and _bucket(tier[0], step) * step + step <= now - keep:
                place, rows = _bucket(tier[0], step), []
                while tier and _bucket(tier[0], step) == place:
                    rows.append(tier.popleft())
                coarser.append(mean(rows, step))
                made.append(coarser[-1])
        oldest = self._tiers[-1]
        while oldest and oldest[0].time < now - KEPT_SECONDS:
            oldest.popleft()
        there = {(row.step, row.time) for row in self}
        return [row for row in made if (row.step, row.time) in there]

    def extents(self) -> dict[float, tuple[float, float]]:
        """The first and the last time of the rows of each step; of none an interval in which no time is."""
        none = (float("inf"), float("-inf"))
        return {
            step: (tier[0].time, tier[-1].time) if tier else none
            for tier, (step, _) in zip(self._tiers, TIERS, strict=True)
        }


def _bucket(row: Row, step: float) -> float:
    return row.time // step


def _shared(keys: tuple[Key, ...], known: tuple[Key, ...]) -> tuple[Key, ...]:
    """The same keys, as the objects that are known where they are."""
    there = {key: key for key in known}
    return tuple(there.get(key, key) for key in keys)


def _parts(rows: Iterable[Row], since: float) -> list[list[Row]]:
    """The rows since a moment, parted where the page did not run."""
    found: list[list[Row]] = []
    last: Row | None = None
    for row in rows:
        if row.time < since:
            continue
        if last is None or row.time - last.time > max(LEAST_GAP_SECONDS, 3 * last.step):
            found.append([])
        found[-1].append(row)
        last = row
    return found


def _thinned(rows: list[Row], each: int) -> list[Row]:
    """Every second row, or every third, and so on, the newest among them."""
    return rows[(len(rows) - 1) % each :: each]


def series(
    rows: Iterable[Row], wanted: Callable[[Key], bool], since: float = 0.0, points: int | None = None
) -> tuple[list[float], dict[Key, Values]]:
    """The times since a moment, and the numbers of the keys that are wanted; None where one is missing.

    In a gap, in which there was no page, stands one time without numbers. With `points` about so many rows at
    most: every second one, or every third, and so on.
    """
    parts = _parts(rows, since)
    total = sum(map(len, parts))
    each = -(-total // points) if points and total else 1
    times: list[float] = []
    found: dict[Key, Values] = {}
    keys: tuple[Key, ...] | None = None
    places: list[tuple[int, Values]] = []
    for number, part in enumerate(parts):
        if number:
            times.append(parts[number - 1][-1].time + parts[number - 1][-1].step)
        for row in _thinned(part, each):
            if row.keys is not keys:
                keys = row.keys
                places = [(at, found.setdefault(key, [])) for at, key in enumerate(keys) if wanted(key)]
            count = len(times)
            times.append(row.time)
            for at, values in places:
                if len(values) < count:
                    values.extend([None] * (count - len(values)))
                values.append(row.values[at])
    for values in found.values():
        values.extend([None] * (len(times) - len(values)))
    return times, found
