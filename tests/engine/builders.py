"""Short ways to write queues and workloads; CPU in whole cores, memory in GiB."""

from collections.abc import Mapping
from fractions import Fraction

from admitter.engine.commands import Define, SetFlavor
from admitter.engine.cycle import Engine
from admitter.engine.model import (
    Admission,
    Assignment,
    Flavor,
    FlavorResource,
    PodSet,
    Requirement,
    Taint,
    Toleration,
    Workload,
)
from admitter.engine.policy import Cohort, Fungibility, Group, PreemptionPolicy, Queue, Quota, Strategy
from admitter.engine.tree_cycle import Plan
from admitter.quantities.amounts import to_amount

SPOT_TAINT = Taint("spot", "true", "NoSchedule")
DEFAULT_FUNGIBILITY = Fungibility()
NO_PREEMPTION = PreemptionPolicy()
TOLERATES_SPOT = (Toleration("spot", "Equal", "true", "NoSchedule"),)


def flavor(name: str, *, taints: tuple[Taint, ...] = (), **labels: str) -> Flavor:
    return Flavor(name, tuple(sorted(labels.items())), taints)


def quota(resource: str, text: str) -> Quota:
    """`min`, `min..max`, or either with `/lendingLimit`, such as `9`, `9..12/3`."""
    limits, _, lending = text.partition("/")
    minimum, _, maximum = limits.partition("..")
    return Quota(
        to_amount(resource, minimum),
        to_amount(resource, maximum) if maximum else None,
        to_amount(resource, lending) if lending else None,
    )


def quotas(limits: Mapping[str, Mapping[str, str]]) -> dict[FlavorResource, Quota]:
    """Quotas from resource → flavor → text."""
    return {(f, r): quota(r, text) for r, flavors in limits.items() for f, text in flavors.items()}


def queue(
    name: str,
    limits: Mapping[str, Mapping[str, str]],
    strategy: Strategy = Strategy.BEST_EFFORT_FIFO,
    *,
    cohort: str = "",
    fungibility: Fungibility = DEFAULT_FUNGIBILITY,
    preemption: PreemptionPolicy = NO_PREEMPTION,
    weight: Fraction | int = 1,
) -> Queue:
    """A queue from resource → flavor → quota; resources with the same flavors are codependent."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for resource, flavors in limits.items():
        groups.setdefault(tuple(flavors), []).append(resource)
    made = tuple(Group(tuple(resources), flavors) for flavors, resources in groups.items())
    return Queue(
        name,
        strategy,
        made,
        quotas(limits),
        cohort,
        fungibility,
        preemption,
        weight=Fraction(weight),
    )


def cohort(
    name: str,
    parent: str = "",
    limits: Mapping[str, Mapping[str, str]] | None = None,
    *,
    weight: Fraction | int = 1,
    fair: bool = False,
) -> Cohort:
    """A Cohort object."""
    return Cohort(name, parent, quotas(limits or {}), Fraction(weight), fair)


def pods(
    count: int = 1,
    *,
    name: str = "main",
    selector: Mapping[str, str] | None = None,
    affinity: tuple[tuple[Requirement, ...], ...] = (),
    tolerations: tuple[Toleration, ...] = (),
    min_count: int | None = None,
    **requests: str,
) -> PodSet:
    """Pods that each request e.g. `cpu="1"`, `memory="4Gi"`, `gpu="2"`."""
    return PodSet(
        name,
        count,
        tuple((resource, to_amount(resource, text)) for resource, text in sorted(requests.items())),
        tuple(sorted((selector or {}).items())),
        affinity,
        tolerations,
        min_count,
    )


def workload(
    uid: str, *pod_sets: PodSet, queue: str = "q", priority: int = 0, created: float = 0
) -> Workload:
    return Workload(uid, queue, priority, created, pod_sets)


def use(queue: str, flavor: str, **amounts: str) -> Admission:
    """Quota in use that was admitted somewhere else."""
    usage = tuple((resource, to_amount(resource, text)) for resource, text in amounts.items())
    flavors = tuple((resource, flavor) for resource in amounts)
    return Admission(queue, (Assignment("main", 1, flavors, usage),))


def engine(*definitions: Flavor | Queue | Cohort, made: Engine | None = None) -> Engine:
    """An engine that knows some definitions; `made` is given to it, or is a new one."""
    made = made if made is not None else Engine()
    for definition in definitions:
        if isinstance(definition, Flavor):
            made.apply(SetFlavor(definition))
        elif isinstance(definition, Cohort):
            made.apply(Define(cohorts=(definition,)))
        else:
            made.apply(Define((definition,)))
    return made


def evicted(plan: Plan) -> dict[str, str]:
    """Victim to preemptor."""
    return {eviction.victim.holder: eviction.preemptor.uid for eviction in plan.evictions}


def admitted(plan: Plan) -> list[str]:
    return [workload.uid for workload, _ in plan.admissions]


def flavors_of(plan: Plan, uid: str) -> dict[str, dict[str, str]]:
    """The flavors that each pod set of a workload got, by resource."""
    admission = next(admission for workload, admission in plan.admissions if workload.uid == uid)
    return {assignment.name: dict(assignment.flavors) for assignment in admission.pod_sets}
