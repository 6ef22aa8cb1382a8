"""The queue that a pod names in YuniKorn, as the LocalQueue that its Job waits in."""

from collections.abc import Iterable, Iterator
from typing import Final

from admitter.api.base import is_resource
from admitter.importers.naming import Names
from admitter.importers.queue_tree import QueueNode
from admitter.importers.reading import Document
from admitter.importers.translation import ManifestSource, Translation, below
from admitter.importers.yunikorn.access import YuniKornAccess
from admitter.importers.yunikorn.placement import LABELS
from admitter.importers.yunikorn.queues import QueuePlace, YuniKornTree
from admitter.names import API_VERSION, ROOT_COHORT

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


class WorkloadReader:
    """Finds the queues of pods, and makes the LocalQueues that lead there."""

    def __init__(self, names: Names, into: Translation) -> None:
        """Prepare.

        Args:
            names: of all that is made.
            into: what is being made.
        """
        self._names = names
        self._into = into
        self._tree = YuniKornTree()
        self._configured = False
        self._by_label = True
        self._creates = False
        self._made: set[tuple[str, str]] = set()
        self.requested: set[str] = set()
        """All resources that pods request."""

    def know(self, tree: YuniKornTree, *, by_label: bool, creates: bool) -> None:
        """There is a configuration.

        Args:
            tree: its queues.
            by_label: whether a pod's label can name its queue.
            creates: whether a queue is made that only a label names.
        """
        self._tree, self._configured, self._by_label, self._creates = tree, True, by_label, creates

    def queue(self, source: ManifestSource, template: str) -> str | None:
        """The LocalQueue of an object with pods; empty if the placement finds it, None if nothing does.

        Args:
            source: the object.
            template: the path of its pod template; empty for a Pod.
        """
        metadata = below(template, "metadata") if template else "metadata"
        self._requests(source, below(template, "spec") if template else "spec")
        self._account_for_application(source, metadata)
        named = self._named(source, metadata)
        if named is None:
            scheduler = source.value(f"{template}.spec.schedulerName".lstrip("."))
            return "" if self._configured or scheduler == SCHEDULER else None
        place, path = named
        if not self._by_label:
            source.approximated(place, "the placement rules do not ask for it: the PlacementPolicy decides")
            return ""
        name = self._cluster_queue(source, place, _path(path))
        self._local_queue(source, name)
        return name

    def _local_queue(self, source: ManifestSource, name: str) -> None:
        """A LocalQueue in the namespace of an object, unless there is one."""
        namespace = source.text("metadata.namespace")
        if (namespace, name) in self._made:
            return
        self._made.add((namespace, name))
        metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
        made = {"apiVersion": API_VERSION, "kind": "LocalQueue", "metadata": metadata}
        self._into.add({**made, "spec": {"clusterQueue": name}}, source.title)

    def _named(self, source: ManifestSource, metadata: str) -> tuple[str, str] | None:
        """Where a pod names its queue, and how."""
        found = _places(source, metadata)
        for place in found[1:]:
            source.translated(place, "another label says it, which counts")
        return (found[0], source.text(found[0])) if found else None

    def _cluster_queue(self, source: ManifestSource, place: str, path: str) -> str:
        known = self._tree.places.get(path)
        if known is not None and not known.node.inner:
            source.translated(place, f"LocalQueue {known.node.name}")
            return known.node.name
        name = self._names.of("ClusterQueue", f"{ROOT_COHORT}.{path}", path)
        parent, _, _ = path.rpartition(".")
        above = self._tree.places.get(parent)
        if known is None and self._creates and (not parent or (above is not None and above.node.inner)):
            node = QueueNode(name)
            (above.node if above is not None else self._tree.root).below.append(node)
            self._tree.places[path] = QueuePlace(
                node, above.access if above is not None else YuniKornAccess()
            )
            source.translated(place, f"LocalQueue {name}, and a ClusterQueue, since the rules create it")
        elif self._configured:
            source.refused(place, f"there is no queue {path} that Jobs can be in: the Job waits")
        else:
            source.approximated(place, f"LocalQueue {name}; the ClusterQueue comes with the configuration")
        return name

    def _account_for_application(self, source: ManifestSource, metadata: str) -> None:
        for key in _APPLICATIONS:
            for part in ("labels", "annotations"):
                place = below(f"{metadata}.{part}", key)
                if source.value(place) is not None:
                    source.approximated(
                        place, "one Job for each pod template: Jobs of an application are admitted one by one"
                    )
        for key in _GANG:
            place = below(f"{metadata}.annotations", key)
            if source.value(place) is not None:
                source.refused(place, "a Job's own pods start together, those of several Jobs do not")

    def _requests(self, source: ManifestSource, spec: str) -> None:
        for part in ("containers", "initContainers"):
            for container in source.items(f"{spec}.{part}"):
                for kind in ("requests", "limits"):
                    resources = source.mapping(f"{container}.resources.{kind}")
                    self.requested |= {name for name in resources if is_resource(name)}
