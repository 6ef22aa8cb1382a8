"""What Admitter counts for a pod template is what the API server makes of it.

Each shape is made into a pod by the API server (a dry run), with its defaults from limits, LimitRanges and
RuntimeClass written out. Counting that pod without any defaults must give the same as counting the template.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from admitter.convert.pod_requests import pod_requests
from admitter.sandbox.cluster import Cluster
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.cluster

Json = dict[str, Any]

LIMIT_RANGES: list[Json] = [
    {"limits": [{"type": "Container", "default": {"cpu": "8"}, "defaultRequest": {"cpu": "300m"}}]},
    {"limits": [{"type": "Container", "default": {"memory": "16Gi"}}]},
    {"limits": [{"type": "Pod", "max": {"cpu": "64"}}]},
]


@pytest.fixture
def runtime_class(installed: Cluster, namespace: str) -> Iterator[Json]:
    """A RuntimeClass that takes something for itself."""
    manifest: Json = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": namespace},
        "handler": "heavy",
        "overhead": {"podFixed": {"cpu": "250m", "memory": "64Mi"}},
    }
    installed.run_kubectl("create", "-f-", content=json.dumps(manifest))
    yield manifest
    installed.run_kubectl("delete", "runtimeclass", namespace)


@pytest.fixture
def limits(installed: Cluster, namespace: str) -> list[Json]:
    """The specs of the namespace's LimitRanges, as the API server completed them."""
    for number, spec in enumerate(LIMIT_RANGES):
        metadata = {"name": f"limits-{number}", "namespace": namespace}
        manifest = {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": spec}
        installed.run_kubectl("create", "-f-", content=json.dumps(manifest))

    def known() -> bool:
        (found,) = made(installed, namespace, {"containers": [container("a")]})["spec"]["containers"]
        return bool(found["resources"].get("limits") == {"cpu": "8", "memory": "16Gi"})

    eventually(known, what="an API server that knows the limits")
    return [item["spec"] for item in installed.read("limitrange", f"--namespace={namespace}")["items"]]


def container(name: str, requests: Json | None = None, limits: Json | None = None, **more: Any) -> Json:
    resources = {k: v for k, v in (("requests", requests), ("limits", limits)) if v}
    return {"name": name, "image": "work", "resources": resources, **more}


SHAPES: dict[str, Json] = {
    "nothing asked": {"containers": [container("a")]},
    "requests": {
        "containers": [container("a", {"cpu": "1", "memory": "1500Mi"}), container("b", {"cpu": "0.1"})]
    },
    "limits only": {
        "containers": [container("a", None, {"cpu": "2", "memory": "1e9", "nvidia.com/gpu": "1"})]
    },
    "more limits than requests": {
        "containers": [container("a", {"cpu": "10m"}, {"cpu": "2", "memory": "1Gi"})]
    },
    "large init container": {
        "containers": [container("a", {"cpu": "1"})],
        "initContainers": [container("i", {"cpu": "5", "memory": "1Mi"}), container("j", {"memory": "3Gi"})],
    },
    "sidecars before and after": {
        "containers": [container("a", {"cpu": "1"})],
        "initContainers": [
            container("i", {"cpu": "2"}),
            container("s", {"cpu": "500m"}, restartPolicy="Always"),
            container("j", {"cpu": "2"}),
            container("t", {"memory": "2Gi"}, restartPolicy="Always"),
        ],
    },
    "pod-level requests": {
        "containers": [container("a", {"cpu": "1"})],
        "resources": {"requests": {"cpu": "13", "memory": "52Gi"}},
    },
    "pod-level limits": {
        "containers": [container("a", {"cpu": "1"}), container("b", {"cpu": "1"})],
        "resources": {"limits": {"cpu": "40", "memory": "80Gi"}},
    },
    "pod-level requests and limits": {
        "containers": [container("a", None, {"memory": "1Gi"})],
        "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "40", "memory": "40Gi"}},
    },
    "fractions": {
        "containers": [container(n, {"cpu": "333m", "memory": "333.5Mi"}) for n in ("a", "b", "c")]
    },
    "ephemeral storage": {"containers": [container("a", {"ephemeral-storage": "1Gi"})]},
}


def made(cluster: Cluster, namespace: str, template: Json) -> Json:
    """What the API server would make of a pod."""
    metadata = {"name": "tried", "namespace": namespace}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template}
    command = ("create", "--dry-run=server", "--output=json", "-f-")
    found: Json = json.loads(cluster.run_kubectl(*command, content=json.dumps(manifest)))
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("overhead", [False, True], ids=["", "with overhead"])
def test_counted_as_the_api_server_does(
    installed: Cluster, namespace: str, limits: list[Json], runtime_class: Json, shape: str, overhead: bool
) -> None:
    template = SHAPES[shape] | ({"runtimeClassName": namespace} if overhead else {})
    spec = made(installed, namespace, template)["spec"]
    assert pod_requests(template, limits, {namespace: runtime_class}) == pod_requests(spec)
