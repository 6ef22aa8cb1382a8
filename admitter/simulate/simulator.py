"""Runs a timeline: the controllers' catalog and gate and the engine, with a clock that jumps.

A step is: apply the changes of this moment, run one cycle of the engine, carry out its plan at once.
Evicted workloads end at once and wait again; admitted workloads end after their runtime.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from admitter.api.conditions import EvictedReason
from admitter.cache.node_views import parse_node
from admitter.cache.views import (
    JobView,
    ObjectView,
    WorkloadView,
    parse_job,
    parse_workload,
)
from admitter.convert import workloads
from admitter.documents import title
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
from admitter.names import QUEUE_LABEL
from admitter.policy.derive import workload_spec
from admitter.policy.elastic_quotas import PLURALS
from admitter.policy.gate import Waiting
from admitter.policy.returns import gives_back
from admitter.policy.shortage import Shortages
from admitter.policy.snapshot import Snapshot
from admitter.quantities.amounts import InvalidQuantityError
from admitter.quantities.durations import InvalidDurationError
from admitter.simulate.beginning import Lasts, beginning
from admitter.simulate.generator import SimulatedGenerator
from admitter.simulate.items import End, Event, Item, Key, PendingEviction
from admitter.simulate.manifests import Change, Invalid, Timeline
from admitter.simulate.objects import Objects, timestamp
from admitter.simulate.placing import Placing, since_now
from admitter.simulate.rounds import Endless, Rounds
from admitter.simulate.runtime import runtime

Json = dict[str, Any]


class Simulator:
    """One simulation.

    Attributes:
        endless: the preemption loop that has stopped it; None if there is none.
    """

    def __init__(
        self, timeline: Timeline, snapshot: Snapshot, lasts: Lasts = lambda _view, _ran: None
    ) -> None:
        """Start from a snapshot.

        Args:
            timeline: what comes, changes and goes.
            snapshot: of what there is before; it is used up.
            lasts: the runtimes of the workloads in it.
        """
        self._snapshot = snapshot
        self._requeue_by = snapshot.settings.requeue_by
        self.now = timeline.start
        self.engine = snapshot.engine
        self.world = snapshot.world
        there = beginning(snapshot, lasts)
        self.items = there.items
        self.errors: list[Invalid] = list(timeline.errors)
        self.cycles = 0
        self._catalog = snapshot.catalog
        self._gate = snapshot.gate
        self._generator = SimulatedGenerator(self.world)
        self._placing = Placing(self.world, self._catalog)
        self._shortages = Shortages(self.engine, self._catalog)
        self._changes = list(reversed(timeline.changes))
        self._ends = there.ends
        self._leaving = there.leaving
        self._pending_evictions = there.pending_evictions
        self._unqueued: dict[Key, Json] = {}
        self._arriving: set[Key] = set()
        self._objects = Objects(self.world)
        self._admissions = len(self.items)
        self._rounds = Rounds(self.engine, self.items, self.age)
        self.endless: Endless | None = None

    def run(
        self,
        *,
        cycles: int | None = None,
        until: float | None = None,
        watch: Callable[[float], None] = lambda _: None,
    ) -> Iterator[Event]:
        """Go on until nothing changes any more, or there is a preemption loop.

        Args:
            cycles: stop after so many with waiting workloads.
            until: stop at this time, in seconds since the epoch.
            watch: called with the time whenever all of that moment has happened.
        """
        while True:
            if self._changes and self._changes[-1].time <= self.now:
                self._rounds.begin_anew()
            for event in self._take_in():
                self._rounds.begin_anew()
                yield event
            yield from self._end_grace()
            self._let_go()
            self.endless = self._rounds.look(self.now, self._pending_evictions, to_come=bool(self._changes))
            if self.endless is not None:
                watch(self.now)
                return
            due = self.engine.due
            if self.engine.changed or (due is not None and due <= self.now):
                self.cycles += self.engine.busy
                plan = self.engine.cycle(self.now)
                self._rounds.decided(plan.evictions)
                yield from self._come_true(plan)
                if self.cycles == cycles:
                    watch(self.now)
                    return
                continue
            yield from self._cancel_evictions()
            shrunk = self._shrink()
            if shrunk:
                self._rounds.begin_anew()
                yield from shrunk
                continue
            watch(self.now)
            following = self._next_time()
            if following is None or (until is not None and following > until):
                return
            self.now = following

    @property
    def to_come(self) -> int:
        """How many changes of the timeline have not happened yet."""
        return len(self._changes)

    def queue_names(self) -> set[str]:
        """All ClusterQueues there are, and the queues of elastic quotas."""
        return {view.name for view in self.world.cluster_queues} | self.elastic_queue_names()

    def elastic_queue_names(self) -> set[str]:
        """The queues of elastic quotas, and those of deleted quotas in which workloads still run."""
        return {name for name, queue in self.engine.tree.queues.items() if queue.pool}

    def age(self, item: Item) -> float:
        """The time that decides a workload's place, in seconds since the epoch."""
        return self._requeue_by.age(item.created, item.preempted)

    def _next_time(self) -> float | None:
        times = [self._changes[-1].time] if self._changes else []
        times += [self._ends[0].time] if self._ends else []
        times += [each.until for each in self._pending_evictions.values()]
        times += [self._shortages.due] if self._shortages.due is not None else []
        times += [self.engine.due] if self.engine.due is not None else []
        return min(times, default=None)

    def _take_in(self) -> Iterator[Event]:
        """Ends, arrivals and edits of this moment."""
        while self._ends and self._ends[0].time <= self.now:
            end = heapq.heappop(self._ends)
            item = self.items.get(end.uid)
            if item is not None and item.state == "Admitted" and item.starts == end.start:
                item.state = "Finished"
                self.engine.apply(Release(end.uid))
                assert item.admission is not None
                yield self._event("Finished", item, "JobSucceeded")
        defined = False
        while self._changes and self._changes[-1].time <= self.now:
            change = self._changes.pop()
            defined |= self._apply(change)
        if defined:
            self._generate()
        self._catalog.refresh()
        if defined or self._arriving:
            defined |= self._find_queues()
        if defined:
            yield from self._define()

    def _apply(self, change: Change) -> bool:
        """Apply one change; True if it may affect workloads other than itself."""
        manifest, metadata = change.object, change.object["metadata"]
        kind, key = manifest["kind"], (metadata.get("namespace", ""), metadata["name"])
        completed = self._objects.completed(metadata, kind, change.time, gone=change.gone)
        raw = {**manifest, "metadata": completed}
        alone: dict[str, Callable[..., None]] = {
            "Job": self._job,
            "Workload": self._workload,
            "Node": self._node,
        }
        if kind in alone:
            alone[kind](raw, key, gone=change.gone)
            return bool(kind == "Node")
        if change.gone:
            self._objects.remove(kind, key, raw)
        else:
            before = self._objects.find(kind, key)
            if before is not None and kind in PLURALS:
                raw["status"] = self._managing(kind, before, raw["spec"])
            if before is not None and kind == "PlacementPolicy":
                raw["status"] = since_now(before, raw.get("spec") or {}, timestamp(self.now))
            self._objects.put(kind, raw)
        self._note(kind, key[1])
        return True

    def _note(self, kind: str, name: str) -> None:
        """Have the catalog look at a definition again."""
        match kind:
            case "ResourceFlavor":
                self._catalog.flavor_changed(name)
            case "Cohort":
                self._catalog.cohort_changed(name)
            case "ClusterQueue":
                self._catalog.queue_changed(name)
            case "PlacementPolicy":
                self._catalog.placement.changed(name)
            case "ElasticQuota" | "CompositeElasticQuota" | "Namespace":
                self._catalog.elastic.refresh()

    def _generate(self) -> None:
        """Create the queues that namespaces ask for, once all changes of this moment are applied."""
        for manifest, gone in self._generator.due():
            self._apply(Change(self.now, 0, manifest, gone))
        self.errors += self._generator.defects()

    def _node(self, raw: Json, key: Key, *, gone: bool) -> None:
        if gone:
            self.world.nodes.delete(key, raw["metadata"]["uid"])
        else:
            self.world.nodes.apply(parse_node(raw))
        self._catalog.nodes_changed()

    def _managing(self, kind: str, before: ObjectView, spec: Json) -> Json:
        """The status of a changed quota: since when it manages all Jobs of a namespace."""
        if not spec.get("manageAllJobs"):
            return {"conditions": [{}]}
        known = self._catalog.elastic.managed_by(kind, before) if before.spec.get("manageAllJobs") else {}
        namespaces, now = spec.get("namespaces") or [before.namespace], timestamp(self.now)
        return {"conditions": [{}], "managedSince": {name: known.get(name, now) for name in namespaces}}

    def _job(self, raw: Json, key: Key, *, gone: bool) -> None:
        raw["spec"] = {**raw["spec"], "suspend": True}
        job = parse_job(raw)
        self._unqueued.pop(key, None)
        if job.queue is None and not gone:
            self._unqueued[key] = raw
            self._arriving.add(key)
            self._objects.namespace(key[0], self.now)
        if gone:
            self.world.jobs.delete(key, job.uid)
            self._forget(job.uid)
        else:
            self.world.jobs.apply(job)
            self._enter(raw, key, job)

    def _find_queues(self) -> bool:
        """Find queues for Jobs that name none; True if one was created: other workloads may use it too."""
        made = again = False
        for key, raw in list(self._unqueued.items()):
            job = self.world.jobs.get(key)
            assert job is not None, "it is there as long as it is not queued"
            found = self._placing.find(job, new=key in self._arriving, waits=job.uid in self.items)
            if isinstance(found, Waiting):
                self._enter(raw, key, job, found)
            elif found is not None:
                for manifest in found.manifests:
                    self._apply(Change(self.now, 0, manifest))
                    again = True
                labels = {**(raw["metadata"].get("labels") or {}), QUEUE_LABEL: found.queue}
                raw["metadata"] |= {"labels": labels, "resourceVersion": self._objects.next_version()}
                self._job(raw, key, gone=False)
        self._arriving.clear()
        if again:
            self._generate()
            self._catalog.refresh()
            made = self._find_queues() or again
        return made

    def _enter(self, raw: Json, key: Key, job: JobView, unplaced: Waiting | None = None) -> None:
        """Make a new or changed Job wait; one without a queue only if a rule places it."""
        if job.queue is None and unplaced is None:
            self._forget(job.uid)
            return
        try:
            lasts = runtime(raw)
            spec = workload_spec(replace(job, queue=job.queue or ""), self.world)
        except (InvalidDurationError, InvalidQuantityError) as error:
            self.errors.append(Invalid(title(raw, ""), str(error)))
            self._unqueued.pop(key, None)
            return
        metadata = {**raw["metadata"], "name": job.workload}
        view = parse_workload({"metadata": metadata, "spec": spec})
        self._objects.namespace(key[0], self.now)
        item = self._put(view, job, lasts)
        item.waiting = unplaced or item.waiting

    def _workload(self, raw: Json, key: Key, *, gone: bool) -> None:
        view = parse_workload(raw)
        if gone:
            self._forget(view.uid)
            return
        try:
            lasts = runtime(raw)
        except InvalidDurationError as error:
            self.errors.append(Invalid(title(raw, ""), str(error)))
            return
        self._objects.namespace(key[0], self.now)
        item = self._put(view, None, lasts)
        if view.is_true("Finished"):
            item.state = "Finished"
            self.engine.apply(Withdraw(view.uid))
        elif view.admission is not None and not item.starts:
            self._begin(item, view.admission, self.now)
            self.engine.apply(
                Reserve(view.uid, view.admission, self._known(item), view.since, view.namespace)
            )

    def _put(self, view: WorkloadView, job: JobView | None, lasts: float | None) -> Item:
        known = self.items.get(view.uid)
        if known is None:
            known = self.items[view.uid] = Item(view, job, lasts)
        known.view, known.job, known.runtime = view, job, lasts
        self._evaluate(known)
        return known

    def _forget(self, uid: str) -> None:
        if self.items.pop(uid, None) is not None:
            self.engine.apply(ReturnReservation(uid))
            self.engine.apply(Withdraw(uid))
            self.engine.apply(Release(uid))

    def _define(self) -> Iterator[Event]:
        """Definitions have changed: check all waiting workloads again, and empty drained queues."""
        for item in self.items.values():
            if item.state == "Admitted":
                assert item.admission is not None
                local = self.world.local_queues.get((item.view.namespace, item.view.queue))
                drained = local is not None and local.spec.get("stopPolicy") == "HoldAndDrain"
                drained = drained and not item.admission.pool
                if drained or self._catalog.queue(item.admission.queue).drains:
                    yield self._event("Evicted", item, "Stopped")
                    self._leaving.append(item.view.uid)
            elif item.state != "Finished" and not item.unplaced:
                if item.job is not None:
                    self._again(item)
                self._evaluate(item)

    def _again(self, item: Item) -> None:
        """Derive a Job's Workload anew: limit ranges and classes may have changed."""
        assert item.job is not None
        try:
            spec = workload_spec(item.job, self.world)
        except InvalidQuantityError:
            return  # reported when the Job came
        if spec != item.view.spec:
            metadata = {"namespace": item.view.namespace, "name": item.view.name, "uid": item.view.uid}
            version = {
                "resourceVersion": self._objects.version,
                "creationTimestamp": timestamp(item.view.created),
            }
            item.view = parse_workload({"metadata": metadata | version, "spec": spec})

    def _evaluate(self, item: Item) -> None:
        """Let a workload compete, or say why it may not."""
        if item.state in {"Admitted", "Finished"} or item.unplaced:
            return
        item.queue = self._snapshot.queue_of(item.view)
        outcome = self._gate.check(item.view, item.job)
        if isinstance(outcome, Waiting):
            item.waiting = outcome
            if gives_back(outcome):
                self.engine.apply(ReturnReservation(item.view.uid))
            self.engine.apply(Withdraw(item.view.uid))
            return
        try:
            self.engine.apply(Submit(self._competitor(item, outcome)))
        except InvalidQuantityError as error:
            item.waiting = Waiting("InvalidRequests", f"its requests can't be counted: {error}")
            self.engine.apply(Withdraw(item.view.uid))

    def _known(self, item: Item) -> Workload | None:
        """An admitted workload as the engine sees it; None if it can't be counted as what it is now."""
        assert item.view.admission is not None
        try:
            return self._competitor(item, item.view.admission.queue)
        except InvalidQuantityError:
            return None

    def _competitor(self, item: Item, queue: str) -> Workload:
        gpus = self._catalog.gpus
        view = item.view
        return workloads.workload(view.uid, view.namespace, queue, view.spec, self.age(item), gpus)

    def _let_go(self) -> None:
        """Evicted workloads end, and wait again in their old place."""
        leaving, self._leaving = self._leaving, []
        for uid in leaving:
            item = self.items.get(uid)
            if item is not None:
                item.state, item.admission = "Pending", None
                self.engine.apply(Release(uid))
                self._evaluate(item)

    def _come_true(self, plan: Plan) -> Iterator[Event]:
        for uid, waiting in self._gate.all_wait(plan.refusals):
            self.items[uid].waiting = waiting
        for workload, admission in plan.admissions:
            item = self.items[workload.uid]
            self._begin(item, admission, self.now)
            yield self._event("Admitted", item, "Admitted")
        for each in plan.reassigned:
            pending = self._pending_evictions.get(each.victim)
            if pending is not None:  # no more time is granted
                self._pending_evictions[each.victim] = PendingEviction(
                    pending.until, pending.start, each.preemptor
                )
        for eviction in plan.evictions:
            item = self.items[eviction.victim.holder]
            before = self._pending_evictions.get(item.view.uid)
            if before is not None and eviction.grace:  # another preemptor; no more time is granted
                self._pending_evictions[item.view.uid] = PendingEviction(
                    before.until, before.start, eviction.preemptor
                )
            elif eviction.grace:
                until = self.now + eviction.grace
                self._pending_evictions[item.view.uid] = PendingEviction(
                    until, item.starts, eviction.preemptor
                )
                yield self._event("EvictionPending", item, "Preempted", self._key(eviction.preemptor))
            else:
                self._pending_evictions.pop(item.view.uid, None)
                yield self._preempt(item, eviction.preemptor)

    def _shrink(self) -> list[Event]:
        """Evict workloads that have used more than the capacity for too long."""
        victims = [self.items[uid] for uid in self._shortages.look(self.now, frozenset)]
        self._leaving += [item.view.uid for item in victims]
        return [self._event("Evicted", item, EvictedReason.CAPACITY_SHRUNK) for item in victims]

    def _preempt(self, item: Item, preemptor: Workload) -> Event:
        item.state, item.preempted = "Preempted", self.now
        self._leaving.append(item.view.uid)
        return self._event("Preempted", item, "Preempted", self._key(preemptor))

    def _key(self, workload: Workload) -> Key | None:
        item = self.items.get(workload.uid)
        return item.view.key if item is not None else None

    def _end_grace(self) -> Iterator[Event]:
        """Start pending evictions when their time is up."""
        for uid, pending in list(self._pending_evictions.items()):
            item = self.items.get(uid)
            if item is None or item.state != "Admitted" or item.starts != pending.start:
                del self._pending_evictions[uid]
            elif pending.until <= self.now and self.engine.ledger.evicting(uid):
                del self._pending_evictions[uid]
                self.engine.apply(StartEviction(uid))
                yield self._preempt(item, pending.preemptor)

    def _cancel_evictions(self) -> Iterator[Event]:
        """Cancel pending evictions that no preemptor needs any more."""
        for uid in [uid for uid in self._pending_evictions if not self.engine.ledger.evicting(uid)]:
            del self._pending_evictions[uid]
            yield self._event("Spared", self.items[uid], "NotNeeded")

    def _begin(self, item: Item, admission: Admission, now: float) -> None:
        item.state, item.admission, item.waiting = "Admitted", admission, None
        item.preempted = None
        if item.job is not None:
            self.engine.apply(UseReservation(item.view.uid))  # its pods run at once
        item.starts += 1
        self._admissions += 1
        item.order = self._admissions
        item.queue = admission.queue
        if item.runtime is not None:
            heapq.heappush(self._ends, End(now + item.runtime, item.view.uid, item.starts))

    def _event(self, kind: str, item: Item, reason: str, preemptor: Key | None = None) -> Event:
        queue = item.admission.queue if item.admission is not None else ""
        return Event(self.now, kind, item.view.key, queue, reason, preemptor)
