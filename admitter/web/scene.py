"""What the page shows, at one moment: made once for all who look at it."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from admitter.engine.amounts import CPU, to_quantity
from admitter.insight.estimates import Estimator
from admitter.insight.listing import Row, rows
from admitter.insight.overview import Line, Use, overview
from admitter.insight.report import estimate_json, row_json
from admitter.insight.text import lines, short
from admitter.insight.why import Explainer, Other
from admitter.simulate.picture import Facts, Picture

Json = dict[str, Any]

HIDDEN: Final = ("another namespace", "hidden")
"""What stands for a Workload that somebody may not see."""
MOST_ROWS: Final = 200
MOST_ESTIMATES: Final = 50
"""So many at the head of a line get an estimate: further back it would be worth little."""


class Scene:
    """A moment of the cluster. Its properties may take long, and belong in a thread."""

    def __init__(self, known: Facts, picture: Picture, revision: int) -> None:
        """Prepare.

        Args:
            known: what there is.
            picture: of the same.
            revision: of what was followed, so that the next one is told from it.
        """
        self.known = known
        self.picture = picture
        self.revision = revision
        self._lock = asyncio.Lock()
        self._starts: dict[str, dict[str, Json]] = {}

    @cached_property
    def lines(self) -> list[Line]:
        """The tree."""
        return overview(self.picture)

    @cached_property
    def rows(self) -> list[Row]:
        """All Workloads that have not finished, as they are to go."""
        return list(rows(self.picture, None))

    def work_out(self) -> None:
        """What nearly everybody looks at, before anybody does."""
        _ = self.lines, self.rows

    @cached_property
    def _explainer(self) -> tuple[Explainer, Picture]:
        """A cycle is run for it, in a picture of its own."""
        picture = Picture(self.known)
        return Explainer(picture), picture

    def tree(self) -> Json:
        """The tree as JSON."""
        return {"taken": self.known.taken, "lines": [line_json(line) for line in self.lines]}

    def queue(self, name: str, may_see: Callable[[str], bool]) -> Json | None:
        """One queue: its use, who holds quota and who waits; None if there is no such queue.

        Args:
            name: the engine's name of it.
            may_see: whether Workloads of a namespace are shown; of others only that they are there.
        """
        line = next((each for each in self.lines if each.node == ("queue", name)), None)
        if line is None:
            return None
        found = [row for row in self.rows if row.queue == name]
        holding = [row for row in found if row.workload.admission is not None]
        waiting = [row for row in found if row.workload.admission is None]
        return {
            "taken": self.known.taken,
            "line": line_json(line),
            "holding": [_row(row, may_see) for row in holding[:MOST_ROWS]],
            "waiting": [_row(row, may_see) for row in waiting[:MOST_ROWS]],
            "moreHolding": max(0, len(holding) - MOST_ROWS),
            "moreWaiting": max(0, len(waiting) - MOST_ROWS),
        }

    def namespace(self, name: str) -> Json:
        """The Workloads of one namespace, and the queues that they are in."""
        found = [row for row in self.rows if row.workload.namespace == name]
        return {
            "taken": self.known.taken,
            "rows": [_row(row, lambda _: True) for row in found[:MOST_ROWS]],
            "more": max(0, len(found) - MOST_ROWS),
        }

    def queues_of(self, namespace: str) -> set[str]:
        """The engine's names of the queues of a namespace: of its LocalQueues, and of its elastic quota."""
        world, elastic = self.picture.world, self.picture.catalog.elastic.governing(namespace)
        found = {str(q.spec.get("clusterQueue")) for q in world.local_queues if q.namespace == namespace}
        return found | ({elastic.queue} if elastic is not None else set())

    def namespaces_in(self, queue: str) -> set[str]:
        """The namespaces whose Workloads are in a queue."""
        return {row.workload.namespace for row in self.rows if row.queue == queue}

    async def starts(self, queue: str) -> dict[str, Json]:
        """When the first in a line start, by namespace and name; worked out once."""
        async with self._lock:
            if queue not in self._starts:
                self._starts[queue] = await asyncio.to_thread(self._estimate, queue)
            return self._starts[queue]

    def _estimate(self, queue: str) -> dict[str, Json]:
        first = [row for row in self.rows if row.queue == queue and row.position is not None][:MOST_ESTIMATES]
        estimates = Estimator(self.known, self.picture).of([row.workload for row in first])
        now = self.known.taken
        return {
            f"{row.workload.namespace}/{row.job}": {
                **estimate_json(estimates[row.workload.uid], now),
                "words": short(estimates[row.workload.uid]),
            }
            for row in first
            if row.workload.uid in estimates
        }

    async def explanation(self, namespace: str, name: str, may_see: Callable[[str], bool]) -> Json:
        """Why one waits, as `admitter explain` says it; Workloads of hidden namespaces have no names there.

        Raises:
            UnknownError: there is no such Job or Workload.
        """
        async with self._lock:
            return await asyncio.to_thread(self._explain, namespace, name, may_see)

    def _explain(self, namespace: str, name: str, may_see: Callable[[str], bool]) -> Json:
        explainer, picture = self._explainer
        answer = explainer.explain(namespace, name)
        workload = answer.workload
        estimate = None
        if answer.explanation is not None and workload is not None:
            estimate = Estimator(self.known, self.picture).of([workload]).get(workload.uid)
        shown = replace(
            answer,
            ahead=tuple(_masked(other, may_see) for other in answer.ahead),
            enders=tuple(_masked(other, may_see) for other in answer.enders),
        )
        conditions = workload.status.get("conditions") or [] if workload is not None else []
        return {
            "taken": self.known.taken,
            "namespace": answer.key[0],
            "name": answer.key[1],
            "queue": answer.queue,
            "lines": list(lines(shown, estimate, picture)),
            "timeline": list(_timeline(conditions)),
        }


def _masked(other: Other, may_see: Callable[[str], bool]) -> Other:
    return other if may_see(other.key[0]) else replace(other, key=HIDDEN)


def _timeline(conditions: list[Json]) -> Iterator[Json]:
    """What conditions tell of, in the order of time; several may tell of one moment."""
    for each in sorted(conditions, key=lambda each: str(each.get("lastTransitionTime", ""))):
        names = ("type", "status", "reason", "message", "lastTransitionTime")
        yield {name: each.get(name, "") for name in names}


def _row(row: Row, may_see: Callable[[str], bool]) -> Json:
    if may_see(row.workload.namespace):
        return {**row_json(row), "visible": True}
    return {"visible": False, "position": row.position, "state": row.state}


def line_json(line: Line) -> Json:
    """A place of the tree."""
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


def use_json(use: Use) -> Json:
    """One resource in one flavor: numbers in cores, bytes or devices, and the same as people write it."""
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
            name: to_quantity(use.resource, amount) for name, amount in amounts.items() if amount is not None
        },
    }
