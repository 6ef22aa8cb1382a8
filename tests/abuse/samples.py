"""A valid object of each kind that is read, for the mutator to change."""

from collections.abc import Callable
from typing import Any, Final

from tests.apiserver.experiments import GROUP
from tests.cluster import objects

Json = dict[str, Any]

MARK: Final = "mut-"
"""How names of objects begin that are changed on their way."""
QUEUE: Final = "base"
"""A ClusterQueue, a LocalQueue and a flavor that are in order, for those that are not."""
QUEUED: Final = "queuedpods"
"""Stands for pods as they are read for themselves, beside those that are read as what uses quota."""
_TIME: Final = "2026-01-01T00:00:00Z"


def _named(version: str, kind: str, name: str, namespace: str | None = None, **more: Any) -> Json:
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **place}, **more}


def job(namespace: str, name: str) -> Json:
    """A Job with all the marks that a Job may have."""
    made = objects.job(namespace, name, pods=2, seconds=1, backoffLimit=0, activeDeadlineSeconds=600)
    made["metadata"]["labels"] |= {"kueue.x-k8s.io/priority-class": QUEUE}
    made["metadata"]["annotations"] = {
        "admitter.dev/expected-runtime": "5m",
        "yunikorn.apache.org/user.info": '{"user": "bob", "groups": ["dev"]}',
    }
    return made


def experiment(namespace: str, name: str) -> Json:
    """An Experiment, which is of a described kind, in the queue that is in order."""
    template = objects.job(namespace, name, requests={"cpu": "1"}, seconds=1)["spec"]["template"]
    probes = [{"name": "probe", "copies": 2, "template": template}]
    spec = {"state": "Running", "control": template, "probes": probes}
    made = _named(f"{GROUP}/v1", "Experiment", name, namespace, spec=spec)
    made["metadata"]["labels"] = {"admitter.dev/queue-name": "main"}
    return made


