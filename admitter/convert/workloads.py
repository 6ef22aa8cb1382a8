"""Workloads and their admissions, between JSON and the engine."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import orjson

from admitter.api.base import in_parts, named_twice, own_name
from admitter.client.sharing import remembered
from admitter.convert.gpus import GpuSettings
from admitter.convert.pod_sets import required_affinity
from admitter.engine.model import (
    Admission,
    Assignment,
    Flavor,
    PodSet,
    Requirement,
    Term,
    Toleration,
    Workload,
)
from admitter.names import GPU_MEMORY, PODS
from admitter.quantities.amounts import InvalidQuantityError, to_amount, to_quantity

Json = dict[str, Any]

Flavors = Callable[[str], Flavor | None]  # finds a flavor by its name


class RequeueBy(StrEnum):
    """Where a preempted workload waits (docs/sharing.md)."""

    CREATION = "creation"
    EVICTION = "eviction"

    def age(self, created: float, preempted: float | None) -> float:
        """What its place counts from, in seconds since the epoch.

        `preempted` is when it was preempted last; None if it was not, or has been admitted since.
        """
        return preempted if self is RequeueBy.EVICTION and preempted is not None else created


def workload(uid: str, namespace: str, queue: str, spec: Json, created: float, gpus: GpuSettings) -> Workload:
    """What competes for quota, in a queue and in the share that a namespace has of it.

    Its age counts from when it was created, in seconds since the epoch.

    Raises:
        InvalidQuantityError: a request can't be counted.
    """
    pod_sets = tuple(pod_set(raw, gpus) for raw in spec["podSets"])
    return Workload(uid, queue, spec.get("priority", 0), created, pod_sets, namespace)


def pod_set(raw: Json, gpus: GpuSettings) -> PodSet:
    """A pod set from a Workload's spec: the same object for all that are equal.

    Raises:
        InvalidQuantityError: a request can't be counted.
    """
    return _pod_set(orjson.dumps(raw), gpus)


@remembered
def _pod_set(text: bytes, gpus: GpuSettings) -> PodSet:
    raw = orjson.loads(text)
    asked = raw.get("requests") or {}
    twice = named_twice(asked)
    wrong = next((words for name, q in asked.items() if (words := in_parts(name, q)) is not None), twice)
    if wrong is not None:
        raise InvalidQuantityError(wrong)
    requests = {own_name(name): to_amount(name, quantity) for name, quantity in asked.items()}
    if requests.pop(PODS, 1) != 1:
        raise InvalidQuantityError(f"{PODS} is {asked[PODS]}, but each pod counts as one: leave it out")
    return PodSet(
        name=raw["name"],
        count=raw["count"],
        requests=tuple(sorted(requests.items())),
        node_selector=tuple(sorted((raw.get("nodeSelector") or {}).items())),
        terms=tuple(_term(term) for term in required_affinity(raw).get("nodeSelectorTerms") or ()),
        tolerations=tuple(_toleration(toleration) for toleration in raw.get("tolerations") or ()),
        min_count=raw.get("minCount"),
        gpus=gpus.gpus(requests),
    )


def _term(raw: Json) -> Term:
    """A node selector term. An empty one matches no node; one that names nodes says nothing of labels."""
    if not raw.get("matchExpressions") and not raw.get("matchFields"):
        return (Requirement("", "In"),)
    return expressions(raw)


def expressions(raw: Json) -> tuple[Requirement, ...]:
    """What the `matchExpressions` of a node selector term or of a label selector ask of labels."""
    return tuple(
        Requirement(e["key"], e["operator"], tuple(e.get("values") or ()))
        for e in raw.get("matchExpressions") or ()
    )


def _toleration(raw: Json) -> Toleration:
    return Toleration(
        raw.get("key") or "", raw.get("operator") or "Equal", raw.get("value") or "", raw.get("effect") or ""
    )


def admission(raw: Json) -> Admission:
    """An admission from a Workload's status: the same object for all that are equal.

    Use in no flavor, which only a hand can write, is left out.
    """
    return _admission(orjson.dumps(raw))


@remembered
def _admission(text: bytes) -> Admission:
    raw = orjson.loads(text)
    pod_sets = tuple(_assignment(pod_set) for pod_set in raw["podSets"])
    return Admission(raw["clusterQueue"], pod_sets, raw.get("pool") or "")


def _assignment(raw: Json) -> Assignment:
    flavors, usage = raw.get("flavors") or {}, raw.get("usage") or {}
    counted = tuple((r, to_amount(r, quantity)) for r, quantity in usage.items() if r in flavors)
    return Assignment(raw["name"], raw["count"], tuple(flavors.items()), counted)


def admission_json(made: Admission) -> Json:
    """An admission as it stands in a Workload's status."""
    return {
        "clusterQueue": made.queue,
        **({"pool": made.pool} if made.pool else {}),
        "podSets": [
            {
                "name": pod_set.name,
                "count": pod_set.count,
                "flavors": dict(pod_set.flavors),
                "usage": {resource: to_quantity(resource, amount) for resource, amount in pod_set.usage},
            }
            for pod_set in made.pod_sets
        ],
    }


def suits(made: Admission, asking: Workload, flavors: Flavors, *, lenient: bool = False) -> bool:
    """Whether an admission is one that a workload could be given: its own pod sets, queue and requests.

    Arguments as of `pays`.
    """
    if made.queue != asking.queue or len(made.pod_sets) != len(asking.pod_sets):
        return False
    for assignment, pod_set in zip(made.pod_sets, asking.pod_sets, strict=True):
        least = pod_set.count if pod_set.min_count is None else pod_set.min_count
        if assignment.name != pod_set.name or not least <= assignment.count <= pod_set.count:
            return False
        if not pays(made, assignment, pod_set, flavors, lenient=lenient):
            return False
    return True


def pays(
    made: Admission, assignment: Assignment, pod_set: PodSet, flavors: Flavors, *, lenient: bool = False
) -> bool:
    """Whether what is reserved for a pod set is what so many of its pods request.

    What no quota counts is not reserved: devices where memory of GPUs is counted, and in a quota that limits
    the sum of its flavors whatever it does not name.

    The assignment is the part of the reservation that is for the pod set. A lenient queue limits only what it
    lists: the rest is not reserved either.
    """
    usage, by_flavor = dict(assignment.usage), dict(assignment.flavors)
    for resource, name in by_flavor.items():
        flavor = flavors(name)
        if flavor is None or usage.get(resource) != pod_set.request(resource, flavor) * assignment.count:
            return False
    counted_by_memory = pod_set.gpus.resources if GPU_MEMORY in by_flavor else frozenset()
    left = {name for name, amount in pod_set.requests if amount * assignment.count} - by_flavor.keys()
    return bool(made.pool) or lenient or left <= counted_by_memory
