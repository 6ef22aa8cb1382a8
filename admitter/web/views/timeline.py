"""The timeline: when each Workload held quota in the last hours, and when the next ones are expected to.

A user sees the bars of Workloads that they may list. Of others in the same queues only their number at each
time is there, and only of the past; nothing of the forecast is about them.
"""

import asyncio
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import ceil, floor, isfinite
from threading import Lock
from typing import Any, Final

from admitter.insight.forecast.schedule import HORIZON, Forecaster
from admitter.quantities.amounts import CPU
from admitter.web.asked import Asked, HttpRefusal
from admitter.web.forecasting import Outlook
from admitter.web.history import Ending, History, Span
from admitter.web.lanes import Drawn, Group, Placed, View, drawn, in_range, packed
from admitter.web.masked import masked_text
from admitter.web.namespace_search import Found
from admitter.web.scene import WebScene
from admitter.web.timeline_bars import (
    Bar,
    amount_of,
    as_high_as_large,
    bars,
    by_namespace,
    measure,
)
from admitter.web.use_over_time import most, parts
from admitter.web.views.rows import knows_use, users_of

Json = dict[str, Any]
Sees = Callable[[str], bool]

PAST: Final = 24 * 3600.0
"""How far back a timeline goes, in seconds."""
SHORTEST: Final = 60.0
"""The shortest range, in seconds."""
WIDEST: Final = 8_000
"""Pixels."""
MOST_ROWS: Final = 400
MOST_BARS: Final = 4_000
"""Of one answer; if more are in view, short ones are drawn together."""
OTHERS_SECONDS: Final = 60.0
"""The number of others is told for each so many seconds, and no finer."""
HEADS: Final = {"uniform": 1, "size": 3}
"""Lanes above those of a group: for its name, and as many below that for a strip, if there is one."""
MOST_LAYOUTS: Final = 24
"""Of one moment, that are kept: by what is compared, and by what users see."""
MOST_POINTS: Final = 200
"""Of the use of a queue in a strip."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a timeline is asked for."""

    by: str  # `queue` or `namespace`
    high: str  # `uniform` or `size`
    begins: float  # in seconds since the epoch
    ends: float
    width: int  # pixels
    first: int  # the first lane
    rows: int  # lanes
    find: str  # groups with this in their name
    only: str  # this group; empty: all
    quota: bool  # whether use and quota of each queue are wanted

    @property
    def head(self) -> int:
        return HEADS[self.high]

    @property
    def per_pixel(self) -> float:
        """Seconds."""
        return (self.ends - self.begins) / self.width


@dataclass(frozen=True, slots=True)
class _Layout:
    """All bars of one moment in their lanes."""

    placed: Sequence[Placed[Bar]]
    resource: str  # by which bars are compared
    largest: float  # the largest amount of it


