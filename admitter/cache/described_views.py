"""Objects of kinds that JobKinds describe, as the same views that Jobs have (docs/design/kinds.md)."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from admitter.api.forms import DESCRIBED, fitted
from admitter.cache.bounds import bounds_of
from admitter.cache.checkpoint import checkpoint_of
from admitter.cache.injected import injected_parts, without_injected
from admitter.cache.job_resources import JobResource, PodSetView, owner_of, resource_of, titled
from admitter.cache.label_aliases import named_class
from admitter.cache.stated import stated
from admitter.cache.timestamps import seconds
from admitter.cache.views import (
    LONGEST_LABEL_VALUE,
    LONGEST_RECORD,
    LONGEST_TEMPLATE,
    JobView,
    marks_of,
    meta,
    workload_name,
)
from admitter.client.sharing import shared
from admitter.client.source import Source
from admitter.client.store import Key, Store, key_of
from admitter.convert.pod_sets import kept_template
from admitter.kinds import KindError
from admitter.kinds.replicas import MOST_REPLICAS, of_record, recorded
from admitter.names import EVICTION_TIME_ANNOTATION, INJECTED_ANNOTATION, PLACED_ANNOTATION, QUEUE_LABEL
from admitter.quotas import placement

if TYPE_CHECKING:
    from admitter.api.job_kind import JobKind
    from admitter.kinds.compiled import CompiledKind, FoundPodSet, Related, State
    from admitter.kinds.registry import Kinds

Json = dict[str, Any]
RelatedIn = Callable[[str, str, str, str], Json | None]
"""Finds an object by namespace, group and version, kind and name; KindError if it is not kept."""


def source_of_kind(kind: "JobKind", kinds: "Kinds", related: RelatedIn) -> Source[JobView]:
    """What is read of the objects of a JobKind that works, which is one of these."""
    resource = resource_of(kind)
    compiled = kinds.find(resource.api_version, resource.kind)
    assert compiled is not None, "it works"

    def known_as(metadata: Any) -> Key:  # noqa: ANN401  # an object's metadata, unchecked
        namespace, name = key_of(metadata)
        return namespace, titled(resource.group, resource.kind, name)

    parse = partial(parse_described, resource=resource, kind=compiled, kinds=kinds, related=related)
    return Source(resource.path, parse, store=Store(key_of=known_as), fitted=partial(fitted, DESCRIBED))


def parse_described(
    raw: Json, resource: JobResource, kind: "CompiledKind", kinds: "Kinds", related: RelatedIn
) -> JobView:
    """The view of an object.

    Raises:
        ValueError: what its status says can't be read.
    """
    try:
        state = kind.state(raw)
    except KindError as error:
        raise ValueError(str(error)) from error
    suspended, problem = resource.is_stopped(raw), ""
    looked_up: list[tuple[str, str, str]] = []

    def near(version: str, kind: str, name: str) -> Json | None:
        looked_up.append((version, kind, name))
        return related(raw["metadata"].get("namespace", ""), version, kind, name)

    try:
        found, priority_class = _found(without_injected(raw, resource.injection), kind, kinds, near)
    except KindError as error:
        found, priority_class, problem = [], "", str(error)
    parts = injected_parts(raw, resource.injection, found)
    bounds = {} if suspended else bounds_of(raw["metadata"].get("annotations") or {})
    pairs = zip(found, parts, strict=True)
    pod_sets = tuple(_pod_set(each, part, bounded=each.name in bounds) for each, part in pairs)
    status = shared(_status(state, suspended=suspended))
    seen = _Seen(pod_sets, priority_class, suspended, status, problem, found[0].template if found else {})
    return replace(_view(raw["metadata"], resource, seen), related=tuple(dict.fromkeys(looked_up)))


class _Seen(NamedTuple):
    """What the JobKind of an object finds in it."""

    pod_sets: tuple[PodSetView, ...]
    priority_class: str
    suspended: bool
    status: Json
    problem: str
    first: Json  # a pod template of it


def _view(metadata: Json, resource: JobResource, seen: _Seen) -> JobView:
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    name, queue = titled(resource.group, resource.kind, metadata["name"]), labels.get(QUEUE_LABEL)
    size = sum(len(orjson.dumps(each.template)) for each in seen.pod_sets)
    pod_sets, problem = seen.pod_sets if size <= LONGEST_TEMPLATE else (), seen.problem
    by_rules = queue is None or (queue and annotations.get(PLACED_ANNOTATION) == queue)
    return JobView(
        *meta(metadata | {"name": name}),
        workload=workload_name(name, metadata["uid"]),
        created=seconds(metadata["creationTimestamp"]),
        deleting="deletionTimestamp" in metadata,
        queue=queue,
        submission=placement.submission({"metadata": metadata, "spec": {"template": seen.first}})
        if by_rules
        else None,
        injected=annotations.get(INJECTED_ANNOTATION, "")[:LONGEST_RECORD],
        eviction_time=annotations.get(EVICTION_TIME_ANNOTATION, "")[:LONGEST_LABEL_VALUE],
        oversized=size if size > LONGEST_TEMPLATE else 0,
        spec=shared(
            {
                **stated(annotations, {"template": {"spec": {}}}),
                **({"bounds": bounds} if (bounds := bounds_of(annotations)) else {}),
                "suspend": seen.suspended,
                "parallelism": 0,
                "completions": None,
                "template": _all_of(pod_sets)
                | ({"priorityClassName": seen.priority_class} if seen.priority_class else {}),
            }
        ),
        template_metadata=next((each.marks for each in pod_sets if each.marks["labels"]), {}),
        status=seen.status,
        pod_sets=pod_sets,
        resource=resource,
        owner=owner_of(metadata),
        priority_class=named_class(metadata),
        checkpoint=checkpoint_of(annotations),
        user=intern(placement.user_of(metadata, seen.first.get("metadata") or {})),
        problem=problem or (f"its pod templates take {size} bytes" if size > LONGEST_TEMPLATE else ""),
    )


def record_of(metadata: Json, view: JobView) -> Json:
    """What snapshots keep of an object with this metadata, instead of all that its JobKind has read."""
    return {
        "metadata": metadata,
        "suspended": view.suspended,
        "podSets": [
            {"name": each.name, "count": each.count, "template": each.template, "marks": each.marks}
            | ({"ended": each.ended} if each.ended else {})
            | ({"replicas": recorded(each.replicas)} if each.replicas is not None else {})
            for each in view.sets
        ],
        "priorityClassName": view.template.get("priorityClassName", ""),
        "status": view.status,
        "problem": view.problem,
    }


def parse_record(raw: Json, resource: JobResource) -> JobView:
    """The view of an object of which a snapshot has kept this."""
    sets = raw["podSets"]
    pod_sets = tuple(
        PodSetView(
            each["name"],
            each["count"],
            shared(each["template"]),
            shared(each["marks"]),
            ended=each.get("ended", 0),
            replicas=of_record(each["replicas"]) if each.get("replicas") else None,
        )
        for each in sets
    )
    first = {"metadata": sets[0]["marks"], "spec": sets[0]["template"]} if sets else {}
    status = shared(raw["status"])
    seen = _Seen(pod_sets, raw["priorityClassName"], raw["suspended"], status, raw["problem"], first)
    return _view(raw["metadata"], resource, seen)


def _found(
    raw: Json, kind: "CompiledKind", kinds: "Kinds", near: "Related"
) -> "tuple[list[FoundPodSet], str]":
    """Pod sets and PriorityClass of an object; KindError if they can't be told."""
    found = kind.pod_sets(raw, near, kinds.embedded)
    places = [each.place for each in found if each.place is not None]
    if len(set(places)) < len(places):
        raise KindError("two of its pod sets have the same template")
    return found, kind.priority_class(raw, found, near)


