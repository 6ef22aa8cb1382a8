"""The cluster map: what each node has, which queue uses how much of it, and how the rest is spread.

A user that may list ClusterQueues sees all nodes, by name if they may list nodes. Others name a namespace of
theirs, and see the nodes with pods of it, and of these nothing that others use: neither names nor amounts.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, Final

from admitter.cache.node_views import NodeView
from admitter.cache.pod_views import PodView
from admitter.client.access import Right
from admitter.insight.explain.pods import PodState
from admitter.insight.fragmentation import Fit, Fitting, Spread, WaitingPods
from admitter.insight.listing import job_name
from admitter.insight.occupancy import Occupancy, UsedNode
from admitter.policy.messages import queue_title
from admitter.quantities.amounts import CPU, display
from admitter.web.asked import Asked, HttpRefusal
from admitter.web.scene import WebScene

Json = dict[str, Any]

NODES: Final = Right("list", "nodes", group="")
MOST_WAITING: Final = 50
MOST_ON_NODE: Final = 200
NOT_READY: Final = 1
CORDONED: Final = 2
"""Bits of a node's state; neither is set of one that takes new pods."""
HIDDEN_DIGITS: Final = 10


@dataclass(frozen=True, slots=True)
class Seen:
    """What one user sees of nodes."""

    namespace: str  # only nodes with pods of it, and only these pods; empty: all
    named: bool  # whether nodes have names, and places

    def pods(self, node: UsedNode) -> tuple[PodView, ...]:
        """The pods that are seen on a node."""
        if not self.namespace:
            return node.pods
        return tuple(pod for pod in node.pods if pod.namespace == self.namespace)

    def has(self, node: UsedNode) -> bool:
        """Whether a node is seen."""
        return not self.namespace or any(pod.namespace == self.namespace for pod in node.pods)

    def key(self, node: NodeView) -> str:
        """By what a node is known to the user: its name, or what tells no more than that it is the same."""
        return node.name if self.named else sha256(node.uid.encode()).hexdigest()[:HIDDEN_DIGITS]


async def _seen(asked: Asked) -> Seen:
    """What the user sees of what was asked for.

    Raises:
        HttpRefusal: the user may see neither the tree nor the namespace.
    """
    namespace = asked.query.get("namespace", "")
    if namespace:
        await asked.sight.require_namespace(namespace)
    else:
        await asked.sight.require_tree()
    return Seen(namespace, await asked.sight.may(NODES))


async def node_keys(asked: Asked) -> Callable[[PodState], str | None]:
    """By which `key` the map knows the node of a pod, for the user; None: the map does not show the node.

    A user that may not list ClusterQueues sees the nodes on which pods of a namespace run, not those on which
    they have ended.
    """
    seen, nodes = Seen("", await asked.sight.may(NODES)), asked.scene.snapshot.world.nodes
    all_nodes = await asked.sight.sees_tree()

    def key(pod: PodState) -> str | None:
        view = nodes.get(("", pod.node))
        return seen.key(view) if view is not None and (all_nodes or pod.live) else None

    return key


def occupancy_of(scene: WebScene) -> Occupancy:
    """The nodes of a scene and what runs on them; it takes a while, and belongs in a thread."""
    return scene.once("occupancy", lambda: Occupancy(scene.snapshot))


async def answer(asked: Asked) -> Json:
    """All nodes that the user sees, by `resource`; without one, by GPUs, or by CPUs where there are none."""
    seen = await _seen(asked)
    wanted = asked.query.get("resource", "")
    found = await asyncio.to_thread(_map, asked.scene, seen, wanted)
    if seen.namespace:
        return found
    namespaces = {each["namespace"] for part in ("waiting", "noNode") for each in found[part]["first"]}
    visible = await asked.sight.visible(namespaces)
    for part in ("waiting", "noNode"):
        found[part] = {**found[part], "first": [_masked(each, visible) for each in found[part]["first"]]}
    return found


def _masked(entry: Json, visible: Callable[[str], bool]) -> Json:
    """What is said of a Workload, without its name if the user may not see it."""
    if visible(entry["namespace"]):
        return {**entry, "visible": True}
    hidden = {"namespace": "", "name": "", "words": "", "visible": False}
    return {**entry, **hidden}


def _map(scene: WebScene, seen: Seen, wanted: str) -> Json:
    occupancy = occupancy_of(scene)
    resources = occupancy.resources(filter(seen.has, occupancy.nodes))
    resource = wanted if wanted in resources else next(iter(resources), CPU)
    key = f"map/{seen.namespace}/{seen.named}/{resource}"
    return scene.once(key, lambda: _made(scene, occupancy, seen, resource, resources))


