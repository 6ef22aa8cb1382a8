"""When waiting Workloads start: many playouts, with runtimes drawn from what is known.

Future arrivals are unknown. The median assumes that no workload comes that goes first; the range also has
playouts in which Jobs keep coming as before. Where playouts are slow, there may be time for a few only: of
the others it is known how far they got. Some playouts do not believe unproven stated runtimes: enough of
them that the range includes both cases, and so few that the median follows the statements.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Any, Final, NamedTuple

from admitter.cache.views import WorkloadView
from admitter.client.store import Key
from admitter.engine.quota.tree import Node
from admitter.insight.forecast.arrivals import Arrivals
from admitter.insight.forecast.deadline import OutOfTimeError
from admitter.insight.forecast.durations import Durations, Runtimes, RuntimeSource
from admitter.insight.forecast.observed import Observed
from admitter.insight.forecast.playing import ALL_IN_TURN, Playing
from admitter.policy.snapshot import QUEUED_PODS, Facts, Snapshot, Views
from admitter.simulate.manifests import Change, Timeline
from admitter.simulate.simulator import Simulator

RUNS: Final = 20
"""Playouts for each answer; the second and the second last start are the bounds of the range."""
CONFIDENCE: Final = 0.9
"""How often the true start is in the range if runtimes and arrivals are as in the past: 18 of 20."""

DOUBTING: Final = 5
"""One of so many playouts believes no unproven stated runtime: four of twenty; two are outside the range."""
SAME_SECONDS: Final = 1.0
"""Starts that differ by less are the same."""

Draw = Callable[[Random, bool], Sequence[Change]]
"""Draws the arrivals of a playout, in order of time; given whether it believes unproven stated runtimes."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a Workload starts, in seconds from now; None: not before workloads of unknown runtime end."""

    earliest: float | None  # the lower bound of the range
    median: float | None  # an earlier start is as likely as a later one, if no other workload comes
    latest: float | None  # the upper bound of the range, if Jobs keep coming where they do
    sources: tuple[RuntimeSource, ...]  # where runtimes come from
    unknown: int  # how many workloads of its tree have no known runtime
    coming: bool = False  # whether Jobs that keep coming make the range longer
    told: int = RUNS  # how many playouts without arrivals ran far enough
    runs: int = RUNS  # how many playouts were planned
    late: bool = False  # whether only the time was too short for a median
    # the earliest end of the playouts that ran out of time before its start; None: there are none
    reached: float | None = None
    # how many workloads of other namespaces in its tree have an unproven stated runtime only
    unproven: int = 0


NOT_IN_TIME: Final = Estimate(None, None, None, (), 0, told=0, late=True)
"""There was no time for any playout."""


class FutureKind(NamedTuple):
    """A kind of playout: the tree, by its place, and whether only expected workloads come."""

    tree: int
    alone: bool


class Run(NamedTuple):
    """One playout, as far as it ran."""

    branch: FutureKind
    starts: Mapping[str, float]  # when each wanted workload starts, in seconds from now, by UID
    # how far it ran, in seconds from now, if the time was over before all had started; None: to its end
    reached: float | None


@dataclass(frozen=True, slots=True)
class TreeFutures:
    """Workloads of one tree: other trees do not affect them."""

    facts: Facts  # all facts, except finished Workloads and those of other trees, and their Jobs
    runtimes: Mapping[str, Runtimes | None]  # what is known of the runtimes of their Workloads, by UID
    wanted: Mapping[str, str]  # namespaces of the workloads to estimate, by UID
    unproven: Counter[str]  # how many of these have an unproven stated runtime only, by namespace
    alone: Draw  # arrivals, if only expected workloads come
    crowded: Draw | None  # arrivals, if Jobs keep coming as before; None: none has kept coming