def workload(namespace: str, name: str) -> Json:
    """A Workload made by hand, with requirements on nodes."""
    made = objects.workload(namespace, name)
    expression = {"key": "zone", "operator": "NotIn", "values": ["a", "b"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    made["spec"]["podSets"][0] |= {
        "tolerations": objects.TOLERATES_SPOT,
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
    }
    return made


def pod(namespace: str, name: str) -> Json:
    """A pod as an admission labels it; a user may not make one."""
    labels = {"admitter.dev/workload": "gone", "admitter.dev/cluster-queue": QUEUE}
    notes = {
        "admitter.dev/workload-uid": "u",
        "admitter.dev/flavors": f'{{"cpu": "{QUEUE}"}}',
        "admitter.dev/counted": '{"pool": ""}',
    }
    made = _named("v1", "Pod", name, namespace)
    made["metadata"] |= {"labels": labels, "annotations": notes}
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": "1"}}}
    made["spec"] = {"restartPolicy": "Never", "containers": [container]}
    return made


def queued_pod(namespace: str, name: str) -> Json:
    """A pod that names a queue, as one of a group of one."""
    made = pod(namespace, name)
    labels = {"admitter.dev/queue-name": "main", "admitter.dev/pod-group": name}
    notes = {
        "admitter.dev/pod-group-size": "1",
        "admitter.dev/retriable-in-group": "true",
        "admitter.dev/pod-group-serving": "false",
        "admitter.dev/pod-group-fast-admission": "false",
        "admitter.dev/simulated-runtime": "1",
    }
    made["metadata"] |= {"labels": labels, "annotations": notes}
    return made


def namespace(_namespace: str, name: str) -> Json:
    """A Namespace that brings its quota."""
    made = _named("v1", "Namespace", name)
    made["metadata"]["annotations"] = {
        "admitter.dev/namespace.quota": '{"cpu": "2", "memory": "4Gi"}',
        "admitter.dev/parent-queue": "root",
        "yunikorn.apache.org/namespace.max.cpu": "3",
    }
    made["metadata"]["labels"] = {"team": name, "admitter.dev/managed": "true"}
    return made


def local_queue(namespace: str, name: str) -> Json:
    """A LocalQueue."""
    return objects.local_queue(namespace, QUEUE, name)


def cluster_queue(_namespace: str, name: str) -> Json:
    """A ClusterQueue in a cohort, which asks for LocalQueues in no namespace that there is."""
    preemption = {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority", "gracePeriod": "10s"}
    more: Json = {"cohort": f"{MARK}cohort", "preemption": preemption, "fairSharing": {"weight": "2"}}
    more["localQueues"] = {"name": "made", "namespaceSelector": {"matchLabels": {"made": name}}}
    return objects.cluster_queue(name, {"cpu": {QUEUE: "2"}}, **more)


def cohort(_namespace: str, name: str) -> Json:
    """A Cohort with quota of its own."""
    flavor = {"name": QUEUE, "quota": {"min": "2"}}
    spec = {"parent": f"{MARK}top", "resources": [{"name": "cpu", "flavors": [flavor]}]}
    return _named(objects.ADMITTER, "Cohort", name, spec=spec)


def resource_flavor(_namespace: str, name: str) -> Json:
    """A ResourceFlavor with labels and taints."""
    return objects.resource_flavor(name, objects.SPOT)


def placement_policy(_namespace: str, name: str) -> Json:
    """A PlacementPolicy for no namespace that there is."""
    spec = {
        "namespaceSelector": {"matchLabels": {"placed": name}},
        "rules": [{"from": "Label", "label": "team"}, {"from": "Fixed", "queue": QUEUE}],
    }
    return _named(objects.ADMITTER, "PlacementPolicy", name, spec=spec)


def elastic_quota(namespace: str, name: str) -> Json:
    """An ElasticQuota."""
    return objects.elastic_quota(namespace, name, min={"cpu": "1"}, max={"cpu": "2"})


def composite_elastic_quota(namespace: str, name: str) -> Json:
    """A CompositeElasticQuota for a namespace that does not exist."""
    amounts: Json = {"min": {"cpu": "1"}, "max": {"cpu": "2"}}
    return objects.elastic_quota(namespace, name, namespaces=[f"{name}-none"], **amounts)


def resource_quota(namespace: str, name: str) -> Json:
    """A ResourceQuota with the weight of its namespace."""
    hard = {"admitter.dev/namespace.weight": "2", "count/configmaps": "100"}
    return _named("v1", "ResourceQuota", name, namespace, spec={"hard": hard})


def node(_namespace: str, name: str) -> Json:
    """A node that takes no pods."""
    made = _named("v1", "Node", name)
    made["metadata"]["labels"] = {"instance-type": "none"}
    made["spec"] = {
        "unschedulable": True,
        "taints": [{"key": "mutated", "value": "yes", "effect": "NoSchedule"}],
    }
    made["status"] = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    return made


def stateful_set(namespace: str, name: str) -> Json:
    """A StatefulSet without pods, of a queue that is not there."""
    template = {"metadata": {"labels": {"app": name}}, "spec": pod(namespace, name)["spec"]}
    template["spec"] = {**template["spec"], "restartPolicy": "Always"}
    spec = {"replicas": 0, "serviceName": name, "selector": {"matchLabels": {"app": name}}}
    made = _named("apps/v1", "StatefulSet", name, namespace, spec=spec | {"template": template})
    made["metadata"]["labels"] = {"admitter.dev/queue-name": "none"}
    return made


def limit_range(namespace: str, name: str) -> Json:
    """A LimitRange with defaults."""
    limit = {"type": "Container", "default": {"memory": "1Gi"}, "defaultRequest": {"memory": "100Mi"}}
    return _named("v1", "LimitRange", name, namespace, spec={"limits": [limit]})


def priority_class(_namespace: str, name: str) -> Json:
    """A PriorityClass."""
    return _named("scheduling.k8s.io/v1", "PriorityClass", name, value=100)


def runtime_class(_namespace: str, name: str) -> Json:
    """A RuntimeClass with overhead."""
    overhead = {"podFixed": {"cpu": "100m"}}
    return _named("node.k8s.io/v1", "RuntimeClass", name, handler="runc", overhead=overhead)


def job_kind(_namespace: str, name: str) -> Json:
    """A JobKind of what there is no definition of."""
    resource = {"group": f"{name}.example.com", "version": "v1", "kind": "Sample", "plural": "samples"}
    pods = {"each": "spec.groups", "nameFrom": "item.name", "template": "template", "count": "item.replicas"}
    over = {"succeeded": "object.status.phase == 'Succeeded'", "failed": "object.status.phase == 'Failed'"}
    active = "has(object.status) && object.status.active > 0"
    spec = {"resource": resource, "suspend": {"path": "spec.suspend"}, "podSets": [pods], "active": active}
    return _named(objects.ADMITTER, "JobKind", name, spec=spec | {"finished": over})


def workload_priority_class(_namespace: str, name: str) -> Json:
    """A WorkloadPriorityClass for some queues and namespaces."""
    selector = {"matchLabels": {"team": "a"}, "matchExpressions": [{"key": "free", "operator": "Exists"}]}
    spec = {"value": 100, "clusterQueues": [QUEUE], "namespaceSelector": selector, "description": "urgent"}
    return _named(objects.ADMITTER, "WorkloadPriorityClass", name, spec=spec)


def lease(_namespace: str, name: str) -> Json:
    """A Lease of a controller that there is not."""
    spec = {"holderIdentity": "none", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
    made = _named("coordination.k8s.io/v1", "Lease", name, "admitter-system", spec=spec)
    made["metadata"]["labels"] = {"app.kubernetes.io/part-of": "admitter", "admitter.dev/member": "none"}
    return made


KINDS: Final[dict[str, Callable[[str, str], Json]]] = {
    "jobs": job,
    "experiments": experiment,
    "workloads": workload,
    "pods": pod,
    QUEUED: queued_pod,
    "namespaces": namespace,
    "localqueues": local_queue,
    "clusterqueues": cluster_queue,
    "cohorts": cohort,
    "resourceflavors": resource_flavor,
    "placementpolicies": placement_policy,
    "elasticquotas": elastic_quota,
    "compositeelasticquotas": composite_elastic_quota,
    "resourcequotas": resource_quota,
    "nodes": node,
    "limitranges": limit_range,
    "statefulsets": stateful_set,
    "priorityclasses": priority_class,
    "runtimeclasses": runtime_class,
    "jobkinds": job_kind,
    "workloadpriorityclasses": workload_priority_class,
    "leases": lease,
}
"""How a valid one is made, from a namespace and a name, by the plural of each kind that is read."""


def stored(plural: str) -> Json:
    """An object as the API server sends it, with what it and controllers add."""
    made = KINDS[plural]("sample", f"{MARK}sample")
    made["metadata"] |= {"uid": "u1", "resourceVersion": "7", "generation": 1, "creationTimestamp": _TIME}
    condition = {
        "type": "Active",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": _TIME,
    }
    match plural:
        case "jobs":
            made["status"] = {
                "active": 1,
                "startTime": _TIME,
                "conditions": [condition | {"type": "Suspended"}],
            }
        case "experiments":
            made["status"] = {"pods": 3, "phase": "Running", "words": "on their way"}
        case "workloads":
            assigned = {"name": "main", "count": 1, "flavors": {"cpu": QUEUE}, "usage": {"cpu": "1"}}
            admission = {"clusterQueue": QUEUE, "podSets": [assigned], "epoch": 1}
            other: Json = {"namespace": "sample", "name": "other", "uid": "u2", "admission": admission}
            sizes = {"wanted": 2, "granted": 2}
            made["status"] = {
                "state": "Admitted",
                "admission": admission,
                "preemption": other | {"evictAt": _TIME, "generation": 1},
                "place": {"generation": 1, "admission": admission},
                "backOff": {"count": 1, "until": _TIME},
                "resize": sizes | {"changedAt": _TIME, "podSets": [sizes | {"name": "main"}]},
                "conditions": [condition | {"type": "QuotaReserved"}, condition | {"type": "Preempted"}],
            }
        case "queuedpods":
            made["metadata"]["annotations"] |= {
                "admitter.dev/user": "ada",
                "admitter.dev/user-uid": "u4",
                "admitter.dev/injected": '{"nodeSelector": {"instance-type": "spot"}, "tolerations": []}',
                "admitter.dev/returned": "1",
            }
            made["spec"]["schedulingGates"] = [{"name": "admitter.dev/admission"}]
            made["status"] = {"phase": "Pending", "conditions": [condition | {"type": "DisruptionTarget"}]}
        case "pods":
            made["status"] = {"phase": "Running", "conditions": [condition | {"type": "PodScheduled"}]}
        case "clusterqueues" | "cohorts" | "localqueues" | "resourceflavors" | "placementpolicies":
            made["status"] = {"conditions": [condition], "since": _TIME}
        case "elasticquotas" | "compositeelasticquotas":
            made["status"] = {"conditions": [condition], "managedSince": {"sample": _TIME}}
    return made
