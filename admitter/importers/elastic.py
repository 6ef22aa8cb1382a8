"""Elastic quotas of other systems: nos and scheduler-plugins have the same kinds with the same meaning."""

from collections.abc import Iterable, Sequence
from typing import Final

from admitter.api.base import own_name
from admitter.importers.dispatch import metadata
from admitter.importers.jobs import DEFAULT_SCHEDULER, JobImporter
from admitter.importers.naming import Names
from admitter.importers.reading import Document
from admitter.importers.translation import Json, Source, below
from admitter.names import API_VERSION, ELASTIC_QUOTA_QUEUE

QUOTAS: Final = ("ElasticQuota", "CompositeElasticQuota")


class ElasticImporter:
    """Translates quotas, and what runs in their namespaces."""

    def __init__(self, documents: Sequence[Document], groups: tuple[str, ...]) -> None:
        """Prepare.

        Args:
            documents: all that is translated: what runs is queued if a quota governs its namespace.
            groups: of the system's API.
        """
        self._groups = groups
        self._governed = set(_governed(documents, groups))
        self._names = Names()
        self.jobs = JobImporter(self._names, groups, self._queue)

    def quota(self, source: Source) -> None:
        """An elastic quota stays one."""
        kind = source.text("kind")
        namespace = source.text("metadata.namespace")
        name = self._names.take(source, "metadata.name", f"{kind}/{namespace}")
        if not name:
            return
        if namespace:
            source.translated("metadata.namespace", namespace)
        spec: Json = {part: self._limits(source, f"spec.{part}") for part in ("min", "max")}
        if kind == "CompositeElasticQuota":
            spec["namespaces"] = source.sequence("spec.namespaces")
            source.translated("spec.namespaces", "the same")
        manifest = {
            "apiVersion": API_VERSION,
            "kind": kind,
            "metadata": metadata(source, name, self._groups, namespace),
            "spec": {part: each for part, each in spec.items() if each},
        }
        source.into.add(manifest, source.title)

    def _limits(self, source: Source, path: str) -> Json:
        limits = {}
        for resource, quantity in source.mapping(path).items():
            own = own_name(resource)
            limits[own] = quantity
            source.translated(below(path, resource), "the same" if own == resource else f"as {own}")
        return limits

    def _queue(self, source: Source, template: str) -> str | None:
        """What other schedulers than the default one hold back, waits for the quota of its namespace."""
        at = f"{template}.spec.schedulerName".lstrip(".")
        scheduler = source.text(at) or DEFAULT_SCHEDULER
        namespace = source.text("metadata.namespace") or "default"
        if namespace not in self._governed:
            words = f"is not queued: no elastic quota of namespace {namespace} is among what is imported"
        elif scheduler == DEFAULT_SCHEDULER:
            words = "is not queued: the system's scheduler does not hold it back either, but it counts there"
        else:
            return ELASTIC_QUOTA_QUEUE
        source.approximated("metadata.namespace", words)
        return None


def _governed(documents: Iterable[Document], groups: tuple[str, ...]) -> Iterable[str]:
    for document in documents:
        if document.group not in groups or document.kind not in QUOTAS:
            continue
        spec = document.raw.get("spec")
        listed = spec.get("namespaces") if isinstance(spec, dict) else None
        if document.kind == "ElasticQuota":
            yield document.namespace
        elif isinstance(listed, list):
            yield from (each for each in listed if isinstance(each, str))
