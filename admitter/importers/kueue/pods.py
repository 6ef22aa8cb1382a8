"""Pods that name a queue of Kueue, alone and in groups, and what makes such pods: each stays what it is.

Kueue's names of groups become Admitter's, as the policies of a cluster have it (docs/pods.md).
"""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Final

from admitter.importers.dispatch import Handler, belongs, copied, metadata
from admitter.importers.jobs import JobImporter, mark
from admitter.importers.kueue.quota import FOREIGN, GROUP
from admitter.importers.naming import Names
from admitter.importers.reading import Document
from admitter.importers.translation import Json, ManifestSource, below
from admitter.names import (
    FAST_ADMISSION_ANNOTATION,
    POD_GROUP_LABEL,
    POD_GROUP_SIZE_ANNOTATION,
    QUEUE_LABEL,
    RETRIABLE_ANNOTATION,
    SERVING_ANNOTATION,
)

GROUP_NAME: Final = f"{GROUP}/pod-group-name"
_OF_A_GROUP: Final = {
    f"{GROUP}/pod-group-total-count": POD_GROUP_SIZE_ANNOTATION,
    f"{GROUP}/retriable-in-group": RETRIABLE_ANNOTATION,
    f"{GROUP}/pod-group-serving": SERVING_ANNOTATION,
    f"{GROUP}/pod-group-fast-admission": FAST_ADMISSION_ANNOTATION,
}
_TEMPLATES: Final = {
    "Deployment": ("spec.template",),
    "StatefulSet": ("spec.template",),
    "LeaderWorkerSet": (
        "spec.leaderWorkerTemplate.leaderTemplate",
        "spec.leaderWorkerTemplate.workerTemplate",
    ),
}
"""Where they have pod templates."""


@dataclass(frozen=True, slots=True)
class PodImporter:
    """Takes pods over, and what makes them."""

    names: Names
    jobs: JobImporter  # which finds queues, and knows what Kueue says of priorities

    def keep_names(self, documents: Iterable[Document]) -> None:
        self.names.keep_all(documents, {kind: f"{kind}/" for kind in ("Pod", *_TEMPLATES)})

    def handlers(self) -> Mapping[tuple[str, str], Handler]:
        return {
            ("", "Pod"): self.pod,
            ("apps", "Deployment"): self.maker,
            ("apps", "StatefulSet"): self.maker,
            ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): self.maker,
        }

    def pod(self, source: ManifestSource) -> None:
        """A pod that waits stays one; one that another object has made is left to that."""
        if self.jobs.leaves(source):
            return
        queue = self.jobs.queue(source, "")
        if queue is None:
            copied(source)
            return
        named = self._named(source)
        if named is None:
            return
        spec = deepcopy(source.mapping("spec"))
        spec.pop("nodeName", None)
        gates = [each for each in spec.pop("schedulingGates", []) if not _is_kueues(each)]
        spec |= {"schedulingGates": gates} if gates else {}
        source.translated("spec", "taken over as it is")
        marks: Json = {}
        mark(marks, _marks(source, "metadata"), self.jobs.marks(source))
        self._add(source, named, queue, spec, marks)

    def maker(self, source: ManifestSource) -> None:
        """A Deployment, a StatefulSet or a LeaderWorkerSet stays one."""
        if self.jobs.leaves(source):
            return
        kind = source.text("kind")
        templates = [path for path in _TEMPLATES[kind] if source.mapping(path)]
        queues = [each for path in templates or [""] if (each := self.jobs.queue(source, path)) is not None]
        if not queues:
            copied(source)
            return
        named = self._named(source)
        if named is None:
            return
        made = deepcopy(source.raw)
        for path in templates:
            template = _at(made, path)
            if not isinstance(template.get("spec"), dict):
                source.refused(below(path, "spec"), "must be a map")
                return
            self._group(source, template, path)
            self._mark(source, template)
            self.jobs.disown(source, path)
            self.jobs.purge(source, template, below(path, "spec"))
        source.translated("spec", "taken over as it is")
        self._add(source, named, queues[0], made.get("spec") or {}, {})

    def _named(self, source: ManifestSource) -> tuple[str, str] | None:
        """Namespace and name; None if it has no name."""
        namespace = source.text("metadata.namespace")
        name = self.names.take(source, "metadata.name", f"{source.text('kind')}/{namespace}")
        if name and namespace:
            source.translated("metadata.namespace", namespace)
        return (namespace, name) if name else None

    @staticmethod
    def _group(source: ManifestSource, template: Json, path: str) -> None:
        """Let the pods of a template say Admitter's names for what they say of their group."""
        for part, marks in _marks(source, below(path, "metadata")).items():
            template["metadata"][part] = {**template["metadata"].get(part, {}), **marks}

    def _mark(self, source: ManifestSource, template: Json) -> None:
        """Let the pods of a template have what Jobs have beside the label of their queue."""
        if marks := self.jobs.marks(source):
            mark(template.setdefault("metadata", {}), marks)

    @staticmethod
    def _add(
        source: ManifestSource, named: tuple[str, str], queue: str, spec: Json, marks: Mapping[str, Json]
    ) -> None:
        namespace, name = named
        meta = metadata(source, name, FOREIGN, namespace)
        mark(meta, marks, {"labels": {QUEUE_LABEL: queue}})
        kind = {field: source.raw[field] for field in ("apiVersion", "kind")}
        source.add({**kind, "metadata": meta, "spec": spec})


def _marks(source: ManifestSource, path: str) -> dict[str, Json]:
    """Admitter's labels and annotations for what a pod says of its group."""
    labels = _renamed(source, f"{path}.labels", {GROUP_NAME: POD_GROUP_LABEL})
    found = {"labels": labels, "annotations": _renamed(source, f"{path}.annotations", _OF_A_GROUP)}
    return {part: marks for part, marks in found.items() if marks}


def _renamed(source: ManifestSource, path: str, names: Mapping[str, str]) -> Json:
    made: Json = {}
    for theirs, ours in names.items():
        place = below(path, theirs)
        if text := source.text(place):
            made[ours] = text
            source.translated(place, f"{ours}: {text}")
    return made


def _is_kueues(gate: object) -> bool:
    return isinstance(gate, dict) and belongs(str(gate.get("name")), FOREIGN)


def _at(manifest: Json, path: str) -> Json:
    for step in path.split("."):
        manifest = manifest[step]
    return manifest