def _made(scene: WebScene, occupancy: Occupancy, seen: Seen, resource: str, resources: list[str]) -> Json:
    nodes = [node for node in occupancy.nodes if seen.has(node)]
    table = _Table(occupancy, seen, resource)
    columns = table.columns(nodes)
    found: Json = {
        "taken": scene.known.taken,
        "resource": resource,
        "resources": resources,
        "namespace": seen.namespace,
        "named": seen.named,
        "levels": [{"name": level.name, "label": level.label} for level in occupancy.levels if seen.named],
        "flavors": table.flavors.names,
        "queues": table.queues.names,
        "titles": [title_of(name) for name in table.queues.names],
        "places": [list(place) for place in table.places.names],
        "nodes": columns,
        "unknown": table.unknown,
    }
    if seen.namespace:
        return found
    fitting = scene.once(f"fitting/{resource}", lambda: Fitting(occupancy, resource))
    return {
        **found,
        "spread": _spreads(fitting, table.flavors.names),
        "waiting": _waiting(fitting.waiting(scene.rows), resource),
        "noNode": _no_node(occupancy, resource),
        "elsewhere": occupancy.elsewhere,
    }


class _Names:
    """Texts by their numbers: columns repeat few of them."""

    def __init__(self) -> None:
        self.names: list[Any] = []
        self._numbers: dict[object, int] = {}

    def number(self, name: object) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.names)
            self.names.append(name)
        return self._numbers[name]


class _Table:
    """Nodes as columns, which is a third of the size of nodes as objects."""

    def __init__(self, occupancy: Occupancy, seen: Seen, resource: str) -> None:
        self.flavors, self.places, self.queues = _Names(), _Names(), _Names()
        self.unknown = 0  # pods of which it is not known what they use of the resource
        self._occupancy = occupancy
        self._seen = seen
        self._resource = resource

    def columns(self, nodes: Iterable[UsedNode]) -> Json:
        made: Json = {name: [] for name in ("key", "flavor", "place", "total", "pods", "parts", "state")}
        troubles = {}
        for index, node in enumerate(nodes):
            for name, value in self._row(node).items():
                made[name].append(value)
            if not node.usable:
                troubles[str(index)] = self._trouble(node)
        return {**made, "trouble": troubles}

    def _row(self, node: UsedNode) -> Json:
        pods = self._seen.pods(node)
        parts, unknown = self._occupancy.parts(pods, self._resource)
        self.unknown += unknown
        numbers = ((self.queues.number(p.queue), amount_of(self._resource, p.amount), p.pods) for p in parts)
        return {
            "key": self._seen.key(node.view),
            "flavor": self.flavors.number(node.flavor),
            "place": self.places.number(node.place if self._seen.named else ()),
            "total": amount_of(self._resource, node.total(self._resource)),
            "pods": len(pods),
            "parts": [number for part in numbers for number in part],
            "state": state_of(node),
        }

    def _trouble(self, node: UsedNode) -> Json:
        return {"since": node.view.since, "words": node.view.trouble if self._seen.named else ""}


def state_of(node: UsedNode) -> int:
    """NOT_READY and CORDONED, as bits."""
    return (0 if node.view.ready else NOT_READY) | (CORDONED if node.view.cordoned else 0)


def title_of(queue: str) -> str:
    """A queue of the engine as people know it: a ClusterQueue by its name alone; empty for none."""
    return queue_title(queue).removeprefix("ClusterQueue ") if queue else ""


def amount_of(resource: str, amount: int) -> float:
    """A number of cores, bytes or devices."""
    return amount / 1000 if resource == CPU else amount


def _amount(resource: str, amount: int) -> Json:
    return {"value": amount_of(resource, amount), "words": display(resource, amount)}


def _spreads(fitting: Fitting, flavors: list[str]) -> list[Json]:
    """How the free part is spread: over all nodes that a flavor counts, then over those of each."""
    everywhere = _spread(fitting.spread(lambda node: bool(node.flavor)), fitting.resource)
    each = (
        {"flavor": name, **_spread(fitting.spread(partial(_is_of, name)), fitting.resource)}
        for name in flavors
    )
    return [{"flavor": None, **everywhere}, *each]


def _is_of(flavor: str, node: UsedNode) -> bool:
    return node.flavor == flavor


def _spread(found: Spread, resource: str) -> Json:
    amounts = {"total": found.total, "used": found.used, "free": found.free, "largest": found.largest}
    return {
        "nodes": found.nodes,
        **{name: amount_of(resource, amount) for name, amount in amounts.items()},
        "words": {name: display(resource, amount) for name, amount in amounts.items()},
        "bins": [
            [amount_of(resource, each.least), amount_of(resource, each.most), each.nodes]
            for each in found.bins
        ],
        "fits": [[amount_of(resource, size), display(resource, size), pods] for size, pods in found.fits],
    }


def _waiting(waiting: Iterable[WaitingPods], resource: str) -> Json:
    """How many waiting pods do not fit, and the first of these; what never fits comes first."""
    stuck = []
    pods = fitting = 0
    for each in waiting:
        pods += each.count
        fitting += each.fitting
        if each.fit is not Fit.FITS:
            stuck.append(each)
    order = [Fit.TOO_LARGE, Fit.SPREAD, Fit.FULL]
    first = sorted(stuck, key=lambda each: order.index(each.fit))[:MOST_WAITING]
    counts = {how.value: sum(each.count for each in stuck if each.fit is how) for how in order}
    return {
        "pods": pods,
        "counts": counts,
        "first": [
            {
                "namespace": each.row.workload.namespace,
                "name": each.row.job,
                "queue": each.row.queue,
                "title": title_of(each.row.queue),
                "pods": each.count,
                "size": _amount(resource, each.size),
                "why": each.fit.value,
            }
            for each in first
        ],
        "more": len(stuck) - len(first),
    }


