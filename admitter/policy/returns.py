"""Places that are given back unused, by the objects of the cluster, and back-offs, by the statuses.

A place that evictions have made is used once a pod of it has run (`engine.quota.back_off` has what else
counts). It is given back if its Workload is deleted or paused, or changes its requests or its queue, but not
if an administrator or another Workload has stopped it (docs/design/preemption.md).
"""

from typing import Final

from admitter.api.conditions import ConditionType, EvictedReason, WaitingReason
from admitter.cache.views import WorkloadView
from admitter.cache.world import World
from admitter.engine.commands import SetBackOff, UseReservation
from admitter.engine.cycle import Engine
from admitter.policy.gate import Gate, Waiting

_BY_OTHERS: Final = frozenset(
    {
        *(WaitingReason.QUEUE_STOPPED, WaitingReason.CLUSTER_QUEUE_STOPPED),
        *(WaitingReason.CLUSTER_QUEUE_NOT_FOUND, WaitingReason.CLUSTER_QUEUE_INACTIVE),
        *(WaitingReason.QUOTA_INACTIVE, WaitingReason.NAMESPACE_NOT_SELECTED),
        *(WaitingReason.NAMESPACE_TERMINATING, WaitingReason.PARKED),
    }
)
"""What administrators and other Workloads do: a Workload that waits for that has given nothing back."""
_BY_ITSELF: Final = frozenset(
    {EvictedReason.DEACTIVATED, EvictedReason.JOB_CHANGED, EvictedReason.NOT_STARTED}
)
"""Reasons of evictions by which a Workload gives its place back."""


def is_given_back(workload: WorkloadView) -> bool:
    """Whether a Workload that holds quota is about to give it back, by an act of its user."""
    if workload.evicting:
        return workload.condition(ConditionType.EVICTED).get("reason") in _BY_ITSELF
    return not workload.active


def gives_back(waiting: Waiting) -> bool:
    """Whether a Workload that may not compete gives its pending reservation back, by the reason."""
    return waiting.reason not in _BY_OTHERS


def take_up(world: World, engine: Engine, gate: Gate) -> None:
    """Take in used places and back-offs from statuses, after the pending reservations are restored.

    Args:
        world: all objects.
        engine: knows which Workloads hold quota or have a pending reservation.
        gate: knows which Workloads may compete.
    """
    gained = engine.returned.gained
    for workload in world.workloads:
        if workload.uid in gained and _has_run(world, workload):
            engine.apply(UseReservation(workload.uid))
        back_off = workload.back_off
        if back_off is None or workload.admission is not None or workload.finished:
            continue
        queue = gate.check(workload, world.job_of(workload.key))
        if isinstance(queue, str) and world.shards.epoch_of(queue) is not None:
            engine.apply(SetBackOff(queue, workload.namespace, back_off))


def _has_run(world: World, workload: WorkloadView) -> bool:
    """Whether a pod of a Workload has run, as far as its pods and Job show."""
    job = world.job_of(workload.key)
    worked = job is not None and job.is_started_by(workload) and bool(job.status["succeeded"])
    return worked or any(pod.has_run for pod in world.pods_of(workload))
