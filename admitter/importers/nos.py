"""From nos: elastic quotas, and pods of its scheduler (docs/design/import.md)."""

from collections.abc import Sequence
from typing import Final

from admitter.importers.dispatch import dispatch
from admitter.importers.elastic import QUOTAS, ElasticImporter, gpu_memory, scheduler
from admitter.importers.reading import Collection, Document
from admitter.importers.translation import ManifestSource, Translation

GROUP: Final = "nos.nebuly.com"
CONFIGURATION: Final = "config.nos.nebuly.com"

COLLECTIONS: Final = (
    Collection((f"/apis/{GROUP}/v1alpha1/elasticquotas",)),
    Collection((f"/apis/{GROUP}/v1alpha1/compositeelasticquotas",)),
)


def translate(documents: Sequence[Document], into: Translation) -> None:
    elastic = ElasticImporter(documents, (GROUP,))
    handlers = {
        **elastic.jobs.handlers(),
        **{(GROUP, kind): elastic.quota for kind in QUOTAS},
        (CONFIGURATION, "OperatorConfig"): lambda source: gpu_memory(source, "nvidiaGpuResourceMemoryGB"),
        ("kubescheduler.config.k8s.io", "KubeSchedulerConfiguration"): scheduler,
        ("", ""): _values,
    }
    dispatch(documents, into, handlers, elastic.finish)


def _values(source: ManifestSource) -> None:
    """What its chart is installed with; older charts have no global section."""
    for path in ("global.nvidiaGpuResourceMemoryGB", "nvidiaGpuResourceMemoryGB"):
        gpu_memory(source, path)
