"""The bars of a timeline: what the history has, and what the forecast expects, as one.

The forecast is of a moment that is over. Where the cluster has decided since, the bars say what happened:
what has ended is not expected any more, and what has started is expected to run as long as foreseen.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from admitter.client.store import Key
from admitter.insight.forecast.schedule import Forecaster, Range, Stay
from admitter.insight.listing import job_name
from admitter.quantities.amounts import CPU
from admitter.web.history import Ending, Eviction, Span
from admitter.web.use_over_time import Earlier, Usage, most, usage_of

FORECAST: Final = "forecast"
"""How a bar ends that has not begun yet."""
HIGHEST: Final = 8
"""Lanes that the largest bar of a picture takes if bars are as high as they are large."""
SAME_SECONDS: Final = 1.5
"""Admissions that differ by less are the same: times of a cluster are no finer than a second."""
_NO_DEVICES: Final = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})

Sees = Callable[[str], bool]
Knows = Callable[[str, str], bool]
"""Whether a namespace may know the use and the line of a queue."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One admission of a Workload. Times are in seconds since the epoch."""

    group: str  # the queue or namespace in which it is drawn
    uid: str
    namespace: str
    name: str  # of its Job, or its own if it has none
    queue: str
    flavors: tuple[str, ...]
    usage: Usage  # when it ends, or as far as is known
    pods: int
    begins: float
    ends: float | None  # None: it is not known when
    how: str  # an `Ending`, or FORECAST
    expected: str = ""  # why it is expected to have to stop, in one word; empty: it is not
    reason: str = ""  # why it had to stop, in one word
    rule: str = ""  # by which rule, in a sentence
    for_namespace: str = ""  # the Workload that it stopped for, or will; empty: none, or a hidden one
    for_name: str = ""
    start: Range | None = None  # when it starts in most playouts
    end: Range | None = None  # when it ends in most playouts
    earlier: Earlier = ()  # what it used before
    high: int = 1  # lanes


def bars(  # noqa: PLR0913  # what was, what will be, and for which user
    spans: Iterable[Span],
    evictions: Iterable[Eviction],
    forecast: Forecaster | None,
    *,
    now: float,
    waiting: Collection[str],
    sees: Sees,
    knows: Knows = lambda _queue, _namespace: True,
) -> list[Bar]:
    """All bars that a user may see, each in the group of its queue.

    `waiting` are the UIDs of the Workloads that wait now. Spans and evictions are of visible namespaces only.
    Of queues with a line that a namespace may not know, nothing is expected.
    """
    stopped = {(each.uid, each.time): each for each in evictions}
    expected = _Expected(forecast, now, sees, knows) if forecast is not None else None
    found, staying, leaving = [], set(), set(waiting)
    for span in spans:
        bar = _of_span(span, stopped.get((span.uid, span.evicted or 0.0)))
        if span.ended is None and span.evicted is not None:
            leaving.add(span.uid)
            bar = replace(bar, ends=now)  # its pods end
        elif span.ended is None:
            staying.add(span.uid)
            bar = expected.with_end(bar) if expected is not None else bar
        found.append(bar)
    if expected is not None:
        found += expected.starts(leaving - staying)
        found += expected.restarts(leaving | staying)
    return found


def _of_span(span: Span, eviction: Eviction | None) -> Bar:
    said = span.how not in {Ending.RUNNING, Ending.SUCCEEDED, Ending.FAILED}  # the others say all
    bar = Bar(
        span.queue,
        span.uid,
        span.namespace,
        span.name,
        span.queue,
        span.flavors,
        span.usage,
        span.pods,
        span.admitted,
        span.ended,
        str(span.how),
        reason=span.reason if said else "",
        earlier=span.earlier,
    )
    if eviction is None:
        return bar
    return replace(
        bar,
        reason=eviction.reason,
        rule=eviction.rule,
        for_namespace=eviction.for_namespace,
        for_name=eviction.for_name,
    )


