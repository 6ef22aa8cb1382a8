"""When waiting Workloads start: the engine run forward, many times, with runtimes drawn from what is known.

Nobody knows who else will come: an estimate holds if nobody does who goes first.
"""

from collections import defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from admitter.controllers.views import WorkloadView
from admitter.insight.durations import Durations, Runtimes, Source
from admitter.simulate.manifests import Timeline
from admitter.simulate.picture import Facts, Picture
from admitter.simulate.simulator import Simulator

RUNS: Final = 20
"""Runs for each answer; of so many, the second and the second last are the bounds of the range."""
CONFIDENCE: Final = 0.9
"""How often the true start is between the bounds if runtimes are what the past says: 18 of 20."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a Workload starts, in seconds from now; None: not as long as those run whose runtime nobody knows.

    Attributes:
        earliest: the lower bound of the range.
        median: as likely earlier as later.
        latest: the upper bound of the range.
        sources: where runtimes come from.
        unknown: of how many in its tree nothing is known of their runtime.
    """

    earliest: float | None
    median: float | None
    latest: float | None
    sources: tuple[Source, ...]
    unknown: int


class Estimator:
    """Estimates at one moment."""

    def __init__(
        self,
        known: Facts,
        picture: Picture,
        *,
        seed: int = 0,
        runs: int = RUNS,
        proceed: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare.

        Args:
            known: what there is.
            picture: of the same.
            seed: of what is drawn: the same gives the same.
            runs: how often the future is tried.
            proceed: called before each run; what it raises ends all of it.
        """
        self._known = known
        self._picture = picture
        self._runs = runs
        self._seed = seed
        self._proceed = proceed
        self._durations = Durations(picture)

    def of(self, wanted: Collection[WorkloadView]) -> dict[str, Estimate]:
        """Estimates by UID for some that wait; those of one tree together."""
        trees = defaultdict(list)
        for workload in wanted:
            trees[self._root(workload)].append(workload)
        found: dict[str, Estimate] = {}
        for root, members in trees.items():
            if root is not None:
                found |= self._in_tree(root, {member.uid for member in members})
        return found

    def _root(self, workload: WorkloadView) -> object:
        held = workload.admission
        name = held.queue if held is not None else self._picture.queue_of(workload)
        tree = self._picture.engine.tree
        return tree.root(name) if name is not None and name in tree.queues else None

    def _in_tree(self, root: object, wanted: set[str]) -> dict[str, Estimate]:
        """Those of one tree: what is in others makes no difference."""
        there = {
            view.key: view
            for view in self._picture.world.workloads
            if not view.finished and self._root(view) == root
        }
        known = {view.uid: self._durations.of(view) for view in there.values()}
        jobs = {job.key: job for job in self._picture.world.jobs if (job.namespace, job.workload) in there}
        facts = replace(self._known, views={**self._known.views, "workloads": there, "jobs": jobs})
        starts: defaultdict[str, list[float]] = defaultdict(list)
        for number in range(self._runs):
            self._proceed()
            random = Random(f"{self._seed}/{number}")  # noqa: S311  # nothing secret is drawn
            for uid, after in self._run(facts, known, wanted, random).items():
                starts[uid].append(after)
        sources = tuple(sorted({each.source for each in known.values() if each is not None}))
        unknown = sum(each is None for each in known.values())
        return {uid: self._estimate(sorted(starts[uid]), sources, unknown) for uid in wanted}

    def _run(
        self, facts: Facts, known: dict[str, Runtimes | None], wanted: set[str], random: Random
    ) -> dict[str, float]:
        """One future: when each of those wanted starts, in seconds from now."""

        def lasts(view: WorkloadView, ran: float) -> float | None:
            runtimes = known.get(view.uid)
            return runtimes.draw(random, ran) if runtimes is not None else None

        now = facts.taken
        simulator = Simulator(Timeline(now, [], []), Picture(facts), lasts)
        starts: dict[str, float] = {}
        for event in simulator.run():
            if event.kind == "Admitted":
                view = self._picture.world.workloads.get(event.key)
                if view is not None and view.uid in wanted:
                    starts.setdefault(view.uid, event.time - now)
            if len(starts) == len(wanted):
                break
        return starts

    def _estimate(self, starts: list[float], sources: tuple[Source, ...], unknown: int) -> Estimate:
        """The range: so many of the runs lie outside on each side."""
        outside = round(self._runs * (1 - CONFIDENCE) / 2)

        def at(place: int) -> float | None:
            return starts[place] if place < len(starts) else None

        return Estimate(at(outside), at(self._runs // 2), at(self._runs - 1 - outside), sources, unknown)
