"""What is shown of a Workload in a list, and windows of lists."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from admitter.cache.run_time_status import run_time_of
from admitter.cache.timestamps import seconds
from admitter.cache.views import WorkloadView
from admitter.policy.gate import Waiting
from admitter.policy.held import left_of
from admitter.policy.messages import queue_title
from admitter.policy.snapshot import Snapshot
from admitter.quantities.amounts import CPU, InvalidQuantityError, display, to_amount
from admitter.web.asked import Asked, HttpRefusal
from admitter.web.lists import HOLDING, ORDERS, WAITING, Item, Lists, Sees, Shown, Wanted, index_of, lists_of
from admitter.web.masked import masked_text
from admitter.web.namespace_search import Found
from admitter.web.scene import WebScene
from admitter.web.turns import AT_ONCE

Json = dict[str, Any]

MOST_ROWS: Final = 200
"""Rows of one answer."""
LONGEST_TEXT: Final = 300
"""Characters of a search: a name has 253."""
LARGEST: Final = 2**31
"""Priorities are less than that."""


def number(query: Mapping[str, str], name: str, default: int) -> int:
    """A number of a request that is not negative.

    Raises:
        HttpRefusal: it is none.
    """
    text = query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise HttpRefusal(400, f"{name} is no number")
    return int(text)


def wanted_of(query: Mapping[str, str]) -> Wanted:
    """The list that a request wants.

    Raises:
        HttpRefusal: it has something that can't be read.
    """
    group, order = query.get("group", ""), query.get("sort", "") or "position"
    if group not in {"", WAITING, HOLDING}:
        raise HttpRefusal(400, f"group is {WAITING} or {HOLDING}")
    if order.removeprefix("-") not in ORDERS:
        raise HttpRefusal(400, f"sort is one of {', '.join(sorted(ORDERS))}, with - before it backwards")
    least, most = _priorities(query.get("priority", ""))
    evicted = number(query, "evicted", 0)
    return Wanted(
        queue=query.get("queue") or None,
        group=group,
        namespaces=_several(query.get("namespace", "")),
        users=frozenset(filter(None, [query.get("user", "")])),
        states=_several(query.get("state", "")),
        reasons=_several(query.get("reason", "")),
        least=least,
        most=most,
        text=tuple(query.get("text", "")[:LONGEST_TEXT].casefold().split()),
        evicted=float(evicted) if evicted else None,
        order=order.removeprefix("-"),
        backwards=order.startswith("-"),
    )


def _several(text: str) -> frozenset[str]:
    return frozenset(filter(None, text.split(",")))


def _priorities(text: str) -> tuple[int | None, int | None]:
    """`5`, `5..`, `..9` or `5..9`."""
    if not text:
        return None, None
    least, dots, most = text.partition("..")
    return _priority(least), _priority(most) if dots else _priority(least)


def _priority(text: str) -> int | None:
    digits = text.removeprefix("-")
    if not text:
        return None
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 10) or int(digits) > LARGEST:
        raise HttpRefusal(400, "priority is a number, or two with .. between them")
    return int(text)


def knows_use(snapshot: Snapshot, queue: str, namespace: str) -> bool:
    """Whether a namespace may know the use and the line of a queue (docs/permissions.md)."""
    catalog = snapshot.catalog
    elastic = catalog.elastic.governing(namespace)
    if elastic is not None and elastic.queue == queue:
        return True
    entry = catalog.queue(queue)
    return not entry.hidden and entry.selects(snapshot.world.labels_of(namespace))


async def window(asked: Asked, wanted: Wanted, found: Found, *, tree: bool) -> Json:
    """Some rows of a list, from the row `from` on; with `seek` from the next one with a name that begins so.

    `tree`: whether the user may know the lines of all queues; else of those that the namespaces may know.
    """
    start, count = number(asked.query, "from", 0), min(number(asked.query, "count", 100), MOST_ROWS)
    seek = asked.query.get("seek", "")[:LONGEST_TEXT]
    scene = asked.scene

    def cut() -> tuple[Lists, Sequence[Shown], tuple[int, int], int | None]:
        lists = lists_of(scene)
        shown = lists.of(wanted, found.sees, found.key)
        if wanted.in_line and not tree and not _knows_line(scene.snapshot, wanted.queue or "", found.sees):
            shown = [Shown(each.item, None) for each in shown if each.item is not None]
        at = index_of(shown, seek, start) if seek else None
        first = at if at is not None else start
        counts = (len(shown), sum(each.size for each in shown))
        return lists, shown[first : first + count], counts, at

    lists, shown, (total, workloads), at = await asyncio.to_thread(cut)
    told = await told_reasons(asked, [each.item for each in shown if each.item is not None])
    view = RowView(lists, told, found.sees)
    rows = await asyncio.to_thread(lambda: [_shown_json(each, view, tree=tree) for each in shown])
    return {
        "taken": scene.known.taken,
        "revision": scene.revision,
        "total": total,
        "workloads": workloads,
        "from": at if at is not None else start,
        "sought": at if seek else None,
        "rows": rows,
        "complete": found.complete,
        "others": not found.everything and not wanted.in_line,
        "reasoned": told is not None,
    }


def _knows_line(snapshot: Snapshot, queue: str, sees: Sees) -> bool:
    """Whether one of a user's namespaces that use a queue may know its line."""
    return any(sees(name) and knows_use(snapshot, queue, name) for name in users_of(snapshot, queue))


