"""The controller, put together: which part listens to which changes.

One Job's way: `views` → `jobs` (its Workload) → `gate` → `admission` (engine, status) → `jobs` (its start).
"""

import asyncio
import contextlib
import gc
from collections.abc import Set as AbstractSet
from random import Random
from typing import Final

import structlog

from admitter.cache.namespace_views import NamespaceView, ResourceQuotaView
from admitter.cache.node_views import NodeView
from admitter.cache.pod_views import PodView
from admitter.cache.views import JobView, Json, ObjectView, WorkloadView
from admitter.cache.world import World
from admitter.client.informer import Informer
from admitter.client.pace import Pace
from admitter.client.store import Key, Listener, Store, V
from admitter.client.transport import Transport
from admitter.controllers.placement.guards import say_what_is_missing
from admitter.controllers.placement.namespace_queues import NamespaceQueues
from admitter.controllers.placement.placement import Placement
from admitter.controllers.quota_status.statuses import QuotaStatuses
from admitter.controllers.role import Role
from admitter.controllers.succession import Candidacy, Succession
from admitter.controllers.telemetry.decisions import Decisions
from admitter.controllers.telemetry.events import Events
from admitter.controllers.telemetry.metrics import Metrics
from admitter.controllers.telemetry.state_metrics import StateMetrics
from admitter.controllers.unreadable import UnreadableObjects
from admitter.controllers.workload.admission import Admissions
from admitter.controllers.workload.eviction import Evictions
from admitter.controllers.workload.grace import GracePeriods
from admitter.controllers.workload.jobs import Jobs
from admitter.controllers.workload.marks import Marks
from admitter.controllers.workload.memory_room import MemoryRoom
from admitter.controllers.workload.unscheduled import UnscheduledPods
from admitter.controllers.workload.waiting import WaitingReasons
from admitter.convert.settings import DEFAULTS, Settings
from admitter.election.elector import lease_name
from admitter.engine.cycle import Engine
from admitter.names import ELASTIC_QUOTA_QUEUE
from admitter.policy.catalog import Catalog, CatalogListener
from admitter.policy.elastic_quotas import PLURALS, QuotaKey
from admitter.policy.gate import Gate
from admitter.policy.generated import is_lenient
from admitter.policy.namespace_weights import NamespaceWeights
from admitter.policy.shortage import Shortages
from admitter.policy.status import Clock

STOP_SECONDS: Final = 5.0
"""For how long what is being written may go on once it is to stop."""
TELL_SECONDS: Final = 0.5
"""For how long users get events afterwards: no process decides meanwhile; the next leader sends the rest."""

log = structlog.get_logger(__name__)


