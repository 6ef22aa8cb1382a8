"""Namespaces that bring their own quota: the queues of their annotations (docs/design/namespaces.md).

Everything follows from the annotations, so objects that are made anew are the same.
"""

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from admitter.api.base import LONGEST_NAME, in_parts, is_resource, named_twice, writable
from admitter.api.cluster_queue import NamespaceOrdering, StopPolicy
from admitter.api.conditions import ActiveReason
from admitter.engine.policy import Strategy
from admitter.names import (
    DEPRECATED_QUOTA_ANNOTATIONS,
    ELASTIC_QUOTA_QUEUE,
    NAMESPACE_QUOTA_ANNOTATIONS,
    PARENT_QUEUE_ANNOTATIONS,
    ROOT_COHORT,
)
from admitter.quantities.amounts import InvalidQuantityError, parse_quantity

Json = dict[str, Any]

NAME_LABEL: Final = "kubernetes.io/metadata.name"  # every namespace has its name as a label

NO_QUEUE: Final = f"namespace {ELASTIC_QUOTA_QUEUE} can have no queue of its name: it means elastic quotas"
"""Why one namespace has no queue: Jobs that name it would be those of an elastic quota."""

MOST_RESOURCES: Final = 64  # so many limits a ClusterQueue can have

_LONGEST_RESOURCE: Final = 253
_OF_PODS: Final = re.compile(r"cpu|memory|ephemeral-storage|hugepages-.+|pods")
"""The resources without a domain that a pod uses."""
_COHORT: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


class AnnotationError(ValueError):
    """An annotation that can't be followed; the reason is as the ClusterQueue's condition says it."""

    def __init__(self, annotation: str, message: str, reason: ActiveReason) -> None:
        super().__init__(f"annotation {annotation}: {message}")
        self.reason = reason


def cluster_queue(
    namespace: str, annotations: Mapping[str, str], exists: Callable[[str], bool]
) -> Json | None:
    """The spec of the ClusterQueue that a namespace asks for; None if it asks for none.

    It has no resources of its own, but those of the Cohorts above; the quota is its limits. Its defaults are
    written out, as the API server would fill them in.

    `exists` says whether there is a Cohort of a name. The Cohort `root` need not be there.

    Raises:
        AnnotationError: one of them can't be read, or names a Cohort that does not exist.
    """
    limits, above = _limits(annotations), _cohort(annotations)
    if limits is None and above is None:
        return None
    annotation, cohort = above or ("", ROOT_COHORT)
    if cohort != ROOT_COHORT and not exists(cohort):
        raise AnnotationError(annotation, f"Cohort {cohort} does not exist", ActiveReason.PARENT_NOT_FOUND)
    return _spec(namespace, StopPolicy.NONE, {"cohort": cohort, **({"limits": limits} if limits else {})})


def held(namespace: str) -> Json:
    """The spec of the ClusterQueue of a namespace that never had valid annotations."""
    return _spec(namespace, StopPolicy.HOLD, {})


def local_queue(namespace: str) -> Json:
    """The spec of the LocalQueue that leads to a namespace's ClusterQueue."""
    return {"clusterQueue": namespace, "stopPolicy": str(StopPolicy.NONE)}


def cohort_of(annotations: Mapping[str, str]) -> str:
    """The Cohort that a namespace's queue belongs to.

    Raises:
        AnnotationError: what the annotation says can be no Cohort's name.
    """
    above = _cohort(annotations)
    return above[1] if above is not None else ROOT_COHORT


def cohort_name(path: str) -> str:
    """The Cohort that a path from the root leads to: `root.` before a name says nothing."""
    return path.removeprefix(f"{ROOT_COHORT}.")


def _spec(namespace: str, policy: StopPolicy, more: Json) -> Json:
    return {
        "namespaceSelector": {"matchLabels": {NAME_LABEL: namespace}},
        "queueingStrategy": str(Strategy.BEST_EFFORT_FIFO),
        "namespaceOrdering": str(NamespaceOrdering.NONE),
        "stopPolicy": str(policy),
        **more,
    }


