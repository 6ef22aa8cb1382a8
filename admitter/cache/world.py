"""Everything the controllers read: one store a kind, and the indexes over them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import quote

from admitter.api.conditions import ConditionType, WorkloadState
from admitter.api.forms import fitted, is_admission
from admitter.cache.job_resources import JOB, OF_PODS, POD_GROUP, JobResource, sort_of
from admitter.cache.namespace_views import parse_namespace, parse_resource_quota
from admitter.cache.node_views import parse_node
from admitter.cache.ownership import Owners, Shards
from admitter.cache.pod_groups import PodGroups
from admitter.cache.pod_views import PodView, parse_pod
from admitter.cache.queued_pods import PodJobs, QueuedPod, parse_queued_pod, pod_job
from admitter.cache.request_rules import RequestRules
from admitter.cache.stateful_sets import parse_stateful_set
from admitter.cache.views import (
    JobView,
    Meta,
    WorkloadView,
    meta,
    parse_job,
    parse_object,
    parse_workload,
)
from admitter.client.errors import UnreadableError
from admitter.client.source import Json, Source
from admitter.client.store import Index, Key, Lookup, Store, V
from admitter.convert import workloads
from admitter.names import API_VERSION, QUEUE_LABEL, WORKLOAD_LABEL

MOST_LEVELS: Final = 4
"""So many objects of described kinds make one another, as a TrainJob its JobSet."""
OWN: Final = f"/apis/{API_VERSION}"


class World:
    """The newest known state of the cluster."""

    def __init__(self) -> None:
        self.sources: list[Source[Any]] = []
        self.read_jobs = self._source("/apis/batch/v1/jobs", parse_job)
        self.read_workloads = self._source(f"{OWN}/workloads", parse_workload, rest=parse_held)
        self.read_pods = self._source("/api/v1/pods", parse_pod, selector=WORKLOAD_LABEL)
        self.workloads = self.read_workloads.store
        self.jobs = Store[JobView]()  # Jobs, and the objects of described kinds by their titles
        self.jobs.include(self.read_jobs.store)
        self.kinds = {"": KnownKind(self.read_jobs)}  # by what titles begin with
        self.kinds |= {sort: KnownKind(resource=resource) for sort, resource in OF_PODS.items()}
        self.has_kinds = True  # whether there is no kind but those
        self.pods = self.read_pods.store
        # beside the sources, of which no two have a plural in common: what follows those follows this one too
        fits = partial(fitted, "pods")
        self.read_queued_pods = Source("/api/v1/pods", parse_queued_pod, QUEUE_LABEL, fitted=fits)
        self.queued_pods = self.read_queued_pods.store
        self.jobs.include(PodJobs(self.queued_pods).jobs)
        # users that ask may lack the right to read them: then pods tell what size their group has
        path = "/apis/apps/v1/statefulsets"
        sets = self._source(path, parse_stateful_set, selector=QUEUE_LABEL, optional=True)
        self.stateful_sets = sets.store
        self.pod_groups = PodGroups(self.queued_pods, self.stateful_sets)
        self.jobs.include(self.pod_groups.jobs)
        self.cohorts = self._keep(f"{OWN}/cohorts", parse_object)
        self.cluster_queues = self._keep(f"{OWN}/clusterqueues", parse_object)
        self.local_queues = self._keep(f"{OWN}/localqueues", parse_object)
        self.flavors = self._keep(f"{OWN}/resourceflavors", parse_object)
        self.placement_policies = self._keep(f"{OWN}/placementpolicies", parse_object)
        self.elastic_quotas = self._keep(f"{OWN}/elasticquotas", parse_object)
        self.composite_elastic_quotas = self._keep(f"{OWN}/compositeelasticquotas", parse_object)
        # the definitions of an older version lack it, and Jobs need none
        self.job_kinds = self._source(f"{OWN}/jobkinds", parse_object, optional=True).store
        self.namespaces = self._keep("/api/v1/namespaces", parse_namespace)
        self.resource_quotas = self._keep("/api/v1/resourcequotas", parse_resource_quota)
        self.nodes = self._keep("/api/v1/nodes", parse_node)
        self.limit_ranges = self._keep("/api/v1/limitranges", parse_object)
        self.priority_classes = self._keep("/apis/scheduling.k8s.io/v1/priorityclasses", parse_object)
        # the definitions of an older version lack it
        self.workload_classes = self._source(
            f"{OWN}/workloadpriorityclasses", parse_object, optional=True
        ).store
        self.runtime_classes = self._keep("/apis/node.k8s.io/v1/runtimeclasses", parse_object)

        self._jobs_by_workload = Lookup(self.jobs, lambda job: (job.namespace, job.workload))
        self.jobs_by_owner = Index(self.jobs, lambda job: job.owner.uid if job.owner is not None else None)
        self.jobs_by_namespace = Index(self.jobs, lambda job: job.namespace)
        self.workloads_by_queue = Index(self.workloads, lambda w: (w.namespace, w.queue))
        self.workloads_by_namespace = Index(self.workloads, lambda w: w.namespace)
        self.workloads_by_cluster_queue = Index(
            self.workloads, lambda w: w.admission.queue if w.admission else None
        )
        self.local_queues_by_cluster_queue = Index(self.local_queues, lambda q: q.spec.get("clusterQueue"))
        self.local_queues_by_namespace = Index(self.local_queues, lambda q: q.namespace)
        self._pods_by_workload = Index(self.pods, lambda pod: (pod.namespace, pod.workload))
        self.namespaces_by_cohort = Index(self.namespaces, lambda n: n.cohort)
        self.resource_quotas_by_namespace = Index(self.resource_quotas, lambda q: q.namespace)
        self.request_rules = RequestRules(self.limit_ranges, self.runtime_classes)

        self.shards = Shards(self.cohorts, self.cluster_queues)
        self.owners = Owners(self.shards, self.workloads, self.local_queues, self.job_of)

    def _keep(self, path: str, parse: Callable[[Json], V]) -> Store[V]:
        return self._source(path, parse).store

    def _source(
        self,
        path: str,
        parse: Callable[[Json], V],
        *,
        selector: str = "",
        optional: bool = False,
        rest: Callable[[Json, V | None], V | None] = lambda _raw, _old: None,
    ) -> Source[V]:
        fits = partial(fitted, path.rsplit("/", 1)[-1])
        source = Source(path, parse, selector, optional=optional, fitted=fits, rest=rest)
        self.sources.append(source)
        return source

    def source_of(self, plural: str) -> Source[Any]:
        return next(source for source in self.sources if source.path.endswith(f"/{plural}"))

    def reads(self, title: str) -> bool:
        """Whether job objects of a title's kind are read."""
        kind = self.kinds.get(sort_of(title))
        return kind is not None and (kind.source is not None or kind.resource.is_pods)

    def kind_of(self, title: str) -> str:
        """The kind of a job object that is known, such as JobSet."""
        return self.kinds[sort_of(title)].resource.kind

    def job_path(self, key: Key) -> str:
        """The URL path of a job object of a known kind, by namespace and title.

        The title may come from an owner's reference, which may say anything.
        """
        return self.kinds[sort_of(key[1])].resource.object_path(key)

    def take_job(self, job: JobView, raw: Json) -> JobView:
        """Take in what the API server has answered to a write of a job object; returns its view.

        Raises:
            UnreadableError: it can't be read, or its kind is not known any more.
        """
        return self.take_titled(job.name, raw)

    def take_titled(self, title: str, raw: Json) -> JobView:
        """The same of an answer about a job object with a title: its kind may have changed since the call."""
        kind = self.kinds.get(sort_of(title))
        if kind is not None and kind.resource.is_pods:
            return self.take_pod(raw)
        if kind is None or kind.source is None:
            raise UnreadableError(f"no JobKind that works describes {title} any more")
        return kind.source.take(raw)

    def take_pod(self, raw: Json) -> JobView:
        """Take in a queued pod; returns the job object that it is, whether or not it is still there."""
        return pod_job(self.read_queued_pods.take(raw))

    def unknown_kind(self, title: str, group: str) -> str:
        """Why nothing is known of job objects of a title's kind in an API group; empty if it is."""
        kind = self.kinds.get(sort_of(title))
        if kind is None or kind.resource.group != group:
            return f"no JobKind that works describes {sort_of(title)} of {group}"
        return kind.problem

    def parent_of(self, job: JobView) -> tuple[str, str] | None:
        """Title and UID of the object with an operator that may have made this one; None if there is none.

        It may not have been heard of yet, or be gone.
        """
        owner = job.owner
        if owner is None or owner.title == owner.name or job.resource.is_pods:
            return None
        resource = self.kinds[sort_of(owner.title)].resource if sort_of(owner.title) in self.kinds else None
        if (
            resource is None
            or resource.group != owner.group
            or (job.resource.group, job.resource.kind) not in resource.children
        ):
            return None
        return owner.title, owner.uid

    def is_child(
        self,
        job: JobView,
        counts: Callable[[JobView], bool] = lambda parent: bool(parent.queue),
    ) -> bool:
        """Whether a job object is counted with another one, as what that one's operator has made.

        `counts` tells whether one is counted by itself, or will be.
        """
        return any(map(counts, self.parents_of(job)))

    def parents_of(self, job: JobView, levels: int = MOST_LEVELS) -> Iterator[JobView]:
        """The object of which the operator has made a job object, and those above, as far as known."""
        named = self.parent_of(job)
        parent = self.jobs.get((job.namespace, named[0])) if named is not None and levels else None
        if named is not None and parent is not None and parent.uid == named[1]:
            yield parent
            yield from self.parents_of(parent, levels - 1)

    def job_of(self, key: Key) -> JobView | None:
        """The Job of the Workload with this key, whether or not the Workload exists."""
        found = self._jobs_by_workload.get(key)
        return self.jobs.get(found) if found is not None else None

    def members_of(self, job: JobView) -> list[QueuedPod]:
        """The pods that a job object is, if it is a queued pod or a group of them."""
        group = self.pod_groups.get(job.uid)
        if group is not None:
            return list(group.members.values())
        pod = self.queued_pods.get((job.namespace, job.name.rpartition("/")[2]))
        return [pod] if pod is not None and pod.uid == job.uid else []

    def job_titled(self, namespace: str, title: str) -> JobView | None:
        """A job object by its title; of groups of pods with the same name the one that came first."""
        if OF_PODS.get(sort_of(title)) is not POD_GROUP:
            return self.jobs.get((namespace, title))
        of_it = [job for job in self.pod_groups.jobs if (job.namespace, job.name) == (namespace, title)]
        return min(of_it, key=lambda job: (job.created, job.uid), default=None)

    def labels_of(self, namespace: str) -> Mapping[str, str]:
        view = self.namespaces.get(("", namespace))
        return view.labels if view is not None else {}

    def pods_of(self, workload: WorkloadView) -> list[PodView]:
        """The pods that the admission of a Workload has made."""
        return [pod for pod in self.pods_named(workload.key) if pod.is_of(workload)]

    def pods_named(self, workload: Key) -> list[PodView]:
        """The pods with a label that names a Workload, also one that is gone or another of that name."""
        return [
            pod for key in self._pods_by_workload.get(workload) if (pod := self.pods.get(key)) is not None
        ]

    def workloads_in(self, cluster_queue: str) -> list[Key]:
        """The Workloads that wait for a ClusterQueue, or hold its quota."""
        waiting = {
            key
            for queue in self.local_queues_by_cluster_queue.get(cluster_queue)
            for key in self.workloads_by_queue.get(queue)
        }
        return sorted(waiting.union(self.workloads_by_cluster_queue.get(cluster_queue)))


