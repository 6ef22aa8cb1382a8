"""Manifests for the tests of ring 2, as users would write them."""

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]

ADMITTER = "admitter.dev/v1alpha1"
SPOT: Json = {
    "nodeLabels": {"instance-type": "spot"},
    "nodeTaints": [{"key": "spot", "value": "true", "effect": "NoSchedule"}],
}
ON_DEMAND: Json = {"nodeLabels": {"instance-type": "on-demand"}}
TOLERATES_SPOT: list[Json] = [{"key": "spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}]

DELETE_IN_USE: Json = {"admitter.dev/delete-in-use": "true"}
"""Annotations of quota that a test may delete while it is in use, at its end for instance."""


def resource_flavor(name: str, spec: Json) -> Json:
    """A ResourceFlavor."""
    metadata = {"name": name, "annotations": {**DELETE_IN_USE}}
    return {"apiVersion": ADMITTER, "kind": "ResourceFlavor", "metadata": metadata, "spec": spec}


def cluster_queue(
    name: str, quotas: Mapping[str, Mapping[str, str]], team: str | None = None, **spec: Any
) -> Json:
    """A ClusterQueue from resource → flavor → min, for the namespaces of a team or for all."""
    resources = [
        {"name": r, "flavors": [{"name": f, "quota": {"min": minimum}} for f, minimum in flavors.items()]}
        for r, flavors in quotas.items()
    ]
    selector: Json = {"matchLabels": {"team": team}} if team else {}
    return {
        "apiVersion": ADMITTER,
        "kind": "ClusterQueue",
        "metadata": {"name": name, "annotations": {**DELETE_IN_USE}},
        "spec": {"namespaceSelector": selector, "resources": resources, **spec},
    }


def local_queue(namespace: str, cluster_queue: str, name: str = "main", **spec: Any) -> Json:
    """A LocalQueue."""
    return {
        "apiVersion": ADMITTER,
        "kind": "LocalQueue",
        "metadata": {"name": name, "namespace": namespace, "annotations": {**DELETE_IN_USE}},
        "spec": {"clusterQueue": cluster_queue, **spec},
    }


def elastic_quota(namespace: str, name: str = "quota", **spec: Any) -> Json:
    """An ElasticQuota, or a CompositeElasticQuota if the spec names namespaces."""
    return {
        "apiVersion": ADMITTER,
        "kind": "CompositeElasticQuota" if "namespaces" in spec else "ElasticQuota",
        "metadata": {"name": name, "namespace": namespace, "annotations": {**DELETE_IN_USE}},
        "spec": spec,
    }


def workload(namespace: str, name: str, cpu: str = "1", *, metadata: Json | None = None) -> Json:
    """A Workload of one pod that was made by hand."""
    pod_sets = [{"name": "main", "count": 1, "requests": {"cpu": cpu}}]
    return {
        "apiVersion": ADMITTER,
        "kind": "Workload",
        "metadata": {"name": name, "namespace": namespace, **(metadata or {})},
        "spec": {"queueName": "main", "podSets": pod_sets},
    }


def job(
    namespace: str,
    name: str,
    *,
    pods: int = 1,
    requests: Mapping[str, str] | None = None,
    seconds: int | None = 1,
    queue: str | None = "main",
    pod: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """A suspended Job with pods that run for some seconds on simulated nodes; None: for ever.

    Args:
        namespace: of the Job.
        name: of the Job.
        pods: parallelism and completions.
        requests: of each pod; by default one CPU.
        seconds: how long each pod runs.
        queue: the LocalQueue in its label; None for a Job that is not queued.
        pod: further fields of the pod template's spec.
        spec: further fields of the Job's spec.
    """
    container = {
        "name": "main",
        "image": "work",
        "resources": {"requests": dict({"cpu": "1"} if requests is None else requests)},
    }
    annotations = {} if seconds is None else {"admitter.dev/simulated-runtime": str(seconds)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"admitter.dev/queue-name": queue} if queue else {},
        },
        "spec": {
            "suspend": True,
            "parallelism": pods,
            "completions": pods,
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {
                    "restartPolicy": "Never",
                    "tolerations": TOLERATES_SPOT,
                    "containers": [container],
                    **(pod or {}),
                },
            },
            **spec,
        },
    }
