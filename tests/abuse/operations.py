"""What a tenant asks the API server for: one operation, and what it waits for between two of them.

An operation is data, so that a seed means the same ones each time. What only the API server knows (names of
pods and of Workloads, UIDs) stands in paths and bodies as a reference, which is looked up just before:
`@pod/JOB/3@` is the name of the fourth pod of a Job, `@workload/JOB@` that of its Workload, `@uid/JOB@` its
UID. `any` instead of a Job means all of the namespace, `experiment.NAME` an Experiment, `queued.NAME` a
queued pod by itself.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.apiserver.experiments import GROUP
from tests.faults.api import BATCH, CORE, OWN

Json = dict[str, Any]

JSON: Final = "application/json"
MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
UPDATE: Final = "update"
"""Not a content type: the object is read, a merge patch put into it, and all of it written back."""
COPY: Final = "copy"
"""Nor is this: the object is read, a merge patch put into it, and it is created once more."""
ANY: Final = "any"
"""Instead of a Job's name: whichever."""
KEEP: Final = "example.com/keep"
"""The finalizer of tenants."""
_PATHS: Final = {
    "jobs": BATCH,
    "cronjobs": BATCH,
    "experiments": f"/apis/{GROUP}/v1",
    "workloads": OWN,
    "localqueues": OWN,
    "elasticquotas": OWN,
    "replicasets": "/apis/apps/v1",
    "rolebindings": "/apis/rbac.authorization.k8s.io/v1",
    "poddisruptionbudgets": "/apis/policy/v1",
}
_REFERENCE: Final = re.compile(r"@(?P<kind>pod|workload|uid)/(?P<job>[a-z0-9.-]+?)(?:/(?P<index>\d+))?@")


@dataclass(frozen=True)
class Operation:
    """One request.

    Attributes:
        method: of HTTP.
        path: with references.
        body: as text, with references; empty for none.
        content: its type, or `UPDATE`, or `COPY`.
        query: the options of the request.
        theme: the attack that it is part of; empty for one by itself.
    """

    method: str
    path: str
    body: str = ""
    content: str = JSON
    query: tuple[tuple[str, str], ...] = ()
    theme: str = ""

    @property
    def jobs(self) -> set[str]:
        """The names of the Jobs and pods that it is about, as far as it names any."""
        found = (each["job"] for each in _REFERENCE.finditer(self.path + self.body))
        named = {name.removeprefix("experiment.") for name in found}
        direct = re.search(r"/(?:jobs|experiments|pods)/([a-z0-9.-]+)", self.path)
        made = re.search(r'"kind": "(?:Job|Experiment|Pod)".*?"name": "([a-z0-9.-]+)"', self.body)
        return named | {found[1] for found in (direct, made) if found}

    @property
    def sweeps(self) -> bool:
        """Whether it deletes a whole collection."""
        return self.method == "DELETE" and self.path.rpartition("/")[2] in _PATHS.keys() | {"pods"}

    def of(self, theme: str) -> "Operation":
        """The same as a part of an attack."""
        return replace(self, theme=theme)


@dataclass(frozen=True)
class Pause:
    """A tenant waits, for a while, until something has become of a Job.

    Attributes:
        job: its name.
        until: `runs` (a pod of it does) or `gone` (the Job is).
        seconds: how long at the most.
    """

    job: str
    until: str
    seconds: float


Step = Operation | Pause


@dataclass(frozen=True)
class Reference:
    """What is looked up: the kind, the Job, and of pods the number."""

    kind: str
    job: str
    index: int


def references(text: str) -> dict[str, Reference]:
    """All that a text refers to."""
    return {
        found[0]: Reference(found["kind"], found["job"], int(found["index"] or 0))
        for found in _REFERENCE.finditer(text)
    }


def resolved(text: str, known: Mapping[str, str]) -> str:
    """A text with what its references mean; what is not known reads `nothing`."""
    return _REFERENCE.sub(lambda found: known.get(found[0], "nothing"), text)


def path(namespace: str, kind: str, name: str = "", part: str = "") -> str:
    """Where an object of a namespace is, a collection, or a part of an object such as `status`."""
    return "/".join(filter(None, (_PATHS.get(kind, CORE), "namespaces", namespace, kind, name, part)))


def create(namespace: str, kind: str, manifest: Json, part: tuple[str, str] = ("", "")) -> Operation:
    """Create an object, or a part of one: its name, and what part."""
    return Operation("POST", path(namespace, kind, *part), json.dumps(manifest))


def patch(
    namespace: str, kind: str, name: str, change: Json | list[Json], *, part: str = "", content: str = MERGE
) -> Operation:
    """Change an object by a patch of a kind, or by an update."""
    method = "PUT" if content == UPDATE else "PATCH"
    query = (("fieldManager", "tenant"), ("force", "true")) if content == APPLY else ()
    return Operation(method, path(namespace, kind, name, part), json.dumps(change), content, query)


def copy(namespace: str, kind: str, name: str, change: Json) -> Operation:
    """Create an object like another one, with a patch in it that has another name."""
    return Operation("POST", path(namespace, kind, name), json.dumps(change), COPY)


def delete(namespace: str, kind: str, name: str = "", **query: str) -> Operation:
    """Delete an object, or without a name a collection, by options such as `propagationPolicy`."""
    return Operation("DELETE", path(namespace, kind, name), query=tuple(sorted(query.items())))


def copied(whole: Json, change: Json) -> Json:
    """A new object like another one, with a merge patch in it."""
    kept = {"name", "namespace", "labels", "annotations", "ownerReferences", "finalizers"}
    metadata = {key: value for key, value in whole["metadata"].items() if key in kept}
    return merged(whole | {"metadata": metadata, "status": {}}, change)


def merged(whole: Json, change: Json) -> Json:
    """An object with a merge patch in it."""
    made = dict(whole)
    for key, value in change.items():
        if value is None:
            made.pop(key, None)
        elif isinstance(value, dict):
            before = made.get(key)
            made[key] = merged(before if isinstance(before, dict) else {}, value)
        else:
            made[key] = value
    return made
