"""Short ways to write elastic quotas as queues, and what runs in them; amounts as in manifests."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from admitter.api.elastic_quota import ElasticQuotaSpec
from admitter.engine.commands import Release, Reserve, Submit
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, Assignment, Flavor, PodSet, Workload
from admitter.engine.policy import Cohort, Queue
from admitter.engine.tree_cycle import Plan
from admitter.names import ANY_NODE
from admitter.quotas import elastic
from admitter.quotas.elastic import POOL, Declared
from tests.engine.builders import engine, pods

Limits = Mapping[str, str | int]


def quota(name: str, least: Limits | None = None, most: Limits | None = None, **spec: Any) -> Queue:
    """The queue of an elastic quota, with a short name."""
    declared = Declared("ElasticQuota", f"team-{name}", "quota", 0.0, (f"team-{name}",))
    written = {"min": least or {}, "max": most or {}, **spec}
    return replace(elastic.queue(declared, ElasticQuotaSpec.model_validate(written)), name=name)


def gpus(name: str, least: int, most: int | None = None, **spec: Any) -> Queue:
    """An elastic quota of GPUs alone."""
    return quota(name, {"gpu": least}, None if most is None else {"gpu": most}, **spec)


def quotas(*definitions: Flavor | Queue | Cohort, made: Engine | None = None) -> Engine:
    """An engine with elastic quotas for any node."""
    return engine(Flavor(ANY_NODE), *definitions, made=made)


def holds(name: str, *pod_sets: PodSet, flavor: str = ANY_NODE) -> Admission:
    """What a workload with some pod sets gets of an elastic quota that counts all of it."""
    return Admission(
        name,
        tuple(
            Assignment(
                each.name,
                each.count,
                tuple((resource, flavor) for resource, _ in each.requests),
                tuple((resource, amount * each.count) for resource, amount in each.requests),
            )
            for each in pod_sets
        ),
        POOL,
    )


def running(
    made: Engine, uid: str, *pod_sets: PodSet, name: str, priority: int = 0, since: float = 0
) -> Workload:
    """Something that was admitted some time ago; its pods are not there yet."""
    who = Workload(uid, name, priority, since, pod_sets)
    made.apply(Reserve(uid, holds(name, *pod_sets), who, since))
    return who


def runs(made: Engine, name: str, *sizes: int, priority: int = 0) -> None:
    """Workloads of one pod with some GPUs each, the first one first: `name-0`, `name-1` and so on."""
    begun = len(made.ledger.reservations(name))
    for number, size in enumerate(sizes, start=begun):
        running(made, f"{name}-{number}", pods(gpu=str(size)), name=name, priority=priority, since=number)


def asks(made: Engine, name: str, size: int, uid: str = "asks", priority: int = 0) -> None:
    """A workload of one pod with some GPUs that comes last."""
    made.apply(Submit(Workload(uid, name, priority, 99, (pods(gpu=str(size)),))))


def used(made: Engine, resource: str = "gpu") -> dict[str, int]:
    """What each quota really uses."""
    return {name: made.ledger.used(name).get((POOL, resource), 0) for name in made.tree.queues}


def over(made: Engine, name: str) -> list[str]:
    """Workloads with pods over a quota now, newest first."""
    return made.capacity.real(name).holders()


def settle(made: Engine, now: float = 100, most: int = 60) -> list[Plan]:
    """Run cycles until nothing changes; a victim goes at once and waits again."""
    return list(settling(made, now, most))


def settling(made: Engine, now: float = 100, most: int = 60) -> Iterator[Plan]:
    """The same, cycle by cycle, each as it was decided."""
    for _ in range(most + 1):
        for reservation in [r for name in made.tree.queues for r in made.ledger.reservations(name)]:
            if made.ledger.evicting(reservation.holder) and reservation.workload is not None:
                made.apply(Release(reservation.holder))
                made.apply(Submit(reservation.workload))
        if not made.changed and (made.due is None or made.due > now):
            return
        yield made.cycle(now)
    raise AssertionError("it comes to no rest")
