"""Manifests of kinds that have operators, for the tests of ring 2, as users would write them."""

import copy
from collections.abc import Mapping
from typing import Any

from tests.cluster.objects import Json, job

QUEUED: Json = {"admitter.dev/queue-name": "main"}
TRAINING = {
    "PyTorchJob": ("pytorchReplicaSpecs", "pytorch", "Master"),
    "TFJob": ("tfReplicaSpecs", "tensorflow", "Chief"),
    "XGBoostJob": ("xgbReplicaSpecs", "xgboost", "Master"),
}
"""Of each kind of the training operator: the field with its roles, the container that has to be there, and
the role that it ends with."""


def _template(seconds: int | None, pod: Mapping[str, Any] | None) -> Json:
    made: Json = job("any", "any", seconds=seconds, pod=pod)["spec"]["template"]
    return made


def _manifest(version: str, kind: str, namespace: str, name: str, spec: Json) -> Json:
    metadata = {"name": name, "namespace": namespace, "labels": {**QUEUED}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _replicated(
    seconds: int | None, pod: Mapping[str, Any] | None, workers: str, replicas: int
) -> list[Json]:
    """A driver, and as many Jobs of two workers."""
    template = _template(seconds, pod)
    two = {"parallelism": 2, "completions": 2, "template": template}
    return [
        {"name": "driver", "replicas": 1, "template": {"spec": {"template": template}}},
        {"name": workers, "replicas": replicas, "template": {"spec": two}},
    ]


def job_set(
    namespace: str,
    name: str,
    *,
    seconds: int | None = None,
    pod: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """A JobSet that is queued: a driver, and two Jobs of two workers; each pod requests a CPU.

    Args:
        namespace: of the JobSet.
        name: of the JobSet.
        seconds: how long each pod runs; None: for ever.
        pod: further fields of the pod templates.
        spec: further fields of its spec.
    """
    jobs = _replicated(seconds, pod, "workers", 2)
    made = {"replicatedJobs": jobs, **spec}
    return _manifest("jobset.x-k8s.io/v1alpha2", "JobSet", namespace, name, made)


def ray_cluster(namespace: str, name: str, *, pod: Mapping[str, Any] | None = None, **spec: Any) -> Json:
    """A RayCluster that is queued: a head and two workers; each pod requests a CPU."""
    template = _template(None, {"restartPolicy": "Always", **(pod or {})})
    group = {"groupName": "small", "replicas": 2, "minReplicas": 0, "maxReplicas": 8}
    made = {
        "headGroupSpec": {"rayStartParams": {}, "template": template},
        "workerGroupSpecs": [{**group, "rayStartParams": {}, "template": template}],
        **spec,
    }
    return _manifest("ray.io/v1", "RayCluster", namespace, name, made)


def train_job(namespace: str, name: str, *, runtime: str = "", **spec: Any) -> Json:
    """A TrainJob that is queued, of a TrainingRuntime or of `torch-distributed`: two nodes of a CPU each."""
    trainer = {"numNodes": 2, "image": "work", "resourcesPerNode": {"requests": {"cpu": "1"}}}
    own = {"name": runtime, "kind": "TrainingRuntime"}
    made = {"runtimeRef": own if runtime else {"name": "torch-distributed"}, "trainer": trainer, **spec}
    return _manifest("trainer.kubeflow.org/v1alpha1", "TrainJob", namespace, name, made)


def training_runtime(
    namespace: str, name: str, *, seconds: int | None = None, pod: Mapping[str, Any] | None = None
) -> Json:
    """A TrainingRuntime with a driver and nodes; each pod requests a CPU."""
    driver, node = _replicated(seconds, pod, "node", 1)
    node = copy.deepcopy(node)
    node["template"]["metadata"] = {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}}
    node["template"]["spec"]["template"]["spec"]["containers"][0]["name"] = "node"
    spec = {"mlPolicy": {"numNodes": 2}, "template": {"spec": {"replicatedJobs": [driver, node]}}}
    made = _manifest("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", namespace, name, spec)
    made["metadata"]["labels"] = {"trainer.kubeflow.org/framework": "torch"}
    return made


def mpi_job(
    namespace: str,
    name: str,
    *,
    seconds: int | None = None,
    pod: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """An MPIJob that is queued: a launcher and two workers, of a CPU each; no worker outlives it."""
    template = _template(seconds, pod)
    roles = {"Launcher": {"template": template}, "Worker": {"replicas": 2, "template": template}}
    made = {"mpiReplicaSpecs": roles, "runPolicy": {"cleanPodPolicy": "Running"}, **spec}
    return _manifest("kubeflow.org/v2beta1", "MPIJob", namespace, name, made)


def training_job(
    kind: str,
    namespace: str,
    name: str,
    *,
    seconds: int | None = None,
    pod: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """A queued object of the training operator: one that leads and two workers, of a CPU each.

    It ends with the first, which runs for two seconds more so that all workers have run; none outlives it.

    Args:
        kind: PyTorchJob, TFJob or XGBoostJob.
        namespace: of the object.
        name: of the object.
        seconds: how long a worker runs; None: for ever.
        pod: further fields of the pod templates.
        spec: further fields of its spec.
    """
    field, container, leads = TRAINING[kind]
    first = _template(None if seconds is None else seconds + 2, pod)
    worker = _template(seconds, pod)
    for template in (first, worker):
        template["spec"]["containers"][0]["name"] = container
    roles = {leads: {"replicas": 1, "template": first}, "Worker": {"replicas": 2, "template": worker}}
    made = {field: roles, "runPolicy": {"cleanPodPolicy": "Running"}, **spec}
    return _manifest("kubeflow.org/v1", kind, namespace, name, made)


def app_wrapper(
    namespace: str, name: str, *, seconds: int | None = None, pod: Mapping[str, Any] | None = None
) -> Json:
    """A queued AppWrapper of a pod and a Job with two, each of a CPU and with the label `part`."""
    driver = copy.deepcopy(_template(seconds, pod)) | {"apiVersion": "v1", "kind": "Pod"}
    driver["metadata"] |= {"name": f"{name}-driver", "labels": {"part": "driver"}}
    workers = job(namespace, f"{name}-workers", pods=2, seconds=seconds, queue=None, pod=pod, suspend=False)
    workers["spec"]["template"]["metadata"]["labels"] = {"part": "workers"}
    spec = {"components": [{"template": driver, "podSets": [{"path": "template"}]}, {"template": workers}]}
    return _manifest("workload.codeflare.dev/v1beta2", "AppWrapper", namespace, name, spec)


def leader_worker_set(namespace: str, name: str, *, replicas: int = 2, size: int = 3, **spec: Any) -> Json:
    """A LeaderWorkerSet of some groups; each has a leader and workers, and each pod requests a CPU."""
    template = _template(None, {"restartPolicy": "Always"})
    made = {"replicas": replicas, "leaderWorkerTemplate": {"size": size, "workerTemplate": template}, **spec}
    return _manifest("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", namespace, name, made)
