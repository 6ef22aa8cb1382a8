"""Applies the manifests of a timeline: definitions, Jobs and Workloads as they come, change and go."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from admitter.cache.node_views import parse_node
from admitter.cache.views import JobView, ObjectView, parse_workload
from admitter.documents import title
from admitter.names import QUEUE_LABEL
from admitter.policy.derive import workload_spec
from admitter.policy.elastic_quotas import PLURALS
from admitter.policy.gate import Waiting
from admitter.policy.lifecycle import Phase
from admitter.policy.snapshot import Snapshot
from admitter.quantities.amounts import InvalidQuantityError
from admitter.quantities.durations import InvalidDurationError
from admitter.simulate.described import parse_any_job, title_of
from admitter.simulate.items import Event, Item, Key
from admitter.simulate.lifecycles import Lifecycles
from admitter.simulate.manifests import Change, Invalid, Timeline, ready_after, runtime
from admitter.simulate.objects import Objects, timestamp
from admitter.simulate.placing import Placing, SimulatedGenerator, since_now
from admitter.simulate.pod_arrivals import PodArrivals, again

Json = dict[str, Any]


class Arrivals:
    """The changes of a timeline, each applied at its time."""

    def __init__(self, timeline: Timeline, snapshot: Snapshot, lifecycles: Lifecycles) -> None:
        self.errors: list[Invalid] = list(timeline.errors)  # objects that can't be used
        self._world = snapshot.world
        self._catalog = snapshot.catalog
        self._lifecycles = lifecycles
        self._generator = SimulatedGenerator(self._world, self._catalog.local_queue_rules)
        self._placing = Placing(self._world, self._catalog)
        self._objects = Objects(self._world)
        self._pods = PodArrivals(snapshot, self._objects, lifecycles, self._invalid)
        self._changes = list(reversed(timeline.changes))
        self._now = timeline.start
        self._unqueued: dict[Key, Json] = {}
        self._arriving: set[Key] = set()
        self._namespaces = 0  # how many there were when LocalQueues were looked at

    @property
    def to_come(self) -> int:
        return len(self._changes)

    def add(self, changes: Iterable[Change]) -> None:
        """Further changes, none of them before the moment that was applied last."""
        self._changes = sorted([*self._changes, *changes], reverse=True)

    @property
    def due(self) -> float | None:
        """When the next change happens, in seconds since the epoch."""
        return self._changes[-1].time if self._changes else None

    def take_in(self, now: float) -> Iterator[Event]:
        """Apply the changes of a moment; workloads in drained queues are evicted."""
        self._now = now
        defined = False
        while self._changes and self._changes[-1].time <= now:
            defined |= self._apply(self._changes.pop())
        defined |= len(self._world.namespaces) > self._namespaces > 0
        if defined:
            self._generate()
        self._pods.take_in(now)
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
            "Pod": self._pods.put,
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
                raw["status"] = since_now(before, raw.get("spec") or {}, timestamp(self._now))
            self._objects.put(kind, raw)
        self._note(kind, key[1])
        return True

    def _invalid(self, found: Invalid) -> None:
        """An object can't be used; of what is said of many pods of one object once is enough."""
        if found not in self.errors:
            self.errors.append(found)

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
            self._apply(Change(self._now, 0, manifest, gone))
        for manifest, gone in list(self._generator.by_rules(self._is_empty)):
            self._apply(Change(self._now, 0, manifest, gone))
        self._namespaces = len(self._world.namespaces)
        self.errors += self._generator.defects()

    def _is_empty(self, local_queue: Key) -> bool:
        """Whether nothing waits or runs by a LocalQueue."""
        views = (item.view for item in self._lifecycles.items.values() if item.phase is not Phase.FINISHED)
        return all((view.namespace, view.queue) != local_queue for view in views)

    def _node(self, raw: Json, key: Key, *, gone: bool) -> None:
        if gone:
            self._world.nodes.delete(key, raw["metadata"]["uid"])
        else:
            self._world.nodes.apply(parse_node(raw))
        self._catalog.nodes_changed()

    def _managing(self, kind: str, before: ObjectView, spec: Json) -> Json:
        """The status of a changed quota: since when it manages all Jobs of a namespace."""
        if not spec.get("manageAllJobs"):
            return {"conditions": [{}]}
        known = self._catalog.elastic.managed_by(kind, before) if before.spec.get("manageAllJobs") else {}
        namespaces, now = spec.get("namespaces") or [before.namespace], timestamp(self._now)
        return {"conditions": [{}], "managedSince": {name: known.get(name, now) for name in namespaces}}

    def _job(self, raw: Json, key: Key, *, gone: bool) -> None:
        self._unqueued.pop(key, None)
        known = self._world.jobs.get(key)
        if gone:  # that it is to go may be all that is said of it
            if known is not None:
                self._world.jobs.delete(key, known.uid)
                made = self._world.workloads.get((known.namespace, known.workload))
                self._lifecycles.forget(made.uid if made is not None else known.uid, self._now)
            return
        raw["spec"] = {**raw["spec"], "suspend": True}
        job = parse_any_job(raw)
        if job.queue is None:
            self._unqueued[key] = raw
            self._arriving.add(key)
            self._objects.namespace(key[0], self._now)
        self._world.jobs.apply(job)
        self._enter(raw, key, job)

    def _find_queues(self) -> bool:
        """Find queues for Jobs that name none; True if one was created: other workloads may use it too."""
        made = again = False
        for key, raw in list(self._unqueued.items()):
            job = self._world.jobs.get(key)
            assert job is not None, "it is there as long as it is not queued"
            found = self._placing.find(
                job, new=key in self._arriving, waits=job.uid in self._lifecycles.items
            )
            if isinstance(found, Waiting):
                self._enter(raw, key, job, found)
            elif found is not None:
                for manifest in found.manifests:
                    self._apply(Change(self._now, 0, manifest))
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
            self._lifecycles.forget(job.uid, self._now)
            return
        try:
            lasts, delay = runtime(raw), ready_after(raw)
            spec = workload_spec(replace(job, queue=job.queue or ""), self._world)
        except (InvalidDurationError, InvalidQuantityError) as error:
            self.errors.append(Invalid(title_of(raw), str(error)))
            self._unqueued.pop(key, None)
            return
        metadata = {**raw["metadata"], "name": job.workload}
        view = parse_workload({"metadata": metadata, "spec": spec})
        self._objects.namespace(key[0], self._now)
        item = self._lifecycles.put(view, job, lasts)
        item.waiting = unplaced or item.waiting
        item.ready_after = delay

    def _workload(self, raw: Json, key: Key, *, gone: bool) -> None:
        view = parse_workload(raw)
        if gone:
            self._lifecycles.forget(view.uid, self._now)
            return
        try:
            lasts = runtime(raw)
        except InvalidDurationError as error:
            self.errors.append(Invalid(title(raw, ""), str(error)))
            return
        self._objects.namespace(key[0], self._now)
        self._lifecycles.restate(self._lifecycles.put(view, None, lasts), self._now)

    def _define(self) -> Iterator[Event]:
        """Definitions have changed: check all waiting workloads again, and empty drained queues."""
        for item in self._lifecycles.items.values():
            if item.phase.runs:
                self._lifecycles.revalue(item)
                yield from self._lifecycles.drain(item, self._now)
            elif item.phase is not Phase.FINISHED and not item.unplaced:
                if item.job is not None:
                    self._again(item)
                self._lifecycles.evaluate(item)

    def _again(self, item: Item) -> None:
        """Derive a Job's Workload anew: limit ranges and classes may have changed."""
        assert item.job is not None
        try:
            spec = workload_spec(item.job, self._world)
        except InvalidQuantityError:
            return  # reported when the Job came
        if spec != item.view.spec:
            if item.job.resource.is_pods:
                item.view = again(item, spec, self._world, self._objects.version)
                return
            metadata = {"namespace": item.view.namespace, "name": item.view.name, "uid": item.view.uid}
            version = {
                "resourceVersion": self._objects.version,
                "creationTimestamp": timestamp(item.view.created),
            }
            item.view = parse_workload({"metadata": metadata | version, "spec": spec})
