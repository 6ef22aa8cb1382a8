"""From nos: elastic quotas, and pods of its scheduler (000)."""

from collections.abc import Sequence
from typing import Final

from admitter.importers.dispatch import dispatch
from admitter.importers.elastic import QUOTAS, ElasticImporter
from admitter.importers.reading import Collection, Document
from admitter.importers.translation import Source, Translation

GROUP: Final = "nos.nebuly.com"
CONFIGURATION: Final = "config.nos.nebuly.com"

COLLECTIONS: Final = (
    Collection((f"/apis/{GROUP}/v1alpha1/elasticquotas",)),
    Collection((f"/apis/{GROUP}/v1alpha1/compositeelasticquotas",)),
)


def translate(documents: Sequence[Document], into: Translation) -> None:
    """Make Admitter's manifests of those of nos."""
    elastic = ElasticImporter(documents, (GROUP,))
    handlers = {
        **elastic.jobs.handlers(),
        **{(GROUP, kind): elastic.quota for kind in QUOTAS},
        (CONFIGURATION, "OperatorConfig"): _configuration,
        ("", ""): _values,
    }
    dispatch(documents, into, handlers)


def _configuration(source: Source) -> None:
    _gpu_memory(source, "nvidiaGpuResourceMemoryGB")


def _values(source: Source) -> None:
    _gpu_memory(source, "global.nvidiaGpuResourceMemoryGB")


def _gpu_memory(source: Source, path: str) -> None:
    memory = source.number(path, 0)
    if memory:
        source.approximated(path, f"an option of the controller: admitter run --gpu-memory-gb {memory}")
