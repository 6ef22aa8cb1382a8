"""RayClusters on the API server in memory, with an operator that acts as KubeRay v1.6.1 does."""

import asyncio
from collections.abc import Iterable
from typing import Any

from admitter.client.store import Key
from admitter.documents import documents
from tests.apiserver.job_controller import is_live, is_owned
from tests.apiserver.server import ApiServer
from tests.kinds.described import ROOT

Json = dict[str, Any]

GROUP = "ray.io"
REPLICA = "ray.io/worker-group-replica-name"
READ_SECONDS = 0.1
WORK_SECONDS = 0.5
"""So long after it has read an object the operator makes pods by what it has read."""


def job_kind() -> Json:
    """The one that is shipped, without the containers that KubeRay adds: queues of tests have CPU alone."""
    kind: Json = next(iter(documents([str(ROOT / "manifests" / "kinds" / "raycluster.yaml")])))[1]
    pod_sets = [{k: v for k, v in each.items() if k != "containers"} for each in kind["spec"]["podSets"]]
    return {**kind, "spec": {**kind["spec"], "podSets": pod_sets}}


def definition() -> Json:
    """Of RayClusters, with any fields."""
    anything: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema: Json = {"type": "object", "properties": {"spec": anything, "status": anything}}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}}
    names = {"kind": "RayCluster", "plural": "rayclusters"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"rayclusters.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": names,
            "scope": "Namespaced",
            "versions": [version | {"schema": {"openAPIV3Schema": schema}}],
        },
    }


def pod_template(cpu: int, priority: str = "") -> Json:
    chosen = {"priorityClassName": priority} if priority else {}
    requests = {"cpu": str(cpu)}
    return {"spec": {"containers": [{"name": "ray", "resources": {"requests": requests}}], **chosen}}


def group(name: str, replicas: int, most: int, *, cpu: int = 1, hosts: int = 1, priority: str = "") -> Json:
    """A worker group."""
    return {
        "groupName": name,
        "replicas": replicas,
        "minReplicas": 0,
        "maxReplicas": most,
        "numOfHosts": hosts,
        "template": pod_template(cpu, priority),
    }


class RayOperator:
    """Acts on each RayCluster, one change after another, and always on what it has read a while ago."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._busy: set[Key] = set()
        self._again: set[Key] = set()
        self._made = 0
        server.listen(self._changed)

    def _changed(self, plural: str, before: Json | None, after: Json | None) -> None:
        if plural == "rayclusters" and after is not None:
            if before is None or before["metadata"]["generation"] != after["metadata"]["generation"]:
                self._queue((after["metadata"]["namespace"], after["metadata"]["name"]))
        elif plural == "pods" and after is None and before is not None:
            owner = before["metadata"]["ownerReferences"][0]
            if owner["kind"] == "RayCluster":
                self._queue((before["metadata"]["namespace"], owner["name"]))

    def _queue(self, key: Key) -> None:
        if key in self._busy:
            self._again.add(key)
            return
        self._busy.add(key)
        asyncio.get_running_loop().call_later(READ_SECONDS, self._read, key)

    def _read(self, key: Key) -> None:
        self._again.discard(key)
        seen = self._server.objects["rayclusters"].get(key)
        asyncio.get_running_loop().call_later(WORK_SECONDS, self._act, key, seen)

    def _act(self, key: Key, seen: Json | None) -> None:
        now = self._server.objects["rayclusters"].get(key)
        if seen is not None and now is not None and now["metadata"]["uid"] == seen["metadata"]["uid"]:
            self._reconcile(seen)
        self._busy.discard(key)
        if key in self._again:
            self._queue(key)

    def _reconcile(self, seen: Json) -> None:
        suspended, spec = bool(seen["spec"].get("suspend")), seen["spec"]
        if suspended:
            for pod in self._pods(seen):
                self._end(pod)
        else:
            if not self._pods(seen, "headgroup"):
                self._make(seen, "headgroup", spec["headGroupSpec"]["template"])
            for each in spec["workerGroupSpecs"]:
                self._scale(seen, each)
        gone = suspended and not self._pods(seen)
        conditions = [{"type": "RayClusterSuspended", "status": "True" if gone else "False"}]
        status = {"observedGeneration": seen["metadata"]["generation"], "conditions": conditions}
        namespace, name = seen["metadata"]["namespace"], seen["metadata"]["name"]
        path = f"/apis/{GROUP}/v1/namespaces/{namespace}/rayclusters/{name}/status"
        self._server.write(path, {"status": status})

    def _scale(self, seen: Json, group: Json) -> None:
        """As KubeRay does: replicas end of which a pod is named, and others only without an autoscaler."""
        size = min(max(group["replicas"], group["minReplicas"]), group["maxReplicas"])
        wanted = size * group["numOfHosts"]
        if group.get("suspend"):
            for pod in self._pods(seen, group["groupName"]):
                self._end(pod)
            return
        named = (group.get("scaleStrategy") or {}).get("workersToDelete") or ()
        mine = self._pods(seen, group["groupName"])
        ending = {_replica(pod) for pod in mine if pod["metadata"]["name"] in named}
        for pod in mine:
            if _replica(pod) in ending:
                self._end(pod)
        left = [pod for pod in self._pods(seen, group["groupName"]) if _replica(pod) not in ending]
        for _ in range((wanted - len(left)) // group["numOfHosts"]):
            self._made += 1
            for _ in range(group["numOfHosts"]):
                self._make(seen, group["groupName"], group["template"], f"replica-{self._made}")
        if not seen["spec"].get("enableInTreeAutoscaling"):
            for pod in left[: max(0, len(left) - wanted)]:
                self._end(pod)

    def _make(self, seen: Json, group: str, template: Json, replica: str = "") -> None:
        metadata, self._made = seen["metadata"], self._made + 1
        marks = template.get("metadata") or {}
        owner = {"apiVersion": f"{GROUP}/v1", "kind": "RayCluster", "name": metadata["name"]}
        made = {
            "name": f"{metadata['name']}-{group}-{self._made}",
            "ownerReferences": [owner | {"uid": metadata["uid"], "controller": True}],
            "labels": {**marks.get("labels", {}), "ray.io/group": group, REPLICA: replica},
            "annotations": marks.get("annotations", {}),
        }
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods"
        self._server.make(path, {"metadata": made, "spec": template["spec"]})
        self._server.write(f"{path}/{made['name']}/status", {"status": {"phase": "Running"}})

    def _end(self, pod: Json) -> None:
        metadata = pod["metadata"]
        self._server.remove(f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}")

    def _pods(self, seen: Json, group: str = "") -> list[Json]:
        return list(pods_of(self._server, seen["metadata"]["uid"], group))


def _replica(pod: Json) -> str:
    return str(pod["metadata"]["labels"][REPLICA])


def pods_of(server: ApiServer, uid: str, group: str = "") -> Iterable[Json]:
    """The pods of a RayCluster, or of one of its groups."""
    for _, pod in sorted(server.objects["pods"].items()):
        if is_owned(pod, uid) and is_live(pod) and group in {"", pod["metadata"]["labels"]["ray.io/group"]}:
            yield pod
