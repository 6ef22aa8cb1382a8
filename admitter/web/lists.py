"""The Workloads of a scene as lists that users filter, sort and scroll: windows of them, found on the server.

A Workload of a namespace that the user may not see keeps its place in the line of a queue, and has no name,
no reason and no number there. No filter, order or search looks at it: with any of them it is left out, since
what it matches would tell about it.
"""

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar

from admitter.api.conditions import WorkloadState
from admitter.cache.run_time_status import run_time_of
from admitter.cache.timestamps import seconds
from admitter.cache.views import WorkloadView
from admitter.insight.forecast.durations import Durations
from admitter.insight.listing import Row
from admitter.policy.snapshot import Snapshot
from admitter.web.scene import WebScene

Json = dict[str, Any]
T = TypeVar("T")
Sees = Callable[[str], bool]
"""Whether the user may see the Workloads of a namespace."""

MOST_CHOICES: Final = 200
"""Values of a field that a list offers to filter by, those of most Workloads first."""
MOST_KEPT: Final = 24
"""Lists of one scene that are kept, so that a window of one costs nothing; the idlest is forgotten."""
WAITING, HOLDING = "waiting", "holding"


@dataclass(frozen=True, slots=True)
class Item:
    """A Workload in a list."""

    row: Row
    user: str  # its maker; empty if nothing says so
    words: str  # what a search looks in, in lower case
    evicted: float | None  # when it was evicted last, in seconds since the epoch; None: it was not

    @property
    def namespace(self) -> str:
        return self.row.workload.namespace

    @property
    def holds(self) -> bool:
        return self.row.workload.admission is not None

    @property
    def priority(self) -> int:
        return int(self.row.workload.spec.get("priority", 0))


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a list is to have, and in which order."""

    queue: str | None = None  # the engine's name of a queue; None: all
    group: str = ""  # `waiting` or `holding`; empty: both
    namespaces: frozenset[str] = frozenset()  # empty: all
    users: frozenset[str] = frozenset()
    states: frozenset[str] = frozenset()
    reasons: frozenset[str] = frozenset()
    least: int | None = None  # the least priority
    most: int | None = None  # the largest priority
    text: tuple[str, ...] = ()  # words that all have to be in its name, namespace or user; in lower case
    evicted: float | None = None  # evicted in so many seconds until now
    order: str = "position"
    backwards: bool = False

    @property
    def in_line(self) -> bool:
        """Whether it is the whole line of one queue, in which hidden Workloads keep their places."""
        plain = replace(Wanted(), queue=self.queue, group=WAITING)
        return self.queue is not None and self == plain

    def takes(self, item: Item, now: float) -> bool:
        """Whether a Workload that the user may see is in the list."""
        chosen = (
            (self.namespaces, item.namespace),
            (self.users, item.user),
            (self.states, item.row.state),
            (self.reasons, item.row.reason),
        )
        if any(wanted and value not in wanted for wanted, value in chosen):
            return False
        if self.least is not None and item.priority < self.least:
            return False
        if self.most is not None and item.priority > self.most:
            return False
        if self.evicted is not None and (item.evicted is None or now - item.evicted > self.evicted):
            return False
        return all(word in item.words for word in self.text)


class Shown(NamedTuple):
    """A row: a Workload, or some that are hidden and follow each other in their queue's line."""

    item: Item | None  # None: they are hidden
    place: int | None  # the first one's place in line; None: it is in none, or the user may not know it
    until: int | None = None  # the last one's place, if they are hidden

    @property
    def size(self) -> int:
        """How many Workloads it stands for."""
        return 1 if self.until is None or self.place is None else self.until - self.place + 1


