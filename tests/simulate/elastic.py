"""Short manifests of elastic quotas and their Jobs, and what a simulation says of them."""

from collections.abc import Mapping
from typing import Any

from tests.cluster.objects import ADMITTER, Json, elastic_quota, job
from tests.simulate.test_simulate import annotate

GPU_MEMORY = "admitter.dev/gpu-memory"
ALIAS = "nos.nebuly.com/gpu-memory"
SLICE = "nvidia.com/gpu-10gb"
GPU = "nvidia.com/gpu"


def at(second: int) -> str:
    """A time so many seconds after the start."""
    return f"2026-01-01T00:{second // 60:02}:{second % 60:02}Z"


def quota(
    namespace: str, least: Mapping[str, Any] | None = None, most: Mapping[str, Any] | None = None, **spec: Any
) -> Json:
    """An ElasticQuota that was there from the start."""
    limits: dict[str, Any] = {"min": dict(least or {})} | ({"max": dict(most)} if most is not None else {})
    return created(elastic_quota(namespace, **limits, **spec), 0)


def created(manifest: Json, second: int) -> Json:
    manifest["metadata"]["creationTimestamp"] = at(second)
    return manifest


def asks(
    namespace: str,
    name: str,
    requests: Mapping[str, Any],
    second: int = 0,
    *,
    lasts: str | None = None,
    queue: str | None = "elastic-quota",
    pods: int = 1,
    priority: str = "",
) -> Json:
    """A Job that comes some seconds after the start, for the elastic quota of its namespace by default."""
    pod = {"priorityClassName": priority} if priority else None
    texts = {resource: str(amount) for resource, amount in requests.items()}
    made = job(namespace, name, pods=pods, requests=texts, seconds=None, queue=queue, pod=pod)
    if lasts is not None:
        annotate(made, "simulated-runtime", lasts)
    return created(made, second)


def priority_class(name: str, value: int) -> Json:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def cap(name: str = "elastic-quota", parent: str = "", **preemption: Any) -> Json:
    """A Cohort that caps what those below it grant."""
    spec = {"preemption": preemption} | ({"parent": parent} if parent else {})
    return {"apiVersion": ADMITTER, "kind": "Cohort", "metadata": {"name": name}, "spec": spec}


def rows(result: Json) -> dict[str, Json]:
    """Workloads by the name of their Job."""
    return {row["job"] or row["name"]: row for row in result["workloads"]}


def names(result: Json) -> dict[str, str]:
    """The names of Jobs by the names of their Workloads."""
    return {f"{row['namespace']}/{row['name']}": row["job"] or row["name"] for row in result["workloads"]}


def events(result: Json, *kinds: str) -> list[tuple[int, str, str]]:
    """Second, type and Job of what happened, of some types or all."""
    jobs = names(result)
    return [
        (
            int(event["time"][14:16]) * 60 + int(event["time"][17:19]),
            event["type"],
            jobs.get(f"{event['namespace']}/{event['name']}", event["name"]),
        )
        for event in result["events"]
        if not kinds or event["type"] in kinds
    ]


def used(result: Json, resource: str) -> dict[str, str]:
    """What is used of a resource in each queue."""
    return {
        row["name"]: row["usage"]["elastic_quota"][resource]["used"]
        for row in result["clusterQueues"]
        if resource in row["usage"].get("elastic_quota", {})
    }


def capacities(result: Json) -> dict[str, str | None]:
    """The capacity of each Job."""
    return {name: row["capacity"] for name, row in rows(result).items()}
