"""A queue: its quota and use, what waits in which order and why, when they start, and what holds its quota.

`rows` is the same list over all queues too.
"""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from admitter.insight.overview import OverviewLine
from admitter.web.asked import Asked, HttpRefusal
from admitter.web.lists import lists_of
from admitter.web.namespace_search import Found
from admitter.web.scene import line_json
from admitter.web.views.rows import knows_use, starts_in, users_of, wanted_of, window

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class QueueSight:
    """A queue that is there, and what a user may see of it."""

    line: OverviewLine
    found: Found  # the namespaces in which the user may see Workloads
    tree: bool  # whether the user may see every queue
    told: bool  # whether the user may know its use and its line

    @property
    def name(self) -> str:
        return self.line.node[1]


async def answer(asked: Asked) -> Json:
    """The queue named `name`, without its Workloads."""
    sight, scene = await about_queue(asked, asked.query.get("name", "")), asked.scene
    shown = await asyncio.to_thread(_counts, asked, sight)
    if not sight.told:
        return {**shown, "told": False, "course": None}
    return {**shown, "told": True, "course": _course(asked, sight.name), "revision": scene.revision}


def _counts(asked: Asked, sight: QueueSight) -> Json:
    """Its line in the tree, and what its list can be filtered by."""
    lists, line = lists_of(asked.scene), line_json(sight.line)
    if not sight.tree:
        line |= {"depth": 0, "parent": None}
    if not sight.told:
        own = [item for item in lists.by_queue.get(sight.name, ()) if sight.found.sees(item.namespace)]
        holding = sum(item.holds for item in own)
        line |= {"uses": [], "waiting": len(own) - holding, "admitted": holding, "recent": 0, "problem": ""}
    return {
        "taken": asked.scene.known.taken,
        "revision": asked.scene.revision,
        "line": line,
        "choices": lists.choices(sight.name, sight.found.sees, sight.found.key),
        "everything": sight.found.everything,
        "complete": sight.found.complete,
    }


def _course(asked: Asked, name: str) -> Json:
    """Use over time, by resource in flavor."""
    course = asked.stage.history.course(name)
    return {
        "times": course.times,
        "waiting": course.waiting,
        "used": [
            {"flavor": flavor, "resource": resource, "used": used}
            for (flavor, resource), used in sorted(course.used.items())
        ],
    }


async def starts(asked: Asked) -> Json:
    """When the first in its line start."""
    sight = await about_queue(asked, asked.query.get("name", ""))
    found = await starts_in(asked.scene, sight.name) if sight.told else {}
    return {key: start for key, start in found.items() if sight.found.sees(key.partition("/")[0])}


async def rows(asked: Asked) -> Json:
    """A window of the Workloads of a queue, or of all queues: filtered and sorted."""
    wanted, scene = wanted_of(asked.query), asked.scene
    if wanted.queue is not None:
        sight = await about_queue(asked, wanted.queue)
        found, tree = sight.found, sight.tree
    else:
        tree = await asked.sight.sees_tree()
        found = await _found_anywhere(asked, wanted.namespaces)
    made = await window(asked, wanted, found, tree=tree)
    if asked.query.get("choices"):
        sees, seen = found.sees, found.key
        made["choices"] = await asyncio.to_thread(lambda: lists_of(scene).choices(wanted.queue, sees, seen))
    return made


async def _found_anywhere(asked: Asked, named: Iterable[str]) -> Found:
    """The user's namespaces, and some that are named.

    Raises:
        HttpRefusal: the user may not see one of these.
    """
    found = await asked.sight.among({row.workload.namespace for row in asked.scene.rows})
    for name in named:
        if not found.sees(name):
            await asked.sight.require_namespace(name)
            found = replace(found, names=found.names | {name})
    return found


async def about_queue(asked: Asked, name: str) -> QueueSight:
    """A queue that is there, and what the user may see of it.

    A user that may list ClusterQueues sees all of them; others see those that a namespace of theirs uses, of
    which `from-namespace` may name one. One that is not there is refused to these as any other is.

    Raises:
        HttpRefusal: the user may not see it, or there is none; or whether the user may is not known yet.
    """
    scene, tree = asked.scene, await asked.sight.sees_tree()
    using, line = users_of(scene.snapshot, name), scene.line(name)
    if not tree:
        await _require_use(asked, name, using)
    if line is None:
        raise HttpRefusal(404, f"there is no queue {name}")
    found = await asked.sight.among(using | scene.namespaces_in(name))
    told = tree or any(found.sees(each) and knows_use(scene.snapshot, name, each) for each in using)
    return QueueSight(line, found, tree, told)


async def _require_use(asked: Asked, name: str, using: Collection[str]) -> None:
    """Refuse a user that may see no namespace that uses a queue.

    The same namespaces are asked about for each queue, or the time of an answer would tell of hidden ones.

    Raises:
        HttpRefusal: the user may see none, or that is not known yet.
    """
    named, world = asked.query.get("from-namespace", ""), asked.scene.snapshot.world
    if named:
        await asked.sight.require_namespace(named)
        if named in using:
            return
    with_workloads = {row.workload.namespace for row in asked.scene.rows}
    found = await asked.sight.among(with_workloads | {view.name for view in world.namespaces})
    if any(found.sees(each) for each in using):
        return
    if not found.complete:
        raise HttpRefusal(503, f"whether {asked.user.name} may see queue {name} is not known yet: try again")
    raise HttpRefusal(403, f"{asked.user.name} may not see queue {name}")
