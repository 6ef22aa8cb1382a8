"""The namespaces of a user: what runs, waits and has ended there, what it used, and the queues."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from admitter.names import ELASTIC_QUOTA_QUEUE
from admitter.policy.gate import Waiting
from admitter.policy.messages import queue_title
from admitter.policy.snapshot import Snapshot
from admitter.quantities.amounts import CPU, display
from admitter.web.asked import Asked, HttpRefusal
from admitter.web.history import Ending, Span
from admitter.web.lists import Item, Lists, lists_of
from admitter.web.namespace_search import Found
from admitter.web.scene import WebScene, use_json
from admitter.web.use_over_time import parts
from admitter.web.views.rows import RowView, item_json, knows_use, starts_in, told_reasons

Json = dict[str, Any]

MOST_NAMESPACES: Final = 50
"""Namespaces that are shown together."""
MOST_LISTED: Final = 500
"""Namespaces to choose from; more are found by a part of their names."""
MOST_SHOWN: Final = 25
"""Workloads of each kind: the list of all of them is another page."""
MOST_ENDED: Final = 25
MOST_QUEUES: Final = 100
MOST_LINES: Final = 5
"""Queues of which starts are estimated for one answer."""
DAY: Final = 24 * 3600.0
HOUR: Final = 3600.0


@dataclass(frozen=True, slots=True)
class _Chosen:
    """The namespaces that are shown, and those that there are for the user."""

    found: Found
    names: tuple[str, ...]  # those that are shown
    all_names: Sequence[str]  # those to choose from
    more: bool  # whether there are others to choose from


async def answer(asked: Asked) -> Json:
    """The namespaces named by `namespace`, with commas between them.

    Without it all of the user's; none, for a user that may see all.
    """
    chosen, scene = await _chosen(asked), asked.scene
    own = await asyncio.to_thread(_own, scene, chosen.names)
    running, waiting = [item for item in own if item.holds], [item for item in own if not item.holds]
    told = await told_reasons(asked, waiting[:MOST_SHOWN])
    return await asyncio.to_thread(_answer, asked, chosen, (running, waiting), told)


async def starts(asked: Asked) -> Json:
    """When the waiting ones of these namespaces start, by namespace and name, as far as that is estimated."""
    chosen, scene = await _chosen(asked), asked.scene
    own = await asyncio.to_thread(_own, scene, chosen.names)
    queues = dict.fromkeys(
        item.row.queue
        for item in own
        if item.row.position is not None and knows_use(scene.snapshot, item.row.queue, item.namespace)
    )
    made: Json = {}
    shown = set(chosen.names)
    for queue in list(queues)[:MOST_LINES]:
        found = await starts_in(scene, queue)
        made |= {key: start for key, start in found.items() if key.partition("/")[0] in shown}
    return {"starts": made, "all": len(queues) <= MOST_LINES}


async def _chosen(asked: Asked) -> _Chosen:
    """Which namespaces to show.

    Raises:
        HttpRefusal: one is named that the user may not see, or that is not there.
    """
    known = {view.name for view in asked.scene.snapshot.world.namespaces}
    with_workloads = {row.workload.namespace for row in asked.scene.rows}
    found = await asked.sight.among(known | with_workloads)
    named = list(dict.fromkeys(filter(None, asked.query.get("namespace", "").split(","))))[:MOST_NAMESPACES]
    for name in named:
        await asked.sight.require_namespace(name)
        if name not in known | with_workloads:
            raise HttpRefusal(404, f"there is no namespace {name}")
    there = with_workloads | _with_queues(asked.scene.snapshot) if found.everything else found.names
    text = asked.query.get("find", "").casefold()
    fitting = sorted(name for name in there if text in name)
    default = [] if found.everything else fitting if not text else sorted(there)
    names = tuple(named or default[:MOST_NAMESPACES])
    return _Chosen(found, names, fitting[:MOST_LISTED], len(fitting) > MOST_LISTED)


def _with_queues(snapshot: Snapshot) -> set[str]:
    return {view.namespace for view in snapshot.world.local_queues}


def _own(scene: WebScene, names: Iterable[str]) -> list[Item]:
    """The unfinished Workloads of some namespaces: those with quota, those in no line, and the others."""
    by_namespace = lists_of(scene).by_namespace
    found = [item for name in names for item in by_namespace.get(name, ())]
    found.sort(key=lambda item: (not item.holds, item.row.position or 0))
    return found


def _answer(
    asked: Asked,
    chosen: _Chosen,
    own: tuple[list[Item], list[Item]],
    told: Mapping[str, Waiting] | None,
) -> Json:
    scene, (running, waiting) = asked.scene, own
    lists, now, shown = lists_of(scene), scene.known.taken, frozenset(chosen.names)
    rows = RowView(lists, told, lambda name: name in shown or chosen.found.sees(name))
    spans = asked.stage.history.spans(now - DAY, sees=shown.__contains__) if shown else []
    ended = sorted((span for span in spans if span.ended is not None), key=lambda span: -(span.ended or 0))
    return {
        "taken": now,
        "revision": scene.revision,
        "reasoned": told is not None,
        "namespaces": {
            "shown": list(chosen.names),
            "all": [_counts_json(lists, name) for name in chosen.all_names],
            "more": chosen.more,
            "everything": chosen.found.everything,
            "complete": chosen.found.complete,
        },
        "queues": _queues(scene, lists, chosen.names),
        "running": [_row(item, rows) for item in running[:MOST_SHOWN]],
        "waiting": [_row(item, rows) for item in waiting[:MOST_SHOWN]],
        "ended": [_ended_json(span) for span in ended[:MOST_ENDED]],
        "counts": {"running": len(running), "waiting": len(waiting), "ended": len(ended)},
        "used": {"hour": used(spans, now - HOUR, now), "day": used(spans, now - DAY, now)},
    }


def _counts_json(lists: Lists, name: str) -> Json:
    items = lists.by_namespace.get(name, ())
    holding = sum(item.holds for item in items)
    return {"name": name, "running": holding, "waiting": len(items) - holding}


def _row(item: Item, made_from: RowView) -> Json:
    knows = knows_use(made_from.lists.snapshot, item.row.queue, item.namespace)
    return item_json(item, made_from) | {"position": item.row.position if knows else None}


def _ended_json(span: Span) -> Json:
    return {
        "namespace": span.namespace,
        "name": span.name,
        "workload": span.workload,
        "queue": span.queue,
        "title": queue_title(span.queue),
        "pods": span.pods,
        "admitted": span.admitted,
        "ended": span.ended,
        "how": span.how,
        "reason": span.reason,
        "again": span.how is Ending.EVICTED,
    }


def used(spans: Iterable[Span], since: float, until: float) -> list[Json]:
    """What was used of each resource between two moments: core-hours, byte-hours or device-hours."""
    found: defaultdict[str, float] = defaultdict(float)
    for span in spans:
        for begins, ends, usage in parts(span.admitted, span.ended, span.earlier, span.usage):
            hours = max(0.0, min(until if ends is None else ends, until) - max(begins, since)) / HOUR
            for _, resource, amount in usage:
                found[resource] += amount * hours
    return [{"resource": name, "hours": hours} for name, hours in sorted(found.items()) if hours > 0]


def _queues(scene: WebScene, lists: Lists, names: Sequence[str]) -> list[Json]:
    """The queues that are open to some namespaces, one line for each LocalQueue."""
    world, elastic = scene.snapshot.world, scene.snapshot.catalog.elastic
    counts = _own_counts(lists, names)
    found: list[tuple[str, str, str]] = []
    for name in names:
        keys = sorted(world.local_queues_by_namespace.get(name))
        locals_ = (world.local_queues.get(key) for key in keys)
        found += [(name, view.name, str(view.spec["clusterQueue"])) for view in locals_ if view is not None]
        quota = elastic.governing(name)
        if quota is not None:
            found.append((name, ELASTIC_QUOTA_QUEUE, quota.queue))
    return [_queue_json(scene, *each, counts) for each in found[:MOST_QUEUES]]


def _own_counts(lists: Lists, names: Iterable[str]) -> Counter[tuple[str, str, bool]]:
    """How many Workloads of each LocalQueue hold quota or do not."""
    return Counter(
        (name, item.row.workload.queue, item.holds)
        for name in names
        for item in lists.by_namespace.get(name, ())
    )


def _queue_json(
    scene: WebScene, namespace: str, local: str, queue: str, counts: Counter[tuple[str, str, bool]]
) -> Json:
    snapshot = scene.snapshot
    line, told = scene.line(queue), knows_use(snapshot, queue, namespace)
    return {
        "namespace": namespace,
        "name": local,
        "queue": queue,
        "title": snapshot.catalog.elastic.title(queue) or queue_title(queue),
        "problem": _problem(snapshot, namespace, local, queue),
        "told": told and line is not None,
        "uses": [
            use_json(use) | {"free": _free(snapshot, queue, use.flavor, use.resource)} for use in line.uses
        ]
        if told and line is not None
        else [],
        "waiting": counts[namespace, local, False],
        "running": counts[namespace, local, True],
    }


def _free(snapshot: Snapshot, queue: str, flavor: str, resource: str) -> Json:
    """What could be admitted now, without an eviction."""
    amount = max(0, snapshot.engine.ledger.planned.cell(queue, (flavor, resource)).available())
    return {"value": amount / (1000 if resource == CPU else 1), "words": display(resource, amount)}


def _problem(snapshot: Snapshot, namespace: str, local: str, queue: str) -> str:
    """Why what waits there is not admitted, as the LocalQueue says it; empty if it works."""
    view = snapshot.world.local_queues.get((namespace, local))
    conditions = (view.status.get("conditions") or ()) if view is not None else ()
    for each in conditions:
        if each.get("type") == "Active" and each.get("status") == "False":
            return str(each.get("message") or each.get("reason") or "")
    if view is not None and snapshot.world.cluster_queues.get(("", queue)) is None:
        return f"ClusterQueue {queue} does not exist"
    if view is not None and not snapshot.catalog.selects(queue, snapshot.world.labels_of(namespace)):
        return f"ClusterQueue {queue} does not select namespace {namespace}"
    problem = snapshot.catalog.queue(queue).problem if view is not None else None
    return problem[1] if problem is not None else ""
