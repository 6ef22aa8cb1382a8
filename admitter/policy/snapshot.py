"""What the controller sees at one moment: its stores, checks and engine, and nothing that writes.

`Facts` are parsed objects. A `Snapshot` is made of them for one caller, which may run its engine on. Facts
are shared, so that a second snapshot of the same moment costs no reading.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from admitter.cache.declared_kinds import declared_kinds
from admitter.cache.job_resources import OF_PODS
from admitter.cache.pod_views import loose_usage
from admitter.cache.views import JobView, WorkloadView, at, parse_workload, timestamp
from admitter.cache.world import KnownKind, World
from admitter.client.source import Source
from admitter.client.store import Key
from admitter.convert.settings import DEFAULTS, Settings
from admitter.engine.commands import Reserve
from admitter.engine.cycle import Engine
from admitter.policy.catalog import Catalog
from admitter.policy.derive import metadata_for, workload_spec
from admitter.policy.eviction_records import take_record
from admitter.policy.gate import Gate, Waiting
from admitter.policy.gate_readiness import backing_off
from admitter.policy.intake import Intake
from admitter.policy.namespace_weights import NamespaceWeights
from admitter.policy.pending_reservations import keep_reservations
from admitter.quantities.amounts import InvalidQuantityError

QUEUED_PODS: Final = "queuedpods"
"""Stands for the plural of pods that name a queue: those that have been started are among the pods too."""

Views = Mapping[str, Mapping[Key, Any]]
"""Parsed objects by the plural of their kind, and by namespace and name."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a cluster at one moment; `taken` is that moment, in seconds since the epoch."""

    taken: float
    settings: Settings = DEFAULTS
    # by the plural of their kind; objects of described kinds are among the Jobs, by their titles
    views: Views = field(default_factory=dict)
    # the described kinds of which these are all objects, such as `jobsets.jobset.x-k8s.io`
    read: frozenset[str] | None = None  # None: nothing is known of such kinds


def plural_of(path: str) -> str:
    """The plural of a collection's kind: all that are followed differ in it."""
    return path.rsplit("/", 1)[-1]


def sources_of(world: World) -> dict[str, Source[Any]]:
    """Where all is read that a snapshot has, by what it is called there."""
    return {plural_of(each.path): each for each in world.sources} | {QUEUED_PODS: world.read_queued_pods}


def jobs_in(known: Facts) -> dict[Key, JobView]:
    """All job objects, those included that are pods or groups of them."""
    world = World()
    for pod in known.views.get(QUEUED_PODS, {}).values():
        world.queued_pods.apply(pod)
    return {**known.views.get("jobs", {}), **{job.key: job for job in world.jobs}}


def only(known: Facts, kept: Container[Key]) -> Facts:
    """The facts with only some Workloads, and what these were made for."""
    views: dict[str, Mapping[Key, Any]] = {**known.views}
    views["workloads"] = {key: view for key, view in known.views.get("workloads", {}).items() if key in kept}
    for plural in known.views.keys() & {"jobs", QUEUED_PODS}:
        made_for = known.views[plural].items()
        views[plural] = {key: each for key, each in made_for if (each.namespace, each.workload) in kept}
    return replace(known, views=views)


