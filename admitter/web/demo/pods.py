"""The pods of a simulation's Workloads, on nodes: bound as a scheduler might that packs GPUs tightly.

Admitter does not choose nodes, and no rule of it is here.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from admitter.cache.pod_views import PodView, parse_pod
from admitter.cache.views import WorkloadView, at, timestamp
from admitter.cache.world import World
from admitter.names import (
    CLUSTER_QUEUE_LABEL,
    FLAVORS_ANNOTATION,
    WORKLOAD_LABEL,
    WORKLOAD_UID_ANNOTATION,
)
from admitter.web.demo.hardware import ACCELERATOR, GPU

Json = dict[str, Any]

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""What Kubernetes makes random names of."""
MISSING_IMAGE: Final = "registry.lab.example/vision/label-refresh:2026-11-rc1"


@dataclass(slots=True)
class _Node:
    name: str
    free: int  # GPUs, or millicores of a node without any


@dataclass(slots=True)
class _Pod:
    name: str
    node: str
    ready: bool | None = None  # as its view has it
    view: PodView | None = None


@dataclass(slots=True)
class _Placed:
    """The pods of one admission."""

    workload: WorkloadView
    job: str
    request: tuple[str, int]  # of one pod: resource and amount
    flavor: str
    since: float
    ready_at: float  # infinite: never
    pods: list[_Pod] = field(default_factory=list)


class Pods:
    """All pods, and what is free on the nodes."""

    def __init__(self, world: World) -> None:
        self._nodes: dict[str, list[_Node]] = {}
        self._by_name: dict[str, _Node] = {}
        for view in sorted(world.nodes, key=lambda each: each.name):
            if not view.node.schedulable:
                continue
            of_gpus = view.node.allocatable.get(GPU)
            node = _Node(view.name, of_gpus if of_gpus else view.node.allocatable["cpu"])
            self._nodes.setdefault(view.node.labels[ACCELERATOR], []).append(node)
            self._by_name[view.name] = node
        self._placed: dict[str, _Placed] = {}  # by UID of the Workload
        self._without_node: dict[str, None] = {}  # UIDs of Workloads with pods that have none, in order

    def start(self, workload: WorkloadView, job: str, since: float, ready_after: float) -> None:
        """Make the pods of an admitted Workload; they are ready so many seconds later."""
        assert workload.admission is not None
        (pod_set,) = workload.admission.pod_sets
        resource = GPU if any(name == GPU for name, _ in pod_set.usage) else "cpu"
        amount = dict(pod_set.usage)[resource] // max(1, pod_set.count)
        flavor = dict(pod_set.flavors)[resource]
        placed = _Placed(workload, job, (resource, amount), flavor, since, since + ready_after)
        self._placed[workload.uid] = placed
        self.resize(workload.uid, pod_set.count)

    def resize(self, uid: str, count: int) -> None:
        """Let a Workload have so many pods."""
        placed = self._placed[uid]
        while len(placed.pods) > count:
            self._leave(placed, placed.pods.pop())
        while len(placed.pods) < count:
            name = _name(placed.job, len(placed.pods), placed.since)
            placed.pods.append(_Pod(name, self._bind(placed)))
        if any(not pod.node for pod in placed.pods):
            self._without_node[uid] = None
        else:
            self._without_node.pop(uid, None)

    def stop(self, uid: str) -> None:
        """Let the pods of a Workload go, if it has any."""
        placed = self._placed.pop(uid, None)
        self._without_node.pop(uid, None)
        if placed is not None:
            for pod in placed.pods:
                self._leave(placed, pod)

    def _leave(self, placed: _Placed, pod: _Pod) -> None:
        if pod.node:
            self._by_name[pod.node].free += placed.request[1]

    def _bind(self, placed: _Placed) -> str:
        """The node with the least room that is enough, of which a pod takes what it needs; empty: none."""
        amount = placed.request[1]
        fits = [node for node in self._nodes.get(placed.flavor, ()) if node.free >= amount]
        if not fits:
            return ""
        node = min(fits, key=lambda each: each.free)
        node.free -= amount
        return node.name

    def settle(self) -> None:
        """Bind pods that have no node, where there is room by now."""
        for uid in list(self._without_node):
            placed = self._placed[uid]
            for pod in placed.pods:
                if not pod.node:
                    pod.node = self._bind(placed)
                    pod.view = None
            if all(pod.node for pod in placed.pods):
                del self._without_node[uid]

    def count(self, uid: str, now: float) -> tuple[int, int]:
        """How many pods a Workload has, and how many of them are ready."""
        placed = self._placed.get(uid)
        if placed is None:
            return 0, 0
        there = len(placed.pods)
        return there, sum(bool(pod.node) for pod in placed.pods) if placed.ready_at <= now else 0

    def of(self, uid: str, now: float) -> list[PodView]:
        """The pods of one Workload."""
        placed = self._placed.get(uid)
        return list(self._views(placed, now)) if placed is not None else []

    def views(self, now: float) -> Iterator[PodView]:
        """All pods, as they are now."""
        for placed in self._placed.values():
            yield from self._views(placed, now)

    def _views(self, placed: _Placed, now: float) -> Iterator[PodView]:
        for pod in placed.pods:
            ready = bool(pod.node) and placed.ready_at <= now
            if pod.view is None or pod.ready is not ready:
                pod.ready, pod.view = ready, parse_pod(self._raw(placed, pod, ready=ready))
            yield pod.view

    def _raw(self, placed: _Placed, pod: _Pod, *, ready: bool) -> Json:
        workload, (resource, amount) = placed.workload, placed.request
        assert workload.admission is not None
        quantity = str(amount) if resource == GPU else f"{amount}m"
        flavors = {name: flavor for each in workload.admission.pod_sets for name, flavor in each.flavors}
        spec: Json = {"containers": [{"resources": {"requests": {resource: quantity}}}]}
        return {
            "metadata": {
                "name": pod.name,
                "namespace": workload.namespace,
                "uid": f"{workload.uid}/{pod.name}",
                "resourceVersion": str(workload.version),
                "creationTimestamp": timestamp(at(placed.since)),
                "labels": {
                    WORKLOAD_LABEL: workload.name,
                    CLUSTER_QUEUE_LABEL: workload.admission.queue,
                },
                "annotations": {
                    WORKLOAD_UID_ANNOTATION: workload.uid,
                    FLAVORS_ANNOTATION: orjson.dumps(flavors).decode(),
                },
            },
            "spec": spec | ({"nodeName": pod.node} if pod.node else {}),
            "status": self._status(placed, pod, ready=ready),
        }

    def _status(self, placed: _Placed, pod: _Pod, *, ready: bool) -> Json:
        if not pod.node:
            words = (
                f"0/{len(self._by_name)} nodes are available: no node has so much free {placed.request[0]}"
            )
            told = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words}
            return {"phase": "Pending", "conditions": [told]}
        conditions = [{"type": "PodScheduled", "status": "True"}]
        if ready:
            return {"phase": "Running", "conditions": [*conditions, {"type": "Ready", "status": "True"}]}
        state: Json = {"phase": "Pending", "conditions": conditions}
        if placed.ready_at == float("inf"):
            waits = {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}}
            state["containerStatuses"] = [{"name": "main", "image": MISSING_IMAGE, "state": waits}]
        return state


def _name(job: str, number: int, since: float) -> str:
    """A pod's name, as a Job makes them."""
    digest, letters = zlib.crc32(f"{job}/{number}/{since}".encode()), ""
    for _ in range(5):
        digest, place = divmod(digest, len(_LETTERS))
        letters += _LETTERS[place]
    return f"{job}-{letters}"
