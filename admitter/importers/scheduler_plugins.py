"""From scheduler-plugins: elastic quotas, and pods of its scheduler (docs/design/import.md)."""

from collections.abc import Sequence
from typing import Final

from admitter.importers.dispatch import dispatch
from admitter.importers.elastic import ElasticImporter, scheduler
from admitter.importers.reading import Collection, Document
from admitter.importers.translation import Fidelity, ManifestSource, Translation

GROUPS: Final = ("scheduling.x-k8s.io", "scheduling.sigs.k8s.io")
"""The newer and the older name of its API."""

COLLECTIONS: Final = (Collection(tuple(f"/apis/{group}/v1alpha1/elasticquotas" for group in GROUPS)),)


def translate(documents: Sequence[Document], into: Translation) -> None:
    elastic = ElasticImporter(documents, GROUPS)
    handlers = {
        **elastic.jobs.handlers(),
        **{(group, "ElasticQuota"): elastic.quota for group in GROUPS},
        **{(group, "PodGroup"): _pod_group for group in GROUPS},
        ("kubescheduler.config.k8s.io", "KubeSchedulerConfiguration"): scheduler,
    }
    dispatch(documents, into, handlers, elastic.finish)


def _pod_group(source: ManifestSource) -> None:
    """A group is what a Job is here anyway."""
    metadata = ("name", "namespace", "labels", "annotations")
    source.account(Fidelity.APPROXIMATED, dict.fromkeys(metadata, "no group is needed"), "metadata")
    words = "all pods of a Job are admitted together, not the least number"
    source.account(Fidelity.APPROXIMATED, {"minMember": words, "minResources": words}, "spec")
    source.account(Fidelity.REFUSED, {"spec.scheduleTimeoutSeconds": "a Job waits as long as it takes"})
