"""What the page shows at one moment: made once for all users."""

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from threading import Lock
from typing import Any, Final, TypeVar

from admitter.insight.controller_status import ControllerStatus
from admitter.insight.explain.explainer import Explainer
from admitter.insight.explain.text import short
from admitter.insight.forecast.deadline import Deadline
from admitter.insight.forecast.estimates import NOT_IN_TIME, Estimate, Estimator
from admitter.insight.forecast.playing import Playing
from admitter.insight.listing import Row, rows
from admitter.insight.overview import OverviewLine, OverviewUse, overview
from admitter.insight.report import estimate_json
from admitter.policy.gate import Waiting
from admitter.policy.snapshot import Facts, Snapshot
from admitter.quantities.amounts import CPU, display
from admitter.web.turns import QUEUEING_SECONDS, Limits

Json = dict[str, Any]
T = TypeVar("T")

MOST_ESTIMATES: Final = 50
"""Workloads at the head of a line that get an estimate: further back it would be worth little."""
BY_ITSELF: Final = 0.9
"""The part of its time after which an estimate ends by itself, so that its result comes in time."""


class WebScene:
    """One moment of the cluster. Its properties may take long, and belong in a thread."""

    def __init__(
        self,
        known: Facts,
        snapshot: Snapshot,
        revision: int,
        limits: Limits,
        controllers: Callable[[], ControllerStatus],
    ) -> None:
        """Work nothing out yet; `controllers` says whether a controller decides when it is asked."""
        self.known = known
        self.controllers = controllers
        self.snapshot = snapshot
        self.revision = revision
        self._limits = limits
        self._starts: dict[str, dict[str, Json]] = {}
        self._made: dict[str, Any] = {}
        self._making = Lock()  # threads ask too
        self._making_of: dict[str, Lock] = {}

    @cached_property
    def lines(self) -> list[OverviewLine]:
        return overview(self.snapshot)

    @cached_property
    def rows(self) -> list[Row]:
        """All unfinished Workloads, in the order of their turn."""
        return list(rows(self.snapshot, None))

    def once(self, key: str, make: Callable[[], T]) -> T:
        """What is made of this scene once for all users, by a key that names what it is."""
        with self._making:
            making = self._making_of.setdefault(key, Lock())
        with making:  # what takes long keeps none waiting but those that want the same
            if key not in self._made:
                self._made[key] = make()
            found: T = self._made[key]
        return found

    def work_out(self) -> None:
        _ = self.lines, self.rows

    @cached_property
    def explaining(self) -> tuple[Explainer, Snapshot]:
        """What explains workloads, and the snapshot that it has for itself, as it runs a cycle."""
        snapshot = Snapshot(self.known)
        return Explainer(snapshot), snapshot

    def reasons(self) -> Mapping[str, Waiting]:
        """Why Workloads wait, by UID, that the engine refuses now; slow: it runs a cycle."""
        explainer, _ = self.explaining
        return explainer.reasons

    def roots(self) -> list[str]:
        return [line.node[1] for line in self.lines if line.depth == 0]

    def line(self, queue: str) -> OverviewLine | None:
        return next((each for each in self.lines if each.node == ("queue", queue)), None)

    def namespaces_in(self, queue: str) -> set[str]:
        return {row.workload.namespace for row in self.rows if row.queue == queue}

    async def starts(self, queue: str) -> dict[str, Json]:
        """When the first in a line start, by namespace and name; computed once."""
        if queue not in self._starts:
            work, limits = partial(self._estimate, queue), self._limits
            found = await limits.estimating.result(work, limits.allowance, QUEUEING_SECONDS)
            if found is None:
                return self._spelled(queue, {})
        return self._starts[queue]

    def _estimate(self, queue: str, deadline: Deadline) -> bool:
        """Compute the starts, unless another request has done so meanwhile; always True."""
        if queue not in self._starts:
            playing = Playing(proceed=deadline.sooner(BY_ITSELF).proceed)
            estimator = Estimator(self.known, self.snapshot, playing=playing)
            found = estimator.of([row.workload for row in self._first_in(queue)])
            self._starts[queue] = self._spelled(queue, found)
        return True

    def _first_in(self, queue: str) -> list[Row]:
        waiting = [row for row in self.rows if row.queue == queue and row.position is not None]
        return waiting[:MOST_ESTIMATES]

    def _spelled(self, queue: str, found: Mapping[str, Estimate]) -> dict[str, Json]:
        """Estimates as they are shown; a missing one says that there is none in time."""
        estimates = {
            f"{row.workload.namespace}/{row.job}": found.get(row.workload.uid, NOT_IN_TIME)
            for row in self._first_in(queue)
        }
        now = self.known.taken
        return {name: {**estimate_json(each, now), "words": short(each)} for name, each in estimates.items()}


def line_json(line: OverviewLine) -> Json:
    return {
        "kind": line.node[0],
        "name": line.node[1],
        "title": line.title,
        "depth": line.depth,
        "parent": line.parent[1] if line.parent is not None else None,
        "uses": [use_json(use) for use in line.uses],
        "waiting": line.waiting,
        "admitted": line.admitted,
        "recent": line.recent,
        "problem": line.problem,
    }


def use_json(use: OverviewUse) -> Json:
    """One resource in one flavor: numbers in cores, bytes or devices, and the same as users write it."""
    unit = 1000 if use.resource == CPU else 1
    amounts = {
        "used": use.used,
        "min": use.minimum,
        "max": use.maximum,
        "borrowed": use.borrowed,
        "lent": use.lent,
    }
    return {
        "flavor": use.flavor,
        "resource": use.resource,
        **{name: amount / unit if amount is not None else None for name, amount in amounts.items()},
        "words": {
            name: display(use.resource, amount) for name, amount in amounts.items() if amount is not None
        },
    }