class Manager:
    """Runs all controllers on one API server."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        random: Random,
        settings: Settings = DEFAULTS,
        metrics: Metrics | None = None,
        engine: Engine | None = None,
    ) -> None:
        self._transport = transport
        self._metrics = metrics if metrics is not None else Metrics()
        self._world = World()
        self._room = MemoryRoom(self._world.read_workloads, transport)
        self._informers = [Informer(transport, s, random, self._kind_returned) for s in self._world.sources]
        engine = engine if engine is not None else Engine()
        pace = Pace()
        told = CatalogListener(
            self._cluster_queue_rules_changed, self._hierarchy_changed, self._quotas_changed
        )
        self._catalog = Catalog(self._world, engine, settings.gpus, told)
        self._events = Events(transport, clock, pace)
        self._reasons = WaitingReasons(self._world, self._events, transport, clock, pace)
        self._marks = Marks(self._world, engine.capacity, transport, pace)
        grace = self._grace = GracePeriods(engine.ledger, clock, self._time_is_up)
        self._unanswered = UnscheduledPods(self._world, self._events, clock)
        self._shortages = Shortages(engine, self._catalog)
        eviction = Evictions(self._world, self._catalog, grace, self._shortages, transport)
        self._jobs = Jobs(self._world, self._catalog, self._events, self._marks, eviction, transport)
        gate = Gate(self._world, self._catalog, settings.requeue_by, self._jobs.refused.why)
        self._admissions = Admissions(self._world, engine, gate, self._reasons, grace, transport)
        self._queues = QuotaStatuses(self._world, self._catalog, engine, transport, clock, pace)
        self._weights = NamespaceWeights(self._world, engine)
        self._namespaces = NamespaceQueues(
            self._world, self._events, transport, self._cluster_queue_rules_changed
        )
        self._placement = Placement(self._world, self._catalog, self._events, transport, clock)
        self._admissions.usage_changed = self._queues.usage_changed
        self._admissions.decided = self._decided
        self._decisions = Decisions(self._metrics, self._world.workloads.get)
        self._metrics.follow(StateMetrics(engine, self._queues, self._admissions.deciding))
        self._jobs.refused.again = self._admissions.reconsider
        self._unreadable = UnreadableObjects(
            self._world, self._events, self._catalog, self._queues, self._admissions, self._jobs
        )
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._writers = (
            *(self._jobs.queue, self._namespaces.queue, self._placement.queue),
            *(self._queues, self._marks, self._events, self._decisions),
        )
        for writer in self._writers:
            writer.closed = True
        self._leads = asyncio.Event()
        self._world.shards.governed = lambda name: self._catalog.elastic.governing(name) is not None
        self.role = Role.STARTING
        self._metrics.leads(lease_name(0), holds=False)

    async def stop(self) -> frozenset[int]:
        """Come to an orderly end; `run` is to be cancelled afterwards.

        Nothing is decided or begun any more. What is being written may come to its end within `STOP_SECONDS`;
        what takes longer is for the next leader to find out. Then events are sent for `TELL_SECONDS`.

        Returns:
            The shards that this process has led, and for which nothing is on its way any more.
        """
        led: frozenset[int] = frozenset()
        self.role = Role.STOPPING
        queues = (self._jobs.queue, self._namespaces.queue, self._placement.queue)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await asyncio.gather(self._admissions.finish(), *(queue.finish() for queue in queues))
                led = frozenset(self._world.shards.epochs)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TELL_SECONDS):
                await asyncio.gather(self._events.flush(), self._reasons.flush(), self._queues.flush())
        return led

    async def run(self, candidacy: Candidacy) -> None:
        """Control until cancelled.

        1. The stores are filled.
        2. What is known is fed in, quota that is held before anything is decided.
        3. Changes are followed, and nothing is written, until this process leads.
        4. What an earlier leader has written last is taken in. Decisions are made and written.

        Args:
            candidacy: for the shards, each of which has its leader.
        """
        self._world.shards.spread(candidacy.shard_count)
        try:
            await self._run(candidacy)
        finally:
            self.role = Role.STARTING
            for shard in range(candidacy.shard_count):
                self._metrics.leads(lease_name(shard), holds=False)
            self._stop_timers()
            gc.unfreeze()

    def _stop_timers(self) -> None:
        """Nothing of this manager happens any more."""
        self._grace.close()
        self._unanswered.close()
        self._admissions.close()
        if self._timer is not None:
            self._timer.cancel()

    @property
    def overruled(self) -> asyncio.Event:
        """Set when the API server says that another controller decides."""
        return self._admissions.overruled

    async def _run(self, candidacy: Candidacy) -> None:
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run(), name=f"informer {informer.path}")
            for informer in self._informers:
                await informer.synced.wait()
            await say_what_is_missing(self._transport)
            self._feed()
            gc.freeze()  # what was read stays: to look through it for garbage again and again would stop us
            group.create_task(self._admissions.run(), name="admissions")
            group.create_task(self._room.run(), name="room")
            self.role = Role.FOLLOWER
            log.info("ready", jobs=len(self._world.jobs), workloads=len(self._world.workloads))
            succession = Succession(self._world, self, self._transport, candidacy)
            group.create_task(succession.run(), name="succession")
            await self._leads.wait()
            group.create_task(self._jobs.queue.run(), name="jobs")
            group.create_task(self._reasons.run(), name="reasons")
            group.create_task(self._events.run(), name="events")
            group.create_task(self._queues.run(), name="queues")
            group.create_task(self._marks.run(), name="marks")
            group.create_task(self._namespaces.queue.run(), name="namespaces")
            group.create_task(self._placement.queue.run(), name="placement")

    @property
    def led(self) -> list[int]:
        """The shards that this process leads."""
        return sorted(self._world.shards.epochs)

    def refresh(self) -> None:
        """Decide by the definitions as they are known now."""
        self._admissions.refresh()

    async def drained(self) -> None:
        """Wait for the end of all writes that were decided before now."""
        await self._admissions.drained()

    def forsake(self) -> None:
        """Decide for some shards less."""
        self._admissions.abandon_trees()
        self._open()

    def _open(self) -> None:
        """Write what belongs to the shards that are led; what is in none is in shard 0."""
        led = self._world.shards.epochs
        for writer in self._writers:
            writer.closed = not led
        for queue in (self._namespaces.queue, self._placement.queue):
            queue.closed = 0 not in led
        for shard in range(self._world.shards.number):
            self._metrics.leads(lease_name(shard), holds=shard in led)
        if self.role is not Role.STOPPING:
            self.role = Role.LEADER if led else Role.FOLLOWER

    def lead(self, epochs: dict[int, int]) -> None:
        """Decide and write for some shards more; what their leaders had to do may have been left undone."""
        if self.role is Role.STOPPING:
            return
        world = self._world
        self._admissions.lead(epochs)
        self._open()
        self._queues.touch_all()
        self._unreadable.lead()
        for workload in world.workloads:
            self._jobs.queue.add(workload.key)
            if world.shards.number > 1 and workload.admission is None:
                self._admissions.reconsider(workload.key)  # why it waits was for others to say until now
            if workload.evict_at is not None or (workload.admission is not None and workload.admission.pool):
                self._marks.touch(workload.key)
        for job in world.jobs:
            self._jobs.queue.add((job.namespace, job.workload))
            self._placement.job_changed(None, job)
        for namespace in world.namespaces:
            self._namespaces.namespace_changed(None, namespace)
        for queue in world.cluster_queues:
            self._namespaces.cluster_queue_changed(None, queue)
        for queue in world.local_queues:
            self._namespaces.local_queue_changed(None, queue)
        for shard, epoch in epochs.items():
            log.info("deciding", shard=shard, epoch=epoch)
        self._leads.set()

    def _feed(self) -> None:
        """Listen, and take in what is there already; nothing is decided before the end of this call."""
        world = self._world
        _follow(world.flavors, self._flavor_changed)
        _follow(world.cohorts, self._cohort_changed)
        _follow(world.cluster_queues, self._cluster_queue_changed)
        world.nodes.listen(self._node_changed)
        _follow(world.placement_policies, self._policy_changed)
        self._catalog.refresh()
        self._catalog.elastic.refresh()
        world.elastic_quotas.listen(self._elastic_quota_changed)
        world.composite_elastic_quotas.listen(self._composite_quota_changed)
        _follow(world.resource_quotas, self._resource_quota_changed)
        _follow(world.workloads, self._workload_changed)
        _follow(world.pods, self._pod_changed)
        _follow(world.local_queues, self._local_queue_changed)
        _follow(world.jobs, self._job_changed)
        self._admissions.restore()
        world.namespaces.listen(self._namespace_changed)
        _follow(world.namespaces, self._namespaces.namespace_changed)
        _follow(world.cluster_queues, self._namespaces.cluster_queue_changed)
        _follow(world.local_queues, self._namespaces.local_queue_changed)
        world.cohorts.listen(self._namespaces.cohort_changed)
        world.limit_ranges.listen(self._limit_range_changed)
        world.priority_classes.listen(self._class_changed)
        world.runtime_classes.listen(self._class_changed)
        self._unreadable.follow()

    def _kind_returned(self) -> None:
        """What failed for want of a kind is tried again now, and not when its pause is over."""
        for queue in (self._jobs.queue, self._namespaces.queue, self._placement.queue):
            queue.hurry()

    def _flavor_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        name = _either(old, new).name
        self._catalog.flavor_changed(name)
        self._queues.touch("resourceflavors", ("", name))
        self._admissions.schedule_cycle()

    def _cohort_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        if old is None or new is None or old.spec != new.spec:
            self._catalog.cohort_changed(_either(old, new).name)
            self._admissions.schedule_cycle()
            self._placement.queues_changed()

    def _policy_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        name = _either(old, new).name
        if old is None or new is None or old.spec != new.spec:
            self._catalog.placement.changed(name)
            self._queues.touch("placementpolicies", ("", name))
            self._placement.policies_changed()
        elif old.status.get("since") != new.status.get("since"):
            self._placement.policies_changed()

    def _node_changed(self, old: NodeView | None, new: NodeView | None) -> None:
        if old is None or new is None or old.node != new.node:  # and not only a sign of life
            self._catalog.nodes_changed()
            self._admissions.schedule_cycle()

    def _decided(self, seconds: float) -> None:
        """A cycle is over that took so long."""
        self._metrics.decided(seconds)
        self._end_shortages()

    def _end_shortages(self) -> None:
        """Evict where there has been too little for too long, and look again when that will be."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._clock().timestamp()
        evicted = self._shortages.look(now, lambda: {w.uid for w in self._world.workloads if w.evicting})
        for key in self._admissions.keys_of(evicted):
            self._jobs.queue.add(key)
        if self._shortages.due is not None:
            left = self._shortages.due - now
            self._timer = asyncio.get_running_loop().call_later(left, self._end_shortages)

    def _hierarchy_changed(self, cohorts: AbstractSet[str]) -> None:
        for cohort in cohorts:
            self._queues.touch("cohorts", ("", cohort))

    def _cluster_queue_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        if old is None or new is None or _declared(old) != _declared(new):
            self._catalog.queue_changed(_either(old, new).name)
            self._admissions.schedule_cycle()

    def _cluster_queue_rules_changed(self, name: str) -> None:
        self._queues.touch("clusterqueues", ("", name))
        self._placement.cluster_queue_changed(name)
        for key in self._world.local_queues_by_cluster_queue.get(name):
            self._queues.touch("localqueues", key)
        self._reconsider(self._world.workloads_in(name))

    def _elastic_quota_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        self._quota_changed("ElasticQuota", old, new)

    def _composite_quota_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        self._quota_changed("CompositeElasticQuota", old, new)

    def _quota_changed(self, kind: str, old: ObjectView | None, new: ObjectView | None) -> None:
        if old is None or new is None or old.spec != new.spec:
            self._queues.touch(PLURALS[kind], _either(old, new).key)
            self._catalog.elastic.refresh()
            self._admissions.schedule_cycle()
        elif old.status.get("managedSince") != new.status.get("managedSince"):
            for namespace in new.status.get("managedSince") or ():
                for key in self._world.jobs_by_namespace.get(namespace):
                    self._derive_again(key)

    def _quotas_changed(self, namespaces: set[str], quotas: set[QuotaKey]) -> None:
        """Elastic quotas came into force or went out of it, or what they say changed."""
        for kind, key in quotas:
            self._queues.touch(PLURALS[kind], key)
        for namespace in sorted(namespaces):
            quota = self._catalog.elastic.governing(namespace)
            if quota is not None:
                self._queues.usage_changed(quota.queue)
                self._marks.touch_queue(quota.queue)
            self._queues.touch("localqueues", (namespace, ELASTIC_QUOTA_QUEUE))
            workloads = self._world.workloads_by_queue.get((namespace, ELASTIC_QUOTA_QUEUE))
            self._reconsider(workloads)
            for key in workloads:
                self._marks.touch(key)
            for key in self._world.jobs_by_namespace.get(namespace):
                self._derive_again(key)

    def _local_queue_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        if old is not None and new is not None and old.spec == new.spec:
            return
        view = _either(old, new)
        self._queues.touch("localqueues", view.key)
        self._placement.namespace_changed(view.namespace)
        for queue in (old, new):
            if queue is not None:
                self._queues.usage_changed(queue.spec["clusterQueue"])
        self._reconsider(self._world.workloads_by_queue.get(view.key))

    def _workload_changed(self, old: WorkloadView | None, new: WorkloadView | None) -> None:
        if self._world.owners.owns(_either(old, new).key):
            self._decisions.workload_changed(old, new)
        self._queues.workload_changed(old, new)
        self._admissions.workload_changed(old, new)
        self._placement.workload_changed(old, new)
        self._jobs.queue.add(_either(old, new).key)
        for view in (old, new):
            if view is not None and view.admission is not None and view.admission.pool:
                self._marks.touch_queue(view.admission.queue)
                self._marks.touch(view.key)
            if view is not None and view.evict_at is not None:
                self._marks.touch(view.key)

    def _time_is_up(self, workload: Key) -> None:
        self._jobs.queue.add(workload)

    def _job_changed(self, old: JobView | None, new: JobView | None) -> None:
        self._decisions.job_changed(old, new)
        job = _either(old, new)
        key = (job.namespace, job.workload)
        self._admissions.job_changed(key)
        self._jobs.queue.add(key)
        self._placement.job_changed(old, new)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        pod = _either(old, new)
        self._admissions.pod_changed(old, new)
        self._unanswered.pod_changed(pod, gone=new is None)
        self._queues.usage_changed(pod.usage.queue)
        if pod.usage.pool:
            self._marks.touch_queue(pod.usage.queue)
        workload = self._world.workloads.get((pod.namespace, pod.workload))
        if workload is not None and workload.evict_at is not None:
            self._marks.touch(workload.key)
        if new is None or not new.live:
            self._jobs.queue.add((pod.namespace, pod.workload))

    def _namespace_changed(self, old: NamespaceView | None, new: NamespaceView | None) -> None:
        if old is None or new is None or (old.labels, old.terminating) != (new.labels, new.terminating):
            self._reconsider(self._world.workloads_by_namespace.get(_either(old, new).name))
            self._placement.labels_changed(_either(old, new).name)
        if old is None or new is None or _placed_by(old) != _placed_by(new):
            self._placement.namespace_changed(_either(old, new).name)
        if (old is None) != (new is None) and self._catalog.elastic.composite:
            self._catalog.elastic.refresh()  # one may name it

    def _resource_quota_changed(self, old: ResourceQuotaView | None, new: ResourceQuotaView | None) -> None:
        self._weights.quota_changed(old, new)
        self._admissions.schedule_cycle()

    def _limit_range_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        for key in self._world.jobs_by_namespace.get(_either(old, new).namespace):
            self._derive_again(key)

    def _class_changed(self, _old: ObjectView | None, _new: ObjectView | None) -> None:
        for job in self._world.jobs:
            self._derive_again(job.key)

    def _derive_again(self, key: Key) -> None:
        job = self._world.jobs.get(key)
        if job is not None and not job.finished:
            self._job_changed(None, job)

    def _reconsider(self, keys: list[Key]) -> None:
        if not self._admissions.restored:
            return  # all of them are looked at once everything is there
        for key in keys:
            self._admissions.reconsider(key)
            self._jobs.queue.add(key)
        self._admissions.schedule_cycle()


def _follow(store: Store[V], listener: Listener[V]) -> None:
    for view in store:
        listener(None, view)
    store.listen(listener)


def _placed_by(namespace: NamespaceView) -> tuple[object, ...]:
    """What decides where a namespace's Jobs are placed."""
    return (namespace.labels, namespace.annotations, namespace.terminating)


def _declared(cluster_queue: ObjectView) -> tuple[Json, bool]:
    return cluster_queue.spec, is_lenient(cluster_queue)


def _either(old: V | None, new: V | None) -> V:
    view = new if new is not None else old
    assert view is not None, "a change has a before or an after"
    return view