class Estimator:
    """Estimates at one moment."""

    def __init__(
        self,
        known: Facts,
        snapshot: Snapshot,
        *,
        seed: int = 0,
        runs: int = RUNS,
        expected: Sequence[Change] | None = None,
        playing: Playing = ALL_IN_TURN,
    ) -> None:
        """Nothing is played yet; equal seeds give equal estimates.

        Arrivals are `expected` in this order, that of time; None: they are unknown, and the range includes
        the kinds that keep coming.
        """
        self._known = known
        self._snapshot = snapshot
        self._runs = runs
        self._seed = seed
        self._expected = expected
        self._playing = playing
        self._durations = Durations(snapshot)

    def of(self, wanted: Collection[WorkloadView]) -> dict[str, Estimate]:
        """Estimates for waiting workloads, by UID; those of one tree share playouts."""
        by_root: defaultdict[Node, set[str]] = defaultdict(set)
        for workload in wanted:
            root = self._root(workload)
            if root is not None:
                by_root[root].add(workload.uid)
        members: dict[Node | None, list[WorkloadView]] = {root: [] for root in by_root}
        for view in self._snapshot.world.workloads:
            members.get(self._root(view), []).append(view)
        trees = [self._tree(members[root], uids) for root, uids in by_root.items()]
        runs: defaultdict[FutureKind, list[Run]] = defaultdict(list)
        for run in self._playing.player(list(self._futures(trees))):
            runs[run.branch].append(run)
        return {
            uid: estimate
            for place, tree in enumerate(trees)
            for crowded in [runs[FutureKind(place, alone=False)] if tree.crowded is not None else None]
            for uid, estimate in self._estimates(tree, runs[FutureKind(place, alone=True)], crowded)
        }

    def _root(self, workload: WorkloadView) -> Node | None:
        held = workload.admission
        name = held.queue if held is not None else self._snapshot.queue_of(workload)
        tree = self._snapshot.engine.tree
        return tree.root(name) if name is not None and name in tree.queues else None

    def _tree(self, members: Collection[WorkloadView], wanted: Collection[str]) -> TreeFutures:
        there = {view.key: view for view in members if not view.finished}
        known = {view.uid: self._durations.of(view) for view in there.values()}
        facts = replace(self._known, views={**self._known.views, **self._made_for(there)})
        arrivals = Arrivals(members, self._durations, self._known.taken) if self._expected is None else None
        return TreeFutures(
            facts,
            known,
            {view.uid: view.namespace for view in there.values() if view.uid in wanted},
            Counter(view.namespace for view in there.values() if _is_unproven(known[view.uid])),
            lambda *_: self._expected or (),
            arrivals.draw if arrivals else None,
        )

    def _made_for(self, there: Mapping[Key, WorkloadView]) -> Views:
        """Some Workloads, and what these were made for."""
        world = self._snapshot.world
        jobs = [job for key in there if (job := world.job_of(key)) is not None]
        views: dict[str, Mapping[Key, Any]] = {"workloads": there}
        views["jobs"] = {job.key: job for job in jobs if not job.resource.is_pods}
        if QUEUED_PODS in self._known.views:
            pods = (pod for job in jobs if job.resource.is_pods for pod in world.members_of(job))
            views[QUEUED_PODS] = {pod.key: pod for pod in pods}
        return views

    def _futures(self, trees: Sequence[TreeFutures]) -> Iterator[Callable[[], Run]]:
        """All playouts: the first of each tree, then the second, so that the trees share the time."""
        for number in range(self._runs):
            for place, tree in enumerate(trees):
                yield partial(self._run, FutureKind(place, alone=True), tree, tree.alone, number)
                if tree.crowded is not None:
                    yield partial(self._run, FutureKind(place, alone=False), tree, tree.crowded, number)

    def _run(self, branch: FutureKind, tree: TreeFutures, draw: Draw, number: int) -> Run:
        """One playout, until all wanted workloads have started, or the time is over."""
        # Runtimes do not depend on arrivals: so all differences are due to the arrivals.
        random = Random(f"{self._seed}/{number}")  # noqa: S311  # nothing secret is drawn
        others = Random(f"{self._seed}/{number}/others")  # noqa: S311  # no secret either
        believed = number % DOUBTING != DOUBTING // 2

        def lasts(view: WorkloadView, ran: float) -> float | None:
            runtimes = tree.runtimes.get(view.uid)
            return runtimes.draw(random, ran, believed=believed) if runtimes is not None else None

        now, proceed = tree.facts.taken, self._playing.proceed
        starts: dict[str, float] = {}
        reached = now

        def at_rest(moment: float) -> None:
            nonlocal reached
            reached = moment
            proceed()

        try:
            proceed()
            simulator = Simulator(
                Timeline(now, list(draw(others, believed)), []), Snapshot(tree.facts), lasts
            )
            for event in simulator.run(watch=at_rest):
                reached = event.time
                if event.kind == "Admitted":
                    view = self._snapshot.world.workloads.get(event.key)
                    if view is not None and view.uid in tree.wanted:
                        starts.setdefault(view.uid, event.time - now)
                if len(starts) == len(tree.wanted):
                    break
                proceed()
        except OutOfTimeError:
            return Run(branch, starts, reached - now)
        return Run(branch, starts, None)

    def _estimates(
        self, tree: TreeFutures, alone: Sequence[Run], crowded: Sequence[Run] | None
    ) -> Iterator[tuple[str, Estimate]]:
        """The estimates of all wanted workloads, by UID.

        Only expected workloads come in the playouts `alone`; in `crowded` Jobs keep coming; None: none do.
        """
        sources = tuple(sorted({each.source for each in tree.runtimes.values() if each is not None}))
        unknown = sum(each is None for each in tree.runtimes.values())
        for uid in sorted(tree.wanted):
            among = _observed(uid, crowded) if crowded is not None else None
            found = self._estimate(_observed(uid, alone), among)
            unproven = tree.unproven.total() - tree.unproven[tree.wanted[uid]]
            yield uid, replace(found, sources=sources, unknown=unknown, unproven=unproven)

    def _estimate(self, alone: Observed, crowded: Observed | None) -> Estimate:
        """The range: an equal number of playouts lies outside on each side."""
        outside = round(self._runs * (1 - CONFIDENCE) / 2)
        first, middle, last = (
            (place + 0.5) / self._runs for place in (outside, self._runs // 2, self._runs - 1 - outside)
        )
        median, latest = alone.within(middle), alone.within(last)
        later = latest if crowded is None else crowded.within(last)
        coming = latest is not None and (later is None or later > latest + SAME_SECONDS)
        return Estimate(
            alone.within(first),
            median,
            later if coming else latest,
            (),
            0,
            coming,
            alone.told,
            self._runs,
            late=median is None and not alone.never,
            reached=min((each for each in alone.reached if each), default=None),
        )


def _is_unproven(runtimes: Runtimes | None) -> bool:
    return runtimes is not None and runtimes.unproven


def _observed(uid: str, runs: Sequence[Run]) -> Observed:
    """What playouts tell of one Workload."""
    without = [run.reached for run in runs if uid not in run.starts]
    reached = [each for each in without if each is not None]
    starts = sorted(run.starts[uid] for run in runs if uid in run.starts)
    return Observed(starts, len(without) - len(reached), reached)
