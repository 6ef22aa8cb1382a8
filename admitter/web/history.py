"""What was: use, waits and admissions of the last day, from the scenes of the page.

Previous step: `admitter.web.stage` adds each scene. Next step: views ask for series, spans and evictions.

Sampled from each scene, at most once in 15 s:

- what each queue uses of each resource in each flavor, and the quota of all queues and Cohorts together;
- how many Workloads wait in each queue, how many hold quota, and for how long those in line have waited.

The older samples are, the coarser: 15 s in the last hour, 1 min in the last six, 5 min in the last 24. A
coarser one is the mean of those it was made of. Spans and evictions come from the statuses of Workloads, so
what ended before the page began is among them if its Workload is still there.

All methods may be called from any thread; those about all queues take up to a tenth of a second with
thousands of queues. A history has no clock: the newest scene is its present.
"""

from bisect import bisect_left
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from threading import Lock
from typing import Final

import structlog

from admitter.insight.overview import OverviewLine, OverviewUse
from admitter.web.admissions import Admissions, Ending, Eviction, Span, waiting_since
from admitter.web.history_file import HistoryFile, InUseError, UnusableError
from admitter.web.samples import KEPT_SECONDS, Key, Row, Samples, Values, series
from admitter.web.scene import WebScene
from admitter.web.use_over_time import in_units

__all__ = ["KEPT_SECONDS", "Ending", "Eviction", "History", "Span", "Values"]

log = structlog.get_logger(__name__)

_WAITING: Final = "waiting"
_ADMITTED: Final = "admitted"
_P50: Final = "p50"
_P95: Final = "p95"
"""In place of a resource, with no flavor: of a queue, or of all with no queue either."""

SPARK_SECONDS: Final = 6 * 3600.0
SPARK_POINTS: Final = 48

Sees = Callable[[str], bool]
"""Whether a user may see the Workloads of a namespace."""


@dataclass(frozen=True, slots=True)
class Use:
    """Use of one resource in one flavor over time, in cores, bytes or devices."""

    times: list[float]  # in seconds since the epoch; after a gap there is one with None everywhere
    used: dict[str, Values]  # by the engine's name of the queue; those that used something
    quota: Values  # of all queues and Cohorts together


@dataclass(frozen=True, slots=True)
class Course:
    """Use of one queue over time, and how many wait in it."""

    times: list[float]
    used: dict[tuple[str, str], Values]  # by flavor and resource; in cores, bytes or devices
    waiting: Values


@dataclass(frozen=True, slots=True)
class Counts:
    """All queues together over time."""

    times: list[float]
    waiting: Values
    admitted: Values  # how many hold quota
    # for how long, in seconds, half and 95 % of those in line at that time have waited at most
    p50: Values
    p95: Values


@dataclass(frozen=True, slots=True)
class Spark:
    """What a small picture of a queue needs: its scarcest resource, as it is now, over the last hours."""

    flavor: str
    resource: str
    used: Values  # evenly spaced, the newest last; in cores, bytes or devices
    quota: float  # its own, now
    seconds: float  # from one to the next