@dataclass(frozen=True, slots=True)
class KnownKind:
    """A kind of job objects.

    Without a source there are none, or the problem is why nothing is known of them; pods have a source of
    their own.
    """

    source: Source[JobView] | None = None
    problem: str = ""
    resource: JobResource = JOB
    read: bool = True  # False: nothing is known of them but what their Workloads say


@dataclass(frozen=True, slots=True)
class Manifest(Meta):
    """An object that is read whole."""

    raw: Json


def parse_manifest(raw: Json) -> Manifest:
    return Manifest(*meta(raw["metadata"]), raw)


def collection_path(plural: str, namespace: str) -> str:
    """The URL path of Admitter's objects of a kind, in a namespace or, if it is empty, in none."""
    return f"{OWN}/namespaces/{namespace}/{plural}" if namespace else f"{OWN}/{plural}"


def workload_path(key: Key) -> str:
    return f"{OWN}/namespaces/{key[0]}/workloads/{quote(key[1], safe='')}"


def pods_path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def parse_held(raw: Json, old: WorkloadView | None) -> WorkloadView | None:
    """What counts of a Workload that can't be read: the quota that it holds; None if `old` says that."""
    status = raw.get("status") or {}
    over = ConditionType.FINISHED in _holding(status) or not is_admission(status.get("admission"))
    if over or (old is not None and old.admission is not None):
        return None
    return WorkloadView(
        *meta(raw["metadata"]),
        created=0.0,
        job=old.job if old is not None else None,
        spec={"queueName": "", "podSets": []},
        admission=workloads.admission(status["admission"]),
        status={"state": WorkloadState.ADMITTED},
        true=frozenset(),
        finished=False,
        size=0,
        group=old.group if old is not None else JOB.group,
    )


def _holding(status: Json) -> frozenset[str]:
    """The types of the conditions that hold, as far as they can be read."""
    conditions = status.get("conditions")
    found = [c for c in conditions if isinstance(c, dict)] if isinstance(conditions, list) else []
    return frozenset(str(c.get("type")) for c in found if c.get("status") == "True")
