"""Follows which admitted Workloads are ready, and finds those that are not in time.

What is needed to go on after a restart is in `status.readiness`: the deadline comes with the admission. A
Workload that gets ready and ends costs no write of its own. Followers see the same as the leader, so a new
leader knows which Workloads were ready. `workload.jobs` writes what is noted here, and `workload.eviction`
evicts what is late.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from admitter.api.conditions import ConditionType, EvictedReason
from admitter.cache.job_resources import JOB
from admitter.cache.pod_views import PodView
from admitter.cache.readiness_status import ReadinessStatus, written
from admitter.cache.views import JobView, Json, WorkloadView
from admitter.cache.world import World, pods_path, workload_path
from admitter.client.errors import NotFoundError
from admitter.client.signal import Signal
from admitter.client.store import Key
from admitter.client.transport import Transport
from admitter.controllers.workload.alarms import Alarms
from admitter.names import WORKLOAD_LABEL
from admitter.policy import readiness as arithmetic
from admitter.policy.catalog import Catalog
from admitter.policy.gate_readiness import limit_of
from admitter.policy.pod_readiness import (
    has_default_limit,
    in_words,
    readiness_of,
    troubles,
)
from admitter.policy.status import Clock

LOOK_SECONDS: Final = 2.0
"""So long after a pod has changed the pods of its Workload are counted: those of a group change together."""

Observe = Callable[[str, float], None]


@dataclass(eq=False)
class ReadyTimeouts:
    """Knows of each admitted Workload whether its pods are ready, as far as it has a limit."""

    world: World
    catalog: Catalog
    clock: Clock
    transport: Transport
    observe: Observe  # a Workload of a queue has become ready so many seconds after its admission
    due: Signal[[Key]] = field(default_factory=Signal)  # there is something to write for a Workload
    again: Signal[[Key]] = field(default_factory=Signal)  # a Workload may compete again
    # UIDs of Workloads that have been seen ready since their admission
    _ready: set[str] = field(default_factory=set)
    # since when Workloads that were ready lack pods, by UID, and how many of their pods had succeeded then
    _lost: dict[str, tuple[float, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._alarms = Alarms(self.clock, self._rang)

    def close(self) -> None:
        self._alarms.close()

    def workload_changed(self, old: WorkloadView | None, new: WorkloadView | None) -> None:
        if old is not None and (new is None or new.uid != old.uid or new.finished):
            self._forget(old.uid)
        if new is None or new.finished:
            return
        if new.admission is None or new.evicting:
            self._forget(new.uid)
        if new.status.get("readiness"):
            self._arm(new)

    def job_changed(self, job: JobView | None) -> None:
        """A Job says how many of its pods are ready; of other kinds the pods tell."""
        if job is None or job.resource is not JOB or job.suspended:
            return
        workload = self.world.workloads.get((job.namespace, job.workload))
        if workload is None or not self._is_followed(workload) or not self._see(workload):
            return
        if workload.uid in self._lost:  # as a rule only until the end of a pod is counted as a success
            self._look_soon(workload)
        elif workload.status["readiness"].get("recoverBy"):
            self.due(workload.key)

    def pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        """Have the pods of a Workload counted that is not a Job's, if one got ready or is so no more."""
        if old is not None and new is not None and (old.trouble, old.live) == (new.trouble, new.live):
            return
        pod = new or old
        assert pod is not None
        workload = self.world.workloads.get((pod.namespace, pod.workload))
        if workload is None or not self._is_followed(workload) or not pod.is_of(workload):
            return
        job = self.world.job_of(workload.key)
        if job is not None and job.resource is not JOB:
            self._look_soon(workload)

    def late(self, workload: WorkloadView) -> str:
        """Why an admitted Workload is out of time; empty if it is not."""
        if not self._is_followed(workload):
            return ""
        known, now = workload.readiness, self.clock().timestamp()
        limit = known.recover_by if known.recover_by is not None else known.deadline
        job = self.world.job_of(workload.key) if limit is not None and now >= limit else None
        if job is None:
            return ""  # as a rule: there is time left
        assert workload.admission is not None
        if not limit_of(self.world, self.catalog, job, workload.admission.queue)[0]:
            return ""  # an administrator has lifted the limit since
        found = readiness_of(self.world, job, workload)
        was_ready = workload.uid in self._ready
        if not arithmetic.is_late(known, now, ready=found.all_ready, was_ready=was_ready):
            return ""
        what = "ready again" if known.recover_by is not None else "ready"
        words = in_words(troubles(self.world.pods_of(workload), found.wanted), found.wanted)
        return f"its pods were not all {what} in time: {words or 'they have not told why'}"

    async def is_late_now(self, workload: WorkloadView) -> bool:
        """Whether it still is by what the API server says now: what is known here may be old."""
        job = self.world.job_of(workload.key)
        if job is None:
            return False
        if job.resource is JOB:
            try:
                self.world.take_job(job, await self.transport.get(job.path))
            except NotFoundError:
                return False
        query = {"labelSelector": f"{WORKLOAD_LABEL}={workload.name}"}
        for raw in (await self.transport.get(pods_path(workload.namespace), query))["items"]:
            self.world.read_pods.take(raw)
        current = self.world.workloads.get(workload.key)
        return current is not None and current.version == workload.version and bool(self.late(current))

    def evicted(self, workload: WorkloadView) -> Json:
        """What the status of a Workload remembers that is evicted now since it is late."""
        job = self.world.job_of(workload.key)
        assert workload.admission is not None
        pods = self.world.pods_of(workload)
        wanted = readiness_of(self.world, job, workload).wanted if job is not None else 0
        to_blame = any(trouble.cause.to_blame for trouble, _ in troubles(pods, wanted))
        rules = self.catalog.lifecycle(workload.admission.queue).ready
        now = self.clock().timestamp()
        flavors = {name for each in workload.admission.pod_sets for _, name in each.flavors}
        known = arithmetic.after_eviction(
            workload.readiness, workload.since, now, workload.uid, rules, to_blame=to_blame
        )
        return {"readiness": written(replace(known, tried_last=tuple(sorted(flavors))))}

    async def note(self, workload: WorkloadView) -> bool:
        """Write what is to be remembered of an admitted Workload; whether there was anything."""
        known = self._noted(workload) if self._is_followed(workload) else None
        if known is None:
            return False
        version = {"resourceVersion": str(workload.version)}
        body = {"metadata": version, "status": {"readiness": written(known)}}
        raw = await self.transport.patch(f"{workload_path(workload.key)}/status", body)
        self.world.read_workloads.take(raw)
        return True

    async def pause(self, workload: WorkloadView) -> bool:
        """Set `spec.active: false` of a Workload that is evicted for good; whether that was written."""
        if not workload.active or not workload.readiness.gave_up or not is_unready(workload):
            return False
        body = {"metadata": {"resourceVersion": str(workload.version)}, "spec": {"active": False}}
        self.world.read_workloads.take(await self.transport.patch(workload_path(workload.key), body))
        return True

    def _noted(self, workload: WorkloadView) -> ReadinessStatus | None:
        job = self.world.job_of(workload.key)
        if job is None or workload.admission is None:
            return None
        known = workload.readiness
        passed = known.deadline is not None and self.clock().timestamp() >= known.deadline
        if not passed and known.recover_by is None and workload.uid not in self._lost:
            return None  # as a rule: nothing is written before the deadline
        self._see(workload)
        rules = self.catalog.lifecycle(workload.admission.queue).ready
        recovery = rules.recovery_limit(by_default=has_default_limit(job))
        lost, _ = self._lost.get(workload.uid, (None, 0))
        ready = readiness_of(self.world, job, workload).all_ready
        was_ready = workload.uid in self._ready
        now = self.clock().timestamp()
        return arithmetic.to_note(known, now, lost, recovery, ready=ready, was_ready=was_ready)

    @staticmethod
    def _is_followed(workload: WorkloadView) -> bool:
        """Whether it holds quota, has a limit, and is not evicted already."""
        if workload.admission is None or workload.evicting:
            return False
        return bool((workload.status.get("readiness") or {}).get("deadline"))

    def _see(self, workload: WorkloadView) -> bool:
        """Take in whether a Workload is ready now; whether that is another answer than before."""
        job, uid = self.world.job_of(workload.key), workload.uid
        if job is None:
            return False
        now = self.clock().timestamp()
        if readiness_of(self.world, job, workload).all_ready:
            news = uid not in self._ready or uid in self._lost
            if uid not in self._ready and self.world.owners.owns(workload.key):
                self._observe(workload, now)
            self._ready.add(uid)
            self._lost.pop(uid, None)
            return news
        if uid not in self._ready and not workload.status["readiness"].get("readyAt"):
            return False
        succeeded = int(job.status["succeeded"])
        known = self._lost.get(uid)
        if known is not None and succeeded <= known[1]:
            return False
        self._lost[uid] = now, succeeded  # a Job of which pods succeed goes on
        return True

    def _observe(self, workload: WorkloadView, now: float) -> None:
        if workload.admission is not None and not workload.status["readiness"].get("readyAt"):
            self.observe(workload.admission.queue, max(0.0, now - workload.since))

    def _rang(self, key: Key) -> None:
        workload = self.world.workloads.get(key)
        if workload is None or workload.finished:
            return
        if workload.admission is None:
            self.again(key)
        elif self._is_followed(workload):
            self._see(workload)
            self._act(workload)

    def _look_soon(self, workload: WorkloadView) -> None:
        self._alarms.set(workload.uid, workload.key, self.clock().timestamp() + LOOK_SECONDS)

    def _act(self, workload: WorkloadView) -> None:
        """Have written what there is to write, and look again when there may be more."""
        if self.late(workload) or self._noted(workload) is not None:
            self.due(workload.key)
        self._arm(workload)

    def _arm(self, workload: WorkloadView) -> None:
        when = self._next(workload)
        if when is None:
            self._alarms.drop(workload.uid)
        else:
            self._alarms.set(workload.uid, workload.key, when)

    def _next(self, workload: WorkloadView) -> float | None:
        """When a Workload is to be looked at next; None: nothing comes by time alone."""
        known, now = workload.readiness, self.clock().timestamp()
        if workload.admission is None:
            times = [known.next_try]
        elif not self._is_followed(workload):
            return None
        else:
            times = [known.deadline, known.recover_by]
            lost = self._lost.get(workload.uid)
            job = self.world.job_of(workload.key)
            if lost is not None and job is not None and known.recover_by is None:
                rules = self.catalog.lifecycle(workload.admission.queue).ready
                recovery = rules.recovery_limit(by_default=has_default_limit(job))
                times.append(lost[0] + arithmetic.loss_seconds(recovery) if recovery else None)
        coming = [time for time in times if time is not None and time > now]
        return min(coming, default=None)

    def _forget(self, uid: str) -> None:
        self._ready.discard(uid)
        self._lost.pop(uid, None)
        self._alarms.drop(uid)


def is_unready(workload: WorkloadView) -> bool:
    """Whether a Workload is being evicted since it was not ready."""
    return (
        workload.evicting
        and workload.condition(ConditionType.EVICTED).get("reason") == EvictedReason.PODS_NOT_READY
    )
