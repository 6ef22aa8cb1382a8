"""Pods that name a queue, and what makes such pods: a Deployment, a StatefulSet, a LeaderWorkerSet.

They become pods as the API server stores them: its policies put the gate on them, and write Kueue's names as
Admitter's. Next step: `admitter.simulate.arrivals`.
"""

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from itertools import pairwise
from typing import Any, Final

from admitter.api.shapes import shape_problem, template_problem
from admitter.documents import title
from admitter.names import (
    BEYOND_GROUP_ANNOTATION,
    CLUSTER_QUEUE_LABEL,
    EVICTION_TIME_ANNOTATION,
    FAST_ADMISSION_ANNOTATION,
    FLAVORS_ANNOTATION,
    INJECTED_ANNOTATION,
    POD_GATE,
    POD_GROUP_LABEL,
    POD_GROUP_OWNER_ANNOTATION,
    POD_GROUP_SIZE_ANNOTATION,
    QUEUE_ALIAS_LABEL,
    QUEUE_LABEL,
    RETRIABLE_ANNOTATION,
    RETURNED_ANNOTATION,
    SERVING_ANNOTATION,
    SIMULATED_AT_ANNOTATION,
    SIMULATED_UNTIL_ANNOTATION,
    WORKLOAD_LABEL,
    WORKLOAD_UID_ANNOTATION,
)
from admitter.quantities.durations import parse_duration

Json = dict[str, Any]
Related = Callable[[str, str, str, str], Json | None]
"""Another manifest: by namespace, version, kind and name."""

POD: Final = ("v1", "Pod")
DEPLOYMENT: Final = ("apps/v1", "Deployment")
STATEFUL_SET: Final = ("apps/v1", "StatefulSet")
LEADER_WORKER_SET: Final = ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")
MAKERS: Final = {DEPLOYMENT, STATEFUL_SET, LEADER_WORKER_SET}
MOST_PODS: Final = 10_000
"""So many pods are made of one object at most."""
MADE_OF: Final = "madeOf"
"""Beside the spec of a pod: what it was made of, as messages name it."""

_ALIASES: Final = {
    "kueue.x-k8s.io/pod-group-total-count": POD_GROUP_SIZE_ANNOTATION,
    "kueue.x-k8s.io/retriable-in-group": RETRIABLE_ANNOTATION,
    "kueue.x-k8s.io/pod-group-serving": SERVING_ANNOTATION,
    "kueue.x-k8s.io/pod-group-fast-admission": FAST_ADMISSION_ANNOTATION,
}
"""What Kueue calls the annotations of pods of a group."""
_GROUP_ALIAS: Final = "kueue.x-k8s.io/pod-group-name"
_MARKS: Final = (WORKLOAD_LABEL, CLUSTER_QUEUE_LABEL)
_NOTES: Final = (
    *(WORKLOAD_UID_ANNOTATION, FLAVORS_ANNOTATION, INJECTED_ANNOTATION),
    *(RETURNED_ANNOTATION, EVICTION_TIME_ANNOTATION, BEYOND_GROUP_ANNOTATION),
)
"""What an admission writes on a pod, and no simulated one has yet."""


def is_pods(manifest: Json) -> bool:
    """Whether an object is a pod, or makes pods, by its kind."""
    sort = (manifest.get("apiVersion"), manifest.get("kind"))
    return all(isinstance(each, str) for each in sort) and (sort == POD or sort in MAKERS)


def names_queue(manifest: Json) -> bool:
    """Whether a pod, or its template, names a queue; nothing about it is checked yet."""
    in_templates = (_labels(each.get("metadata")) for _, each in _templates(manifest))
    return _has_queue(manifest.get("metadata")) or any(QUEUE_LABEL in labels for labels in in_templates)


def problem(manifest: Json) -> str | None:
    """What is wrong with such an object; None if nothing is."""
    if _sort(manifest) == POD:
        return shape_problem(manifest)
    wrong = shape_problem(manifest, described=True)
    if wrong is not None:
        return wrong
    templates = list(_templates(manifest))
    if not templates:
        return f"{_PLACES[_sort(manifest)][-1]}: is missing"
    for path, template in templates:
        wrong = template_problem(template, path, whole=True)
        if wrong is not None:
            return wrong
    return _number_problem(manifest)