def _cohort(annotations: Mapping[str, str]) -> tuple[str, str] | None:
    """The annotation that names a Cohort, and its name."""
    annotation = next((name for name in PARENT_QUEUE_ANNOTATIONS if name in annotations), None)
    if annotation is None:
        return None
    name = cohort_name(annotations[annotation])
    if len(name) > LONGEST_NAME or not _COHORT.fullmatch(name):
        raise _invalid(annotation, f"{_short(annotations[annotation])!r} can't be the name of a Cohort")
    return annotation, name


def _limits(annotations: Mapping[str, str]) -> dict[str, str] | None:
    """The most of each resource, by name; None if no annotation speaks of quota."""
    annotation = next((name for name in NAMESPACE_QUOTA_ANNOTATIONS if name in annotations), None)
    if annotation is not None:
        return dict(_quota(annotation, annotations[annotation]))
    old = {name: r for name, r in DEPRECATED_QUOTA_ANNOTATIONS.items() if name in annotations}
    return {r: _quantity(name, r, annotations[name]) for name, r in sorted(old.items())} or None


@lru_cache(maxsize=8192)
def _quota(annotation: str, text: str) -> tuple[tuple[str, str], ...]:
    """The most of each resource by what an annotation says; kept, since all is read again by and by."""
    pairs = _parsed(annotation, text)
    _check_names(annotation, [resource for resource, _ in pairs])
    return tuple((name, _quantity(f"{annotation}: {name}", name, value)) for name, value in sorted(pairs))


class _Pairs(list[tuple[str, Any]]):
    """A JSON object in which a name may stand twice."""


def _parsed(annotation: str, text: str) -> _Pairs:
    try:
        parsed = json.loads(
            text, object_pairs_hook=_Pairs, parse_int=str, parse_float=str, parse_constant=str
        )
    except json.JSONDecodeError as error:
        raise _invalid(annotation, f"is no JSON: {error.msg} at character {error.pos + 1}") from error
    except RecursionError as error:
        raise _invalid(annotation, "is no JSON of quantities by resource") from error
    if not isinstance(parsed, _Pairs):
        raise _invalid(annotation, 'is no JSON object of quantities by resource, such as {"cpu": "64"}')
    return parsed


def _check_names(annotation: str, resources: list[str]) -> None:
    if len(resources) > MOST_RESOURCES:
        raise _invalid(annotation, f"limits {len(resources)} resources, more than {MOST_RESOURCES}")
    for number, name in enumerate(resources):
        qualified = is_resource(name) and len(name) <= _LONGEST_RESOURCE and "/" in name
        if not qualified and not (is_resource(name) and _OF_PODS.fullmatch(name)):
            words = "cpu, memory, ephemeral-storage, hugepages-..., pods or a name with a domain"
            raise _invalid(annotation, f"{_short(name)!r} is no resource that a pod can use: {words}")
        if name in resources[:number]:
            raise _invalid(annotation, f"{name} is there twice")
    if wrong := named_twice(resources):
        raise _invalid(annotation, wrong)


def _quantity(place: str, resource: str, value: object) -> str:
    """A quantity as it is written; a number is a text in the same words."""
    if not isinstance(value, str):
        raise _invalid(place, "is no quantity, such as 64, 500m or 100G")
    try:
        parse_quantity(value)
    except InvalidQuantityError as error:
        raise _invalid(place, str(error)) from error
    if not writable(value):
        raise _invalid(place, f"{_short(value)!r} has more digits than a limit can have")
    if wrong := in_parts(resource, value):
        raise _invalid(place, wrong.removeprefix(f"{resource} "))
    return value


def _invalid(place: str, message: str) -> AnnotationError:
    return AnnotationError(place, message, ActiveReason.INVALID_ANNOTATION)


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + "..."