def _no_node(occupancy: Occupancy, resource: str) -> Json:
    """Pods that were admitted and have no node, by their Workloads; most pods first."""
    groups: dict[tuple[str, str], list[PodView]] = {}
    for pod in occupancy.without_node:
        groups.setdefault((pod.namespace, pod.workload), []).append(pod)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    first = []
    for (namespace, workload), pods in ordered[:MOST_WAITING]:
        size = occupancy.amount(pods[0], resource)
        said = next(
            (pod.trouble.detail for pod in pods if pod.trouble is not None and pod.trouble.detail), ""
        )
        first.append(
            {
                "namespace": namespace,
                "name": _name(occupancy, namespace, workload),
                "queue": pods[0].usage.queue,
                "title": title_of(pods[0].usage.queue),
                "pods": len(pods),
                "size": _amount(resource, size) if size else None,
                "words": said,
            }
        )
    return {"pods": len(occupancy.without_node), "first": first, "more": len(ordered) - len(first)}


def _name(occupancy: Occupancy, namespace: str, workload: str) -> str:
    """The name by which users know a Workload."""
    view = occupancy.snapshot.world.workloads.get((namespace, workload))
    return job_name(view) if view is not None else workload


async def node(asked: Asked) -> Json:
    """One node by its `key`: what it has, and the Workloads with pods on it.

    One that is not there and one that the user does not see are the same.
    """
    seen = await _seen(asked)
    key = asked.query.get("key", "")
    found = await asyncio.to_thread(_find, asked.scene, seen, key)
    if found is None:
        where = f" with pods of namespace {seen.namespace}" if seen.namespace else ""
        raise HttpRefusal(404, f"there is no such node{where}")
    occupancy, one = found
    pods = seen.pods(one)
    visible = await asked.sight.visible({pod.namespace for pod in pods})
    return {
        "taken": asked.scene.known.taken,
        "key": key,
        "named": seen.named,
        "namespace": seen.namespace,
        "flavor": one.flavor,
        "place": [
            {"level": level.name, "place": place}
            for level, place in zip(occupancy.levels, one.place, strict=True)
            if place and seen.named
        ],
        "state": state_of(one),
        "since": one.view.since,
        "words": one.view.trouble if seen.named else "",
        "resources": list(_resources(occupancy, one, seen)),
        "workloads": _workloads(occupancy, pods, visible, asked.query.get("resource", "")),
    }


def _find(scene: WebScene, seen: Seen, key: str) -> tuple[Occupancy, UsedNode] | None:
    occupancy = occupancy_of(scene)
    one = next((node for node in occupancy.nodes if seen.has(node) and seen.key(node.view) == key), None)
    return (occupancy, one) if one is not None else None


def _resources(occupancy: Occupancy, node: UsedNode, seen: Seen) -> Iterator[Json]:
    """What a node has, and what is used of it by the pods that are seen; what is free only if all are."""
    for resource in occupancy.resources([node]):
        if total := node.total(resource):
            used = sum(part.amount for part in occupancy.parts(seen.pods(node), resource)[0])
            amounts = {"total": total, "used": used}
            if not seen.namespace:
                amounts["free"] = max(0, total - used)
            yield {
                "resource": resource,
                **{name: amount_of(resource, amount) for name, amount in amounts.items()},
                "words": {name: display(resource, amount) for name, amount in amounts.items()},
            }


def _workloads(
    occupancy: Occupancy, pods: Iterable[PodView], visible: Callable[[str], bool], resource: str
) -> Json:
    """The Workloads with pods on a node, by their use of a resource; the hidden ones by queue."""
    groups: dict[tuple[str, str, str], list[PodView]] = {}
    for pod in pods:
        shown = visible(pod.namespace)
        key = (pod.namespace, pod.workload, pod.usage.queue) if shown else ("", "", pod.usage.queue)
        groups.setdefault(key, []).append(pod)
    made = []
    for (namespace, workload, queue), members in groups.items():
        amounts = [occupancy.amount(pod, resource) for pod in members]
        used = sum(amount or 0 for amount in amounts)
        made.append(
            (
                used,
                {
                    "namespace": namespace,
                    "name": _name(occupancy, namespace, workload) if namespace else "",
                    "visible": bool(namespace),
                    "queue": queue,
                    "title": title_of(queue),
                    "pods": len(members),
                    "used": amount_of(resource, used),
                    "words": display(resource, used) if None not in amounts else "",
                },
            )
        )
    made.sort(key=lambda each: (-each[0], each[1]["namespace"], each[1]["name"], each[1]["queue"]))
    return {"first": [each for _, each in made[:MOST_ON_NODE]], "more": max(0, len(made) - MOST_ON_NODE)}
