"""The status of queues and flavors: whether they work, what waits and what is used; at most once a second."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Final

import structlog

from admitter.api.base import own_name
from admitter.api.conditions import ActiveReason, ConditionType
from admitter.cache.ownership import ELASTIC
from admitter.cache.views import Json, ObjectView, WorkloadView, at, timestamp
from admitter.cache.world import World, collection_path
from admitter.client.errors import ClusterError, ConflictError, NotFoundError
from admitter.client.failures import Failures
from admitter.client.pace import Pace
from admitter.client.signal import Signal
from admitter.client.store import Key, Store, Unreadable
from admitter.client.transport import Transport
from admitter.controllers.guarded import guarded
from admitter.controllers.quota_status.visible_queues import FIELD, VisibleQueues, amounts
from admitter.engine.cycle import Engine
from admitter.engine.model import FlavorResource
from admitter.names import ELASTIC_QUOTA_QUEUE
from admitter.policy import status
from admitter.policy.catalog import Catalog
from admitter.policy.defects import Defect
from admitter.policy.elastic_quotas import PLURALS
from admitter.policy.plans import defect_of
from admitter.quantities.amounts import display, to_quantity
from admitter.quotas.elastic import POOL, Declared
from admitter.quotas.hierarchy import cohort_use

PAUSE_SECONDS: Final = 1.0
WRITES_AT_A_TIME: Final = 16
TOLD_SECONDS: Final = 60.0
"""So often at most it is written of an object that it can't be read."""

log = structlog.get_logger(__name__)

Target = tuple[str, Key]
"""Plural of a kind, and the key of an object of it."""


