"""The next hours as a schedule: what runs from when to when, and how sure that is.

One playout with median runtimes is the schedule. Further ones, with runtimes drawn from what is known, tell
how sure the first start and the first end of each Workload are. No Workload comes that is not there yet.

All playouts are of the whole cluster, and may take long. So they are played in pieces: `play` stops
whenever its caller wants the processor for something else, and goes on later.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import isnan, nan
from random import Random
from typing import Final, NamedTuple

from admitter.cache.views import WorkloadView
from admitter.client.store import Key
from admitter.engine.model import Admission
from admitter.insight.forecast.durations import Durations, Runtimes, RuntimeSource
from admitter.insight.forecast.estimates import CONFIDENCE, DOUBTING, RUNS
from admitter.insight.forecast.observed import Observed
from admitter.policy.snapshot import QUEUED_PODS, Facts, Snapshot
from admitter.simulate.items import Event, Item
from admitter.simulate.manifests import Timeline
from admitter.simulate.simulator import Simulator

HORIZON: Final = 12 * 3600.0
"""How far a schedule goes, in seconds."""
FEWEST: Final = 3
"""The fewest playouts that tell how sure a time is."""
_ENDED: Final = frozenset({"Finished", "Preempted", "Evicted"})


@dataclass(slots=True)
class Stay:
    """One admission of a Workload in the schedule. Times are in seconds since the epoch."""

    view: WorkloadView
    admission: Admission  # what it holds
    first: bool  # whether it is the present admission, or the next one of what waits
    starts: float
    ends: float | None = None  # None: not while the schedule goes on
    reason: str = ""  # why it has to stop, in one word; empty: it does not
    preemptor: Key | None = None  # for which Workload, by namespace and name


class Range(NamedTuple):
    """When something happens in nine of ten playouts, in seconds since the epoch."""

    earliest: float
    latest: float | None  # None: perhaps not before the end of the schedule


@dataclass(frozen=True, slots=True)
class Basis:
    """What a schedule rests on: the runtimes of the Workloads in it."""

    sources: Mapping[RuntimeSource, int]  # how many have a runtime from where
    unknown: int  # how many have no known runtime
    unproven: int  # how many have an unproven stated runtime only


@dataclass(frozen=True, slots=True)
class _Told:
    """What one playout tells of each Workload by its place: seconds from the beginning; NaN: nothing."""

    starts: "array[float]"
    ends: "array[float]"
    reached: float  # how far it went


class Forecaster:
    """A schedule in the making, as seen at one moment."""

    def __init__(
        self,
        known: Facts,
        snapshot: Snapshot,
        *,
        seed: int = 0,
        runs: int = RUNS,
        horizon: float = HORIZON,
    ) -> None:
        """Nothing is played yet; equal seeds give equal schedules. The snapshot is read only."""
        self.taken = known.taken  # when it begins, in seconds since the epoch
        self.until = known.taken + horizon  # when it ends, if there is time for all of it
        self.reached = known.taken  # how far it is known
        self.runs = runs  # how many playouts are planned for the ranges
        self.stays: list[Stay] = []  # in order of their starts
        self.done = False
        self._known, self._snapshot, self._seed = known, snapshot, seed
        views = [view for view in snapshot.world.workloads if not view.finished]
        self._places = {view.uid: place for place, view in enumerate(views)}
        self._views = views
        self._runtimes: list[Runtimes | None] = []
        self._told: list[_Told] = []
        self._playing = self._play()

    @property
    def told(self) -> int:
        """How many playouts for the ranges there were."""
        return len(self._told)

    @property
    def is_whole(self) -> bool:
        """Whether the schedule goes up to its end."""
        return self.reached >= self.until

    def play(self) -> Iterator[None]:
        """Go on with the playouts; the caller may stop after any step, and go on by another call."""
        return self._playing

    def basis(self, sees: Callable[[str], bool] = lambda _: True) -> Basis:
        """What it rests on, of the namespaces for which `sees` is true."""
        of_them = zip(self._views, self._runtimes, strict=False)
        found = [runtimes for view, runtimes in of_them if sees(view.namespace)]
        known = [each for each in found if each is not None]
        return Basis(
            Counter(each.source for each in known),
            len(found) - len(known),
            sum(each.unproven for each in known),
        )

    def start_of(self, uid: str) -> Range | None:
        """When a Workload is next admitted, in most playouts; None: they don't tell."""
        told = tuple(self._told)  # another thread may go on with the playouts
        return self._range(uid, [(each.starts, each.reached) for each in told])

    def end_of(self, uid: str) -> Range | None:
        """When the first admission of a Workload ends, in most playouts; None: they don't tell."""
        told = tuple(self._told)
        return self._range(uid, [(each.ends, each.reached) for each in told])

    def _range(self, uid: str, told: "list[tuple[array[float], float]]") -> Range | None:
        """By the times of a Workload in some playouts, and how far each went."""
        place = self._places.get(uid)
        if place is None or len(told) < FEWEST:
            return None
        found = [(times[place], reached) for times, reached in told]
        times = sorted(time for time, _ in found if not isnan(time))
        observed = Observed(times, 0, [reached for time, reached in found if isnan(time)])
        outside = round(self.runs * (1 - CONFIDENCE) / 2)
        earliest = observed.within((outside + 0.5) / self.runs)
        latest = observed.within((self.runs - 0.5 - outside) / self.runs)
        if earliest is None:
            return None
        return Range(self.taken + earliest, self.taken + latest if latest is not None else None)

    def _play(self) -> Iterator[None]:
        durations = Durations(self._snapshot)
        for view in self._views:
            self._runtimes.append(durations.of(view))
            yield
        facts = self._unfinished()
        yield from self._schedule(facts)
        for number in range(self.runs):
            yield from self._draw(facts, number)
        self.done = True

    def _unfinished(self) -> Facts:
        """All facts without finished Workloads and what these were made for."""
        known = self._known.views
        over = {view.key for view in self._snapshot.world.workloads if view.finished}
        views = {**known, "workloads": _without(known.get("workloads", {}), over)}
        for plural in known.keys() & {"jobs", QUEUED_PODS}:
            made_for = known[plural].items()
            views[plural] = {k: each for k, each in made_for if (each.namespace, each.workload) not in over}
        return replace(self._known, views=views)

    def _schedule(self, facts: Facts) -> Iterator[None]:
        """The playout with median runtimes; it is known up to the last step."""

        def lasts(view: WorkloadView, ran: float) -> float | None:
            runtimes = self._runtimes_of(view)
            return runtimes.middle(ran) if runtimes is not None else None

        simulator = Simulator(Timeline(self.taken, [], []), Snapshot(facts), lasts)
        items = {item.view.key: item for item in simulator.items.values()}
        running: dict[Key, Stay] = {}
        seen: set[Key] = set()

        def begin(item: Item, starts: float) -> None:
            assert item.admission is not None, "it runs"
            key = item.view.key
            running[key] = Stay(item.view, item.admission, key not in seen, starts)
            seen.add(key)
            self.stays.append(running[key])

        for item in simulator.items.values():
            if item.phase.runs:
                begin(item, item.view.since)
        for event in self._events(simulator):
            if event is not None and event.kind == "Admitted" and event.key in items:
                begin(items[event.key], event.time)
            elif event is not None and event.kind in _ENDED and event.key in running:
                stay = running.pop(event.key)
                stay.ends = event.time
                if event.kind != "Finished":
                    stay.reason, stay.preemptor = event.reason, event.preemptor
            self.reached = simulator.now
            yield
        self.reached = simulator.now if simulator.endless is not None else self.until

    def _draw(self, facts: Facts, number: int) -> Iterator[None]:
        """A playout with drawn runtimes; it counts once it is over."""
        random = Random(f"{self._seed}/{number}")  # noqa: S311  # nothing secret is drawn
        believed = number % DOUBTING != DOUBTING // 2

        def lasts(view: WorkloadView, ran: float) -> float | None:
            runtimes = self._runtimes_of(view)
            return runtimes.draw(random, ran, believed=believed) if runtimes is not None else None

        simulator = Simulator(Timeline(self.taken, [], []), Snapshot(facts), lasts)
        places = {view.key: place for place, view in enumerate(self._views)}
        nothing = array("f", [nan]) * len(places)
        told = _Told(array("f", nothing), array("f", nothing), self.until - self.taken)
        for event in self._events(simulator):
            place = places.get(event.key) if event is not None else None
            if event is not None and place is not None:
                times = told.starts if event.kind == "Admitted" else told.ends
                if event.kind in {"Admitted", *_ENDED} and isnan(times[place]):
                    times[place] = event.time - self.taken
            yield
        reached = simulator.now if simulator.endless is not None else self.until
        self._told.append(replace(told, reached=reached - self.taken))

    def _events(self, simulator: Simulator) -> Iterator[Event | None]:
        """What happens up to the horizon; None after a cycle in which nothing may have."""
        while True:
            last = simulator.cycles + 1
            yield from simulator.run(cycles=last, until=self.until)
            if simulator.cycles != last or simulator.endless is not None:
                return
            yield None

    def _runtimes_of(self, view: WorkloadView) -> Runtimes | None:
        place = self._places.get(view.uid)
        return self._runtimes[place] if place is not None else None


def _without(views: Mapping[Key, WorkloadView], over: set[Key]) -> dict[Key, WorkloadView]:
    return {key: view for key, view in views.items() if key not in over}
