"""Short ways to write queues and workloads; CPU in whole cores, memory in GiB."""

from collections.abc import Mapping

from admitter.engine.amounts import to_amount
from admitter.engine.cycle import Engine, Plan
from admitter.engine.model import (
    Flavor,
    Group,
    PodSet,
    Queue,
    Requirement,
    Strategy,
    Taint,
    Toleration,
    Workload,
)

SPOT_TAINT = Taint("spot", "true", "NoSchedule")
TOLERATES_SPOT = (Toleration("spot", "Equal", "true", "NoSchedule"),)


def flavor(name: str, *, taints: tuple[Taint, ...] = (), **labels: str) -> Flavor:
    return Flavor(name, tuple(sorted(labels.items())), taints)


def queue(
    name: str,
    quotas: Mapping[str, Mapping[str, str]],
    strategy: Strategy = Strategy.BEST_EFFORT_FIFO,
) -> Queue:
    """A queue from resource → flavor → min; resources with the same flavors are codependent."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for resource, flavors in quotas.items():
        groups.setdefault(tuple(flavors), []).append(resource)
    return Queue(
        name,
        strategy,
        tuple(Group(tuple(resources), flavors) for flavors, resources in groups.items()),
        {(f, r): to_amount(r, minimum) for r, flavors in quotas.items() for f, minimum in flavors.items()},
    )


def pods(
    count: int = 1,
    *,
    name: str = "main",
    selector: Mapping[str, str] | None = None,
    affinity: tuple[tuple[Requirement, ...], ...] = (),
    tolerations: tuple[Toleration, ...] = (),
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
    )


def workload(
    uid: str, *pod_sets: PodSet, queue: str = "q", priority: int = 0, created: float = 0
) -> Workload:
    return Workload(uid, queue, priority, created, pod_sets)


def engine(*definitions: Flavor | Queue) -> Engine:
    made = Engine()
    for definition in definitions:
        if isinstance(definition, Flavor):
            made.set_flavor(definition)
        else:
            made.set_queue(definition)
    return made


def admitted(plan: Plan) -> list[str]:
    return [workload.uid for workload, _ in plan.admissions]


def flavors_of(plan: Plan, uid: str) -> dict[str, dict[str, str]]:
    """The flavors that each pod set of a workload got, by resource."""
    admission = next(admission for workload, admission in plan.admissions if workload.uid == uid)
    return {assignment.name: dict(assignment.flavors) for assignment in admission.pod_sets}