class Snapshot:
    """World and engine at one moment."""

    def __init__(self, known: Facts) -> None:
        self.now = known.taken  # that moment, in seconds since the epoch
        self.settings = known.settings
        self.world = World()  # all objects
        self.engine = Engine()  # the reservations and the pending workloads; nothing has been decided in it
        # what queues and flavors say, checked
        self.catalog = Catalog(self.world, self.engine, known.settings.gpus)
        # which Workloads may compete
        backs_off = partial(backing_off, lambda: at(self.now))
        requeue_by = known.settings.requeue_by
        self.gate = Gate(self.world, self.catalog, requeue_by, backs_off=backs_off, writes=False)
        self.waiting: dict[str, Waiting] = {}  # why some Workloads may not compete, by UID
        self._intake = Intake(self.world, self.engine, self.gate)
        self.world.shards.epochs[0] = 0
        self._fill(known.views)
        self._know_kinds(known.read)
        self._define()
        self._take_in()

    def _fill(self, views: Views) -> None:
        for plural, source in sources_of(self.world).items():
            for view in views.get(plural, {}).values():
                source.store.apply(view)
        for sort, resource in OF_PODS.items():
            self.world.kinds[sort] = KnownKind(resource=resource, read=QUEUED_PODS in views)

    def _know_kinds(self, read: frozenset[str] | None) -> None:
        """Of a kind that works and was not read, Workloads say what is to be known."""
        world = self.world
        world.has_kinds = read is not None
        for each in declared_kinds(world.job_kinds):
            if read is not None and each.resource.collection in read:
                world.kinds[each.sort] = KnownKind(None, "", each.resource)
            elif each.problem:
                words = f"JobKind {each.kind.metadata.name} does not work: {each.problem}"
                world.kinds[each.sort] = KnownKind(None, words, each.resource)
            else:
                world.has_kinds = False

    def _define(self) -> None:
        world, catalog = self.world, self.catalog
        for store, changed in (
            (world.flavors, catalog.flavor_changed),
            (world.cohorts, catalog.cohort_changed),
            (world.cluster_queues, catalog.queue_changed),
            (world.placement_policies, catalog.placement.changed),
        ):
            for view in store:
                changed(view.name)
        for queue in world.cluster_queues:
            take_record(self.engine, None, queue)
        catalog.nodes_changed()
        catalog.refresh()
        catalog.elastic.refresh()
        weights = NamespaceWeights(world, self.engine)
        for quota in world.resource_quotas:
            weights.quota_changed(None, quota)
        world.resource_quotas.listen(weights.quota_changed)

    def _take_in(self) -> None:
        """Take in Workloads that hold quota, then pending ones, as a controller does when it starts."""
        for job in self.world.jobs:
            self._complete(job)
        for workload in sorted(self.world.workloads, key=lambda workload: workload.admission is None):
            outcome = self._intake.take(workload)
            if isinstance(outcome, Waiting):
                self.waiting[workload.uid] = outcome
        loose = self._take_loose_jobs_in()
        for pod in self.world.pods:
            key = (pod.namespace, pod.workload)
            holder = self.world.workloads.get(key)
            if pod.live and key not in loose and (holder is None or holder.admission is None):
                self.engine.apply(Reserve(pod.uid, pod.usage, since=pod.created, namespace=pod.namespace))
        keep_reservations(self.world, self.engine, self.gate)

    def _take_loose_jobs_in(self) -> set[Key]:
        """Jobs that may run though no Workload holds anything for them are counted themselves."""
        found = set()
        for job in self.world.jobs:
            key = (job.namespace, job.workload)
            usage = loose_usage(job, self.world.workloads.get(key))
            if usage is not None:
                found.add(key)
                self.engine.apply(Reserve(job.uid, usage, since=job.created, namespace=job.namespace))
        return found

    def _complete(self, job: JobView) -> None:
        """A queued Job that has no Workload yet gets the one that the controller is about to make."""
        key = (job.namespace, job.workload)
        known = self.world.workloads.get(key) is not None or self.world.is_child(job)
        if job.queue is None or job.finished or known:
            return
        try:
            spec = workload_spec(job, self.world)
        except InvalidQuantityError:
            return  # the controller makes none either, and says so at the Job
        known_by = {"uid": job.uid, "resourceVersion": str(job.version)}
        metadata = metadata_for(job, self.world) | known_by
        metadata["creationTimestamp"] = timestamp(at(job.created))
        self.world.workloads.apply(parse_workload({"metadata": metadata, "spec": spec}))

    def find(self, namespace: str, name: str) -> WorkloadView | None:
        """A Workload by its own name, or by the title of its job object."""
        found = self.world.workloads.get((namespace, name))
        if found is not None:
            return found
        job = self.world.job_titled(namespace, name)
        if job is not None:
            return self.world.workloads.get((namespace, job.workload))
        here = map(self.world.workloads.get, self.world.workloads_by_namespace.get(namespace))
        of_it = [view for view in here if view is not None and view.job is not None and view.job[0] == name]
        return min(of_it, key=lambda view: view.finished, default=None)

    def queue_of(self, workload: WorkloadView) -> str | None:
        """The engine's queue that a Workload asks for; None if its LocalQueue leads nowhere."""
        return self.catalog.queue_of((workload.namespace, workload.queue))