@dataclass(eq=False)
class QuotaStatuses:
    """Counts workloads by queue, and writes the status of what changed."""

    world: World
    catalog: Catalog
    engine: Engine
    transport: Transport
    clock: status.Clock
    pace: Pace
    job_kinds: Mapping[str, Defect | None]  # by name, of those that have been looked at
    # what is in the way of the LocalQueues that a ClusterQueue asks for
    taken: Callable[[str], Defect | None] = lambda _: None

    def __post_init__(self) -> None:
        # an object, with its kind's plural, works no more or works again: its condition `Active`
        self.activity: Signal[[str, ObjectView, Json]] = Signal()
        self._failures = Failures[Target]()
        self._ledger = self.engine.ledger
        self._tree = self.engine.tree
        self._pending: Counter[Key] = Counter()
        self._admitted: Counter[Key] = Counter()
        self._admitted_by: Counter[str] = Counter()
        self.closed = False  # whether changes are only counted: a follower looks at everything when it leads
        self._changed: set[Target] = set()
        self._told: dict[Target, float] = {}
        self._ready = asyncio.Event()
        self.visible = VisibleQueues(
            self.world, self.catalog, self.engine, self._visible, partial(self.touch, "localqueues")
        )
        world = self.world
        # by plural, those with a status that this writes: where they are, and how the status is made
        self.kinds: dict[str, tuple[Store[ObjectView], Callable[[ObjectView], Json]]] = {
            "clusterqueues": (world.cluster_queues, self._cluster_queue),
            "localqueues": (world.local_queues, self._local_queue),
            "cohorts": (world.cohorts, self._cohort),
            "resourceflavors": (world.flavors, self._flavor),
            "placementpolicies": (world.placement_policies, self._placement_policy),
            "jobkinds": (world.job_kinds, self._job_kind),
            "elasticquotas": (world.elastic_quotas, partial(self._elastic_quota, "ElasticQuota")),
            "compositeelasticquotas": (
                world.composite_elastic_quotas,
                partial(self._elastic_quota, "CompositeElasticQuota"),
            ),
        }

    def touch(self, plural: str, key: Key) -> None:
        """The status of an object may have to change."""
        if not self.closed:
            self._changed.add((plural, key))
            self._ready.set()

    def touch_all(self) -> None:
        self.visible.forget()
        for plural, (store, _) in self.kinds.items():
            for key in [view.key for view in store] + list(store.unreadable):
                self.touch(plural, key)

    def workload_changed(self, old: WorkloadView | None, new: WorkloadView | None) -> None:
        """Count a Workload where it waits or is admitted."""
        for view, sign in ((old, -1), (new, 1)):
            if view is None or view.finished:
                continue
            queue = (view.namespace, view.queue)
            if view.admission is None:
                self._pending[queue] += sign
            else:
                self._admitted[queue] += sign
                self._admitted_by[view.admission.queue] += sign
        for view in (old, new):
            if view is not None:
                self._touch_queues_of(view)

    def queue_of(self, local_queue: Key) -> str:
        """The engine's queue that a LocalQueue, or the name of an elastic quota, leads to; empty: none."""
        return self.catalog.queue_of(local_queue) or ""

    def pending(self) -> Counter[str]:
        """How many Workloads wait, by the engine's queue; under no name those that have none."""
        counts: Counter[str] = Counter()
        for local_queue, count in self._pending.items():
            if count:
                counts[self.queue_of(local_queue)] += count
        return counts

    def admitted(self) -> dict[str, int]:
        """How many Workloads hold quota of each queue that there is."""
        return {name: self._admitted_by[name] for name in self._tree.queues}

    def usage_changed(self, cluster_queue: str) -> None:
        """The use of a ClusterQueue, or of an elastic quota's queue, changed without a Workload changing."""
        quota = self.catalog.elastic.of_queue(cluster_queue)
        if quota is not None:
            self.touch(PLURALS[quota.kind], (quota.namespace, quota.name))
            for group in self._tree.queues[cluster_queue].groups:
                for flavor in group.flavors:
                    self.touch("resourceflavors", ("", flavor))
        else:
            self.touch("clusterqueues", ("", cluster_queue))
        for _, cohort in self._tree.path(("queue", cluster_queue))[1:]:
            self.touch("cohorts", ("", cohort))

    def _touch_queues_of(self, workload: WorkloadView) -> None:
        queue = (workload.namespace, workload.queue)
        self.touch("localqueues", queue)
        local_queue = self.world.local_queues.get(queue)
        if local_queue is not None:
            self.usage_changed(local_queue.spec["clusterQueue"])
        quota = self.catalog.elastic.governing(workload.namespace)
        if quota is not None and workload.queue == ELASTIC_QUOTA_QUEUE:
            self.usage_changed(quota.queue)
        if workload.admission is not None:
            self.usage_changed(workload.admission.queue)

    async def run(self) -> None:
        while True:
            await self._ready.wait()
            await asyncio.sleep(PAUSE_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        self._ready.clear()
        changed, self._changed = sorted(filter(self._is_known, self._changed), reverse=True), set()
        for target in changed:
            self._note(*target)
        await asyncio.gather(*(self._work(changed) for _ in range(min(WRITES_AT_A_TIME, len(changed)))))

    def _note(self, plural: str, key: Key) -> None:
        """The use of a ClusterQueue or a Cohort may be another, and so what is free in all queues below."""
        if plural in {"clusterqueues", "cohorts"} and self.world.shards.owns(self._shard(plural, key)):
            for name in [key[1]] if plural == "clusterqueues" else self._tree.below(("cohort", key[1])):
                self.visible.changed(name)

    def _is_known(self, target: Target) -> bool:
        """Whether what is to be told of a queue is in force; if not, it is touched again once it is."""
        plural, key = target
        view = self.world.local_queues.get(key) if plural == "localqueues" else None
        name = str(view.spec["clusterQueue"]) if view is not None else key[1]
        return plural not in {"clusterqueues", "localqueues"} or not self.catalog.is_coming(name)

    async def _work(self, changed: list[Target]) -> None:
        while changed:
            await guarded(self._write(*changed.pop()), "to write a status")

    async def _write(self, plural: str, key: Key) -> None:
        store, status_of = self.kinds[plural]
        unreadable = store.unreadable.get(key)
        if unreadable is not None:
            await self._tell_unreadable(plural, unreadable)
            return
        view = store.get(key)
        if view is None or not self.world.shards.owns(self._shard(plural, key)):
            self._failures.over((plural, key))
            return
        wanted = status_of(view)
        changed = {name: value for name, value in wanted.items() if view.status.get(name) != value}
        if not self._is_due(plural, key, changed):
            return
        body = {"metadata": {"resourceVersion": str(view.version)}, "status": _merging(view.status, wanted)}
        try:
            async with self.pace.turn():
                path = f"{collection_path(plural, key[0])}/{key[1]}/status"
                raw = await self.transport.patch(path, body)
            self.world.source_of(plural).take(raw)
            self._failures.over((plural, key))
            self._tell_whether_active(plural, view, wanted)
        except (ConflictError, NotFoundError):
            self.touch(plural, key)  # an edit is on its way here
        except ClusterError as error:
            self._failed(plural, key, error)
            self.touch(plural, key)

    def _failed(self, plural: str, key: Key, error: ClusterError) -> None:
        level = self._failures.note((plural, key), error).level
        place = {"namespace": key[0]} if key[0] else {}
        log.log(level, "status not written", kind=plural, **place, name=key[1], error=str(error))

    def _tell_whether_active(self, plural: str, view: ObjectView, wanted: Json) -> None:
        """Tell that an object works no more, and why, or works again.

        What is only so of a LocalQueue's ClusterQueue is told there, once, and not at each LocalQueue.
        """
        before, now = (_active(status.get("conditions") or ()) for status in (view.status, wanted))
        inactive = now if now["status"] == "False" else before
        if inactive.get("reason") == ActiveReason.CLUSTER_QUEUE_INACTIVE:
            return
        changed = [now.get(field) != before.get(field) for field in ("status", "reason")]
        if any(changed) if now["status"] == "False" else before.get("status") == "False":
            self.activity(plural, view, now)

    def _is_due(self, plural: str, key: Key, changed: Json) -> bool:
        """Whether a status with these changed fields is to be written now."""
        turn = plural == "localqueues" and self.visible.take_turn(key)
        if plural == "localqueues" and changed.keys() - {FIELD}:
            self.visible.hasten(key)
        elif plural == "localqueues" and changed.get(FIELD) is not None and not turn:
            self.visible.defer(key)
            return False
        return bool(changed)

    async def _tell_unreadable(self, plural: str, unreadable: Unreadable) -> None:
        """Say of an object that can't be read that it does not work, once in a while at most."""
        target, loop = (plural, unreadable.key), asyncio.get_running_loop()
        namespace, name = unreadable.key
        if loop.time() < self._told.get(target, 0.0) or not self.world.shards.owns(self._shard(*target)):
            return
        self._told[target] = loop.time() + TOLD_SECONDS
        loop.call_later(TOLD_SECONDS, self._told.pop, target, None)
        problem = (ActiveReason.UNREADABLE, unreadable.words)
        conditions = status.active(0, [], problem, self.clock())
        body = {"metadata": {"uid": unreadable.uid}, "status": {"conditions": conditions}}
        try:
            async with self.pace.turn():
                await self.transport.patch(f"{collection_path(plural, namespace)}/{name}/status", body)
        except ClusterError as error:
            self._failed(plural, unreadable.key, error)

    def _shard(self, plural: str, key: Key) -> int:
        """The shard that writes an object's status: the owner of its tree has the newest figures."""
        match plural:
            case "clusterqueues":
                return self.world.shards.of_queue(key[1])
            case "localqueues":
                return self.world.owners.of_local_queue(*key)
            case "cohorts":
                return self.world.shards.of_cohort(key[1])
            case "elasticquotas" | "compositeelasticquotas":
                return self.world.shards.of_tree(ELASTIC)
        return 0

    def _flavor(self, view: ObjectView) -> Json:
        namespaces = (quota.namespaces for quota in self.catalog.elastic.naming(view.name))
        return {
            "conditions": self._active(view, self.catalog.flavor_problem(view.name)),
            "busyElasticQuotas": sum(any(map(self._is_busy, each)) for each in namespaces),
        }

    def _is_busy(self, namespace: str) -> bool:
        """Whether the elastic quota of a namespace has Workloads of it."""
        queue = (namespace, ELASTIC_QUOTA_QUEUE)
        return self._pending[queue] > 0 or self._admitted[queue] > 0

    def _cluster_queue(self, view: ObjectView) -> Json:
        entry = self.catalog.queue(view.name)
        problem = entry.problem or defect_of(self.world, view)
        if problem is None and entry.stopped:
            problem = (ActiveReason.STOPPED, "stopped by its stopPolicy")
        problem = problem or entry.flaw or self.taken(view.name)
        return {
            "conditions": self._active(view, problem),
            **self._counts(view),
            "flavors": _by_flavor(self._usage(view)),
            "scarcest": self._scarcest(view),
        }

    def _counts(self, view: ObjectView) -> Json:
        """How many Workloads a ClusterQueue has."""
        return {
            "pendingWorkloads": self._waiting(view.name),
            "admittedWorkloads": self._admitted_by[view.name],
        }

    def _visible(self, view: ObjectView) -> Json:
        """What a LocalQueue may say of its ClusterQueue, without the line."""
        return {**self._counts(view), "flavors": _by_flavor(amounts(self.engine, view.name))}

    def _cohort(self, view: ObjectView) -> Json:
        uses = sorted(cohort_use(self._tree, self._ledger.real, view.name).items())
        return {
            "conditions": self._active(view, self.catalog.cohort_problem(view.name)),
            "flavors": _by_flavor((key, use._asdict()) for key, use in uses),
            "pendingWorkloads": sum(
                self._waiting(queue)
                for queue in self._tree.below(("cohort", view.name))
                if not self.catalog.queue(queue).stopped
            ),
        }

    def _waiting(self, queue: str) -> int:
        """How many Workloads wait in a queue of the engine."""
        quota = self.catalog.elastic.of_queue(queue)
        if quota is not None:
            return sum(self._pending[namespace, ELASTIC_QUOTA_QUEUE] for namespace in quota.namespaces)
        return sum(self._pending[each] for each in self.world.local_queues_by_cluster_queue.get(queue))

    def _elastic_quota(self, kind: str, view: ObjectView) -> Json:
        problem = self.catalog.elastic.problem(kind, view.key)
        namespaces = view.spec.get("namespaces") or (view.namespace,)
        governed = [
            (namespace, ELASTIC_QUOTA_QUEUE)
            for namespace in namespaces
            if (quota := self.catalog.elastic.governing(namespace)) is not None
            and (quota.kind, quota.namespace, quota.name) == (kind, *view.key)
        ]
        queue = self.catalog.elastic.governing(governed[0][0]) if governed else None
        usage = self._ledger.used(queue.queue) if queue is not None else {}
        limited = [*(view.spec.get("min") or ()), *(view.spec.get("max") or ())]
        return {
            "conditions": self._active(view, problem),
            "used": {
                name: to_quantity(name, usage.get((POOL, own_name(name)), 0))
                for name in dict.fromkeys(limited)
            },
            "pendingWorkloads": sum(self._pending[q] for q in governed),
            "admittedWorkloads": sum(self._admitted[q] for q in governed),
            "managedSince": self._managed_since(queue),
        }

    def _placement_policy(self, view: ObjectView) -> Json:
        since = self.catalog.placement.since(view) or timestamp(at(view.changed))
        return {"conditions": self._active(view, self.catalog.placement.problem(view.name)), "since": since}

    def _job_kind(self, view: ObjectView) -> Json:
        known = view.name in self.job_kinds  # if not, it is looked at in a moment
        return {"conditions": self._active(view, self.job_kinds[view.name])} if known else {}

    def _managed_since(self, quota: Declared | None) -> dict[str, str]:
        """Since when which namespaces' Jobs are all a quota's."""
        if quota is None or not quota.manages_all:
            return {}
        known, now = self.catalog.elastic.managed_since(quota), timestamp(self.clock())
        return {namespace: known.get(namespace, now) for namespace in quota.namespaces}

    def _local_queue(self, view: ObjectView) -> Json:
        name = view.spec["clusterQueue"]
        entry = self.catalog.queue(name)
        problem: Defect | None = None
        quota = self.catalog.elastic.governing(view.namespace)
        if quota is not None and view.name == ELASTIC_QUOTA_QUEUE:
            words = f"{quota} governs this namespace: Jobs with this queue name are its"
            problem = (ActiveReason.QUEUE_NAME_TAKEN, words)
        elif view.spec.get("stopPolicy", "None") != "None":
            problem = (ActiveReason.STOPPED, "stopped by its stopPolicy")
        elif self.world.cluster_queues.get(("", name)) is None:
            problem = (ActiveReason.CLUSTER_QUEUE_NOT_FOUND, f"ClusterQueue {name} does not exist")
        elif entry.problem is not None:
            problem = (ActiveReason.CLUSTER_QUEUE_INACTIVE, f"ClusterQueue {name}: {entry.problem[1]}")
        elif entry.stopped:
            problem = (ActiveReason.CLUSTER_QUEUE_INACTIVE, f"ClusterQueue {name} is stopped")
        return {
            "conditions": self._active(view, problem),
            "pendingWorkloads": self._pending[view.key],
            "admittedWorkloads": self._admitted[view.key],
            FIELD: self.visible.of(view),
        }

    def _active(self, view: ObjectView, problem: Defect | None) -> list[Json]:
        conditions: list[Any] = view.status.get("conditions") or []
        return status.active(view.generation, conditions, problem, self.clock())

    def _scarcest(self, view: ObjectView) -> str | None:
        """Use and quota of the resource and flavor of which the largest part is used; None without quota."""
        definition, found = self._tree.queues.get(view.name), list[tuple[Fraction, str]]()
        for flavor, resource in definition.keys() if definition is not None else ():
            cell = self._ledger.real.cell(view.name, (flavor, resource))
            quota = cell.subtree_quota or cell.potential_available()
            if quota:
                used, most = display(resource, cell.used), display(resource, quota)
                found.append((Fraction(cell.used, quota), f"{used}/{most} {resource} of {flavor}"))
        return max(found, key=lambda each: each[0])[1] if found else None

    def _usage(self, view: ObjectView) -> Iterator[tuple[FlavorResource, dict[str, int]]]:
        """What is used, in the order of what is counted, be it listed or inherited."""
        definition = self._tree.queues.get(view.name)
        for key in definition.keys() if definition is not None else ():
            cell = self._ledger.real.cell(view.name, key)
            yield key, {"used": cell.used, "borrowed": max(0, cell.used - cell.subtree_quota)}


def _by_flavor(uses: Iterable[tuple[FlavorResource, dict[str, int]]]) -> list[Json]:
    flavors: dict[str, list[Json]] = {}
    for (flavor, resource), use in uses:
        quantities = {field: to_quantity(resource, amount) for field, amount in use.items()}
        flavors.setdefault(flavor, []).append({"name": resource, **quantities})
    return [{"name": name, "resources": resources} for name, resources in flavors.items()]


def _active(conditions: Iterable[Json]) -> Json:
    return next((each for each in conditions if each["type"] == ConditionType.ACTIVE), {})


def _merging(before: Json, wanted: Json) -> Json:
    """A patch that leaves nothing in a map that is no longer in it."""
    return {
        name: {**dict.fromkeys(before.get(name) or ()), **value} if isinstance(value, dict) else value
        for name, value in wanted.items()
    }
