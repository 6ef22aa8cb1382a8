"""What `spec.lifecycle` says for a queue: its own fields, and where it lacks one, those of Cohorts above.

An elastic quota has no ClusterQueue: the Cohort of elastic quotas speaks for it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from admitter.cache.views import ObjectView
from admitter.cache.world import World
from admitter.names import ELASTIC_QUOTA_QUEUE
from admitter.policy.readiness import ReadyRules, rules_of
from admitter.quantities.durations import InvalidDurationError


def lifecycle_of(world: World, queue: str) -> Mapping[str, Any]:
    """The fields of `spec.lifecycle` that count for a queue of the engine, as they are written."""
    found: dict[str, Any] = {}
    for view in _above(world, queue):
        for name, value in (view.spec.get("lifecycle") or {}).items():
            found.setdefault(name, value)
    return found


def _above(world: World, queue: str) -> Iterator[ObjectView]:
    """The ClusterQueue with that name and the Cohorts above it, the nearest first."""
    view = world.cluster_queues.get(("", queue))
    if view is not None:
        yield view
    name = str(view.spec.get("cohort") or "") if view is not None else ELASTIC_QUOTA_QUEUE
    seen: set[str] = set()
    while name and name not in seen:  # a Cohort may be its own ancestor until that is corrected
        seen.add(name)
        cohort = world.cohorts.get(("", name))
        if cohort is None:
            return
        yield cohort
        name = str(cohort.spec.get("parent") or "")


def ready_rules(world: World, queue: str) -> ReadyRules:
    """Until when Workloads of a queue have to be ready; what can't be read says nothing."""
    try:
        return rules_of(lifecycle_of(world, queue))
    except InvalidDurationError:
        return ReadyRules()
