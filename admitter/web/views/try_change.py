"""Try a change of quota: what it would do, before it is made. It makes nothing."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from pydantic import ValidationError

from admitter.api.base import problems_of
from admitter.cache.views import ObjectView
from admitter.client.access import Right
from admitter.engine.quota.tree import Node
from admitter.insight.forecast.deadline import Allowance, OutOfTimeError
from admitter.insight.forecast.playout import Effect
from admitter.insight.overview import OverviewUse
from admitter.insight.stamps import spell
from admitter.insight.what_if.compare import Difference, Outcome, Shift
from admitter.names import ANY_NODE
from admitter.policy.messages import node_title, queue_title
from admitter.quantities.amounts import CPU, InvalidQuantityError, display, parse_quantity
from admitter.simulate.manifests import Change
from admitter.web.asked import Asked, HttpRefusal
from admitter.web.quota_change import (
    MOST_QUEUES,
    QuotaChange,
    Refused,
    Wish,
    Wishes,
    changed,
    commands,
    manifest,
    patches,
)
from admitter.web.scene import WebScene, use_json
from admitter.web.sessions import party
from admitter.web.trials import TRIAL_SECONDS, ReplacedError
from admitter.web.turns import QUEUEING_SECONDS

Json = dict[str, Any]
Sees = Callable[[str], bool]
Affected = TypeVar("Affected", Outcome, Shift)

SHOWN: Final = 200
"""Workloads of each list that are named; the others are counted."""
REMEMBERED: Final = 20
"""Changes of one scene with a known answer, which several users may look at."""
LATE: Final = (
    "The decisions of this change take longer than there is time: admitter what-if answers without a limit."
)
BUSY: Final = (
    "Other changes are being tried: this one had no turn in time. It is tried again with the next change."
)


async def answer(asked: Asked) -> Json:
    """Quota and weight of the queues named in `queues`, as they are, and which of them the user may edit."""
    await asked.sight.require_tree()
    names = list(dict.fromkeys(name for name in asked.query.get("queues", "").split(",") if name))
    if len(names) > MOST_QUEUES:
        raise HttpRefusal(400, f"at most {MOST_QUEUES} queues at a time")
    scene, world = asked.scene, asked.scene.snapshot.world
    found = []
    for name in names:
        view = world.cluster_queues.get(("", name))
        if view is None:
            found.append({"name": name, "known": False})
        else:
            found.append({**_form(scene, view), "may": await _may_edit(asked, name)})
    every = sorted(view.name for view in world.cluster_queues)
    offers = (
        await asyncio.to_thread(scene.once, "queues to change", partial(_offers, scene)) if not names else []
    )
    taken = scene.known.taken
    return {"taken": taken, "queues": found, "every": every, "offers": offers, "most": MOST_QUEUES}


def _offers(scene: WebScene) -> list[Json]:
    """All ClusterQueues with the resource of which the largest part is in use, the scarcest first."""
    known = scene.snapshot.world.cluster_queues
    lines = [line for line in scene.lines if line.node[0] == "queue" and known.get(("", line.node[1]))]
    found = []
    for line in lines:
        scarcest = max(line.uses, key=_part, default=None)
        offer = {
            "name": line.node[1],
            "waiting": line.waiting,
            "cohort": line.parent[1] if line.parent else None,
        }
        use = use_json(scarcest) if scarcest is not None else None
        found.append((-_part(scarcest) if scarcest is not None else 0.0, {**offer, "use": use}))
    return [offer for _, offer in sorted(found, key=lambda each: each[0])]


def _part(use: OverviewUse) -> float:
    """Which part of its own quota is in use; what is only borrowed counts as all of it."""
    return use.used / use.minimum if use.minimum else float(use.used > 0)


async def _may_edit(asked: Asked, name: str) -> bool:
    for verb in ("patch", "update"):
        if await asked.sight.may(Right(verb, "clusterqueues", name=name)):
            return True
    return False


def _form(scene: WebScene, view: ObjectView) -> Json:
    """What of a queue may be tried."""
    tree = scene.snapshot.engine.tree
    node = ("queue", view.name)
    root = tree.path(node)[-1]
    weight = str((view.spec.get("fairSharing") or {}).get("weight", 1))
    return {
        "name": view.name,
        "title": queue_title(view.name),
        "known": True,
        "cohort": view.spec.get("cohort"),
        "root": node_title(*root),
        "fair": tree.fair(root),
        "weight": {"value": _number(weight), "written": weight},
        "quotas": list(_quotas(scene, view, node, root)),
    }


def _quotas(scene: WebScene, view: ObjectView, node: Node, root: Node) -> Iterator[Json]:
    """The queue's own quota, as it is written; a queue that inherits its resources has none."""
    book = scene.snapshot.engine.ledger.real
    for resource in view.spec.get("resources") or ():
        for flavor in resource.get("flavors") or ():
            name, quota = resource["name"], flavor.get("quota") or {}
            cell, above = (book.cells(place).get((flavor["name"], name)) for place in (node, root))
            unit = 1000 if name == CPU else 1
            used, whole = cell.total if cell else 0, above.subtree_quota if above else 0
            least, most = quota.get("min", 0), quota.get("max")
            numbers = [_number(each) for each in (least, most) if each is not None]
            yield {
                "resource": name,
                "flavor": flavor["name"],
                "min": {"value": _number(least), "written": str(least)},
                "max": {"value": _number(most), "written": str(most)} if most is not None else None,
                "used": _amount(name, used),
                "whole": _amount(name, whole),
                "end": max(*numbers, used / unit, whole / unit, 1.0),
            }