class _Expected:
    """What a forecast expects, as seen somewhat later."""

    def __init__(self, forecast: Forecaster, now: float, sees: Sees, knows: Knows) -> None:
        self._forecast, self._now, self._sees = forecast, now, sees
        self._first: dict[str, Stay] = {}
        self._later: list[Stay] = []
        for stay in forecast.stays:
            if not sees(stay.view.namespace) or not knows(stay.admission.queue, stay.view.namespace):
                continue
            if stay.first:
                self._first[stay.view.uid] = stay
            else:
                self._later.append(stay)
        self._names: Mapping[Key, str] = {stay.view.key: job_name(stay.view) for stay in forecast.stays}

    def with_end(self, bar: Bar) -> Bar:
        """A bar of what runs, with its expected end."""
        stay = self._first.get(bar.uid)
        if stay is None:
            return bar
        later = bar.begins - stay.starts
        came_since = min(bar.begins, stay.starts) >= self._forecast.taken
        if abs(later) > SAME_SECONDS and not came_since:
            return bar  # the forecast is about another admission of it
        return self._ending(bar, stay, later)

    def starts(self, waiting: Collection[str]) -> Iterator[Bar]:
        """The first admissions of what still waits."""
        for uid, stay in self._first.items():
            if uid not in waiting or stay.starts < self._forecast.taken:
                continue
            later = max(0.0, self._now - stay.starts)
            bar = self._of_stay(stay, stay.starts + later)
            start = self._not_past(self._forecast.start_of(uid))
            yield self._ending(replace(bar, start=start), stay, later)

    def restarts(self, there: Collection[str]) -> Iterator[Bar]:
        """The admissions after an expected eviction, of what is still there."""
        for stay in self._later:
            if stay.view.uid in there and stay.starts > self._now:
                yield self._ending(self._of_stay(stay, stay.starts), stay, 0.0)

    def _of_stay(self, stay: Stay, begins: float) -> Bar:
        view, held = stay.view, stay.admission
        return Bar(
            held.queue,
            view.uid,
            view.namespace,
            job_name(view),
            held.queue,
            tuple(sorted({flavor for (flavor, _), _ in held.usage})),
            usage_of(held.usage),
            sum(each.count for each in held.pod_sets),
            begins,
            None,
            FORECAST,
        )

    def _ending(self, bar: Bar, stay: Stay, later: float) -> Bar:
        """A bar with its expected end, which is so much later than foreseen, and not in the past."""
        ends = max(stay.ends + later, self._now) if stay.ends is not None else None
        bar = replace(bar, ends=ends, expected=stay.reason)
        if stay.first:
            found = self._forecast.end_of(stay.view.uid)
            moved = _moved(found, later) if stay.starts >= self._forecast.taken else found
            bar = replace(bar, end=self._not_past(moved))
        if stay.preemptor is not None and self._sees(stay.preemptor[0]):
            namespace, name = stay.preemptor
            bar = replace(bar, for_namespace=namespace, for_name=self._names.get(stay.preemptor, name))
        return bar

    def _not_past(self, found: Range | None) -> Range | None:
        if found is None:
            return None
        latest = max(self._now, found.latest) if found.latest is not None else None
        return Range(max(self._now, found.earliest), latest)


def _moved(found: Range | None, later: float) -> Range | None:
    if found is None:
        return None
    return Range(found.earliest + later, found.latest + later if found.latest is not None else None)


def measure(found: Iterable[Bar]) -> str:
    """The resource by which bars are compared: the device that most of them use, else CPU."""
    counts: dict[str, int] = {}
    for bar in found:
        used = chain(bar.usage, *(usage for _, usage in bar.earlier))
        for resource in {resource for _, resource, _ in used} - _NO_DEVICES:
            counts[resource] = counts.get(resource, 0) + 1
    return min(counts, key=lambda name: (-counts[name], name), default=CPU)


def amount_of(bar: Bar, resource: str) -> float:
    """The most of a resource that a bar uses at one time."""
    return most(bar.earlier, bar.usage, resource)


def as_high_as_large(found: Sequence[Bar], resource: str) -> list[Bar]:
    """The bars, each as high as its amount of a resource says: the largest takes HIGHEST lanes."""
    largest = max((amount_of(bar, resource) for bar in found), default=0.0)
    if largest <= 0:
        return list(found)
    return [replace(bar, high=max(1, round(HIGHEST * amount_of(bar, resource) / largest))) for bar in found]


def by_namespace(found: Iterable[Bar]) -> list[Bar]:
    return [replace(bar, group=bar.namespace) for bar in found]