def pods_of(manifest: Json) -> list[Json]:
    """The pods that an object is or makes, each with what it was made of; the object has no problem."""
    sort, named = _sort(manifest), title(manifest, "")
    if sort == POD:
        ended = (manifest.get("status") or {}).get("phase") in {"Succeeded", "Failed"}
        return [] if ended else [{**manifest, MADE_OF: named}]
    return [{**pod, MADE_OF: named} for pod in _made(manifest, sort)]


def belongs(manifest: Json, related: Related, counts: Callable[[Json], bool]) -> bool:
    """Whether a pod is counted with something else: a Job, or an object here that makes queued pods.

    `counts` says whether another object counts its pods.
    """
    namespace, seen = manifest["metadata"]["namespace"], 0
    current: Json | None = manifest
    while current is not None and seen < _LEVELS:
        owner = _controller(current["metadata"].get("ownerReferences"))
        sort = (str(owner.get("apiVersion")), str(owner.get("kind")))
        if sort == ("batch/v1", "Job"):
            return True
        current, seen = related(namespace, *sort, str(owner.get("name"))), seen + 1
        if current is not None and counts(current):
            return True
    return False


def as_created(pod: Json) -> Json:
    """A pod of a queue as the API server stores it: with the gate, and without marks of an admission."""
    metadata, spec = pod["metadata"], pod["spec"]
    labels, annotations = dict(metadata.get("labels") or {}), dict(metadata.get("annotations") or {})
    for mark in _MARKS:
        labels.pop(mark, None)
    for note in _NOTES:
        annotations.pop(note, None)
    if _GROUP_ALIAS in labels:
        labels.setdefault(POD_GROUP_LABEL, labels[_GROUP_ALIAS])
        for theirs, ours in _ALIASES.items():
            if theirs in annotations:
                annotations.setdefault(ours, annotations[theirs])
    gates = [gate for gate in spec.get("schedulingGates") or () if gate["name"] != POD_GATE]
    return {
        "metadata": {**metadata, "labels": labels, "annotations": annotations},
        "spec": {**spec, "schedulingGates": [*gates, {"name": POD_GATE}]},
    }


def end_left_out(made: Iterable[tuple[Json, list[Json]]]) -> None:
    """Let pods go that a later manifest of the same object does not make: it was scaled down."""
    versions: dict[str, list[tuple[str, list[Json]]]] = {}
    for manifest, pods in made:
        if _sort(manifest) in MAKERS:
            at = (manifest["metadata"].get("annotations") or {}).get(SIMULATED_AT_ANNOTATION, "0")
            versions.setdefault(title(manifest, ""), []).append((at, pods))
    for of_one in versions.values():
        of_one.sort(key=lambda each: parse_duration(each[0]))
        for (_, before), (later, after) in pairwise(of_one):
            names = {pod["metadata"]["name"] for pod in after}
            for pod in before:
                if pod["metadata"]["name"] not in names:
                    pod["metadata"]["annotations"].setdefault(SIMULATED_UNTIL_ANNOTATION, later)


_LEVELS: Final = 4
"""So many objects make one another, as a Deployment its ReplicaSet and that its pods."""
_PLACES: Final = {
    DEPLOYMENT: ("spec.template",),
    STATEFUL_SET: ("spec.template",),
    LEADER_WORKER_SET: (
        "spec.leaderWorkerTemplate.leaderTemplate",
        "spec.leaderWorkerTemplate.workerTemplate",
    ),
}
"""Where the pod templates are."""


def _controller(owners: object) -> Json:
    """The owner that controls an object, of which nothing is checked yet; empty if none does."""
    several = owners if isinstance(owners, list) else []
    return next((each for each in several if isinstance(each, dict) and each.get("controller")), {})


def _sort(manifest: Json) -> tuple[str, str]:
    return manifest["apiVersion"], manifest["kind"]


def _at(value: Any, path: str) -> Any:  # noqa: ANN401  # whatever JSON has
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _templates(manifest: Json) -> Iterator[tuple[str, Any]]:
    """The pod templates that an object has, and where; nothing about it is checked yet."""
    for path in _PLACES.get(_sort(manifest), ()):
        template = _at(manifest, path)
        if isinstance(template, dict):
            yield path, template


