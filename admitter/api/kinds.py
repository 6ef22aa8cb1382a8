"""All kinds of the API."""

from admitter.api.base import Resource
from admitter.api.cluster_queue import ClusterQueue, LocalQueue
from admitter.api.cohort import Cohort
from admitter.api.elastic_quota import CompositeElasticQuota, ElasticQuota
from admitter.api.job_kind import JobKind
from admitter.api.placement_policy import PlacementPolicy
from admitter.api.resource_flavor import ResourceFlavor
from admitter.api.workload import Workload
from admitter.api.workload_priority_class import WorkloadPriorityClass

KINDS: tuple[type[Resource], ...] = (
    ResourceFlavor,
    Cohort,
    ClusterQueue,
    LocalQueue,
    PlacementPolicy,
    ElasticQuota,
    CompositeElasticQuota,
    JobKind,
    WorkloadPriorityClass,
    Workload,
)
