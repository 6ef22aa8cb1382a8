"""A kind of one's own: its definition, its JobKind, and an operator that makes pods from its templates."""

import asyncio
from typing import Any

from admitter.client.store import Key
from tests.apiserver.job_controller import is_live, is_owned
from tests.apiserver.server import ApiServer

Json = dict[str, Any]

GROUP = "lab.example.com"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
JOB_KINDS = "/apis/admitter.dev/v1alpha1/jobkinds"
ACT_SECONDS = 0.1
STOP_SECONDS = 3.0
_TEMPLATE: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_PROBES: Json = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "copies": {"type": "integer"}, "template": _TEMPLATE},
    },
}
_SPEC: Json = {
    "type": "object",
    "properties": {"state": {"type": "string"}, "control": _TEMPLATE, "probes": _PROBES},
}
_STATUS: Json = {
    "type": "object",
    "properties": {"pods": {"type": "integer"}, "phase": {"type": "string"}, "words": {"type": "string"}},
}


def definition() -> Json:
    """Of Experiments: a control pod, and probes in a list."""
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}}},
    }
    names = {"kind": "Experiment", "plural": "experiments"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"experiments.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def job_kind(**changed: Any) -> Json:
    """What describes Experiments."""
    spec: Json = {
        "resource": {"group": GROUP, "version": "v1", "kind": "Experiment", "plural": "experiments"},
        "suspend": {"path": "spec.state", "stopped": "Stopped", "running": "Running"},
        "podSets": [
            {"name": "control", "template": "spec.control"},
            {
                "each": "spec.probes",
                "nameFrom": "item.name",
                "template": "template",
                "count": "has(item.copies) ? item.copies : 1",
            },
        ],
        "active": "has(object.status) && has(object.status.pods) && object.status.pods > 0",
        "finished": {
            "succeeded": "has(object.status) && has(object.status.phase) && object.status.phase == 'Done'",
            "failed": "has(object.status) && has(object.status.phase) && object.status.phase == 'Broken'",
            "message": "has(object.status.words) ? object.status.words : ''",
        },
        "children": [{"group": "batch", "kind": "Job"}],
    }
    return {
        "apiVersion": "admitter.dev/v1alpha1",
        "kind": "JobKind",
        "metadata": {"name": "experiment"},
        "spec": spec | changed,
    }


class ExperimentOperator:
    """Makes the pods of Experiments that may have them, and deletes those of others.

    Attributes:
        lasts: for how many seconds pods run.
        ended: the UIDs of Experiments as they end.
    """

    def __init__(self, server: ApiServer, lasts: float = 30.0) -> None:
        """Act from now on."""
        self.lasts = lasts
        self.ended: list[str] = []
        self._server = server
        self._made = 0
        server.listen(self._changed)

    def _changed(self, plural: str, before: Json | None, after: Json | None) -> None:
        if plural != "experiments" or after is None:
            return
        if before is None or before["spec"].get("state") != after["spec"].get("state"):
            asyncio.get_running_loop().call_later(ACT_SECONDS, self._act, _key(after))

    def _act(self, key: Key) -> None:
        now = self._server.objects["experiments"].get(key)
        if now is None or (now.get("status") or {}).get("phase"):
            return
        loop, pods = asyncio.get_running_loop(), self._pods(now)
        if now["spec"].get("state") == "Stopped":
            if pods:
                loop.call_later(STOP_SECONDS, self._stop, key, pods)
        elif not pods:
            names = [self._make(now, template) for template in templates(now)]
            self._say(key, {"pods": len(names)})
            loop.call_later(self.lasts, self._finish, key, names)

    def _make(self, experiment: Json, template: Json) -> str:
        (namespace, name), self._made = _key(experiment), self._made + 1
        marks = template.get("metadata") or {}
        owner = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Experiment",
            "name": name,
            "uid": experiment["metadata"]["uid"],
            "controller": True,
        }
        metadata = {"name": f"{name}-{self._made}", "ownerReferences": [owner]}
        metadata |= {part: marks[part] for part in ("labels", "annotations") if part in marks}
        path = f"/api/v1/namespaces/{namespace}/pods"
        made = self._server.make(path, {"metadata": metadata, "spec": template["spec"]})["metadata"]["name"]
        self._server.write(f"{path}/{made}/status", {"status": {"phase": "Running"}})
        return f"{path}/{made}"

    def _stop(self, key: Key, pods: list[str]) -> None:
        now = self._server.objects["experiments"].get(key)
        if now is not None and now["spec"].get("state") == "Stopped":
            for path in set(pods) & set(self._pods(now)):
                self._server.remove(path)
            self._say(key, {"pods": 0})

    def _finish(self, key: Key, pods: list[str]) -> None:
        now = self._server.objects["experiments"].get(key)
        if now is not None and now["spec"].get("state") == "Running" and self._pods(now) == sorted(pods):
            self.ended.append(now["metadata"]["uid"])
            for path in pods:
                self._server.write(f"{path}/status", {"status": {"phase": "Succeeded"}})
            self._say(key, {"pods": 0, "phase": "Done", "words": "all probes have come back"})

    def _say(self, key: Key, status: Json) -> None:
        path = f"/apis/{GROUP}/v1/namespaces/{key[0]}/experiments/{key[1]}/status"
        self._server.write(path, {"status": status})

    def _pods(self, experiment: Json) -> list[str]:
        uid, (namespace, _) = experiment["metadata"]["uid"], _key(experiment)
        return [
            f"/api/v1/namespaces/{namespace}/pods/{name}"
            for (_, name), pod in sorted(self._server.objects["pods"].items())
            if is_owned(pod, uid) and is_live(pod)
        ]


def templates(experiment: Json) -> list[Json]:
    """The template of each pod of an Experiment."""
    probes = experiment["spec"].get("probes") or ()
    return [
        experiment["spec"]["control"],
        *(p["template"] for p in probes for _ in range(p.get("copies", 1))),
    ]


def _key(raw: Json) -> Key:
    return (raw["metadata"]["namespace"], raw["metadata"]["name"])
