"""What a namespace has when a test of it fails: what may have kept the test from what it waits for."""

import json

from admitter.sandbox.cluster import Cluster, KubectlError
from tests.cluster.objects import Json

KINDS = ("workloads.admitter.dev", "jobs", "jobsets", "rayclusters", "trainjobs", "pods", "events")


def told(cluster: Cluster, namespace: str) -> str:
    """The statuses of its objects and its events, a line each, and the use of its ClusterQueues."""
    lines = []
    for kind in KINDS:
        lines += [line(kind, each) for each in read(cluster, kind, f"--namespace={namespace}")]
    queues = read(cluster, "clusterqueues.admitter.dev")
    lines += [
        line("clusterqueues", each) for each in queues if each["metadata"]["name"].startswith(namespace)
    ]
    return "\n".join(lines)


def line(kind: str, found: Json) -> str:
    """An object in a line."""
    facts = found.get("status") or {key: found.get(key) for key in ("reason", "message", "lastTimestamp")}
    deleted = {"deleted": found["metadata"].get("deletionTimestamp")}
    return f"{kind} {found['metadata']['name']}: {json.dumps(deleted | facts)}"


def read(cluster: Cluster, *arguments: str) -> list[Json]:
    """Objects; none if the API server does not answer: the test's own failure is what matters."""
    try:
        return list(cluster.read(*arguments)["items"])
    except KubectlError:
        return []
