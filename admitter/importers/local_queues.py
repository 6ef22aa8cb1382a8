"""LocalQueues that importers make: each leads to the ClusterQueue of its name, from a namespace with Jobs."""

from dataclasses import dataclass, field

from admitter.api.base import is_resource
from admitter.importers.translation import ManifestSource, Translation, own


@dataclass(slots=True)
class LocalQueues:
    """The LocalQueues made so far.

    Attributes:
        into: what is being made.
        requested: all resources that pods request.
    """

    into: Translation
    requested: set[str] = field(default_factory=set)
    _made: set[tuple[str, str]] = field(default_factory=set)

    def lead(self, source: ManifestSource, queue: str) -> None:
        """Make the LocalQueue in the namespace of an object that leads to a queue, unless there is one."""
        namespace = source.text("metadata.namespace")
        if (namespace, queue) not in self._made:
            self._made.add((namespace, queue))
            metadata = {"name": queue} | ({"namespace": namespace} if namespace else {})
            self.into.add(own("LocalQueue", metadata, {"clusterQueue": queue}), source.title)

    def count(self, source: ManifestSource, pod: str) -> None:
        """Note what a pod requests, by the path of its spec."""
        self.requested |= {
            name
            for part in ("containers", "initContainers")
            for container in source.items(f"{pod}.{part}")
            for kind in ("requests", "limits")
            for name in source.mapping(f"{container}.resources.{kind}")
            if is_resource(name)
        }