def _amount(resource: str, amount: int) -> Json:
    return {"value": amount / (1000 if resource == CPU else 1), "words": display(resource, amount)}


def _number(quantity: str | int) -> float:
    """A quantity as a number of cores, bytes, devices or shares; 0 of what is none."""
    try:
        return float(parse_quantity(quantity))
    except InvalidQuantityError:
        return 0.0


async def tried(asked: Asked) -> Json:
    """What the wishes in the body would do."""
    await asked.sight.require_tree()
    wishes = _wishes(asked.body)
    views = {}
    for name in dict.fromkeys(wish.queue for wish in wishes):
        if not await _may_edit(asked, name):
            raise HttpRefusal(403, f"{asked.user.name} may not edit ClusterQueue {name}")
        view = asked.scene.snapshot.world.cluster_queues.get(("", name))
        if view is None:
            raise HttpRefusal(404, f"there is no ClusterQueue {name}")
        views[name] = view
    change = await asyncio.to_thread(changed, views, wishes)
    written = {
        "taken": asked.scene.known.taken,
        "refused": [_refused(each) for each in change.refused],
        **await asyncio.to_thread(_texts, change),
        "difference": None,
        "late": "",
    }
    if change.refused:
        return written
    if not change.objects:
        asked.stage.limits.trials.replace(party(asked.user.name))
        return written
    difference, late = await _difference(asked, change, written["manifest"])
    if difference is None:
        return {**written, "late": late}
    namespaces = {outcome.key[0] for outcome in difference.outcomes}
    namespaces |= {outcome.preemptor[0] for outcome in difference.outcomes if outcome.preemptor is not None}
    namespaces |= {shift.key[0] for shift in difference.shifts}
    sees = await asked.sight.visible(namespaces)
    return {**written, "difference": difference_shown(difference, sees, asked.scene)}


def _texts(change: QuotaChange) -> Json:
    """A change as texts, none if it is refused; to write many large queues takes more than a second."""
    if change.refused:
        return {"manifest": "", "patch": "", "commands": []}
    return {"manifest": manifest(change), "patch": patches(change), "commands": list(commands(change))}


def _wishes(body: object) -> list[Wish]:
    try:
        wishes = Wishes.model_validate(body).set
    except ValidationError as error:
        words = "; ".join(map(str, problems_of(error)[:3]))
        raise HttpRefusal(400, f"this is no change: {words}") from error
    if len({wish.queue for wish in wishes}) > MOST_QUEUES:
        raise HttpRefusal(400, f"at most {MOST_QUEUES} queues at a time")
    return wishes


def _refused(each: Refused) -> Json:
    return {
        "queue": each.queue,
        "resource": each.resource,
        "flavor": each.flavor,
        "part": each.part,
        "message": each.message,
    }