@dataclass
class Lists:
    """All unfinished Workloads of a scene. Its methods may be called from any thread, and may take long."""

    snapshot: Snapshot
    rows: Sequence[Row]
    _kept: OrderedDict[object, Any] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)
    _ends: dict[str, float | None] = field(default_factory=dict)

    @cached_property
    def items(self) -> list[Item]:
        return [self._item(row) for row in self.rows]

    @cached_property
    def by_queue(self) -> dict[str, list[Item]]:
        found: defaultdict[str, list[Item]] = defaultdict(list)
        for item in self.items:
            found[item.row.queue].append(item)
        return dict(found)

    @cached_property
    def by_namespace(self) -> dict[str, list[Item]]:
        found: defaultdict[str, list[Item]] = defaultdict(list)
        for item in self.items:
            found[item.namespace].append(item)
        return dict(found)

    @cached_property
    def _durations(self) -> Durations:
        return Durations(self.snapshot)

    def end_of(self, item: Item) -> float | None:
        """When a Workload is expected to end; None: it holds no quota, or nothing is known of its runtime."""
        view = item.row.workload
        if not item.holds:
            return None
        if view.uid not in self._ends:
            self._ends[view.uid] = _end(view, self._durations, self.snapshot.now)
        return self._ends[view.uid]

    def _item(self, row: Row) -> Item:
        view = row.workload
        job = self.snapshot.world.job_of(view.key)
        user = job.user if job is not None else ""
        words = "\n".join({row.job, view.name, view.namespace, user}).casefold()
        return Item(row, user, words, evicted_at(view))

    def of(self, wanted: Wanted, sees: Sees, seen: object) -> Sequence[Shown]:
        """A list, as a user sees it; `seen` tells apart what users may see: equal for equal sights."""
        return self._once((wanted, seen), lambda: self._made(wanted, sees))

    def _once(self, key: object, make: Callable[[], T]) -> T:
        """What is made of a key, from memory if it was made lately."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                known: T = self._kept[key]
                return known
        found = make()
        with self._lock:
            self._kept[key] = found
            if len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return found

    def _made(self, wanted: Wanted, sees: Sees) -> Sequence[Shown]:
        there = self._there(wanted)
        if wanted.in_line:
            return [*_line(there, sees), *(Shown(item, None) for item in there if _is_loose(item, sees))]
        now = self.snapshot.now
        found = [item for item in there if sees(item.namespace) and wanted.takes(item, now)]
        found = _sorted(found, wanted, self)
        return [Shown(item, item.row.position) for item in found]

    def _there(self, wanted: Wanted) -> Sequence[Item]:
        if wanted.queue is not None:
            of_it: Sequence[Item] = self.by_queue.get(wanted.queue, ())
        elif wanted.namespaces:
            named = sorted(wanted.namespaces)
            of_it = [item for name in named for item in self.by_namespace.get(name, ())]
        else:
            of_it = self.items
        if wanted.group:
            return [item for item in of_it if item.holds == (wanted.group == HOLDING)]
        return of_it

    def choices(self, queue: str | None, sees: Sees, seen: object) -> Json:
        """What a list can be filtered by: the values of its visible Workloads, and how many have each."""
        return self._once((queue, seen), lambda: self._choices(queue, sees))

    def _choices(self, queue: str | None, sees: Sees) -> Json:
        there = self.items if queue is None else self.by_queue.get(queue, ())
        found = [item for item in there if sees(item.namespace)]
        fields: dict[str, Iterable[object]] = {
            "states": (item.row.state for item in found),
            "reasons": (item.row.reason for item in found if item.row.reason),
            "namespaces": (item.namespace for item in found),
            "users": (item.user for item in found if item.user),
            "priorities": (item.priority for item in found),
        }
        return {
            name: [[value, count] for value, count in Counter(values).most_common(MOST_CHOICES)]
            for name, values in fields.items()
        }


def _line(there: Iterable[Item], sees: Sees) -> Iterator[Shown]:
    """The line of a queue; Workloads that are hidden and follow each other are one row."""
    first = last = None
    for item in there:
        place = item.row.position
        if place is None:
            continue
        if sees(item.namespace):
            if first is not None:
                yield Shown(None, first, last)
                first = None
            yield Shown(item, place)
        else:
            first, last = place if first is None else first, place
    if first is not None:
        yield Shown(None, first, last)


def _is_loose(item: Item, sees: Sees) -> bool:
    """Whether it is in no line, and not hidden: a hidden one has no place to keep."""
    return item.row.position is None and sees(item.namespace)


def lists_of(scene: WebScene) -> Lists:
    """The lists of a scene; slow, and belongs in a thread."""
    return scene.once("lists", lambda: Lists(scene.snapshot, scene.rows))


def evicted_at(view: WorkloadView) -> float | None:
    """When a Workload was evicted last; None: it is not known to have been."""
    condition = view.condition("Evicted")
    held = condition.get("lastTransitionTime") if condition.get("status") == "True" else None
    times = [*view.evictions[-1:], *([seconds(held)] if held else [])]
    return max(times, default=None)


def index_of(found: Sequence[Shown], start: str, after: int) -> int | None:
    """The next visible Workload, from a place on and then from the top, with a name that starts so.

    None: there is none.
    """
    wanted = start.casefold()
    for place in chain(range(after, len(found)), range(min(after, len(found)))):
        item = found[place].item
        if item is not None and item.row.job.rpartition("/")[2].casefold().startswith(wanted):
            return place
    return None


def _end(view: WorkloadView, durations: Durations, now: float) -> float | None:
    runtimes, deadline = durations.of(view), run_time_of(view.status).deadline
    if runtimes is None:
        return deadline
    end = view.since + runtimes.middle(max(0.0, now - view.since))
    return end if deadline is None else min(end, max(deadline, now))


def _sorted(found: list[Item], wanted: Wanted, lists: Lists) -> list[Item]:
    """Sorted by one field; those without it are last in both directions, and equals keep their order."""
    if wanted.order == "position":
        return found[::-1] if wanted.backwards else found
    of = _ORDERS[wanted.order]
    values = [(of(item, lists), item) for item in found]
    have = [(value, item) for value, item in values if value is not None]
    have.sort(key=lambda each: each[0], reverse=wanted.backwards)
    return [item for _, item in have] + [item for value, item in values if value is None]


_ORDERS: Final[dict[str, Callable[[Item, Lists], Any]]] = {
    "name": lambda item, _: item.row.job,
    "namespace": lambda item, _: item.namespace,
    "user": lambda item, _: item.user or None,
    "priority": lambda item, _: item.priority,
    "created": lambda item, _: item.row.workload.created,
    "state": lambda item, _: item.row.state,
    "reason": lambda item, _: item.row.reason or None,
    "queue": lambda item, _: item.row.queue or None,
    "evicted": lambda item, _: item.evicted,
    "since": lambda item, _: item.row.workload.since if item.holds else None,
    "ends": lambda item, lists: lists.end_of(item),
}
ORDERS: Final = frozenset({"position", *_ORDERS})
STATES: Final = frozenset(WorkloadState)
