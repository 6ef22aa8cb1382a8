"""Where a simulation keeps the objects that it reads, by kind, and how it parses them."""

from collections.abc import Callable
from typing import Any

from admitter.cluster.store import Store
from admitter.controllers.namespace_views import parse_namespace, parse_resource_quota
from admitter.controllers.views import Json, parse_object
from admitter.controllers.world import World

Kept = tuple[Store[Any], Callable[[Json], Any]]
"""A store, and what makes a view for it."""


def kept(world: World, kind: str) -> Kept | None:
    """Where objects of a kind are kept; None of one that means nothing here, or is no definition."""
    parsed: dict[str, Kept] = {
        "Namespace": (world.namespaces, parse_namespace),
        "ResourceQuota": (world.resource_quotas, parse_resource_quota),
    }
    plain: dict[str, Store[Any]] = {
        "LimitRange": world.limit_ranges,
        "PriorityClass": world.priority_classes,
        "RuntimeClass": world.runtime_classes,
        "ResourceFlavor": world.flavors,
        "Cohort": world.cohorts,
        "ClusterQueue": world.cluster_queues,
        "LocalQueue": world.local_queues,
        "PlacementPolicy": world.placement_policies,
        "ElasticQuota": world.elastic_quotas,
        "CompositeElasticQuota": world.composite_elastic_quotas,
    }
    if kind in plain:
        return plain[kind], parse_object
    return parsed.get(kind)