async def _difference(asked: Asked, change: QuotaChange, key: str) -> tuple[Difference | None, str]:
    """What a change would do, or why that is not known in time; equal changes have an equal key."""
    scene, limits = asked.scene, asked.stage.limits
    known = scene.once("tried changes", dict[str, Difference])
    if key in known:
        return known[key], ""
    changes = [Change(scene.known.taken, number, each) for number, each in enumerate(change.objects)]
    with limits.trials.begin(party(asked.user.name)) as trial:
        work = partial(trial.difference, scene.known, changes, limits.allowance)
        try:
            found = await limits.trying.result(
                work, Allowance(TRIAL_SECONDS), QUEUEING_SECONDS, asked.user.name
            )
        except ReplacedError as error:
            raise HttpRefusal(409, "you try another change by now") from error
        except OutOfTimeError:
            return None, LATE
        if found is None:
            if trial.replaced.is_set():
                raise HttpRefusal(409, "you try another change by now")
            return None, LATE if trial.begun.is_set() else BUSY
    if len(known) < REMEMBERED:
        known[key] = found
    return found, ""


def difference_shown(difference: Difference, sees: Sees, scene: WebScene) -> Json:
    """What a change does, with the names of those namespaces that the user may see; others are counted."""
    now = scene.known.taken
    return {
        "atOnce": {effect.name.lower(): _at_once(difference, effect, sees) for effect in Effect},
        "queues": list(_queues(difference, scene)),
        "over": [
            {
                "where": node_title(*each.node),
                "flavor": "" if each.flavor == ANY_NODE else each.flavor,
                "resource": each.resource,
                "used": _amount(each.resource, each.used),
                "allowed": _amount(each.resource, each.allowed),
            }
            for each in difference.excesses
        ],
        "sooner": _shifts((each for each in difference.shifts if not each.later), sees, now),
        "later": _shifts((each for each in difference.shifts if each.later), sees, now),
        "startsUntil": now + difference.until if difference.until is not None else None,
        "unprovenWords": difference.unproven,
        "errors": list(difference.errors),
    }


def _at_once(difference: Difference, effect: Effect, sees: Sees) -> Json:
    def row(outcome: Outcome) -> Json:
        title = queue_title(outcome.queue) if outcome.queue else ""
        return {"queue": outcome.queue, "title": title, "why": _why(outcome, sees)}

    return _shown([each for each in difference.outcomes if each.effect is effect], sees, row)


def _why(outcome: Outcome, sees: Sees) -> str:
    """Why, without the name of a preemptor that the user may not see."""
    if outcome.preemptor is not None and not sees(outcome.preemptor[0]):
        return "preempted for a Workload of another namespace"
    return outcome.why


def _shifts(shifts: Iterable[Shift], sees: Sees, now: float) -> Json:
    """Starts that move, those that move most first."""

    def row(shift: Shift) -> Json:
        before, after = shift.before, shift.after
        return {
            "before": now + before if before is not None else None,
            "after": now + after if after is not None else None,
            "by": spell(_by(shift)) if before is not None and after is not None else None,
        }

    return _shown(sorted(shifts, key=lambda each: (-_by(each), each.key)), sees, row)


def _shown(found: Sequence[Affected], sees: Sees, row: Callable[[Affected], Json]) -> Json:
    """How many Workloads there are, how many of them the user may not see, and rows of the first others."""
    named = [each for each in found if sees(each.key[0])]
    rows = [{"namespace": each.key[0], "name": each.key[1], **row(each)} for each in named[:SHOWN]]
    return {"count": len(found), "hidden": len(found) - len(named), "rows": rows}


def _by(shift: Shift) -> float:
    if shift.before is None or shift.after is None:
        return float("inf")
    return abs(shift.after - shift.before)


def _queues(difference: Difference, scene: WebScene) -> Iterator[Json]:
    """Of each queue with an effect at once, how many hold its quota and wait, before and after."""
    counts: Counter[tuple[str, Effect]] = Counter((each.queue, each.effect) for each in difference.outcomes)
    for name in sorted({queue for queue, _ in counts}):
        line = scene.line(name)
        if line is not None:
            admitted, evicted = counts[name, Effect.ADMITTED], counts[name, Effect.EVICTED]
            yield {
                "queue": name,
                "title": line.title,
                "admitted": {"before": line.admitted, "after": line.admitted + admitted - evicted},
                "waiting": {"before": line.waiting, "after": line.waiting - admitted + evicted},
            }
