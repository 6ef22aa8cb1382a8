"""The systems that manifests can be imported from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from admitter.importers import elastic
from admitter.importers.described import collections as described
from admitter.importers.kueue import importer as kueue
from admitter.importers.naming import with_generated_names
from admitter.importers.reading import Collection, Document
from admitter.importers.translation import Translation
from admitter.importers.volcano import importer as volcano
from admitter.importers.yunikorn import importer as yunikorn


class SystemName(StrEnum):
    """What the systems are called in commands."""

    KUEUE = "kueue"
    NOS = "nos"
    SCHEDULER_PLUGINS = "scheduler-plugins"
    VOLCANO = "volcano"
    YUNIKORN = "yunikorn"


@dataclass(frozen=True, slots=True)
class System:
    """How manifests of one system are read from a cluster, and translated; its importer gets named ones."""

    collections: Sequence[Collection]
    importer: Callable[[Sequence[Document], Translation], None]
    # the label by which objects of described kinds are found in a cluster; empty: they are not looked for
    queue_label: str = ""

    def all_collections(self) -> list[Collection]:
        """All that is read from a cluster."""
        return [*self.collections, *(described(self.queue_label) if self.queue_label else ())]

    def translate(self, documents: Sequence[Document], into: Translation) -> None:
        """Make Admitter's manifests of documents, and account for each of their fields."""
        self.importer(with_generated_names(documents), into)


SYSTEMS: Final[Mapping[SystemName, System]] = {
    SystemName.KUEUE: System(kueue.COLLECTIONS, kueue.translate, kueue.QUEUE),
    SystemName.NOS: System(elastic.NOS_COLLECTIONS, elastic.translate_nos),
    SystemName.SCHEDULER_PLUGINS: System(
        elastic.SCHEDULER_PLUGINS_COLLECTIONS, elastic.translate_scheduler_plugins
    ),
    SystemName.VOLCANO: System(volcano.COLLECTIONS, volcano.translate),
    SystemName.YUNIKORN: System(yunikorn.COLLECTIONS, yunikorn.translate),
}
