"""What the views show at one moment, and where it comes from: a cluster that is followed, or a snapshot.

All views share a `TopState`: the newest scene, and what is wrong.

Next step: the views (`admitter.top.app`), which choose, order and draw.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from admitter.engine.model import FlavorResource
from admitter.engine.quota.tree import Node
from admitter.insight.controller_status import ControllerState, ControllerStatus
from admitter.insight.forecast.deadline import Allowance
from admitter.insight.listing import Row, rows
from admitter.insight.live import Mirror
from admitter.insight.overview import OverviewLine, OverviewUse, overview
from admitter.insight.pages import spelled
from admitter.insight.snapshot_file import SnapshotFile, facts
from admitter.policy.snapshot import Facts, Snapshot

ASTRAY: Final[Node] = ("queue", "")
"""The place of Workloads without an existing queue."""
_ASTRAY_PROBLEM: Final = "their LocalQueue, or the ClusterQueue that it names, does not exist"


@dataclass(frozen=True, slots=True)
class TopScene:
    """All that the views show of one moment."""

    known: Facts
    lines: tuple[OverviewLine, ...]  # the tree, each place before those below it
    # Workloads by the name of their queue, in the order of their turn; those without an existing queue under
    # an empty name
    rows: Mapping[str, list[Row]]
    resources: tuple[FlavorResource, ...]  # all flavors and resources of the tree, by resource
    fullest: FlavorResource | None  # that with the largest part in use; None: there are none

    def totals(self) -> str:
        """All of the cluster in numbers: the counts of roots are of all below them."""
        roots = [line for line in self.lines if line.depth == 0]
        waiting, admitted = sum(line.waiting for line in roots), sum(line.admitted for line in roots)
        recent = sum(line.recent for line in roots)
        queues = sum(line.node[0] == "queue" and line.node != ASTRAY for line in self.lines)
        counts = f"{waiting:,} waiting, {admitted:,} admitted, {recent:,} of them in the last minute"
        return f"{queues:,} {'queue' if queues == 1 else 'queues'}: {counts}"

    def roots(self) -> list[str]:
        return [line.node[1] for line in self.lines if line.depth == 0 and line.node != ASTRAY]


def scene(known: Facts, snapshot: Snapshot) -> TopScene:
    """Summarize a snapshot; this may take a second, so it belongs in a thread."""
    lines = overview(snapshot)
    names = {line.node[1] for line in lines if line.node[0] == "queue"}
    by_queue: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows(snapshot, None):
        by_queue[row.queue if row.queue in names else ""].append(row)
    if by_queue[""]:
        waiting = sum(row.workload.admission is None for row in by_queue[""])
        admitted = len(by_queue[""]) - waiting
        lines.append(
            OverviewLine(ASTRAY, "without a queue", 0, None, (), waiting, admitted, 0, _ASTRAY_PROBLEM)
        )
    parts = _parts(lines)
    resources = tuple(sorted(parts, key=lambda key: (key[1], key[0])))
    fullest = max(resources, key=lambda key: parts[key], default=None)
    return TopScene(known, tuple(lines), dict(by_queue), resources, fullest)


def _parts(lines: Iterable[OverviewLine]) -> dict[FlavorResource, float]:
    """Which part of each resource is in use, in all trees together."""
    used: defaultdict[FlavorResource, int] = defaultdict(int)
    there: defaultdict[FlavorResource, int] = defaultdict(int)
    for line in lines:
        for use in line.uses:
            there[use.flavor, use.resource] += 0
            if line.depth == 0:
                used[use.flavor, use.resource] += use.used
                there[use.flavor, use.resource] += use.minimum or use.maximum or 0
    return {key: used[key] / amount if amount else 0.0 for key, amount in there.items()}


def part(use: OverviewUse | None) -> float:
    """The part in use of what a place has of its own, or may have; 1 is all of it."""
    if use is None:
        return 0.0
    own = use.minimum or use.maximum or use.used
    return use.used / own if own else 0.0


class Feed(Protocol):
    """Where scenes come from; the title says what is looked at."""

    title: str

    async def follow(self, show: Callable[[TopScene], None]) -> None:
        """Show scenes, as long as there are new ones."""

    def trouble(self) -> str:
        """Why nothing new can be shown, in a sentence or two; empty if it can."""

    def controllers(self) -> ControllerStatus | None:
        """Whether a controller decides there; None: it is a snapshot, which has none."""


class Still:
    """A snapshot: one scene, which stays."""

    def __init__(self, snapshot: SnapshotFile, title: str) -> None:
        self.title = title
        self._snapshot = snapshot

    async def follow(self, show: Callable[[TopScene], None]) -> None:
        show(await asyncio.to_thread(self._scene))

    def _scene(self) -> TopScene:
        known = facts(self._snapshot)
        return scene(known, Snapshot(known))

    def trouble(self) -> str:
        """None: all of it has been read."""
        return ""

    def controllers(self) -> None:
        """None: a file says nothing of it."""


class Live:
    """A cluster that is followed."""

    def __init__(self, mirror: Mirror, title: str) -> None:
        self.title = title
        self._mirror = mirror

    async def follow(self, show: Callable[[TopScene], None]) -> None:
        async with self._mirror.following():
            async for known, snapshot in self._mirror.snapshots():
                show(await asyncio.to_thread(scene, known, snapshot))

    def trouble(self) -> str:
        failure = self._mirror.failure
        return spelled(*failure) if failure is not None else ""

    def controllers(self) -> ControllerStatus:
        return self._mirror.controllers


@dataclass(slots=True)
class TopState:
    """Shared by the application, which changes it, and the views, which show it."""

    feed: Feed  # where scenes come from
    allowance: Allowance  # how long an estimate of a start may take
    scene: TopScene | None = None  # the newest; None: there is none yet
    trouble: str = ""  # why there is no newer scene; empty if nothing is wrong
    # whether a controller decides; None: it is not known, or it is a snapshot
    controllers: ControllerStatus | None = None

    def problems(self) -> str:
        """What is wrong, a line each: the connection, and the absence of a controller."""
        found = [self.trouble] if self.trouble else []
        if self.controllers is not None and self.controllers.lacks_decisions:
            found.append(self.controllers.sentence(self.scene.roots() if self.scene is not None else ()))
        return "\n".join(found)

    def leader(self) -> str:
        """Which controller leads and since when; empty if it is not known."""
        leads = self.controllers is not None and self.controllers.state is ControllerState.LEADING
        return self.controllers.sentence() if self.controllers is not None and leads else ""