def _pod_set(found: "FoundPodSet", injected: Json, *, bounded: bool) -> PodSetView:
    """A pod set as it is kept, with the marks of what an admission has put in; others are a user's.

    Of one that runs within a bound all pods count that its operator may come to make.
    """
    template: Json = shared(kept_template(found.template["spec"]))
    replicas = found.replicas if bounded and found.replicas is not None and found.replicas.grows else None
    return PodSetView(
        found.name,
        min(replicas.limit * replicas.pods, MOST_REPLICAS) if replicas is not None else found.count,
        template,
        marks_of(injected),
        found.place,
        found.outside,
        found.ended,
        found.replicas,
    )


def _all_of(pod_sets: tuple[PodSetView, ...]) -> Json:
    """A pod's spec with all containers and claims, for what is asked of an object as a whole."""
    return {
        part: [each for pod_set in pod_sets for each in pod_set.template.get(part) or ()]
        for part in ("containers", "initContainers", "resourceClaims")
    }


def _status(state: "State", *, suspended: bool) -> Json:
    """What the status says, in the words of a Job's."""
    conditions = {state.finished: {"status": "True", "message": state.message}} if state.finished else {}
    if state.active or suspended:
        conditions["Suspended"] = {"status": str(not state.active), "message": ""}
    return {
        **({"acted": True} if state.acted else {}),
        "active": int(state.active),
        "terminating": 0,
        "succeeded": 0,
        "startTime": None,
        "conditions": conditions,
    }