class _Layouts:
    """Layouts of one moment; threads wait here for each other, and not in the scene."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._made: OrderedDict[Hashable, _Layout] = OrderedDict()
        self._namespaces: frozenset[str] | None = None

    def namespaces(self, scene: WebScene, history: History) -> frozenset[str]:
        """Those of all Workloads that a timeline may show."""
        with self._lock:
            if self._namespaces is None:
                there = (row.workload.namespace for row in scene.rows)
                were = (span.namespace for span in history.spans(scene.known.taken - PAST))
                self._namespaces = frozenset(chain(there, were))
            return self._namespaces

    def of(self, key: Hashable, make: Callable[[], _Layout]) -> _Layout:
        """That of a key; those that were not asked for lately are made again."""
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
                if len(self._made) > MOST_LAYOUTS:
                    self._made.popitem(last=False)
            self._made.move_to_end(key)
            return self._made[key]


async def answer(asked: Asked) -> Json:
    """The part of the timeline that is in view."""
    scene, history = asked.scene, asked.stage.history
    now = scene.known.taken
    wanted = _wanted(asked.query, now)
    seen = await _seen(asked)
    outlook = await asked.stage.forecasts.of(scene)

    def work() -> Json:
        def make() -> _Layout:
            return _layout(scene, history, outlook.forecast, seen, wanted)

        # Users that see the same share a layout.
        shared = scene.once("timeline layouts", _Layouts)
        layout = shared.of((_key(wanted, outlook), seen.tree, seen.found.key), make)
        has_strip = wanted.by == "queue" and (wanted.quota or not seen.all)
        view = _view(wanted, layout, _order(scene, wanted.by), wanted.head * (1 + has_strip))
        groups = [group for group in view.groups if _in_rows(group, wanted)]
        strips: Json = {"strip": wanted.head if has_strip else 0}
        if has_strip and seen.all:
            strips["use"] = _uses(scene, {each.name for each in groups}, layout, view)
        elif has_strip:
            known = {each.name for each in groups if seen.knows_line(each.name)}
            strips["others"] = _others(history, seen.sees, wanted, now, known)
        forecast = _forecast(outlook, seen)
        titles = scene.snapshot.catalog.elastic.title
        return _answer(wanted, now, layout, view, groups, titles) | strips | {"forecast": forecast}

    return await asyncio.to_thread(work)


def _wanted(query: Mapping[str, str], now: float) -> Wanted:
    """The request, checked; a range that is too far out is moved."""
    by, high = query.get("by", "queue"), query.get("high", "uniform")
    if by not in {"queue", "namespace"} or high not in {"uniform", "size"}:
        raise HttpRefusal(400, "by is queue or namespace, and high is uniform or size")
    begins, ends = _number(query, "from", now - 2 * 3600), _number(query, "to", now + 2 * 3600)
    if ends - begins < SHORTEST:
        raise HttpRefusal(400, f"to is at least {SHORTEST:.0f} seconds after from")
    least, most = now - PAST, now + HORIZON
    long = min(ends - begins, most - least)
    begins = min(max(begins, least), most - long)
    return Wanted(
        by,
        high,
        begins,
        begins + long,
        int(min(max(_number(query, "width", 1000), 50), WIDEST)),
        int(min(max(_number(query, "first", 0), 0), 10**7)),
        int(min(max(_number(query, "rows", 60), 1), MOST_ROWS)),
        query.get("find", "").lower(),
        query.get("only", ""),
        by == "queue" and query.get("quota") == "1",
    )


def _number(query: Mapping[str, str], name: str, default: float) -> float:
    try:
        found = float(query.get(name, default))
    except ValueError:
        found = float("nan")
    if not isfinite(found):
        raise HttpRefusal(400, f"{name} is no number")
    return found


@dataclass(frozen=True, slots=True)
class _Seen:
    """What a user may see."""

    scene: WebScene
    found: Found  # namespaces
    tree: bool  # whether the user may list ClusterQueues

    @property
    def sees(self) -> Sees:
        return self.found.sees

    @property
    def all(self) -> bool:
        return self.found.everything and self.tree

    def knows(self, queue: str, namespace: str) -> bool:
        """Whether a visible namespace may know the use and the line of a queue."""
        return self.tree or knows_use(self.scene.snapshot, queue, namespace)

    def knows_line(self, queue: str) -> bool:
        """Whether one of the visible namespaces that use a queue may know that."""
        using = users_of(self.scene.snapshot, queue)
        return self.tree or any(self.sees(each) and self.knows(queue, each) for each in using)


async def _seen(asked: Asked) -> _Seen:
    """What the user may see; of a namespace that is named only that.

    Raises:
        HttpRefusal: the user may not list Workloads in that, or in any.
    """
    tree, named = await asked.sight.sees_tree(), asked.query.get("namespace", "")
    if named:
        await asked.sight.require_namespace(named)
        return _Seen(asked.scene, Found(everything=False, names=frozenset({named})), tree)
    shared = asked.scene.once("timeline layouts", _Layouts)
    there = await asyncio.to_thread(shared.namespaces, asked.scene, asked.stage.history)
    found = await asked.sight.among(there)
    if not tree and not found.everything and not found.names:
        raise HttpRefusal(403, f"{asked.user.name} may not list Workloads in any namespace that has some")
    return _Seen(asked.scene, found, tree)


def _key(wanted: Wanted, outlook: Outlook) -> str:
    forecast = outlook.forecast
    of = f"{forecast.taken} {forecast.told} {forecast.reached}" if forecast is not None else "none"
    return f"timeline {wanted.by} {wanted.high} {of}"


def _layout(
    scene: WebScene, history: History, forecast: Forecaster | None, seen: _Seen, wanted: Wanted
) -> _Layout:
    since = scene.known.taken - PAST
    evictions = history.evictions(since, sees=seen.sees)
    found = bars(
        history.spans(since, sees=seen.sees),
        (replace(each, rule=masked_text(each.rule, seen.sees)) for each in evictions),
        forecast,
        now=scene.known.taken,
        waiting={row.workload.uid for row in scene.rows if row.workload.admission is None},
        sees=seen.sees,
        knows=seen.knows,
    )
    resource = measure(found)
    if wanted.high == "size":
        found = as_high_as_large(found, resource)
    if wanted.by == "namespace":
        found = by_namespace(found)
    return _Layout(packed(found), resource, max((amount_of(bar, resource) for bar in found), default=0.0))


def _order(scene: WebScene, by: str) -> Mapping[str, int]:
    """Queues in the order of the quota tree, and namespaces in that of their names."""
    if by != "queue":
        return {}
    return scene.once(
        "timeline order",
        lambda: {line.node[1]: place for place, line in enumerate(scene.lines) if line.node[0] == "queue"},
    )


def _others(
    history: History, sees: Sees, wanted: Wanted, now: float, queues: Container[str]
) -> Mapping[str, Json]:
    """How many Workloads of hidden namespaces held quota at once, by queue: up to now, a minute at a time.

    `now` is the number of the minute that goes on, also where the range has another one, or longer steps.
    """
    step = OTHERS_SECONDS * max(1, round(4 * wanted.per_pixel / OTHERS_SECONDS))
    first = floor(wanted.begins / step)
    count = max(0, floor(min(now, wanted.ends) / step) - first + 1)
    hidden: defaultdict[str, list[Span]] = defaultdict(list)
    for span in history.spans(first * step, now, queues=queues):
        if not sees(span.namespace):
            hidden[span.queue].append(span)
    minute = floor(now / OTHERS_SECONDS)
    return {
        queue: {
            "from": first * step,
            "step": step,
            "counts": most_at_once(spans, first, step, count),
            "now": most_at_once(spans, minute, OTHERS_SECONDS, 1)[0],
        }
        for queue, spans in hidden.items()
    }


def most_at_once(spans: Iterable[Span], first: int, step: float, count: int) -> list[int]:
    """How many of some spans held quota at one moment at most, in each of so many steps.

    `first` is the number of the first step since the epoch. What ends at a moment makes room for what begins.
    """
    changes: Counter[float] = Counter()
    for span in spans:
        changes[span.admitted] += 1
        if span.ended is not None:
            changes[span.ended] -= 1
    found, held, known = [0] * count, 0, 0
    for time, change in sorted(changes.items()):
        for place in range(known, min(ceil(time / step) - first, count)):
            found[place] = max(found[place], held)
        known, held = max(0, floor(time / step) - first), held + change
    for place in range(known, count):
        found[place] = max(found[place], held)
    return found


def _uses(scene: WebScene, queues: Container[str], layout: _Layout, view: View[Bar]) -> Mapping[str, Json]:
    """What the bars of queues use of the layout's resource over time, and their quota of that."""
    changes: defaultdict[str, defaultdict[float, float]] = defaultdict(lambda: defaultdict(float))
    for bar in (each.bar for each in view.bars if each.bar.group in queues):
        of_queue = changes[bar.group]
        for begins, ends, usage in parts(bar.begins, bar.ends, bar.earlier, bar.usage):
            if begins >= view.ends or (ends is not None and ends <= view.begins):
                continue
            amount = most((), usage, layout.resource)
            of_queue[max(view.begins, begins)] += amount
            if ends is not None:
                of_queue[min(view.ends, ends)] -= amount
    return {
        queue: {"points": _points(of_queue, view), **_quota(scene, queue, layout.resource)}
        for queue, of_queue in changes.items()
    }


