"""Flavors, ClusterQueues and Cohorts, from the API's models to the engine's values."""

from math import inf

from admitter.api.base import LabelSelector, PreemptionTerms, own_name
from admitter.api.cluster_queue import (
    ClusterQueueSpec,
    NamespaceOrdering,
    ResourceQuota,
    WhenCanBorrow,
    WhenCanPreempt,
)
from admitter.api.cohort import CohortSpec
from admitter.api.eviction_limits import CommonEvictionLimit
from admitter.api.eviction_limits import EvictionLimit as WrittenLimit
from admitter.api.resource_flavor import ResourceFlavor
from admitter.convert.gpus import GpuSettings
from admitter.engine.model import Flavor, FlavorResource, Requirement, Taint, Toleration
from admitter.engine.policy import (
    Cohort,
    EvictionLimit,
    Fungibility,
    Group,
    PreemptionPolicy,
    Queue,
    Quota,
    VictimTerms,
)
from admitter.quantities.amounts import parse_quantity, to_amount
from admitter.quantities.durations import parse_duration


def flavor(made: ResourceFlavor, gpus: GpuSettings) -> Flavor:
    return Flavor(
        made.metadata.name,
        tuple(sorted(made.spec.node_labels.items())),
        tuple(Taint(t.key, t.value or "", t.effect) for t in made.spec.node_taints),
        tuple(
            Toleration(
                t.key or "", t.operator or "Equal", t.value or "", t.effect or "", t.toleration_seconds
            )
            for t in made.spec.tolerations
        ),
        made.spec.gpu_memory_gb or gpus.memory,
    )


def groups(resources: list[ResourceQuota]) -> tuple[Group, ...]:
    """Resources that list the same flavors form a group."""
    found: dict[tuple[str, ...], list[str]] = {}
    for resource in resources:
        flavors = tuple(flavor.name for flavor in resource.flavors)
        found.setdefault(flavors, []).append(own_name(resource.name))
    return tuple(Group(tuple(resources), flavors) for flavors, resources in found.items())


def queue(name: str, spec: ClusterQueueSpec, *, lenient: bool = False) -> Queue:
    """A queue as it is written; a lenient one limits only what it lists."""
    borrowing = spec.preemption.borrow_within_cohort
    return Queue(
        name,
        spec.queueing_strategy,
        groups(spec.resources),
        _quotas(spec.resources),
        spec.cohort or "",
        Fungibility(
            spec.flavor_fungibility.when_can_borrow is WhenCanBorrow.BORROW,
            spec.flavor_fungibility.when_can_preempt is WhenCanPreempt.PREEMPT,
        ),
        PreemptionPolicy(
            spec.preemption.within_cluster_queue,
            spec.preemption.reclaim_within_cohort,
            borrowing.policy,
            borrowing.max_priority_threshold,
        ),
        weight=parse_quantity(spec.fair_sharing.weight),
        lenient=lenient,
        victim_terms=victim_terms(spec.preemption),
        limits={own_name(name): to_amount(name, most) for name, most in spec.limits.items()},
        by_namespace=spec.namespace_ordering is NamespaceOrdering.WEIGHTED_SHARE,
        eviction_limit=eviction_limit(spec.preemption.max_evictions_per_workload),
        max_evictions=eviction_limit(spec.preemption.max_evictions),
    )


def cohort(name: str, spec: CohortSpec) -> Cohort:
    """A cohort with quota or a parent of its own."""
    sharing = spec.fair_sharing
    weight = parse_quantity(sharing.weight)
    caps = spec.preemption
    most = VictimTerms(
        inf if caps.grace_period is None else parse_duration(str(caps.grace_period)),
        inf if caps.min_runtime is None else parse_duration(str(caps.min_runtime)),
    )
    quotas, limit = _quotas(spec.resources), eviction_limit(caps.max_evictions)
    return Cohort(name, spec.parent or "", quotas, weight, sharing.enabled, most, limit)


def eviction_limit(written: WrittenLimit | CommonEvictionLimit | None) -> EvictionLimit | None:
    """How many evictions there may be, and in how many seconds."""
    return EvictionLimit(written.count, parse_duration(str(written.per))) if written is not None else None


def victim_terms(terms: PreemptionTerms) -> VictimTerms:
    """What workloads are granted before they are preempted."""
    return VictimTerms(parse_duration(str(terms.grace_period)), parse_duration(str(terms.min_runtime)))


def _quotas(resources: list[ResourceQuota]) -> dict[FlavorResource, Quota]:
    return {
        (flavor.name, own_name(resource.name)): Quota(
            to_amount(resource.name, flavor.quota.min),
            limit(resource.name, flavor.quota.max),
            limit(resource.name, flavor.quota.lending_limit),
        )
        for resource in resources
        for flavor in resource.flavors
    }


def limit(resource: str, quantity: str | int | None) -> int | None:
    return None if quantity is None else to_amount(resource, quantity)


def requirements(selector: LabelSelector | None) -> tuple[Requirement, ...] | None:
    """What a namespace's labels must satisfy; None: no namespace does."""
    if selector is None:
        return None
    equal = [Requirement(key, "In", (value,)) for key, value in sorted(selector.match_labels.items())]
    others = [Requirement(e.key, e.operator, tuple(e.values)) for e in selector.match_expressions]
    return (*equal, *others)