class History:
    """The history of one cluster. Thread-safe; what it returns is the caller's."""

    def __init__(self, path: Path | None = None) -> None:
        """Keep it in a file too, so that the next process goes on with it; None: in memory only."""
        self._path = path
        self._lock = Lock()  # for what is known
        self._samples = Samples()
        self._admissions = Admissions(KEPT_SECONDS)
        self._uses: dict[str, tuple[OverviewUse, ...]] = {}  # by queue, in the newest scene
        self._now = float("-inf")
        self._writing = Lock()  # for the file
        self._file: HistoryFile | None = None
        self._unsaved: list[Row] = []
        self._whole = False  # whether all is to be written, and not only what is new
        self._said = ""  # what was last said of the file
        self._closed = False

    @property
    def now(self) -> float:
        """The time of the newest scene, in seconds since the epoch."""
        return self._now

    def add(self, scene: WebScene) -> None:
        """Note what a scene shows; slow (50 ms with 20,000 Workloads): not on the event loop."""
        self._open()
        now, amounts = scene.known.taken, _amounts(scene)
        with self._lock:
            self._now = now
            self._uses = {line.node[1]: line.uses for line in scene.lines if line.node[0] == "queue"}
            self._admissions.note(scene.snapshot)
            before = self._samples.newest()
            new = self._samples.add(now, amounts)
            self._whole |= before is not None and now < before.time
            self._unsaved += new
        if new:
            self._save()

    def _open(self) -> None:
        """Open the file if that was not done or failed, and take up what it has."""
        if self._path is None:
            return
        with self._writing:
            if self._file is not None or self._closed:
                return
            try:
                self._file, found = HistoryFile.open(self._path)
            except (InUseError, UnusableError) as error:
                self._say(f"{error}: history is kept in memory only, and the file is tried again")
                return
            if found.aside:
                self._say(found.aside)
            with self._lock:
                self._samples.restore(found.rows)
                self._admissions.restore(found.spans, found.evictions)
                self._whole = True

    def _say(self, words: str) -> None:
        if words != self._said:
            log.warning("history file", file=str(self._path), message=words)
        self._said = words

    def _save(self) -> None:
        with self._writing:
            with self._lock:
                rows, self._unsaved = self._unsaved, []
                new, kept = self._admissions.changes(), self._samples.extents()
                whole, self._whole = self._whole, False
                if whole:
                    rows = list(self._samples)
                    new = replace(
                        new,
                        spans=list(self._admissions.spans()),
                        evictions=list(self._admissions.evictions()),
                    )
            if self._file is None:
                return
            try:
                if whole:
                    self._file.replace(rows, new.spans, new.evictions)
                else:
                    self._file.save(rows, new, kept, self._now - KEPT_SECONDS)
            except UnusableError as error:
                self._say(f"{error}: history is kept in memory only, and the file is tried again")
                self._file.close()
                self._file = None
            else:
                self._said = ""

    def close(self) -> None:
        """Write what is new, and let another process have the file."""
        self._save()
        with self._writing:
            self._closed = True
            if self._file is not None:
                self._file.close()
                self._file = None

    def _series(
        self, wanted: Callable[[Key], bool], since: float, points: int | None = None
    ) -> tuple[list[float], dict[Key, Values]]:
        with self._lock:
            rows = list(self._samples)
        return series(rows, wanted, since, points)

    def use(
        self,
        flavor: str,
        resource: str,
        queues: Container[str] | None = None,
        since: float = 0.0,
        points: int | None = None,
    ) -> Use:
        """Use over time, of all queues or some of them; of a flavor that is unknown nothing.

        With `points` about so many samples at most, of those that there are.
        """
        wanted = ("", flavor, resource)
        times, found = self._series(
            lambda key: key[1:] == wanted[1:] and (not key[0] or queues is None or key[0] in queues),
            since,
            points,
        )
        quota = found.pop(wanted, [None] * len(times))
        return Use(times, {key[0]: values for key, values in found.items() if any(values)}, quota)

    def course(self, queue: str, since: float = 0.0) -> Course:
        """Use of one queue over time; of one that is unknown nothing."""
        times, found = self._series(lambda key: key[0] == queue, since)
        waiting = found.pop((queue, "", _WAITING), [None] * len(times))
        used = {key[1:]: values for key, values in found.items() if key[1]}
        return (
            Course(times, used, waiting)
            if any(value is not None for value in waiting)
            else Course([], {}, [])
        )

    def counts(self, since: float = 0.0, points: int | None = None) -> Counts:
        """How many wait and hold quota over time, in all queues together; `points` as of `use`."""
        times, found = self._series(lambda key: not key[0] and not key[1], since, points)
        empty: Values = [None] * len(times)
        numbers = (found.get(("", "", what), empty) for what in (_WAITING, _ADMITTED, _P50, _P95))
        return Counts(times, *numbers)

    def sparks(self, points: int = SPARK_POINTS) -> dict[str, Spark]:
        """A small picture of each queue that has quota."""
        with self._lock:
            rows, uses, now = list(self._samples), self._uses, self._now
        seconds = SPARK_SECONDS / points
        scarce = {}
        for queue, of_queue in uses.items():
            if of_queue:
                scarce[queue] = max(of_queue, key=_scarcity)
        picked = _evenly(rows, now, seconds, points)
        columns = {(queue, use.flavor, use.resource): queue for queue, use in scarce.items()}
        found: dict[str, Values] = {queue: [None] * points for queue in scarce}
        for place, row in enumerate(picked):
            for key, value in zip(row.keys, row.values, strict=True) if row is not None else ():
                if key in columns:
                    found[columns[key]][place] = value
        return {
            queue: Spark(use.flavor, use.resource, found[queue], in_units(use.resource, use.minimum), seconds)
            for queue, use in scarce.items()
        }

    def spans(
        self,
        since: float,
        until: float | None = None,
        *,
        queues: Container[str] | None = None,
        sees: Sees | None = None,
    ) -> list[Span]:
        """Admissions of which a part lies between two moments, in order of admission.

        With `sees` only those of namespaces that it is true of; `queues`: only of these.
        """
        with self._lock:
            found = [
                span
                for span in self._admissions.spans()
                if (span.ended is None or span.ended >= since)
                and (until is None or span.admitted <= until)
                and (queues is None or span.queue in queues)
            ]
        if sees is not None:
            found = [span for span in found if sees(span.namespace)]
        return sorted(found, key=lambda span: (span.admitted, span.queue, span.uid))

    def spans_of(self, namespace: str, name: str) -> list[Span]:
        """The admissions of one Workload, by its own name or its Job's, in order of admission.

        The caller has checked that the user may see the namespace.
        """
        with self._lock:
            found = [
                span
                for span in self._admissions.spans()
                if span.namespace == namespace and name in {span.name, span.workload}
            ]
        return sorted(found, key=lambda span: span.admitted)

    def evictions(self, since: float, *, sees: Sees | None = None) -> list[Eviction]:
        """Evictions since a moment, in order of time.

        With `sees` only those of namespaces that it is true of, and without the preemptors of others.
        """
        with self._lock:
            found = [each for each in self._admissions.evictions() if each.time >= since]
        if sees is not None:
            found = [_shown(each, sees) for each in found if sees(each.namespace)]
        return sorted(found, key=lambda each: (each.time, each.queue, each.uid))

    def evictions_of(self, namespace: str, name: str) -> list[Eviction]:
        """The evictions of one Workload, by its own name or its Job's, in order of time."""
        with self._lock:
            found = [
                each
                for each in self._admissions.evictions()
                if each.namespace == namespace and name in {each.name, each.workload}
            ]
        return sorted(found, key=lambda each: each.time)


