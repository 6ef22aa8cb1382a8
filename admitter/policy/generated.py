"""Objects that the controller makes itself: ClusterQueues, LocalQueues and Cohorts that no user has written.

A label says that an object is generated, and what asked for it. The controller never changes an object
without that label. To keep a generated object as one's own, take the label off.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from admitter.api.cluster_queue import ClusterQueue, LocalQueue
from admitter.api.cohort import Cohort
from admitter.cache.views import ObjectView
from admitter.cache.world import World
from admitter.client.source import Json
from admitter.client.store import Key, Store
from admitter.names import API_VERSION, GENERATED_BY_LABEL, GENERATED_LABEL

KINDS: Final = {kind.plural: kind.__name__ for kind in (ClusterQueue, LocalQueue, Cohort)}  # plural to kind

ANY_NAMESPACE: Final = ""  # for which an object is that is no namespace's own


class Origin(StrEnum):
    """What asked for a generated object."""

    ANNOTATIONS = "annotations"
    PLACEMENT = "placement"
    PERSON = "person"  # a Job too, but by the name of a user or group
    CLUSTER_QUEUE = "cluster-queue"  # a ClusterQueue, in the namespaces that it selects


def owner(kind: str, name: str, uid: str, api_version: str = "v1") -> Json:
    """The cluster-scoped object with which a generated one goes, as its ownerReference."""
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}


@dataclass(frozen=True, slots=True)
class Generated:
    """An object as it is to be."""

    plural: str  # of its kind: `clusterqueues`, `localqueues` or `cohorts`
    key: Key
    spec: Json  # all of it, with the defaults that the API server would fill in
    namespace: str  # the one that it is for; `ANY_NAMESPACE` if it is no namespace's own
    origin: Origin
    owner: Json

    @property
    def labels(self) -> dict[str, str]:
        """By which it is known again."""
        return {GENERATED_LABEL: self.namespace, GENERATED_BY_LABEL: str(self.origin)}

    def manifest(self) -> Json:
        """The object, to be created."""
        metadata: Json = {"name": self.key[1], "labels": self.labels}
        if self.key[0]:
            metadata["namespace"] = self.key[0]
        metadata["ownerReferences"] = [self.owner]
        kind = KINDS[self.plural]
        return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": self.spec}

    def is_right(self, view: ObjectView) -> bool:
        """Whether an object is as it should be; one that is on its way out is let go."""
        return view.terminating or (view.spec == self.spec and self.labels.items() <= view.labels.items())


def is_generated(view: ObjectView, namespace: str, origin: Origin | None = None) -> bool:
    """Whether the controller made an object for a namespace, if need be because `origin` asked for it."""
    made = view.labels.get(GENERATED_LABEL) == namespace
    return made and (origin is None or view.labels.get(GENERATED_BY_LABEL) == origin)


def is_lenient(view: ObjectView) -> bool:
    """Whether a ClusterQueue limits only what it lists, as generated ones do."""
    return GENERATED_LABEL in view.labels and GENERATED_BY_LABEL in view.labels


def store_of(world: World, plural: str) -> Store[ObjectView]:
    """Where objects of a kind that can be generated are known."""
    stores = {
        "clusterqueues": world.cluster_queues,
        "localqueues": world.local_queues,
        "cohorts": world.cohorts,
    }
    return stores[plural]
