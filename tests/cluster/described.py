"""Manifests of kinds that have operators, for the tests of ring 2, as users would write them."""

from typing import Any

from tests.cluster.objects import Json, job

QUEUED: Json = {"admitter.dev/queue-name": "main"}


def _template(cpu: int, seconds: int | None) -> Json:
    made: Json = job("any", "any", requests={"cpu": str(cpu)}, seconds=seconds)["spec"]["template"]
    return made


def job_set(namespace: str, name: str, *, workers: int = 2, seconds: int | None = None, **spec: Any) -> Json:
    """A JobSet that is queued: a driver, and as many Jobs of two workers; each pod requests a CPU.

    Args:
        namespace: of the JobSet.
        name: of the JobSet.
        workers: how many Jobs of workers.
        seconds: how long each pod runs; None: for ever.
        spec: further fields of its spec.
    """
    template = _template(1, seconds)
    two = {"parallelism": 2, "completions": 2, "template": template}
    jobs = [
        {"name": "driver", "replicas": 1, "template": {"spec": {"template": template}}},
        {"name": "workers", "replicas": workers, "template": {"spec": two}},
    ]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "namespace": namespace, "labels": QUEUED},
        "spec": {"replicatedJobs": jobs, **spec},
    }


def ray_cluster(namespace: str, name: str, *, workers: int = 2, **spec: Any) -> Json:
    """A RayCluster that is queued: a head and a group of workers; each pod requests a CPU."""
    template = _template(1, None)
    template["spec"]["restartPolicy"] = "Always"
    group = {"groupName": "small", "replicas": workers, "minReplicas": 0, "maxReplicas": 8}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name, "namespace": namespace, "labels": QUEUED},
        "spec": {
            "headGroupSpec": {"rayStartParams": {}, "template": template},
            "workerGroupSpecs": [{**group, "rayStartParams": {}, "template": template}],
            **spec,
        },
    }


def train_job(namespace: str, name: str, *, nodes: int = 2, **spec: Any) -> Json:
    """A TrainJob that is queued, of the runtime `torch-distributed`; each node requests a CPU."""
    trainer = {"numNodes": nodes, "image": "work", "resourcesPerNode": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": namespace, "labels": QUEUED},
        "spec": {"runtimeRef": {"name": "torch-distributed"}, "trainer": trainer, **spec},
    }
