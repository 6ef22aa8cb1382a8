"""Queued pods and what makes them, as users would write them."""

from importlib.util import find_spec
from typing import Any

import pytest

from tests.cluster.objects import Json

GATE = "admitter.dev/admission"
QUEUE = "admitter.dev/queue-name"
GROUP, SIZE = "admitter.dev/pod-group", "admitter.dev/pod-group-size"
USER, USER_UID = "admitter.dev/user", "admitter.dev/user-uid"
QUEUED_BY_CONTROLLER = pytest.mark.skipif(
    find_spec("admitter.cache.queued_pods") is None, reason="no controller queues pods yet"
)
KUEUES_QUEUE, KUEUES_GROUP = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/pod-group-name"


def pod(
    namespace: str,
    name: str,
    queue: str | None = "main",
    *,
    labels: Json | None = None,
    annotations: Json | None = None,
    owners: list[Json] | None = None,
    **spec: Any,
) -> Json:
    """A pod of one CPU; one that names no queue with None."""
    named = {} if queue is None else {QUEUE: queue}
    metadata: Json = {"name": name, "namespace": namespace, "labels": named | (labels or {})}
    metadata |= {"annotations": annotations} if annotations else {}
    metadata |= {"ownerReferences": owners} if owners else {}
    container = {"name": "main", "image": "work", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
    }


def group_pod(namespace: str, name: str, group: str = "team", size: int | str = 2) -> Json:
    """A pod of a group."""
    return pod(namespace, name, labels={GROUP: group}, annotations={SIZE: str(size)})


def maker(namespace: str, kind: str, name: str, queue: str | None = "main", **metadata: Any) -> Json:
    """What Kubernetes makes pods of, such as a ReplicaSet, with a queue in its template.

    Args:
        namespace: where.
        kind: Deployment, ReplicaSet, StatefulSet, DaemonSet or ReplicationController.
        name: of it.
        queue: in the labels of its pods; None for none.
        metadata: further metadata of its template; `labels` are added to the others.
    """
    selector: Json = {"app": name}
    labels = selector | ({} if queue is None else {QUEUE: queue}) | metadata.pop("labels", {})
    template = {"metadata": {"labels": labels, **metadata}, "spec": pod(namespace, name)["spec"]}
    spec: Json = {"template": template, "selector": {"matchLabels": selector}}
    if kind == "ReplicationController":
        spec["selector"] = selector
    if kind == "StatefulSet":
        spec["serviceName"] = name
    version = "v1" if kind == "ReplicationController" else "apps/v1"
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def gates(made: Json) -> list[str]:
    """The names of a pod's scheduling gates."""
    return [gate["name"] for gate in made["spec"].get("schedulingGates", ())]


def owner(manifest: Json) -> Json:
    """An object as the owner that controls another."""
    kind = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"]}
    named = {"name": manifest["metadata"]["name"], "uid": manifest["metadata"]["uid"]}
    return {**kind, **named, "controller": True}