def _labels(metadata: object) -> Json:
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}


def _has_queue(metadata: object) -> bool:
    return bool({QUEUE_LABEL, QUEUE_ALIAS_LABEL} & _labels(metadata).keys())


def _number_problem(manifest: Json) -> str | None:
    """What is wrong with the numbers of pods that an object says."""
    numbers = {"spec.replicas": _at(manifest, "spec.replicas")}
    if _sort(manifest) == LEADER_WORKER_SET:
        path = "spec.leaderWorkerTemplate.size"
        numbers[path] = _at(manifest, path)
    product = 1
    for path, number in numbers.items():
        if number is not None and (type(number) is not int or number < 0):
            return f"{path}: must be a whole number that is not negative"
        product *= 1 if number is None else number
    return f"makes {product} pods, and at most {MOST_PODS} are read" if product > MOST_PODS else None


def _number(manifest: Json, path: str) -> int:
    number = _at(manifest, path)
    return 1 if number is None else int(number)


def _made(manifest: Json, sort: tuple[str, str]) -> Iterator[Json]:
    """The pods that a controller of Kubernetes, or of LeaderWorkerSets, would make."""
    name, replicas = manifest["metadata"]["name"], _number(manifest, "spec.replicas")
    templates = dict(_templates(manifest))
    first, last = (templates[path] for path in (min(templates), max(templates)))
    match sort[1]:
        case "Deployment":
            for number in range(1, replicas + 1):
                yield _pod(manifest, last, f"{name}-{number}", {})
        case "StatefulSet":
            marks = _of_group(name, max(1, replicas), fast=True) if _has_queue(manifest["metadata"]) else {}
            for number in range(replicas):
                yield _pod(manifest, last, f"{name}-{number}", marks)
        case _:
            size = _number(manifest, "spec.leaderWorkerTemplate.size")
            fast = _at(manifest, "spec.startupPolicy") == "LeaderReady"
            for number in range(replicas):
                group = f"{name}-{number}"
                marks = _of_group(group, size, fast=fast)
                for member in range(size):
                    called = f"{group}-{member}" if member else group
                    yield _pod(manifest, last if member else first, called, marks)


def _of_group(group: str, size: int, *, fast: bool) -> Json:
    """What the templates of a group that serves say, by the policies."""
    annotations = {POD_GROUP_SIZE_ANNOTATION: str(size), SERVING_ANNOTATION: "true"}
    if fast:
        annotations[FAST_ADMISSION_ANNOTATION] = "true"
    return {"labels": {POD_GROUP_LABEL: group}, "annotations": annotations}


def _pod(manifest: Json, template: Json, name: str, marks: Json) -> Json:
    """A pod of a template, with the queue of the object that makes it if that names one."""
    above, own = manifest["metadata"], template.get("metadata") or {}
    version, kind = _sort(manifest)
    uid = "/".join((kind, above["namespace"], above["name"]))
    owner = {"apiVersion": version, "kind": kind, "name": above["name"], "uid": uid, "controller": True}
    labels = {**(own.get("labels") or {}), **marks.get("labels", {})}
    labels.pop(QUEUE_ALIAS_LABEL, None)  # in a template it is not read
    given = above.get("labels") or {}
    labels |= {each: given[each] for each in (QUEUE_LABEL, QUEUE_ALIAS_LABEL) if each in given}
    annotations = {**(own.get("annotations") or {}), **marks.get("annotations", {})}
    if kind == LEADER_WORKER_SET[1]:
        annotations[POD_GROUP_OWNER_ANNOTATION] = uid
    told = above.get("annotations") or {}
    annotations |= {each: text for each, text in told.items() if "/simulated-" in each}
    metadata = {
        "name": name,
        "namespace": above["namespace"],
        "labels": labels,
        "annotations": {each: str(text) for each, text in annotations.items()},
        "ownerReferences": [owner],
    }
    if above.get("creationTimestamp"):
        metadata["creationTimestamp"] = above["creationTimestamp"]
    return {
        "apiVersion": POD[0],
        "kind": POD[1],
        "metadata": metadata,
        "spec": deepcopy(template["spec"]),
    }
