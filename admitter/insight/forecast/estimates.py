"""When waiting Workloads start: the engine run forward, many times, with runtimes drawn from what is known.

Nobody knows who else will come. The median holds if nobody does who goes first; the range also has those
futures in it in which Jobs keep coming as they did. Where a future is dear, there may be time for a few only:
what is told of the others is how far they were played. In some futures no word is believed that nothing bears
out: so many that the range has both in it, and so few that the median goes by the words.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import Final, NamedTuple

from admitter.cache.views import WorkloadView
from admitter.engine.quota.tree import Node
from admitter.insight.forecast.arrivals import Arrivals
from admitter.insight.forecast.deadline import OutOfTimeError
from admitter.insight.forecast.durations import Durations, Runtimes, RuntimeSource
from admitter.insight.forecast.observed import Observed
from admitter.insight.forecast.playing import ALL_IN_TURN, Playing
from admitter.policy.snapshot import Facts, Snapshot
from admitter.simulate.manifests import Change, Timeline
from admitter.simulate.simulator import Simulator

RUNS: Final = 20
"""Runs for each answer; of so many, the second and the second last are the bounds of the range."""
CONFIDENCE: Final = 0.9
"""How often the true start is in the range if runtimes and arrivals are what the past says: 18 of 20."""

DOUBTING: Final = 5
"""Every so manieth future believes no unproven word: four of twenty, and two are outside the range."""
SAME_SECONDS: Final = 1.0
"""Starts that differ by less are the same."""

Draw = Callable[[Random, bool], Sequence[Change]]
"""Those that come in a future, in the order of time; and whether it believes unproven words."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """When a Workload starts, in seconds from now; None: not as long as those run whose runtime nobody knows.

    Attributes:
        earliest: the lower bound of the range.
        median: as likely earlier as later if nobody else comes.
        latest: the upper bound of the range, if Jobs keep coming where they do.
        sources: where runtimes come from.
        unknown: of how many in its tree nothing is known of their runtime.
        unproven: of how many of other namespaces in its tree no more is known than their own unproven word.
        coming: whether Jobs that keep coming make the range longer.
        told: so many of the futures without newcomers were played far enough.
        runs: so many there were to be.
        late: whether there is no median only because there was no time to find one.
        reached: how far those futures were played in which it had not started when the time was over, at
            least; None: there are none.
    """

    earliest: float | None
    median: float | None
    latest: float | None
    sources: tuple[RuntimeSource, ...]
    unknown: int
    coming: bool = False
    told: int = RUNS
    runs: int = RUNS
    late: bool = False
    reached: float | None = None
    unproven: int = 0


NOT_IN_TIME: Final = Estimate(None, None, None, (), 0, told=0, late=True)
"""There was no time to play any future."""


class FutureKind(NamedTuple):
    """A kind of future: of which tree, by its place, and whether only those come that are expected."""

    tree: int
    alone: bool


class Run(NamedTuple):
    """One future, as far as it was played.

    Attributes:
        branch: which kind of future it is.
        starts: when each of those wanted starts, in seconds from now, by UID.
        reached: how far it was played, in seconds from now, if the time was over before it had told of all;
            None: it has told of all.
    """

    branch: FutureKind
    starts: Mapping[str, float]
    reached: float | None


@dataclass(frozen=True, slots=True)
class TreeFutures:
    """Workloads of one tree: what is in others makes no difference.

    Attributes:
        facts: all facts, but of Workloads and Jobs only those of this tree that have not finished.
        runtimes: what is known of the runtimes of these, by UID.
        wanted: of which of them the start is asked for, and their namespaces, by UID.
        unproven: how many of these have no more than an unproven word, by namespace.
        alone: what comes if only those do that are expected.
        crowded: what comes if Jobs keep coming as they did; None: none has kept coming.
    """

    facts: Facts
    runtimes: Mapping[str, Runtimes | None]
    wanted: Mapping[str, str]
    unproven: Counter[str]
    alone: Draw
    crowded: Draw | None


class Estimator:
    """Estimates at one moment."""

    def __init__(
        self,
        known: Facts,
        picture: Snapshot,
        *,
        seed: int = 0,
        runs: int = RUNS,
        expected: Sequence[Change] | None = None,
        playing: Playing = ALL_IN_TURN,
    ) -> None:
        """Prepare.

        Args:
            known: what there is.
            picture: of the same.
            seed: of what is drawn: the same gives the same.
            runs: how often the future is tried.
            expected: who comes, in the order of time; None: nobody knows, and the range counts on those who
                have kept coming.
            playing: how the runs are played, and for how long.
        """
        self._known = known
        self._picture = picture
        self._runs = runs
        self._seed = seed
        self._expected = expected
        self._playing = playing
        self._durations = Durations(picture)

    def of(self, wanted: Collection[WorkloadView]) -> dict[str, Estimate]:
        """Estimates by UID for some that wait; those of one tree together."""
        by_root: defaultdict[Node, set[str]] = defaultdict(set)
        for workload in wanted:
            root = self._root(workload)
            if root is not None:
                by_root[root].add(workload.uid)
        members: dict[Node | None, list[WorkloadView]] = {root: [] for root in by_root}
        for view in self._picture.world.workloads:
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
        name = held.queue if held is not None else self._picture.queue_of(workload)
        tree = self._picture.engine.tree
        return tree.root(name) if name is not None and name in tree.queues else None

    def _tree(self, members: Collection[WorkloadView], wanted: Collection[str]) -> TreeFutures:
        there = {view.key: view for view in members if not view.finished}
        known = {view.uid: self._durations.of(view) for view in there.values()}
        jobs = {job.key: job for key in there if (job := self._picture.world.job_of(key)) is not None}
        facts = replace(self._known, views={**self._known.views, "workloads": there, "jobs": jobs})
        arrivals = Arrivals(members, self._durations, self._known.taken) if self._expected is None else None
        return TreeFutures(
            facts,
            known,
            {view.uid: view.namespace for view in there.values() if view.uid in wanted},
            Counter(view.namespace for view in there.values() if _is_unproven(known[view.uid])),
            lambda *_: self._expected or (),
            arrivals.draw if arrivals else None,
        )

    def _futures(self, trees: Sequence[TreeFutures]) -> Iterator[Callable[[], Run]]:
        """All runs: the first of each tree, then the second, so that time is shared by all of them."""
        for number in range(self._runs):
            for place, tree in enumerate(trees):
                yield partial(self._run, FutureKind(place, alone=True), tree, tree.alone, number)
                if tree.crowded is not None:
                    yield partial(self._run, FutureKind(place, alone=False), tree, tree.crowded, number)

    def _run(self, branch: FutureKind, tree: TreeFutures, draw: Draw, number: int) -> Run:
        """One future, until it has told of all that are wanted, or the time is over."""
        # Runtimes are the same whether more come or not: what differs then is due to those.
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
                    view = self._picture.world.workloads.get(event.key)
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
        """Of all that are wanted.

        Args:
            tree: theirs.
            alone: runs in which only those come that are expected.
            crowded: runs in which Jobs keep coming; None if nothing tells that they do.
        """
        sources = tuple(sorted({each.source for each in tree.runtimes.values() if each is not None}))
        unknown = sum(each is None for each in tree.runtimes.values())
        for uid in sorted(tree.wanted):
            among = _observed(uid, crowded) if crowded is not None else None
            found = self._estimate(_observed(uid, alone), among)
            unproven = tree.unproven.total() - tree.unproven[tree.wanted[uid]]
            yield uid, replace(found, sources=sources, unknown=unknown, unproven=unproven)

    def _estimate(self, alone: Observed, crowded: Observed | None) -> Estimate:
        """The range: so many of the runs lie outside on each side."""
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
    """What runs tell of one Workload."""
    without = [run.reached for run in runs if uid not in run.starts]
    reached = [each for each in without if each is not None]
    starts = sorted(run.starts[uid] for run in runs if uid in run.starts)
    return Observed(starts, len(without) - len(reached), reached)
