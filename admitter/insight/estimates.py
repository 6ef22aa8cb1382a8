"""When waiting Workloads start: the engine run forward, many times, with runtimes drawn from what is known.

Nobody knows who else will come. The median holds if nobody does who goes first; the range also has those
futures in it in which Jobs keep coming as they did.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Final

from admitter.controllers.views import WorkloadView
from admitter.insight.arrivals import Arrivals
from admitter.insight.durations import Durations, Runtimes, Source
from admitter.insight.playing import Player, in_turn
from admitter.simulate.manifests import Change, Timeline
from admitter.simulate.picture import Facts, Picture
from admitter.simulate.simulator import Simulator

RUNS: Final = 20
"""Runs for each answer; of so many, the second and the second last are the bounds of the range."""
CONFIDENCE: Final = 0.9
"""How often the true start is in the range if runtimes and arrivals are what the past says: 18 of 20."""

SAME_SECONDS: Final = 1.0
"""Starts that differ by less are the same."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a Workload starts, in seconds from now; None: not as long as those run whose runtime nobody knows.

    Attributes:
        earliest: the lower bound of the range.
        median: as likely earlier as later if nobody else comes.
        latest: the upper bound of the range, if Jobs keep coming where they do.
        sources: where runtimes come from.
        unknown: of how many in its tree nothing is known of their runtime.
        coming: whether Jobs that keep coming make the range longer.
    """

    earliest: float | None
    median: float | None
    latest: float | None
    sources: tuple[Source, ...]
    unknown: int
    coming: bool = False


class Estimator:
    """Estimates at one moment."""

    def __init__(
        self,
        known: Facts,
        picture: Picture,
        *,
        seed: int = 0,
        runs: int = RUNS,
        expected: Sequence[Change] | None = None,
        play: Player = in_turn,
    ) -> None:
        """Prepare.

        Args:
            known: what there is.
            picture: of the same.
            seed: of what is drawn: the same gives the same.
            runs: how often the future is tried.
            expected: who comes, in the order of time; None: nobody knows, and the range counts on those who
                have kept coming.
            play: how the runs are played.
        """
        self._known = known
        self._picture = picture
        self._runs = runs
        self._seed = seed
        self._expected = expected
        self._play = play
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
        members = [view for view in self._picture.world.workloads if self._root(view) == root]
        there = {view.key: view for view in members if not view.finished}
        known = {view.uid: self._durations.of(view) for view in there.values()}
        jobs = {job.key: job for job in self._picture.world.jobs if (job.namespace, job.workload) in there}
        facts = replace(self._known, views={**self._known.views, "workloads": there, "jobs": jobs})
        arrivals = Arrivals(members, self._durations, self._known.taken) if self._expected is None else None
        alone = self._starts(facts, known, wanted, lambda _: self._expected or ())
        crowded = self._starts(facts, known, wanted, arrivals.draw) if arrivals else None
        sources = tuple(sorted({each.source for each in known.values() if each is not None}))
        unknown = sum(each is None for each in known.values())
        return {
            uid: self._estimate(
                sorted(alone[uid]), sorted(crowded[uid]) if crowded is not None else None, sources, unknown
            )
            for uid in wanted
        }

    def _starts(
        self,
        facts: Facts,
        known: dict[str, Runtimes | None],
        wanted: set[str],
        coming: Callable[[Random], Sequence[Change]],
    ) -> defaultdict[str, list[float]]:
        """When each of those wanted starts, in seconds from now, in each future in which it does."""

        def run(number: int) -> dict[str, float]:
            # Runtimes are the same whether more come or not: what differs then is due to those.
            random = Random(f"{self._seed}/{number}")  # noqa: S311  # nothing secret is drawn
            others = Random(f"{self._seed}/{number}/others")  # noqa: S311  # no secret either
            return self._run(facts, coming(others), known, wanted, random)

        starts: defaultdict[str, list[float]] = defaultdict(list)
        for future in self._play([partial(run, number) for number in range(self._runs)]):
            for uid, after in future.items():
                starts[uid].append(after)
        return starts

    def _run(
        self,
        facts: Facts,
        coming: Sequence[Change],
        known: dict[str, Runtimes | None],
        wanted: set[str],
        random: Random,
    ) -> dict[str, float]:
        """One future: when each of those wanted starts, in seconds from now."""

        def lasts(view: WorkloadView, ran: float) -> float | None:
            runtimes = known.get(view.uid)
            return runtimes.draw(random, ran) if runtimes is not None else None

        now = facts.taken
        simulator = Simulator(Timeline(now, list(coming), []), Picture(facts), lasts)
        starts: dict[str, float] = {}
        for event in simulator.run():
            if event.kind == "Admitted":
                view = self._picture.world.workloads.get(event.key)
                if view is not None and view.uid in wanted:
                    starts.setdefault(view.uid, event.time - now)
            if len(starts) == len(wanted):
                break
        return starts

    def _estimate(
        self, alone: list[float], crowded: list[float] | None, sources: tuple[Source, ...], unknown: int
    ) -> Estimate:
        """The range: so many of the runs lie outside on each side.

        Args:
            alone: starts if nobody else comes, in order.
            crowded: starts if Jobs keep coming; None if nothing tells that they do.
            sources: as in an estimate.
            unknown: as in an estimate.
        """
        outside = round(self._runs * (1 - CONFIDENCE) / 2)

        def at(starts: list[float], place: int) -> float | None:
            return starts[place] if place < len(starts) else None

        last = self._runs - 1 - outside
        latest, later = at(alone, last), at(alone if crowded is None else crowded, last)
        coming = latest is not None and (later is None or later > latest + SAME_SECONDS)
        return Estimate(
            at(alone, outside),
            at(alone, self._runs // 2),
            later if coming else latest,
            sources,
            unknown,
            coming,
        )
