"""The overview: use of capacity now and lately, what waits, what had to stop, and what is wrong.

For users that may list ClusterQueues. It is worked out once for all of them, but for names of Workloads and
nodes, which each sees as far as the API server lets them list those.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from admitter.cache.node_views import NodeView
from admitter.client.access import Right
from admitter.engine.model import FlavorResource
from admitter.insight.listing import Row
from admitter.names import ANY_NODE
from admitter.policy.messages import queue_title
from admitter.quantities.amounts import CPU
from admitter.quotas.elastic import POOL
from admitter.quotas.nodes import totals
from admitter.web.admissions import Ending, Eviction, waiting_since
from admitter.web.asked import Asked, HttpRefusal
from admitter.web.history import History, Values, quantile
from admitter.web.promises import AtRisk, at_risk
from admitter.web.samples import TIERS
from admitter.web.scene import WebScene
from admitter.web.use_over_time import in_units

Json = dict[str, Any]
Sees = Callable[[str], bool]

HOURS: Final = (1, 6, 24)
HOUR: Final = 3600.0
POINTS: Final = 96
"""Of a chart: about as many as a small one has room for."""
MOST_QUEUES: Final = 7
"""In a chart, each with a colour of its own; the others are one."""
MOST_FLAVORS: Final = 12
MOST_LISTED: Final = 20
"""Of what is listed on the spot; all are counted."""
MOST_EVICTIONS: Final = 100
MOST_OLDEST: Final = 5
_ANY: Final = frozenset({ANY_NODE, POOL})
"""Names under which use is counted whatever the flavor."""
NODES: Final = Right("list", "nodes", group="")


async def answer(asked: Asked) -> Json:
    """All of it.

    `hours` of the charts are 1, 6 or 24, `resource` is drawn where a flavor has it, and `why` is the reason
    of those evictions that are listed.
    """
    await asked.sight.require_tree()
    hours = asked.query.get("hours", "6")
    if hours not in map(str, HOURS):
        raise HttpRefusal(400, f"hours are one of {', '.join(map(str, HOURS))}")
    known, history = asked.scene, asked.stage.history
    resource, why = asked.query.get("resource", ""), asked.query.get("why", "")
    resource = resource if resource in _resources(known) else ""
    key = f"overview/{hours}/{resource}"
    found: Json = await asyncio.to_thread(
        known.once, key, lambda: _made(known, history, int(hours), resource)
    )
    if why:
        found = found | {"evictions": _evictions(known, history, why)}
    namespaces = {name for each in _listed(found) for name in (each["namespace"], each["forNamespace"])}
    sees = await asked.sight.visible(namespaces - {""})
    named = await asked.sight.may(NODES)
    return found | {
        "waiting": found["waiting"] | {"oldest": _shown(found["waiting"]["oldest"], sees)},
        "evictions": found["evictions"] | {"last": _shown(found["evictions"]["last"], sees)},
        "promises": found["promises"] | {"first": _shown(found["promises"]["first"], sees)},
        "nodes": found["nodes"] | {"first": found["nodes"]["first"] if named else []},
    }


def _listed(found: Json) -> Iterable[Json]:
    return [*found["waiting"]["oldest"], *found["evictions"]["last"], *found["promises"]["first"]]


def _shown(entries: Iterable[Json], sees: Sees) -> list[Json]:
    """Entries about Workloads without the names of those that the user may not see."""
    found = []
    for each in entries:
        shown = dict(each)
        if not sees(each["namespace"]):
            shown |= {"namespace": "", "name": "", "rule": ""}
        if each["forNamespace"] and not sees(each["forNamespace"]):
            shown |= {"forNamespace": "", "forName": ""}
        found.append(shown | {"visible": sees(each["namespace"]), "isFor": bool(each["forNamespace"])})
    return found


def _made(scene: WebScene, history: History, hours: int, resource: str) -> Json:
    """All of it, with all names."""
    flavors = _flavors(scene)
    return {
        "taken": scene.known.taken,
        "hours": hours,
        "queues": sum(line.node[0] == "queue" for line in scene.lines),
        "resources": sorted({each for of_one in flavors.values() for each in of_one}, key=_by_kind),
        "trouble": _trouble(scene),
        "flavors": _charts(scene, history, flavors, hours, resource),
        "moreFlavors": max(0, len(flavors) - MOST_FLAVORS),
        "waiting": _waiting(scene, history, hours),
        "running": _running(scene, history),
        "evictions": _evictions(scene, history),
        "nodes": _nodes(scene),
        "promises": _promises(scene),
    }


def title_of(queue: str) -> str:
    """A queue as it is shown where all are queues: the name, or what an elastic quota is called."""
    title = queue_title(queue)
    return title.removeprefix("ClusterQueue ")


def _by_kind(resource: str) -> tuple[int, str]:
    """Devices first, then CPUs, memory and the rest."""
    return (0 if "/" in resource else {CPU: 1, "memory": 2}.get(resource, 3), resource)


def _resources(scene: WebScene) -> set[str]:
    return {use.resource for line in scene.lines if line.depth == 0 for use in line.uses}


def _flavors(scene: WebScene) -> dict[str, dict[str, Json]]:
    """Use, quota and capacity of each resource in each flavor.

    Flavors with devices come first, and those of which nothing is in use last.
    """
    used: Counter[FlavorResource] = Counter()
    quota: Counter[FlavorResource] = Counter()
    for line in scene.lines:
        for use in line.uses if line.depth == 0 else ():
            used[use.flavor, use.resource] += use.used
            quota[use.flavor, use.resource] += use.minimum
    capacity = _capacity(scene)
    found: defaultdict[str, dict[str, Json]] = defaultdict(dict)
    for flavor, resource in sorted(used.keys() | quota.keys(), key=lambda key: (key[0], _by_kind(key[1]))):
        key = (flavor, resource)
        amounts = {"used": used[key], "quota": quota[key], "capacity": capacity.get(key)}
        found[flavor][resource] = {
            "resource": resource,
            **{what: in_units(resource, n) if n is not None else None for what, n in amounts.items()},
        }
    return dict(sorted(found.items(), key=_place))


def _place(item: tuple[str, Mapping[str, Json]]) -> tuple[bool, int, str]:
    """Where a flavor stands among the others."""
    flavor, resources = item
    return (not any(each["used"] for each in resources.values()), _by_kind(next(iter(resources)))[0], flavor)


def _capacity(scene: WebScene) -> Mapping[FlavorResource, int]:
    """What the nodes offer in each flavor that has nodes; nothing where it is not known."""
    world, catalog = scene.snapshot.world, scene.snapshot.catalog
    flavors = [flavor for view in world.flavors if (flavor := catalog.flavor(view.name)) is not None]
    return totals((view.node for view in world.nodes), flavors, scene.known.settings.gpus)


def _charts(
    scene: WebScene, history: History, flavors: Mapping[str, Mapping[str, Json]], hours: int, resource: str
) -> list[Json]:
    since = scene.known.taken - hours * HOUR
    found = []
    for flavor, resources in list(flavors.items())[:MOST_FLAVORS]:
        drawn = resource if resource in resources else next(iter(resources))
        of_it = {"resources": list(resources.values()), "chart": chart(history, flavor, drawn, since)}
        found.append({"flavor": flavor, "any": flavor in _ANY, **of_it})
    return found


def chart(history: History, flavor: str, resource: str, since: float) -> Json:
    """Use of one resource in a flavor over time, by the queues that used most of it."""
    use = history.use(flavor, resource, since=since, points=POINTS)
    by_size = sorted(use.used, key=lambda queue: (-_over_time(use.times, use.used[queue]), queue))
    shown, others = by_size[:MOST_QUEUES], by_size[MOST_QUEUES:]
    return {
        "resource": resource,
        "times": use.times,
        "series": [
            {"queue": queue, "title": title_of(queue), "values": _rounded(use.used[queue])} for queue in shown
        ],
        "rest": _rounded(_sums([use.used[queue] for queue in others])) if others else None,
        "restCount": len(others),
        "quota": _rounded(use.quota),
    }


def _over_time(times: list[float], values: Values) -> float:
    """What was used in all: each value counts until the next one, and the last one as the newest samples do.

    Older samples are further apart than newer ones.
    """
    ends = [*times[1:], times[-1] + TIERS[0][0]] if times else []
    return sum((value or 0.0) * (end - time) for time, end, value in zip(times, ends, values, strict=True))


def _sums(columns: list[Values]) -> Values:
    return [
        sum(filter(None, each)) if any(value is not None for value in each) else None
        for each in zip(*columns, strict=True)
    ]


def _rounded(values: Values) -> Values:
    return [round(value, 3) if value is not None else None for value in values]


def _trouble(scene: WebScene) -> Json:
    """Queues that do not work, and why."""
    bad = [line for line in scene.lines if line.problem]
    first = [
        {"name": each.node[1], "title": title_of(each.node[1]), "why": each.problem, "waiting": each.waiting}
        for each in sorted(bad, key=lambda line: (-line.waiting, line.node))[:MOST_LISTED]
    ]
    return {"total": len(bad), "first": first}


def _waiting(scene: WebScene, history: History, hours: int) -> Json:
    now = scene.known.taken
    rows = [row for row in scene.rows if row.workload.admission is None]
    in_line = [row for row in rows if row.position is not None]
    waits = sorted(max(0.0, now - waiting_since(row.workload)) for row in in_line)
    oldest = sorted(in_line, key=lambda row: (waiting_since(row.workload), row.workload.uid))[:MOST_OLDEST]
    counts = history.counts(now - hours * HOUR, POINTS)
    return {
        "total": len(rows),
        "inLine": len(in_line),
        "out": _reasons(row.reason for row in rows if row.position is None),
        "reasons": _reasons(row.reason for row in in_line),
        "p50": quantile(waits, 0.5),
        "p95": quantile(waits, 0.95),
        "oldest": [_row(row) for row in oldest],
        "times": counts.times,
        "counts": counts.waiting,
        "p95s": _rounded(counts.p95),
    }


def _reasons(reasons: Iterable[str]) -> list[Json]:
    """How often there is each reason, the most frequent first."""
    counted = sorted(Counter(reasons).items(), key=lambda item: (-item[1], item[0]))
    return [{"reason": reason, "count": count} for reason, count in counted]


def _row(row: Row) -> Json:
    return {
        "namespace": row.workload.namespace,
        "name": row.job,
        "queue": row.queue,
        "title": title_of(row.queue),
        "since": waiting_since(row.workload),
        "position": row.position,
        "reason": row.reason,
        "forNamespace": "",
    }


def _running(scene: WebScene, history: History) -> Json:
    """What holds quota, and what began and ended in the last hour."""
    since = scene.known.taken - HOUR
    spans = history.spans(since)
    waited = sorted(span.waited for span in spans if span.admitted >= since)
    ended = Counter(span.how for span in spans if span.ended is not None)
    return {
        "total": sum(row.workload.admission is not None for row in scene.rows),
        "admitted": len(waited),
        "p50": quantile(waited, 0.5),
        "p95": quantile(waited, 0.95),
        "succeeded": ended[Ending.SUCCEEDED],
        "failed": ended[Ending.FAILED],
        "outOfTime": ended[Ending.OUT_OF_TIME],
    }


def _evictions(scene: WebScene, history: History, why: str = "") -> Json:
    """What had to stop in the last hour, and why; those listed of one reason, or of all."""
    found = history.evictions(scene.known.taken - HOUR)
    listed = [each for each in found if why in {"", each.reason}]
    return {
        "total": len(found),
        "reasons": _reasons(each.reason for each in found),
        "listed": len(listed),
        "last": [_eviction(each) for each in listed[::-1][:MOST_EVICTIONS]],
    }


def _eviction(each: Eviction) -> Json:
    return {
        "time": each.time,
        "namespace": each.namespace,
        "name": each.name,
        "queue": each.queue,
        "title": title_of(each.queue),
        "reason": each.reason,
        "rule": each.rule,
        "forNamespace": each.for_namespace,
        "forName": each.for_name,
    }


def _nodes(scene: WebScene) -> Json:
    """Nodes that can't be used now."""
    nodes = list(scene.snapshot.world.nodes)
    broken = sorted((node for node in nodes if not node.ready), key=lambda node: (node.since, node.name))
    return {
        "total": len(nodes),
        "notReady": len(broken),
        "cordoned": sum(node.cordoned and node.ready for node in nodes),
        "first": [_node(node) for node in broken[:MOST_LISTED]],
    }


def _node(node: NodeView) -> Json:
    return {"name": node.name, "since": node.since or None, "why": node.trouble}


def _promises(scene: WebScene) -> Json:
    found = at_risk(scene)
    return {
        "total": len(found),
        "kinds": Counter(str(each.risk) for each in found),
        "first": [_promise(each) for each in found[:MOST_LISTED]],
    }


def _promise(each: AtRisk) -> Json:
    return {
        "risk": each.risk,
        "since": each.since,
        "queue": each.queue,
        "title": title_of(each.queue),
        "namespace": each.namespace,
        "name": each.name,
        "forNamespace": each.for_namespace,
        "forName": each.for_name,
        "lent": in_units(each.resource, each.amount),
        "resource": each.resource,
        "flavor": each.flavor,
        "any": each.flavor in _ANY,
    }
