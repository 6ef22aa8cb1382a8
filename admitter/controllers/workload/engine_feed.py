"""Brings the engine up to date with every event of a Workload, its Job or its pods.

Previous step: a store changes (`admitter.cache.world`). Next step: a cycle decides (`workload.admission`).
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from admitter.cache.pod_views import PodView
from admitter.cache.views import WorkloadView
from admitter.cache.world import World
from admitter.client.store import Key, either
from admitter.controllers.workload.orphaned_pods import OrphanedPods
from admitter.controllers.workload.waiting import WaitingReasons
from admitter.engine.commands import CancelEviction, Release, ReturnReservation, UseReservation, Withdraw
from admitter.engine.cycle import Engine
from admitter.policy.gate import Gate, Waiting
from admitter.policy.intake import Intake
from admitter.policy.lifecycle import Phase, phase_of
from admitter.policy.priorities import CLASS_FIELD


@dataclass(eq=False)
class EngineFeed:
    """Feeds the engine, except with Workloads for which a decision is being written."""

    world: World
    engine: Engine
    gate: Gate
    reasons: WaitingReasons
    orphaned_pods: OrphanedPods
    fed: Callable[[], None]  # called after everything that is taken in: there may be something to decide

    def __post_init__(self) -> None:
        self._intake = Intake(self.world, self.engine, self.gate)
        self.restored = False  # whether what was there at the start has been taken in
        self.keys: dict[str, Key] = {}  # of Workloads, by UID
        self.writing: dict[str, asyncio.Task[None]] = {}  # the writes of decisions, by UID of the Workload
        # UIDs of Workloads that do not compete for a while: the API server refused what was written
        self.refused: set[str] = set()
        # the Workloads with pods that have changed; those of one Workload are taken in together
        self.changed_pods: set[Key] = set()

    def workload_changed(self, old: WorkloadView | None, new: WorkloadView | None) -> None:
        if old is not None and new is None:
            self.keys.pop(old.uid, None)
            self.reasons.gone(old.key)
            self._intake.gone(old)
            if old.admission is not None:
                self.orphaned_pods.workload_gone(old)
            else:
                self.engine.apply(Release(old.uid))
        elif new is not None:
            if new.admission is not None and (old is None or old.admission is None):
                self.orphaned_pods.workload_admitted(new)
            if old is not None and _has_other_class(old, new):
                self.engine.apply(ReturnReservation(new.uid))
            self._take(new)
            if new.finished and old is not None and old.admission is not None:
                self.orphaned_pods.workload_finished(new)
        self.fed()

    def pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        self.orphaned_pods.pod_changed(old, new)
        if new is not None and new.has_run:
            self.engine.apply(UseReservation(new.workload_uid))
        pod = either(old, new)
        if pod.usage.pool:
            self.changed_pods.add((pod.namespace, pod.workload))
        self.fed()

    def take_pods(self) -> None:
        changed, self.changed_pods = self.changed_pods, set()
        for key in changed:
            self._intake.take_pods(key)

    def job_changed(self, key: Key) -> None:
        self.orphaned_pods.job_changed(key)
        self.reconsider(key)

    def reconsider(self, key: Key) -> None:
        """Something that decides whether a Workload may compete has changed."""
        workload = self.world.workloads.get(key)
        if workload is not None:
            self._take(workload)
            self.fed()

    def settle(self, key: Key, uid: str) -> None:
        """A write for a Workload has ended: the object in the API server counts again."""
        if self.writing.get(uid) is asyncio.current_task():
            del self.writing[uid]
        current = self.world.workloads.get(key)
        if current is not None and current.uid == uid:
            self._take(current)
        elif not self.orphaned_pods.counts(key, uid):  # it was deleted meanwhile, and its pods may go on
            self.engine.apply(Release(uid))
        self.fed()

    def settle_eviction(self, key: Key, uid: str, preemptor: str) -> None:
        """A victim's eviction was written, or was not: then it stays, and the preemptor competes anew."""
        current, written = self.world.workloads.get(key), {Phase.EVICTION_PENDING, Phase.EVICTED}
        if current is None or current.uid != uid or phase_of(current) not in written:
            self.engine.apply(CancelEviction(uid))
        if preemptor in self.refused:
            self.engine.apply(Withdraw(preemptor))
        self.settle(key, uid)

    def pause(self, uid: str, seconds: float) -> None:
        def over() -> None:
            self.refused.discard(uid)
            if uid in self.keys:
                self.reconsider(self.keys[uid])

        self.refused.add(uid)
        asyncio.get_running_loop().call_later(seconds, over)

    def restore(self) -> None:
        """Take in the Workloads that there are, those that hold quota first."""
        self.restored = True
        for workload in sorted(self.world.workloads, key=lambda workload: workload.admission is None):
            self._take(workload)

    def _take(self, workload: WorkloadView) -> None:
        if not self.restored:
            return
        uid = workload.uid
        self.keys[uid] = workload.key
        if uid in self.writing:
            return  # the write keeps its reservation; `settle` takes the Workload in once it has ended
        outcome = self._intake.take(workload, pauses=uid in self.refused)
        if isinstance(outcome, Waiting):
            self.reasons.want(workload.key, outcome)
        elif outcome is None or not self.world.shards.leads_queue(outcome):
            self.reasons.forget(workload.key)  # it waits no longer, or why it does only a leader knows


def _has_other_class(old: WorkloadView, new: WorkloadView) -> bool:
    """Whether a Workload that waits has another priority since its user has named another class.

    That gives its pending reservation back. The value of a class is for administrators to change.
    """
    if new.admission is not None or old.spec.get("priority") == new.spec.get("priority"):
        return False
    return any(old.spec.get(name) != new.spec.get(name) for name in ("priorityClassName", CLASS_FIELD))
