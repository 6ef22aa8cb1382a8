"""The queue that a pod names in YuniKorn, as the LocalQueue that its Job waits in."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from admitter.importers.naming import Names
from admitter.importers.queue_tree import LocalQueues
from admitter.importers.reading import Document
from admitter.importers.translation import Fidelity, ManifestSource, Translation, below
from admitter.importers.yunikorn.placement import LABELS, RuleReader
from admitter.names import ROOT_COHORT

SCHEDULER: Final = "yunikorn"

_APPLICATIONS: Final = ("yunikorn.apache.org/app-id", "applicationId", "spark-app-selector")
_GANG: Final = (
    "yunikorn.apache.org/task-groups",
    "yunikorn.apache.org/task-group-name",
    "yunikorn.apache.org/schedulingPolicyParameters",
)
_METADATA: Final = ("metadata", "spec.template.metadata", "spec.jobTemplate.spec.template.metadata")
"""Where metadata of pods is, in all kinds that have pods."""


def named(documents: Iterable[Document]) -> Iterator[str]:
    """The paths of all queues that pods name, without the root."""
    for document in documents:
        source = ManifestSource(document.raw, document.name, Translation())
        for metadata in _METADATA:
            yield from (_path(source.text(place)) for place in _places(source, metadata))


def _places(source: ManifestSource, metadata: str) -> list[str]:
    """Where a pod names its queue; the first one counts."""
    canonical, legacy = LABELS
    fields = (("labels", canonical), ("annotations", canonical), ("labels", legacy))
    places = [below(f"{metadata}.{part}", key) for part, key in fields]
    return [place for place in places if isinstance(source.value(place), str)]


def _path(queue: str) -> str:
    """YuniKorn does not tell capital letters from small ones."""
    return queue.lower().removeprefix(f"{ROOT_COHORT}.")


@dataclass(slots=True)
class WorkloadReader:
    """Finds the queues of pods; without rules there is no configuration."""

    names: Names
    local_queues: LocalQueues
    rules: RuleReader | None = None

    def queue(self, source: ManifestSource, template: str) -> str | None:
        """The LocalQueue of an object with pods; empty if the placement finds it, None if nothing does."""
        metadata = below(template, "metadata")
        self.local_queues.count(source, below(template, "spec"))
        _account_for_application(source, metadata)
        places = _places(source, metadata)
        if not places:
            scheduler = source.value(f"{template}.spec.schedulerName".lstrip("."))
            return "" if self.rules is not None or scheduler == SCHEDULER else None
        for place in places[1:]:
            source.translated(place, "another label says it, which counts")
        place = places[0]
        if self.rules is not None and not self.rules.by_label:
            source.approximated(place, "the placement rules do not ask for it: the PlacementPolicy decides")
            return ""
        name = self._cluster_queue(source, place, _path(source.text(place)))
        self.local_queues.lead(source, name)
        return name

    def _cluster_queue(self, source: ManifestSource, place: str, path: str) -> str:
        known = self.rules.tree.places.get(path) if self.rules is not None else None
        if known is not None and not known.node.inner:
            source.translated(place, f"LocalQueue {known.node.name}")
            return known.node.name
        name = self.names.of("ClusterQueue", f"{ROOT_COHORT}.{path}", path)
        if self.rules is None:
            source.approximated(place, f"LocalQueue {name}; the ClusterQueue comes with the configuration")
        elif known is None and self.rules.creates_by_label and self.rules.tree.add(path, name):
            source.translated(place, f"LocalQueue {name}, and a ClusterQueue, since the rules create it")
        else:
            source.refused(place, f"there is no queue {path} that Jobs can be in: the Job waits")
        return name


def _account_for_application(source: ManifestSource, metadata: str) -> None:
    words = "one Job for each pod template: Jobs of an application are admitted one by one"
    parts = ("labels", "annotations")
    applications = [below(f"{metadata}.{part}", key) for key in _APPLICATIONS for part in parts]
    source.account(Fidelity.APPROXIMATED, dict.fromkeys(applications, words))
    words = "a Job's own pods start together, those of several Jobs do not"
    gangs = [below(f"{metadata}.annotations", key) for key in _GANG]
    source.account(Fidelity.REFUSED, dict.fromkeys(gangs, words))