def _shown(each: Eviction, sees: Sees) -> Eviction:
    """An eviction without a preemptor that a user may not see."""
    return each if not each.for_namespace or sees(each.for_namespace) else each.for_hidden()


def quantile(ordered: list[float], part: float) -> float:
    """The least number that so large a part of some numbers do not exceed; of none 0."""
    return ordered[max(0, ceil(part * len(ordered)) - 1)] if ordered else 0.0


def _amounts(scene: WebScene) -> dict[Key, float]:
    """What is sampled of a scene."""
    now, found = scene.known.taken, dict[Key, float]()
    for line in scene.lines:
        if line.node[0] == "queue":
            _of_queue(line, found)
        for use in line.uses if line.depth == 0 else ():
            key = ("", use.flavor, use.resource)
            found[key] = found.get(key, 0.0) + in_units(use.resource, use.minimum)
    waiting = [row for row in scene.rows if row.workload.admission is None]
    waits = sorted(max(0.0, now - waiting_since(row.workload)) for row in waiting if row.position is not None)
    found["", "", _WAITING] = float(len(waiting))
    found["", "", _ADMITTED] = float(len(scene.rows) - len(waiting))
    found["", "", _P50], found["", "", _P95] = quantile(waits, 0.5), quantile(waits, 0.95)
    return found


def _of_queue(line: OverviewLine, found: dict[Key, float]) -> None:
    name = line.node[1]
    found[name, "", _WAITING], found[name, "", _ADMITTED] = float(line.waiting), float(line.admitted)
    for use in line.uses:
        found[name, use.flavor, use.resource] = in_units(use.resource, use.used)


def _scarcity(use: OverviewUse) -> tuple[float, float, str, str]:
    """In which order one resource of a queue is scarcer than another: by the part of its quota in use."""
    most = use.minimum or use.maximum or 0
    return (use.used / most if most else 0.0, float(use.minimum), use.resource, use.flavor)


def _evenly(rows: list[Row], now: float, seconds: float, points: int) -> list[Row | None]:
    """The last row in each of some equal parts of the time before now; None where there is none."""
    times, found = [row.time for row in rows], list[Row | None]()
    for place in range(points):
        end = now - (points - 1 - place) * seconds
        after = bisect_left(times, end + 1e-3)
        row = rows[after - 1] if after else None
        found.append(row if row is not None and row.time > end - max(seconds, row.step) else None)
    return found
