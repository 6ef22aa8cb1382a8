"""From scheduler-plugins: elastic quotas, and pods of its scheduler (docs/design/import.md)."""

from collections.abc import Sequence
from typing import Final

from admitter.importers.dispatch import dispatch
from admitter.importers.elastic import ElasticImporter, scheduler
from admitter.importers.reading import Collection, Document
from admitter.importers.translation import ManifestSource, Translation

GROUPS: Final = ("scheduling.x-k8s.io", "scheduling.sigs.k8s.io")
"""The newer and the older name of its API."""

COLLECTIONS: Final = (Collection(tuple(f"/apis/{group}/v1alpha1/elasticquotas" for group in GROUPS)),)


def translate(documents: Sequence[Document], into: Translation) -> None:
    """Make Admitter's manifests of those of scheduler-plugins."""
    elastic = ElasticImporter(documents, GROUPS)
    handlers = {
        **elastic.jobs.handlers(),
        **{(group, "ElasticQuota"): elastic.quota for group in GROUPS},
        **{(group, "PodGroup"): _pod_group for group in GROUPS},
        ("kubescheduler.config.k8s.io", "KubeSchedulerConfiguration"): scheduler,
    }
    dispatch(documents, into, handlers)


def _pod_group(source: ManifestSource) -> None:
    """A group is what a Job is here anyway."""
    for key in ("name", "namespace", "labels", "annotations"):
        if source.value(f"metadata.{key}") is not None:
            source.approximated(f"metadata.{key}", "no group is needed")
    for key in ("minMember", "minResources"):
        if source.value(f"spec.{key}") is not None:
            source.approximated(
                f"spec.{key}", "all pods of a Job are admitted together, not the least number"
            )
    if source.value("spec.scheduleTimeoutSeconds") is not None:
        source.refused("spec.scheduleTimeoutSeconds", "a Job waits as long as it takes")
