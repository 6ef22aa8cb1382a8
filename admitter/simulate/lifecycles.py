"""The workloads of a simulation, from phase to phase by the table in `policy.lifecycle`.

Steps take no time: an evicted workload has no pods to wait for, and is released before the next decision.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import replace

from admitter.api.conditions import ConditionType, EvictedReason
from admitter.api.eviction_limits import MOST_EVICTIONS
from admitter.cache.timestamps import seconds
from admitter.cache.views import JobView, WorkloadView
from admitter.convert import workloads
from admitter.engine.commands import (
    Release,
    Reserve,
    ReturnReservation,
    StartEviction,
    Submit,
    UseReservation,
    Withdraw,
)
from admitter.engine.model import Admission, Workload
from admitter.engine.tree_cycle import Plan
from admitter.policy.eviction_records import note_eviction
from admitter.policy.gate import Waiting
from admitter.policy.held import left_of
from admitter.policy.intake import gives_back
from admitter.policy.lifecycle import Phase, Step, after, due_step, phase_of, planned_eviction
from admitter.policy.priorities import value_now, valued
from admitter.policy.shortage import Shortages
from admitter.policy.snapshot import Snapshot
from admitter.quantities.amounts import InvalidQuantityError
from admitter.simulate import growth
from admitter.simulate.items import End, Event, Item, Key, Run
from admitter.simulate.made_anew import ends_evicted, wait_again
from admitter.simulate.readiness import REASON as NOT_READY
from admitter.simulate.readiness import SimulatedReadiness
from admitter.simulate.run_times import RunTimes, kept

Lasts = Callable[[WorkloadView, float], float | None]
"""The whole runtime of a Workload in seconds, given its runtime so far; None: for ever."""


class Lifecycles:
    """All workloads, and what is to become of them."""

    def __init__(self, snapshot: Snapshot, lasts: Lasts) -> None:
        """Begin with the Workloads of a snapshot; `lasts` says how long they run in all."""
        self.items: dict[str, Item] = {}  # the workloads, by UID
        self.gone: list[Item] = []  # workloads that have run, and were deleted
        # when they start, by UID of the victim, in seconds since the epoch
        self.pending_evictions: dict[str, float] = {}
        self._ends: list[End] = []
        self._leaving: list[str] = []
        self._run_times = RunTimes(snapshot.gate)
        self._snapshot, self._engine, self._catalog = snapshot, snapshot.engine, snapshot.catalog
        self._shortages = Shortages(self._engine, self._catalog)
        self.readiness = SimulatedReadiness(snapshot.world, snapshot.catalog)
        for view in sorted(snapshot.world.workloads, key=lambda view: (view.since, view.uid)):
            self._begin_with(view, lasts)
        self._admissions = len(self.items)

    def _begin_with(self, view: WorkloadView, lasts: Lasts) -> None:
        now, job = self._snapshot.now, self._snapshot.world.job_of(view.key)
        elapsed = max(0.0, now - view.since) if view.admission is not None else 0.0
        item = Item(view, _stopped(job) if job is not None else None, lasts(view, elapsed), self._phase(view))
        self.items[view.uid] = item
        item.waiting, item.preempted = self._snapshot.waiting.get(view.uid), view.preempted
        item.evictions = view.evictions
        item.queue = self._snapshot.queue_of(view)
        if view.finished and view.status.get("admission"):
            ended = seconds(view.condition(ConditionType.FINISHED)["lastTransitionTime"])
            item.runs = [Run(view.status["admission"]["clusterQueue"], view.since, ended)]
        self.readiness.begin_with(item, now)
        if view.admission is None:
            return
        item.admission, item.queue = left_of(view.admission, view), view.admission.queue
        item.runs, item.order = [Run(view.admission.queue, view.since)], len(self.items)
        if item.phase is Phase.EVICTED:
            item.stop(now, evicted=True)
            self._leaving.append(view.uid)
        elif item.runtime is not None:
            heapq.heappush(self._ends, End(now + max(0.0, item.runtime - elapsed), view.uid, 1))
        self._run_times.follow(item)
        if item.phase is Phase.EVICTION_PENDING and view.evict_at is not None:
            self.pending_evictions[view.uid] = view.evict_at

    def _phase(self, view: WorkloadView) -> Phase:
        """The phase of a Workload; an eviction is only pending if its preemptor has a pending reservation."""
        phase, ledger = phase_of(view), self._engine.ledger
        void = ledger.preemptor(view.uid) not in ledger.pending_reservations
        return Phase.ADMITTED if phase is Phase.EVICTION_PENDING and void else phase

    @property
    def due(self) -> float | None:
        """When a step is due though nothing else changes, in seconds since the epoch."""
        times = [self._ends[0].time] if self._ends else []
        times += self.pending_evictions.values()
        parts = (self._run_times, self._shortages, self.readiness)
        times += [part.due for part in parts if part.due is not None]
        return min(times, default=None)

    def age(self, item: Item) -> float:
        """The time that decides a workload's place, in seconds since the epoch."""
        created = self._run_times.created(item)
        return self._snapshot.settings.requeue_by.age(created, item.preempted)

    def put(self, view: WorkloadView, job: JobView | None, lasts: float | None) -> Item:
        """Take in a workload that comes or changes: it competes as what it is now."""
        item = self.items.setdefault(view.uid, Item(view, job, lasts))
        item.view, item.job, item.runtime = kept(item.view, view), job, lasts
        self.evaluate(item)
        return item

    def forget(self, uid: str, now: float) -> None:
        """Take out a workload that goes; it need not be there."""
        item = self.items.pop(uid, None)
        if item is not None:
            item.stop(now)
            self.gone += [item] if item.runs else []
            self.pending_evictions.pop(uid, None)
            self.readiness.gone(uid)
            self._engine.apply(ReturnReservation(uid))
            self._engine.apply(Withdraw(uid))
            self._engine.apply(Release(uid))

    def restate(self, item: Item, now: float) -> None:
        """Take in the phase that a Workload's manifest states."""
        view = item.view
        if view.finished:
            self._enter(item, Phase.FINISHED)
            item.stop(now)
            self._engine.apply(Release(view.uid))
            self._engine.apply(Withdraw(view.uid))
        elif view.admission is not None and not item.runs:
            self._enter(item, Phase.PENDING)
            admission = left_of(view.admission, view)
            self._admit(item, admission, now)
            try:
                known = self._competitor(item, view.admission.queue)
            except InvalidQuantityError:
                known = None  # it holds what was admitted, but can't be counted as what it is now
            told = (known, view.since, view.namespace, _checkpoint(item))
            self._engine.apply(Reserve(view.uid, admission, *told))

    def evaluate(self, item: Item) -> None:
        """Let a workload compete, or say why it may not."""
        if item.phase.runs or item.phase is Phase.FINISHED or item.unplaced:
            return
        item.queue = self._snapshot.queue_of(item.view)
        outcome = self.readiness.waiting(item.view.uid) or self._snapshot.gate.check(item.view, item.job)
        if isinstance(outcome, Waiting):
            item.waiting = outcome
            if gives_back(outcome):
                self._engine.apply(ReturnReservation(item.view.uid))
            self._engine.apply(Withdraw(item.view.uid))
            return
        try:
            self._engine.apply(Submit(self._competitor(item, outcome)))
        except InvalidQuantityError as error:
            item.waiting = Waiting("InvalidRequests", f"its requests can't be counted: {error}")
            self._engine.apply(Withdraw(item.view.uid))

    def _competitor(self, item: Item, queue: str) -> Workload:
        view, gpus = item.view, self._catalog.gpus
        spec = valued(view.spec, self._snapshot.world)
        made = workloads.workload(view.uid, view.namespace, queue, spec, self.age(item), gpus)
        return self.readiness.in_turn(replace(made, evictions=item.evictions))

    def finish(self, now: float) -> Iterator[Event]:
        """End the workloads with a runtime that is over."""
        while self._ends and self._ends[0].time <= now:
            end = heapq.heappop(self._ends)
            item = self.items.get(end.uid)
            if item is not None and item.phase.runs and len(item.runs) == end.start:
                self._take(item, Step.FINISH)
                item.stop(now)
                self._engine.apply(Release(end.uid))
                yield _event(now, "Finished", item, "JobSucceeded")

    def expire(self, now: float) -> Iterator[Event]:
        """Stop the workloads with a maximum run time that is over."""
        reason = EvictedReason.MAX_RUNTIME_EXCEEDED
        for uid in self._run_times.over(now):
            item = self.items.get(uid)
            if item is None or not item.phase.runs or not self._run_times.is_due(item, now):
                continue
            yield self._evict(now, item, "Evicted", reason)
            if self._run_times.is_last(item):
                self._take(item, Step.FINISH)
                self._engine.apply(Release(uid))
                yield _event(now, "Finished", item, reason)

    def revalue(self, item: Item) -> None:
        """Let a workload that runs have the priority that its WorkloadPriorityClass has now."""
        held = self._engine.ledger.held(item.view.uid)
        value = value_now(item.view.spec, self._snapshot.world)
        if held is None or held.workload is None or held.workload.priority == value:
            return
        known = replace(held.workload, priority=value)
        told = (known, held.since, held.namespace, _checkpoint(item))
        self._engine.apply(Reserve(held.holder, held.admission, *told))

    def drain(self, item: Item, now: float) -> Iterator[Event]:
        """Evict a workload that runs in a queue that is drained."""
        assert item.admission is not None
        if self._catalog.drained((item.view.namespace, item.view.queue), item.admission) is not None:
            yield self._evict(now, item, "Evicted", "Stopped")

    def shrink(self, now: float) -> list[Event]:
        """Evict workloads where more than the capacity has been used for too long."""
        victims = [self.items[uid] for uid in self._shortages.look(now, frozenset)]
        return [self._evict(now, item, "Evicted", EvictedReason.CAPACITY_SHRUNK) for item in victims]

    def evict_late(self, now: float) -> list[Event]:
        """Evict workloads with pods that are not ready in time."""
        found = []
        for item in filter(None, map(self.items.get, self.readiness.late(now))):
            self.readiness.evicted(item, now)
            found.append(self._evict(now, item, "Evicted", NOT_READY))
        return found

    def try_again(self, now: float) -> None:
        """Let workloads compete with a next try that has come."""
        for item in filter(None, map(self.items.get, self.readiness.tried_again(now))):
            status = {name: each for name, each in item.view.status.items() if name != "readiness"}
            item.view = replace(item.view, status=status)
            self.evaluate(item)

    def carry_out(self, plan: Plan, now: float) -> Iterator[Event]:
        """Take the steps that a plan says."""
        for uid, waiting in self._snapshot.gate.all_wait(plan.refusals):
            self.items[uid].waiting = waiting
        for workload, admission in plan.admissions:
            item = self.items[workload.uid]
            self._admit(item, admission, now)
            growth.begin(self._engine, item, now)
            yield _event(now, "Admitted", item, "Admitted")
        for eviction in plan.evictions:
            item = self.items[eviction.victim.holder]
            match planned_eviction(item.phase, eviction.grace):
                case Step.ANNOUNCE:
                    self._take(item, Step.ANNOUNCE)
                    self.pending_evictions[item.view.uid] = now + eviction.grace
                    preemptor = self._key(eviction.preemptor.uid)
                    yield _event(now, "EvictionPending", item, "Preempted", preemptor)
                case Step.EVICT:
                    yield self._preempt(now, item, eviction.preemptor.uid)
                # The new preemptor of a pending eviction is in the ledger, and the time stays.

        for item in growth.carry_out(self._engine, self.items, plan.resized):
            yield _event(now, "Resized", item, "Resized")

    def start_evictions(self, now: float) -> Iterator[Event]:
        """Start the pending evictions with a grace period that is over."""
        for item in self._due(Step.EVICT, now):
            preemptor = self._engine.ledger.preemptor(item.view.uid)
            self._engine.apply(StartEviction(item.view.uid))
            yield self._preempt(now, item, preemptor)

    def cancel_evictions(self, now: float) -> Iterator[Event]:
        """Cancel pending evictions that no preemptor needs any more."""
        for item in self._due(Step.CANCEL, now):
            self._take(item, Step.CANCEL)
            yield _event(now, "Spared", item, "NotNeeded")

    def _due(self, step: Step, now: float) -> Iterator[Item]:
        for uid, evict_at in list(self.pending_evictions.items()):
            if due_step(evict_at, now, needed=self._engine.ledger.evicting(uid)) is step:
                yield self.items[uid]

    def release(self) -> None:
        """Let evicted workloads wait again, in their old place."""
        leaving, self._leaving = self._leaving, []
        for item in filter(None, map(self.items.get, leaving)):
            if item.phase is Phase.EVICTED:
                self._take(item, Step.RELEASE)
                item.admission = None
                self._engine.apply(Release(item.view.uid))
                if self._run_times.stopped(item) or self._is_over(item):
                    self._enter(item, Phase.FINISHED)
                self.evaluate(item)

    def _is_over(self, item: Item) -> bool:
        """Whether what was evicted does not wait again; pods that do are made anew."""
        if item.job is None or not item.job.resource.is_pods:
            return False
        if ends_evicted(self._snapshot.world, item.job):
            return True
        wait_again(self._snapshot.world, item.job)
        return False

    def _admit(self, item: Item, admission: Admission, now: float) -> None:
        self._take(item, Step.ADMIT)
        item.admission, item.queue = admission, admission.queue
        item.waiting = item.preempted = None
        self._run_times.begin(item, admission.queue, now)
        if item.job is not None:
            self._engine.apply(UseReservation(item.view.uid))  # its pods run at once
        item.runs.append(Run(admission.queue, now))
        self.readiness.admitted(item, admission.queue, now)
        self._admissions += 1
        item.order = self._admissions
        if item.runtime is not None:
            heapq.heappush(self._ends, End(now + item.runtime, item.view.uid, len(item.runs)))

    def _preempt(self, now: float, item: Item, preemptor: str | None) -> Event:
        item.preempted, item.evictions = now, (*item.evictions, now)[-MOST_EVICTIONS:]
        if item.admission is not None:
            note_eviction(self._engine, item.admission.queue, item.view.uid, now)
        return self._evict(now, item, "Preempted", "Preempted", self._key(preemptor))

    def _evict(self, now: float, item: Item, kind: str, reason: str, preemptor: Key | None = None) -> Event:
        self._take(item, Step.EVICT)
        item.stop(now, evicted=True)
        self._leaving.append(item.view.uid)
        return _event(now, kind, item, reason, preemptor)

    def _take(self, item: Item, step: Step) -> None:
        self._enter(item, after(item.phase, step))

    def _enter(self, item: Item, phase: Phase) -> None:
        item.phase = phase
        if phase is not Phase.EVICTION_PENDING:
            self.pending_evictions.pop(item.view.uid, None)
        if not phase.runs:
            self.readiness.stopped(item.view.uid)

    def _key(self, uid: str | None) -> Key | None:
        item = self.items.get(uid or "")
        return item.view.key if item is not None else None


def _stopped(job: JobView) -> JobView:
    """A Job after its eviction, which takes no time in a simulation."""
    status = {**job.status, "active": 0, "terminating": 0}
    return replace(job, spec={**job.spec, "suspend": True}, status=status)


def _event(now: float, kind: str, item: Item, reason: str, preemptor: Key | None = None) -> Event:
    queue = item.admission.queue if item.admission is not None else ""
    return Event(now, kind, item.view.key, queue, reason, preemptor)


def _checkpoint(item: Item) -> float:
    """When a workload's Job says that it has last saved its work; 0: it says nothing."""
    return item.job.checkpoint if item.job is not None else 0.0
