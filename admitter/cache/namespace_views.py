"""What namespaces say of themselves, and their ResourceQuotas of them; there may be thousands of both."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from admitter.cache.views import Json, Meta, meta
from admitter.names import (
    DEPRECATED_QUOTA_ANNOTATIONS,
    NAMESPACE_QUOTA_ANNOTATIONS,
    NAMESPACE_WEIGHT_RESOURCES,
    PARENT_QUEUE_ANNOTATIONS,
)
from admitter.quotas.namespaces import AnnotationError, cohort_of

_KEPT: Final = frozenset(
    (*NAMESPACE_QUOTA_ANNOTATIONS, *DEPRECATED_QUOTA_ANNOTATIONS, *PARENT_QUEUE_ANNOTATIONS)
)
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class NamespaceView(Meta):
    """A namespace, with those annotations that say which queue it has."""

    labels: Mapping[str, str]
    terminating: bool
    annotations: Mapping[str, str]

    @property
    def cohort(self) -> str | None:
        """The Cohort that its queue belongs to; None if its annotations ask for none, or can't be read."""
        try:
            return cohort_of(self.annotations) if self.annotations else None
        except AnnotationError:
            return None


def parse_namespace(raw: Json) -> NamespaceView:
    metadata = raw["metadata"]
    given = metadata.get("annotations") or {}
    kept = {name: str(text) for name, text in given.items() if name in _KEPT}
    return NamespaceView(
        *meta(metadata),
        labels=metadata.get("labels") or _NOTHING,
        terminating="deletionTimestamp" in metadata,
        annotations=kept or _NOTHING,
    )


@dataclass(frozen=True, slots=True)
class ResourceQuotaView(Meta):
    """A ResourceQuota of Kubernetes, of which only the weights of its namespace count, as quantities."""

    weights: tuple[str, ...]


def parse_resource_quota(raw: Json) -> ResourceQuotaView:
    hard = (raw.get("spec") or {}).get("hard") or {}
    found = (hard[name] for name in NAMESPACE_WEIGHT_RESOURCES if name in hard)
    return ResourceQuotaView(*meta(raw["metadata"]), weights=tuple(map(str, found)))