def _points(changes: Mapping[float, float], view: View[Bar]) -> list[tuple[int, float]]:
    """From when on how much is used: at most at once, in each part of the range in which that changes."""
    step = (view.ends - view.begins) / MOST_POINTS
    most: dict[int, float] = {}
    after: dict[int, float] = {}
    used = 0.0
    for time in sorted(changes):
        place = int((time - view.begins) / step)
        most[place] = max(most.get(place, used), used + changes[time])
        used += changes[time]
        after[place] = used
    after = {place + 1: amount for place, amount in after.items() if place + 1 not in most}
    return [
        (round(view.begins + place * step), round(amount, 3))
        for place, amount in sorted((most | after).items())
    ]


def _quota(scene: WebScene, queue: str, resource: str) -> Json:
    """The `min` and `max` of a queue, in cores, bytes or devices; None: no `max`."""
    line = scene.line(queue)
    uses = [use for use in line.uses if use.resource == resource] if line is not None else []
    unit = 1000 if resource == CPU else 1
    limits = [use.maximum for use in uses if use.maximum is not None]
    limited = bool(uses) and len(limits) == len(uses)
    return {
        "min": sum(use.minimum for use in uses) / unit,
        "max": sum(limits) / unit if limited else None,
    }


def _view(wanted: Wanted, layout: _Layout, order: Mapping[str, int], head: int) -> View[Bar]:
    shown = [each for each in layout.placed if _is_wanted(each.bar.group, wanted)]
    return in_range(shown, wanted.begins, wanted.ends, order, head)