def users_of(snapshot: Snapshot, queue: str) -> set[str]:
    """The namespaces from which a queue is reached."""
    elastic = snapshot.catalog.elastic.of_queue(queue)
    leading = snapshot.world.local_queues_by_cluster_queue.get(queue)
    return {namespace for namespace, _ in leading} | set(elastic.namespaces if elastic is not None else ())


async def told_reasons(asked: Asked, items: Iterable[Item]) -> Mapping[str, Waiting] | None:
    """Why Workloads wait of which the status does not say it: all others in line can be admitted.

    None: working that out takes long, and the page asks again.
    """
    unsaid = any(not item.holds and not _said(item, asked.scene.snapshot) for item in items)
    if not unsaid:
        return {}
    scene = asked.scene
    return await asked.stage.limits.explaining.result(lambda _: scene.reasons(), AT_ONCE, AT_ONCE.seconds)


def _said(item: Item, snapshot: Snapshot) -> str:
    """Why a Workload waits, as its check says it now, or as the controller has written it down."""
    view = item.row.workload
    held_back = snapshot.waiting.get(view.uid)
    return held_back.message if held_back is not None else str(view.status.get("message") or "")


@dataclass(frozen=True, slots=True)
class RowView:
    """What rows are made from."""

    lists: Lists
    told: Mapping[str, Waiting] | None  # of `told_reasons`
    sees: Sees  # whether the user may see a namespace


def _shown_json(shown: Shown, made_from: RowView, *, tree: bool) -> Json:
    item = shown.item
    if item is None:
        return {"visible": False, "position": shown.place, "until": shown.until}
    knows = tree or knows_use(made_from.lists.snapshot, item.row.queue, item.namespace)
    return item_json(item, made_from) | {"position": shown.place if knows else None}


def item_json(item: Item, made_from: RowView) -> Json:
    """A Workload that the user may see. Times are in seconds since the epoch."""
    row, view = item.row, item.row.workload
    lists, told = made_from.lists, made_from.told
    reason, message = row.reason, _said(item, lists.snapshot)
    waiting = told.get(view.uid) if told is not None else None
    ready = told is not None and waiting is None and not message and row.position is not None
    if not message and waiting is not None:
        reason, message = reason or waiting.reason, waiting.message
    if view.evicting:
        evicted = view.condition("Evicted")
        reason, message = str(evicted.get("reason", "")), str(evicted.get("message", ""))
    return {
        "visible": True,
        "namespace": view.namespace,
        "name": row.job,
        "workload": view.name,
        "object": object_of(view),
        "localQueue": view.queue,
        "queue": row.queue,
        "title": queue_title(row.queue) if row.queue else "",
        "priority": item.priority,
        "state": row.state,
        "reason": reason,
        "message": masked_text(message, made_from.sees),
        "ready": ready,
        "user": item.user,
        "created": view.created,
        "holds": item.holds,
        "since": view.since if item.holds else None,
        "ends": lists.end_of(item),
        "deadline": run_time_of(view.status).deadline if item.holds else None,
        "evicted": item.evicted,
        "pods": _pods(view),
        "flavors": _flavors(view),
        "asks": asks_json(view),
    }


def object_of(view: WorkloadView) -> str:
    """A Workload as commands take it: its job object by kind and name, or itself."""
    title = view.job[0] if view.job is not None else ""
    if not title:
        return f"workload/{view.name}"
    return title if "/" in title else f"job/{title}"


def _pods(view: WorkloadView) -> int:
    if view.admission is not None:
        return sum(each.count for each in left_of(view.admission, view).pod_sets)
    return sum(int(each.get("count", 0)) for each in view.spec.get("podSets") or ())


def _flavors(view: WorkloadView) -> list[str]:
    """The flavors that a Workload holds quota of."""
    if view.admission is None:
        return []
    return sorted({flavor for each in view.admission.pod_sets for _, flavor in each.flavors})


def asks_json(view: WorkloadView) -> list[Json]:
    """What a Workload asks for, or holds, of each resource: in cores, bytes or devices, and in words."""
    amounts: Counter[str] = Counter()
    if view.admission is not None:
        for assigned in left_of(view.admission, view).pod_sets:
            amounts.update(dict(assigned.usage))
    else:
        for each in view.spec.get("podSets") or ():
            for resource, quantity in (each.get("requests") or {}).items():
                try:
                    amounts[resource] += to_amount(resource, quantity) * int(each.get("count", 0))
                except InvalidQuantityError:
                    continue  # its reason to wait says so
    return [
        {
            "resource": name,
            "value": amount / (1000 if name == CPU else 1),
            "words": display(name, amount),
        }
        for name, amount in sorted(amounts.items())
        if amount
    ]


async def starts_in(scene: WebScene, queue: str) -> dict[str, Json]:
    """When the first in a line start, by namespace and name, in seconds since the epoch."""
    return {key: _start_json(start) for key, start in (await scene.starts(queue)).items()}


def _start_json(start: Json) -> Json:
    times = ("earliest", "median", "latest", "playedUntil")
    return {**start, **{name: seconds(start[name]) if start[name] else None for name in times}}
