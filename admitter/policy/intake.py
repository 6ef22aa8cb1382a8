"""Workloads, Jobs and pods of the cluster, as the engine's state: reservations and pending workloads.

The same whether decisions are written afterwards (`controllers.workload.admission`) or only asked about
(`admitter.policy.snapshot`).

A place that evictions have made is used once a pod of it has run (`engine.quota.back_off` has what else
counts). It is given back if its Workload is deleted or paused, or changes its requests or its queue, but not
if an administrator or another Workload has stopped it (docs/design/preemption.md).
"""

from typing import Final

from admitter.api.conditions import ConditionType, EvictedReason, WaitingReason
from admitter.cache.job_resources import GROUP_SORT, sort_of
from admitter.cache.views import JobView, WorkloadView
from admitter.cache.world import World
from admitter.client.store import Key
from admitter.engine import commands
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, Workload
from admitter.engine.quota.extras import Extra
from admitter.policy import growing, held, pod_groups, replicas
from admitter.policy.gate import Gate, Waiting
from admitter.quantities.amounts import InvalidQuantityError

NO_WORKLOAD: Final = ""  # a UID that no Workload has

_BY_OTHERS: Final = frozenset(
    {
        *(WaitingReason.QUEUE_STOPPED, WaitingReason.CLUSTER_QUEUE_STOPPED),
        *(WaitingReason.CLUSTER_QUEUE_NOT_FOUND, WaitingReason.CLUSTER_QUEUE_INACTIVE),
        *(WaitingReason.QUOTA_INACTIVE, WaitingReason.NAMESPACE_NOT_SELECTED),
        *(WaitingReason.NAMESPACE_TERMINATING, WaitingReason.PARKED, WaitingReason.KIND_INACTIVE),
    }
)
"""What administrators and other Workloads do: a Workload that waits for that has given nothing back."""
_BY_ITSELF: Final = frozenset(
    {
        *(EvictedReason.DEACTIVATED, EvictedReason.JOB_CHANGED, EvictedReason.NOT_STARTED),
        EvictedReason.PODS_NOT_READY,
    }
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


class Intake:
    """Brings the engine up to date, one Workload at a time."""

    def __init__(self, world: World, engine: Engine, gate: Gate) -> None:
        self._world = world
        self._engine = engine
        self._gate = gate

    def take(self, workload: WorkloadView, *, pauses: bool = False) -> str | Waiting | None:
        """Take a Workload in as it is now; one that pauses does not compete for a while.

        Returns the queue in which it competes, or would but for its pause; why it may not; None if it holds
        quota or has finished.
        """
        uid, job = workload.uid, self._world.job_of(workload.key)
        if workload.admission is None and workload.key in self._world.workloads.unreadable:
            if self._engine.ledger.held(uid) is None:
                # It may be something else by now; what is reserved may be written.
                self._engine.apply(commands.Withdraw(uid))
            return None
        if workload.admission is not None:
            self._engine.apply(commands.Withdraw(uid))
            if is_given_back(workload):
                self._engine.apply(commands.ReturnReservation(uid))
            self._reserve(workload, job, workload.admission)
            self._grow(workload, self._extras(workload, job, pauses=pauses))
            return None
        self._engine.apply(commands.Release(uid))
        if workload.finished:
            self._engine.apply(commands.Withdraw(uid))
            return None
        outcome = self._gate.check(workload, job)
        if isinstance(outcome, Waiting):
            if gives_back(outcome):
                self._engine.apply(commands.ReturnReservation(uid))
            self._engine.apply(commands.Withdraw(uid))
        elif not pauses:
            return self._compete(workload, job, outcome)
        return outcome

    def gone(self, workload: WorkloadView) -> None:
        """A Workload was deleted; its reservation stays until its pods are gone (`orphaned_pods`).

        A Workload that is being evicted gives no place back: it has lost it before.
        """
        if not workload.evicting:
            self._engine.apply(commands.ReturnReservation(workload.uid))
        self._engine.apply(commands.Withdraw(workload.uid))
        self._engine.apply(commands.SetPods(workload.uid, ()))
        extras, uid = self._engine.ledger.extras, workload.uid
        known = {part: extra for part in extras.parts(uid) if (extra := extras.get(uid, part)) is not None}
        left = {part: growing.orphaned(extra) for part, extra in known.items() if extra.granted}
        self._grow(workload, left)

    def _compete(self, workload: WorkloadView, job: JobView | None, queue: str) -> str | Waiting:
        try:
            self._engine.apply(commands.Submit(self._gate.competitor(workload, job, queue)))
        except InvalidQuantityError as error:  # only made by hand: a Job's requests are checked before
            self._engine.apply(commands.ReturnReservation(workload.uid))
            self._engine.apply(commands.Withdraw(workload.uid))
            words = f"its requests can't be counted: {error}"
            return Waiting(WaitingReason.INVALID_REQUESTS, words)
        return queue

    def _reserve(self, workload: WorkloadView, job: JobView | None, admission: Admission) -> None:
        if workload.job is not None and sort_of(workload.job[0]) == GROUP_SORT:
            admission = pod_groups.left_of(admission, workload, self._world.pod_groups.get(workload.job[1]))
        else:
            admission = held.left_of(admission, workload, job)
        # A Workload with a spec that can't be counted, since it was changed by hand, is no candidate.
        known = self._gate.countable(workload, job, admission.queue)
        checkpoint = job.checkpoint if job is not None else 0.0
        told = (known, workload.since, workload.namespace, checkpoint)
        self._engine.apply(commands.Reserve(workload.uid, admission, *told))
        if workload.evicting:
            self._go(workload, admission)
        self._set_pods(workload)

    @staticmethod
    def _extras(workload: WorkloadView, job: JobView | None, *, pauses: bool) -> dict[str, Extra]:
        """What a Workload may run beyond its admission, by pod set: nothing, of most."""
        if sort_of((workload.job or ("", ""))[0]):
            return replicas.extras_of(workload, job, pauses=pauses)
        extra = growing.extra_of(workload, job, pauses=pauses)
        return {"": extra} if extra is not None else {}

    def _grow(self, workload: WorkloadView, extras: dict[str, Extra]) -> None:
        known = self._engine.ledger.extras.parts(workload.uid)
        for part in dict.fromkeys((*known, *extras)):
            self._engine.apply(commands.SetExtra(workload.uid, extras.get(part), part))

    def _go(self, workload: WorkloadView, admission: Admission) -> None:
        """The eviction of a Workload has started; if it was preempted, planned use no longer counts it."""
        uid, queue = workload.uid, admission.queue
        if workload.preemption is not None and not self._engine.ledger.evicting(uid):
            passing = Workload(NO_WORKLOAD, queue, 0, 0.0, (), workload.namespace)
            self._engine.apply(commands.Evict(uid, passing, admission))
            self._engine.apply(commands.Withdraw(NO_WORKLOAD))  # so planned use has the victim's quota free
        self._engine.apply(commands.StartEviction(uid))

    def take_pods(self, key: Key) -> None:
        """Take in which pods of a Workload there are now."""
        workload = self._world.workloads.get(key)
        if workload is not None:
            self._set_pods(workload)

    def _set_pods(self, workload: WorkloadView) -> None:
        """By the age of its pods an elastic quota's Workload is over quota, or is not."""
        if workload.admission is not None and workload.admission.pool:
            pods = sorted((pod.created, pod.name) for pod in self._world.pods_of(workload) if pod.live)
            job = self._world.job_of(workload.key)
            places = sum(held.held(workload).values())
            wanted = job.count(self._succeeded(workload)) if job is not None else places
            left_over = max(0, places - max(wanted, len(pods)))
            self._engine.apply(commands.SetPods(workload.uid, tuple(pods), left_over))

    def _succeeded(self, workload: WorkloadView) -> int:
        """How many pods of a Workload have succeeded: its Job's status may not say so yet."""
        return sum(pod.succeeded for pod in self._world.pods_of(workload))
