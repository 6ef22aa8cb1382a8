"""Which change concerns which part: one function for each kind of object, and for each signal of a part."""

from collections.abc import Set as AbstractSet
from functools import partial

from admitter.cache.job_resources import sort_of
from admitter.cache.namespace_views import NamespaceView, ResourceQuotaView
from admitter.cache.node_views import NodeView
from admitter.cache.pod_views import PodView
from admitter.cache.views import JobView, Json, ObjectView, WorkloadView
from admitter.client.store import Key, either
from admitter.controllers.app import App
from admitter.controllers.telemetry.events import Subject
from admitter.controllers.unreadable import KINDS
from admitter.names import ELASTIC_QUOTA_QUEUE, MANAGED_LABEL
from admitter.policy.elastic_quotas import PLURALS, QuotaKey
from admitter.policy.eviction_records import take_record
from admitter.policy.generated import is_lenient
from admitter.policy.priorities import CLASS_FIELD


class Routing:
    """Tells each part of the changes that concern it."""

    def __init__(self, app: App) -> None:
        """Call `follow` once the stores are filled."""
        self._app = app
        self._world = app.world
        self._catalog = app.catalog
        self._admissions = app.admissions
        self._feed = app.admissions.feed
        self._jobs = app.jobs.queue
        self._marks = app.marks
        self._namespaces = app.namespaces
        self._local_queues = app.local_queues
        self._placement = app.placement
        self._statuses = app.statuses

    def follow(self) -> None:
        """Take in what is known, and follow its changes; nothing is decided before the end of this call.

        Definitions come before what holds quota by them, and all that holds quota before what waits for it.
        """
        self._follow_parts()
        world = self._world
        world.flavors.follow(self._flavor_changed)
        world.cohorts.follow(self._cohort_changed)
        world.cluster_queues.follow(self._cluster_queue_changed)
        world.nodes.listen(self._node_changed)
        world.placement_policies.follow(self._policy_changed)
        self._catalog.refresh()
        self._catalog.elastic.refresh()
        world.elastic_quotas.listen(partial(self._elastic_quota_changed, "ElasticQuota"))
        world.composite_elastic_quotas.listen(partial(self._elastic_quota_changed, "CompositeElasticQuota"))
        world.resource_quotas.follow(self._resource_quota_changed)
        world.workloads.follow(self._workload_changed)
        world.pods.follow(self._pod_changed)
        world.local_queues.follow(self._local_queue_changed)
        world.jobs.follow(self._job_changed)
        self._feed.restore()
        world.namespaces.listen(self._namespace_changed)
        world.limit_ranges.listen(self._limit_range_changed)
        world.priority_classes.listen(self._class_changed)
        world.runtime_classes.listen(self._class_changed)
        world.workload_classes.listen(self._workload_class_changed)
        self._app.unreadable.follow()

    def _follow_parts(self) -> None:
        self._catalog.news.queue.listen(self._queue_rules_changed)
        self._catalog.news.cohorts.listen(self._cohort_rules_changed)
        self._catalog.news.quotas.listen(self._quotas_changed)
        self._admissions.decided.listen(self._decided)
        self._admissions.usage_changed.listen(self._statuses.usage_changed)
        self._app.refused.over.listen(self._feed.reconsider)
        self._app.grace_over.listen(self._jobs.add)
        self._app.ready.due.listen(self._jobs.add)
        self._app.ready.again.listen(self._feed.reconsider)
        self._app.kind_returned.listen(self._kind_returned)
        self._app.kinds.changed.listen(self._job_kind_changed)
        self._app.job_kinds.changed.listen(lambda name: self._statuses.touch("jobkinds", ("", name)))
        self._app.evictions.again.listen(self._jobs.add_later)
        self._app.groups.again.listen(self._jobs.add_later)
        self._app.held.again.listen(self._jobs.add_later)
        self._app.resizes.bounds.again.listen(self._jobs.add_later)
        self._statuses.activity.listen(self._activity_changed)
        self._local_queues.changed.listen(lambda name: self._statuses.touch("clusterqueues", ("", name)))

    def look_at_all(self) -> None:
        """Have everything looked at that is this process's: an earlier leader may have left it undone."""
        world = self._world
        self._statuses.touch_all()
        self._app.unreadable.lead()
        for workload in world.workloads:
            self._jobs.add(workload.key)
            if world.shards.number > 1 and workload.admission is None:
                self._feed.reconsider(workload.key)  # why it waits was for others to say until now
            if workload.evict_at is not None or (workload.admission is not None and workload.admission.pool):
                self._marks.touch(workload.key)
        for job in world.jobs:
            self._jobs.add((job.namespace, job.workload))
        self._placement.touch_all()
        self._namespaces.touch_all()
        self._local_queues.touch_all()

    def _flavor_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        name = either(old, new).name
        self._catalog.flavor_changed(name)
        self._statuses.touch("resourceflavors", ("", name))
        self._admissions.schedule_cycle()

    def _cohort_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        self._namespaces.cohort_changed(old, new)
        if _is_edited(old, new):
            self._catalog.cohort_changed(either(old, new).name)
            self._admissions.schedule_cycle()
            self._placement.queues_changed()

    def _cluster_queue_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        self._namespaces.cluster_queue_changed(old, new)
        if take_record(self._app.engine, old, new):
            self._admissions.schedule_cycle()
        if _is_edited(old, new) or (old and new and is_lenient(old) != is_lenient(new)):
            self._catalog.queue_changed(either(old, new).name)
            self._admissions.schedule_cycle()

    def _activity_changed(self, plural: str, view: ObjectView, active: Json) -> None:
        """A definition works no more, or works again: its condition says so, and an event."""
        subject = Subject(*KINDS[plural], view.namespace, view.name, view.uid)
        self._app.events.record(subject, active["reason"], active["message"], topic="active")

    def _queue_rules_changed(self, name: str) -> None:
        """Changed rules of a ClusterQueue came into force, or its defect changed."""
        self._statuses.touch("clusterqueues", ("", name))
        self._placement.cluster_queue_changed(name)
        self._local_queues.rules_changed(name)
        for key in self._world.local_queues_by_cluster_queue.get(name):
            self._statuses.touch("localqueues", key)
        self._reconsider(self._world.workloads_in(name))

    def _cohort_rules_changed(self, cohorts: AbstractSet[str]) -> None:
        for cohort in cohorts:
            self._statuses.touch("cohorts", ("", cohort))

    def _local_queue_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        self._namespaces.local_queue_changed(old, new)
        self._local_queues.local_queue_changed(old, new)
        if not _is_edited(old, new):
            return
        view = either(old, new)
        self._statuses.touch("localqueues", view.key)
        self._placement.namespace_changed(view.namespace)
        for queue in (old, new):
            if queue is not None:
                self._statuses.usage_changed(queue.spec["clusterQueue"])
        self._reconsider(self._world.workloads_by_queue.get(view.key))

    def _node_changed(self, old: NodeView | None, new: NodeView | None) -> None:
        if old is None or new is None or old.node != new.node:  # and not only a sign of life
            self._catalog.nodes_changed()
            self._admissions.schedule_cycle()

    def _policy_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        name = either(old, new).name
        if old is None or new is None or old.spec != new.spec:
            self._catalog.placement.changed(name)
            self._statuses.touch("placementpolicies", ("", name))
            self._placement.touch_all()
        elif old.status.get("since") != new.status.get("since"):
            self._placement.touch_all()

    def _elastic_quota_changed(self, kind: str, old: ObjectView | None, new: ObjectView | None) -> None:
        if old is None or new is None or old.spec != new.spec:
            self._statuses.touch(PLURALS[kind], either(old, new).key)
            self._catalog.elastic.refresh()
            for view in (old, new):
                for flavor in (view.spec.get("flavors") or ()) if view is not None else ():
                    self._statuses.touch("resourceflavors", ("", flavor))
            self._admissions.schedule_cycle()
        elif old.status.get("managedSince") != new.status.get("managedSince"):
            for namespace in new.status.get("managedSince") or ():
                self._derive_again(self._world.jobs_by_namespace.get(namespace))

    def _quotas_changed(self, namespaces: set[str], quotas: set[QuotaKey]) -> None:
        """Elastic quotas came into force or went out of it, or what they say changed."""
        for kind, key in quotas:
            self._statuses.touch(PLURALS[kind], key)
        for namespace in sorted(namespaces):
            quota = self._catalog.elastic.governing(namespace)
            if quota is not None:
                self._statuses.usage_changed(quota.queue)
                self._marks.touch_queue(quota.queue)
            self._statuses.touch("localqueues", (namespace, ELASTIC_QUOTA_QUEUE))
            workloads = self._world.workloads_by_queue.get((namespace, ELASTIC_QUOTA_QUEUE))
            self._reconsider(workloads)
            for key in workloads:
                self._marks.touch(key)
            self._derive_again(self._world.jobs_by_namespace.get(namespace))

    def _workload_changed(self, old: WorkloadView | None, new: WorkloadView | None) -> None:
        if self._world.owners.owns(either(old, new).key):
            self._app.decisions.workload_changed(old, new)
        self._statuses.workload_changed(old, new)
        self._admissions.workload_changed(old, new)
        self._app.deadlines.workload_changed(old, new)
        self._app.ready.workload_changed(old, new)
        self._placement.workload_changed(old, new)
        self._local_queues.workload_changed(old, new)
        self._jobs.add(either(old, new).key)
        for view in (old, new):
            if view is not None and view.admission is not None and view.admission.pool:
                self._marks.touch_queue(view.admission.queue)
                self._marks.touch(view.key)
            if view is not None and view.evict_at is not None:
                self._marks.touch(view.key)

    def _job_changed(self, old: JobView | None, new: JobView | None) -> None:
        self._app.decisions.job_changed(old, new)
        job = either(old, new)
        key = (job.namespace, job.workload)
        self._feed.job_changed(key)
        self._app.ready.job_changed(new)
        self._jobs.add(key)
        for parent in self._world.parents_of(job):
            self._jobs.add((parent.namespace, parent.workload))
        self._placement.job_changed(old, new)
        self._local_queues.job_changed(old, new)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        pod = either(old, new)
        self._feed.pod_changed(old, new)
        self._app.unscheduled.pod_changed(pod, gone=new is None)
        self._app.ready.pod_changed(old, new)
        self._statuses.usage_changed(pod.usage.queue)
        if pod.usage.pool:
            self._marks.touch_queue(pod.usage.queue)
        workload = self._world.workloads.get((pod.namespace, pod.workload))
        if workload is not None and workload.evict_at is not None:
            self._marks.touch(workload.key)
        if new is None or not new.live:
            self._jobs.add((pod.namespace, pod.workload))

    def _namespace_changed(self, old: NamespaceView | None, new: NamespaceView | None) -> None:
        self._namespaces.namespace_changed(old, new)
        self._local_queues.namespace_changed(old, new)
        name = either(old, new).name
        if old is None or new is None or (old.labels, old.terminating) != (new.labels, new.terminating):
            self._reconsider(self._world.workloads_by_namespace.get(name))
            self._placement.labels_changed(name)
            for key in self._world.local_queues_by_namespace.get(name):
                self._statuses.touch("localqueues", key)
        if old is None or new is None or _placed_by(old) != _placed_by(new):
            self._placement.namespace_changed(name)
        if (old is None) != (new is None) and self._catalog.elastic.composite:
            self._catalog.elastic.refresh()  # one may name it
        quota = self._catalog.elastic.governing(name)
        if quota is not None and quota.manages_pods and _is_managed(old) != _is_managed(new):
            self._catalog.elastic.refresh()

    def _resource_quota_changed(self, old: ResourceQuotaView | None, new: ResourceQuotaView | None) -> None:
        self._app.weights.quota_changed(old, new)
        self._admissions.schedule_cycle()

    def _limit_range_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        self._derive_again(self._world.jobs_by_namespace.get(either(old, new).namespace))

    def _class_changed(self, _old: ObjectView | None, _new: ObjectView | None) -> None:
        self._derive_again([job.key for job in self._world.jobs])

    def _workload_class_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        """All that names a WorkloadPriorityClass goes by what that says now; what is written follows."""
        if not _is_edited(old, new):
            return
        name = either(old, new).name
        naming = {w.key for w in self._world.workloads if w.spec.get(CLASS_FIELD) == name}
        naming |= {(job.namespace, job.workload) for job in self._world.jobs if job.priority_class == name}
        self._reconsider(sorted(naming))

    def _decided(self, seconds: float) -> None:
        """A cycle is over that took so long."""
        self._app.metrics.decided(seconds)
        self._app.shortage_evictions.look()

    def _kind_returned(self) -> None:
        """What failed for want of a kind is tried again now, and not when its pause is over."""
        for queue in (self._jobs, self._namespaces.queue, self._local_queues.queue, self._placement.queue):
            queue.hurry()

    def _job_kind_changed(self, sort: str) -> None:
        """Objects of a kind are known again, or are not any more; so are those that made others."""
        of_it = [w.key for w in self._world.workloads if w.job is not None and sort_of(w.job[0]) == sort]
        self._reconsider(of_it)
        made = [job for job in self._world.jobs if job.owner is not None and sort_of(job.owner.title) == sort]
        self._derive_again([job.key for job in made])

    def _derive_again(self, jobs: list[Key]) -> None:
        """What decides about the requests of Jobs has changed."""
        for job in map(self._world.jobs.get, jobs):
            if job is not None and not job.finished:
                self._job_changed(None, job)

    def _reconsider(self, workloads: list[Key]) -> None:
        """What decides whether Workloads may compete, or go on, has changed."""
        if not self._feed.restored:
            return  # all of them are looked at once everything is there
        for key in workloads:
            self._feed.reconsider(key)
            self._jobs.add(key)
        self._admissions.schedule_cycle()


def _is_edited(old: ObjectView | None, new: ObjectView | None) -> bool:
    """Whether an object came, went, or has another spec."""
    return old is None or new is None or old.spec != new.spec


def _is_managed(namespace: NamespaceView | None) -> bool | None:
    """Whether pods need a queue in a namespace; None if it is not there."""
    return namespace.labels.get(MANAGED_LABEL) == "true" if namespace is not None else None


def _placed_by(namespace: NamespaceView) -> tuple[object, ...]:
    """What decides where a namespace's Jobs are placed."""
    return (namespace.labels, namespace.annotations, namespace.terminating)