def _answer(
    wanted: Wanted,
    now: float,
    layout: _Layout,
    view: View[Bar],
    groups: Sequence[Group],
    titles: Callable[[str], str | None],
) -> Json:
    found, narrow = drawn(view.rows(wanted.first, wanted.rows), view, wanted.per_pixel, MOST_BARS)
    return {
        "taken": now,
        "from": wanted.begins,
        "to": wanted.ends,
        "bounds": {"from": now - PAST, "to": now + HORIZON},
        "by": wanted.by,
        "high": wanted.high,
        "resource": layout.resource,
        "largest": layout.largest,
        "first": wanted.first,
        "rows": wanted.rows,
        "lanes": view.lanes,
        "head": wanted.head,
        "all": {"groups": len(view.groups), "bars": len(view.bars)},
        "groups": [
            {
                "name": group.name,
                "title": titles(group.name) or group.name,
                "first": group.first,
                "lanes": group.lanes,
            }
            for group in groups
        ],
        "narrow": narrow,
        **_columns(found, view),
    }


def _is_wanted(group: str, wanted: Wanted) -> bool:
    return (not wanted.only or group == wanted.only) and wanted.find in group.lower()


def _in_rows(group: Group, wanted: Wanted) -> bool:
    return group.first < wanted.first + wanted.rows and group.first + group.lanes > wanted.first


class _Table:
    """Texts that many bars share, each once."""

    def __init__(self) -> None:
        self.texts: dict[str, int] = {}

    def place(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))


def _columns(found: Sequence[Drawn[Bar]], view: View[Bar]) -> Json:
    """Bars as columns of numbers: `texts` has all texts; times are seconds after `base`.

    Of bars that are drawn together only their number is told, and how many of them were evicted.
    """
    base, table = floor(view.begins), _Table()
    columns: defaultdict[str, list[int]] = defaultdict(list)
    more: dict[str, dict[int, list[Any]]] = {"joined": {}, "ranges": {}, "stops": {}}
    for index, each in enumerate(found):
        bar, alone = each.bars[0], len(each.bars) == 1
        queues = {one.queue for one in each.bars}
        columns["lane"].append(each.lane)
        columns["high"].append(bar.high)
        columns["at"].append(round(each.begins - base))
        columns["long"].append(-1 if alone and bar.ends is None else round(each.ends - each.begins))
        columns["how"].append(table.place(bar.how if alone else ""))
        columns["queue"].append(table.place(bar.queue) if len(queues) == 1 else -1)
        columns["namespace"].append(table.place(bar.namespace) if alone else -1)
        columns["name"].append(table.place(bar.name) if alone else -1)
        columns["flavors"].append(table.place(", ".join(bar.flavors)) if alone else -1)
        columns["pods"].append(sum(one.pods for one in each.bars))
        if not alone:
            evicted = sum(one.how == Ending.EVICTED for one in each.bars)
            more["joined"][index] = [len(each.bars), evicted]
            continue
        if bar.start is not None or bar.end is not None:
            more["ranges"][index] = _range(bar, base)
        if bar.reason or bar.expected:
            said = (bar.expected or bar.reason, bar.rule, bar.for_namespace, bar.for_name)
            more["stops"][index] = [*map(table.place, said), int(bool(bar.expected))]
    return {
        "base": base,
        "texts": list(table.texts),
        "bars": dict(columns),
        **{name: {str(index): each for index, each in found.items()} for name, found in more.items()},
    }


def _range(bar: Bar, base: float) -> list[int | None]:
    """The earliest and latest start and end, as seconds after `base`; None: none, or unknown."""
    moments = [
        moment for found in (bar.start, bar.end) for moment in (found if found is not None else (None, None))
    ]
    return [None if moment is None else round(moment - base) for moment in moments]


def _forecast(outlook: Outlook, seen: _Seen) -> Json:
    """How far the forecast goes, and on what it rests: for most users only as far as they may see it."""
    forecast = outlook.forecast
    if forecast is None:
        return {"state": "working" if outlook.working else "none"}
    basis = forecast.basis(seen.sees)
    return {
        "state": "there",
        "working": outlook.working,
        "taken": forecast.taken,
        "reached": forecast.reached,
        "whole": forecast.is_whole,
        "told": forecast.told,
        "runs": forecast.runs,
        "sources": {str(source): count for source, count in sorted(basis.sources.items())},
        "unknown": basis.unknown,
        "unproven": basis.unproven,
        "others": not seen.found.everything,
    }
