"""Writes into the Workloads of a simulation what a controller would write of each step (`policy.status`)."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from admitter.api.conditions import ConditionType, EvictedReason, FinishedReason
from admitter.cache.preemption_status import PreemptionStatus, ReservationStatus
from admitter.cache.readiness_status import written
from admitter.cache.run_time_status import run_time_of
from admitter.cache.views import JobView, WorkloadView, at, parse_workload, timestamp
from admitter.engine.model import Admission
from admitter.engine.refusal import Refusal
from admitter.engine.tree_cycle import Plan, PlannedEviction
from admitter.kinds.paths import merged
from admitter.policy import growing, status
from admitter.policy import readiness as arithmetic
from admitter.policy.derive import metadata_for
from admitter.policy.gate import Waiting
from admitter.policy.gate_readiness import backing_off
from admitter.policy.lifecycle import Phase, Step
from admitter.policy.messages import passing_message, queue_title, receipt_message, workload_title
from admitter.policy.run_time import admitted_message, run_time_json
from admitter.policy.snapshot import Snapshot
from admitter.simulate.items import Event, Item, Key

Json = dict[str, Any]

FINISHED_WORDS: Final = "Job finished successfully"
FAILED_WORDS: Final = "Job has reached the specified backoff limit"


class Statuses:
    """The Workloads of a simulation, as an API server would have them."""

    def __init__(self, snapshot: Snapshot, items: dict[str, Item], epoch: float) -> None:
        """Begin without any; `items` are the simulation's, by UID; `epoch` is when a controller took over."""
        self._snapshot = snapshot
        self._items = items
        self._term = (0, int(epoch * 1000))
        self._raws: dict[str, Json] = {}
        self._told: dict[str, Waiting] = {}  # what was said last of why a Workload waits, by UID
        self._admissions: dict[str, tuple[Admission, str]] = {}
        self._evictions: dict[str, PlannedEviction] = {}
        self._promised: set[str] = set()
        self._version = 1
        self.views: dict[str, WorkloadView] = {}  # by UID
        self.failing: set[Key] = set()  # namespace and name of Jobs that fail
        self.trouble: dict[str, str] = {}  # why pods of Workloads are not ready, by UID

    def come(self) -> None:
        """Take in the Workloads that are new, and leave out those that are gone."""
        for uid in self.views.keys() - self._items.keys():
            self._snapshot.world.workloads.delete(self.views[uid].key, uid)
            for kept in (self.views, self._raws, self._told, self.trouble):
                kept.pop(uid, None)
            self._promised.discard(uid)
        for uid in self._items.keys() - self.views.keys():
            self._make(self._items[uid])

    def _make(self, item: Item) -> None:
        assert item.job is not None, "Workloads are made of Jobs"
        metadata = metadata_for(item.job, self._snapshot.world)
        metadata |= {"uid": item.view.uid, "creationTimestamp": timestamp(at(item.job.created))}
        raw = {"metadata": metadata, "spec": item.view.spec, "status": {}}
        self._store(item.view.uid, raw)

    def _store(self, uid: str, raw: Json) -> None:
        self._version += 1
        raw["metadata"]["resourceVersion"] = str(self._version)
        self._raws[uid], self.views[uid] = raw, parse_workload(raw)
        self._snapshot.world.workloads.apply(self.views[uid])

    def _write(self, view: WorkloadView, body: Json) -> WorkloadView:
        raw = self._raws[view.uid]
        state = merged(raw["status"], body["status"])
        self._store(view.uid, {**raw, "metadata": {**raw["metadata"]}, "status": state})
        return self.views[view.uid]

    def decided(self, plan: Plan, now: float) -> None:
        """A plan was made that is carried out next."""
        self.come()
        moment = at(now)
        for workload, admission in plan.admissions:
            passed = plan.passed.get(workload.uid)
            words = ""
            if passed is not None:
                title = workload_title(*self._key(passed.workload.uid), workload.namespace)
                words = passing_message(passed, title)
            self._admissions[workload.uid] = admission, words
        for uid, admission in plan.planned.items():
            self._promise(uid, admission, plan.refusals.get(uid), moment)
        self._evictions = {each.victim.holder: each for each in plan.evictions}
        for each in plan.evictions:
            victim = self.views[each.victim.holder]
            if victim.evict_at is not None or victim.admission is None:
                self._reassign(each.victim.holder, self._by(each, receipt_message(each)))
        for other in plan.reassigned:
            uid = other.preemptor.uid
            generation = self.views[uid].reservation.generation
            by = PreemptionStatus(self._key(uid), uid, other.admission, generation)
            self._reassign(other.victim, by)

    def _promise(self, uid: str, admission: Admission, refusal: Refusal | None, now: datetime) -> None:
        view = self.views[uid]
        if view.reservation.admission == admission and view.reservation.generation:
            return
        place = ReservationStatus(view.reservation.generation + 1, admission)
        if refusal is not None:
            waits = self._snapshot.gate.waits(refusal)
            body = status.reservation_pending(view, place, waits.reason, waits.message, now)
        else:
            body = status.reservation_changed(view, place)
        self._write(view, body)
        self._promised.add(uid)

    def _reassign(self, victim: str, by: PreemptionStatus) -> None:
        view = self.views.get(victim)
        if view is not None and view.preemption is not None and view.evicted_for != (by.uid, by.generation):
            self._write(view, status.reassigned(view, by))

    def _by(self, eviction: PlannedEviction, why: str) -> PreemptionStatus:
        uid = eviction.preemptor.uid
        generation = self.views[uid].reservation.generation
        return PreemptionStatus(self._key(uid), uid, eviction.admission, generation, why=why)

    def _key(self, uid: str) -> Key:
        return self.views[uid].key

    def happened(self, event: Event) -> str:
        """A step of a Workload; returns its UID."""
        job = self._snapshot.world.job_of(event.key)
        assert job is not None, "it has one as long as it is there"
        view, now = self.views[job.uid], at(event.time)
        match event.kind:
            case "Admitted":
                self._admit(view, job, now)
            case "EvictionPending":
                eviction = self._evictions[view.uid]
                by = self._by(eviction, receipt_message(eviction))
                self._write(view, status.eviction(view, Step.ANNOUNCE, by, eviction.grace, now))
            case "Spared":
                self._write(view, status.eviction_cancelled(view, now))
            case "Preempted":
                self._preempt(view, now)
            case "Evicted":
                self._evict(view, event.reason, now)
            case "Resized":
                self._resize(view, now)
            case "Finished":
                self._finish(view, job, now)
        return job.uid

    def _admit(self, view: WorkloadView, job: JobView, now: datetime) -> None:
        admission, passing = self._admissions.pop(view.uid)
        gate, time = self._snapshot.gate, now.timestamp()
        run_time = gate.run_time(view, job, admission.queue, time)
        words = "; ".join(filter(None, (passing, admitted_message(run_time))))
        generation = view.reservation.generation
        body = status.admitted(view, admission, self._term, now, words, generation)
        body["status"] |= run_time_json(run_time_of(view.status), run_time)
        body["status"] |= gate.ready_limit(view, job, admission.queue, time).fields
        self._write(view, body)
        self._told.pop(view.uid, None)
        self._promised.discard(view.uid)

    def _preempt(self, view: WorkloadView, now: datetime) -> None:
        eviction = self._evictions.get(view.uid)
        if view.evict_at is not None and view.preemption is not None:
            by = replace(view.preemption, evict_at=None)
        else:
            assert eviction is not None, "one that was not announced is of this plan"
            by = self._by(eviction, receipt_message(eviction))
        self._free(self._write(view, status.preempted(view, by, now)), now)

    def _evict(self, view: WorkloadView, reason: str, now: datetime) -> None:
        assert view.admission is not None
        words = {
            EvictedReason.MAX_RUNTIME_EXCEEDED: "its maximum run time is over",
            EvictedReason.PODS_NOT_READY: "its pods were not all ready in time: "
            + self.trouble.get(view.uid, "they have not told why"),
        }.get(EvictedReason(reason), f"{queue_title(view.admission.queue)} was stopped")
        body = status.evicted(view, EvictedReason(reason), words, now)
        if reason == EvictedReason.PODS_NOT_READY:
            rules = self._snapshot.catalog.lifecycle(view.admission.queue).ready
            flavors = {name for each in view.admission.pod_sets for _, name in each.flavors}
            known = arithmetic.after_eviction(
                view.readiness, view.since, now.timestamp(), view.uid, rules, to_blame=True
            )
            body["status"]["readiness"] = written(replace(known, tried_last=tuple(sorted(flavors))))
        self._free(self._write(view, body), now)

    def _free(self, view: WorkloadView, now: datetime) -> None:
        """Its pods are gone: in a simulation at once."""
        self._write(view, status.freed(view, now))
        self._told.pop(view.uid, None)

    def _resize(self, view: WorkloadView, now: datetime) -> None:
        extra = self._snapshot.engine.ledger.extras.get(view.uid)
        if extra is not None and view.admission is not None:
            resize = growing.decided(view.admission, extra)
            self._write(view, status.resized(view, resize, self._term, now))

    def _finish(self, view: WorkloadView, job: JobView, now: datetime) -> None:
        if view.finished:
            return  # with its last eviction
        failed = job.key in self.failing
        reason = FinishedReason.JOB_FAILED if failed else FinishedReason.JOB_SUCCEEDED
        words = FAILED_WORDS if failed else FINISHED_WORDS
        self._write(view, status.finished(view, reason, words, now))

    def settle(self, now: float) -> None:
        """Say of all that waits why it does, as of this moment."""
        self.come()
        moment, pending = at(now), self._snapshot.engine.ledger.pending_reservations
        for uid in [uid for uid in self._promised if uid not in pending]:
            self._promised.discard(uid)
            view = self.views[uid]
            if view.reservation.admission is not None:
                unused = ReservationStatus(view.reservation.generation)
                self._write(view, status.reservation_changed(view, unused))
        for item in self._waiting():
            self._tell(item, moment)

    def _waiting(self) -> Iterator[Item]:
        for uid, item in self._items.items():
            news = item.waiting is not None and self._told.get(uid) is not item.waiting
            if item.phase is Phase.PENDING and news:
                yield item

    def _tell(self, item: Item, now: datetime) -> None:
        uid, waiting = item.view.uid, item.waiting
        assert waiting is not None
        view = self.views[uid]
        self._told[uid] = waiting
        if uid in self._promised and view.status.get("message"):
            return  # what it waits for is said with the promise
        message = backing_off(lambda: now, view) or self._snapshot.gate.message_at(waiting, now)
        since = now if view.condition(ConditionType.QUOTA_RESERVED) else at(view.created)
        body = status.waiting(view, waiting.reason, message, since, item.queue, waiting.back_off)
        self._write(view, body)
