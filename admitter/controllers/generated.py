"""Objects that the controller makes itself: ClusterQueues, LocalQueues and Cohorts that nobody has written.

A label says that one is generated, and what asked for it. What has no such label is somebody's own and is
never touched; so is a generated object from the moment that somebody takes the label off.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from admitter.api.cluster_queue import ClusterQueue
from admitter.api.cohort import Cohort
from admitter.api.local_queue import LocalQueue
from admitter.cluster.errors import NotFoundError
from admitter.cluster.store import Key, Store
from admitter.cluster.transport import Json, Transport
from admitter.controllers.views import ObjectView, parse_object
from admitter.controllers.world import OWN, World
from admitter.names import API_VERSION, GENERATED_BY_LABEL, GENERATED_LABEL

KINDS: Final = {kind.plural: kind.__name__ for kind in (ClusterQueue, LocalQueue, Cohort)}
"""Plural to kind."""

ANY_NAMESPACE: Final = ""
"""For which an object is that is no namespace's own."""


class Origin(StrEnum):
    """What asked for a generated object."""

    ANNOTATIONS = "annotations"
    PLACEMENT = "placement"
    PERSON = "person"
    """A Job too, but by the name of a user or group."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The cluster-scoped object with which a generated one goes."""

    api_version: str
    kind: str
    name: str
    uid: str


def owning_namespace(name: str, uid: str) -> Owner:
    """A namespace as an owner."""
    return Owner("v1", "Namespace", name, uid)


@dataclass(frozen=True, slots=True)
class Generated:
    """An object as it is to be.

    Attributes:
        plural: of its kind: `clusterqueues`, `localqueues` or `cohorts`.
        key: its namespace and name.
        spec: all of it, with the defaults that the API server would fill in.
        namespace: the one that it is for; `ANY_NAMESPACE` if it is no namespace's own.
        origin: what asked for it.
        owner: what it goes with.
    """

    plural: str
    key: Key
    spec: Json
    namespace: str
    origin: Origin
    owner: Owner

    @property
    def labels(self) -> dict[str, str]:
        """By which it is known again."""
        return {GENERATED_LABEL: self.namespace, GENERATED_BY_LABEL: str(self.origin)}

    @property
    def owners(self) -> list[Json]:
        """Its ownerReferences."""
        owner = {"apiVersion": self.owner.api_version, "kind": self.owner.kind}
        return [{**owner, "name": self.owner.name, "uid": self.owner.uid}]

    def manifest(self) -> Json:
        """The object, to be created."""
        metadata: Json = {"name": self.key[1], "labels": self.labels}
        if self.key[0]:
            metadata["namespace"] = self.key[0]
        metadata["ownerReferences"] = self.owners
        kind = KINDS[self.plural]
        return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": self.spec}

    def is_right(self, view: ObjectView) -> bool:
        """Whether an object is as it should be; one that is on its way out is let go."""
        return view.terminating or (view.spec == self.spec and self.labels.items() <= view.labels.items())


def is_generated(view: ObjectView, namespace: str, origin: Origin | None = None) -> bool:
    """Whether the controller made an object for a namespace.

    Args:
        view: the object.
        namespace: the namespace.
        origin: what has to have asked for it; None: anything.
    """
    made = view.labels.get(GENERATED_LABEL) == namespace
    return made and (origin is None or view.labels.get(GENERATED_BY_LABEL) == origin)


def is_lenient(view: ObjectView) -> bool:
    """Whether a ClusterQueue limits only what it lists, as those do that nobody has written."""
    return GENERATED_LABEL in view.labels and GENERATED_BY_LABEL in view.labels


def store_of(world: World, plural: str) -> Store[ObjectView]:
    """Where objects of a kind that can be generated are known."""
    stores = {
        "clusterqueues": world.cluster_queues,
        "localqueues": world.local_queues,
        "cohorts": world.cohorts,
    }
    return stores[plural]


class Generator:
    """Writes generated objects; whoever calls it has made sure that they are not somebody's own."""

    def __init__(self, world: World, transport: Transport) -> None:
        self._world = world
        self._transport = transport

    async def put(self, wanted: Generated) -> None:
        """Create an object, or set it right; nothing is written if it is.

        Raises:
            ConflictError: it has changed meanwhile, or exists though it is not known yet: look again.
            ClusterError: it can't be written.
        """
        store = store_of(self._world, wanted.plural)
        view = store.get(wanted.key)
        if view is None:
            raw = await self._transport.create(_collection(wanted.plural, wanted.key), wanted.manifest())
        elif wanted.is_right(view):
            return
        else:
            version = {"resourceVersion": str(view.version)}
            metadata = {**version, "labels": wanted.labels, "ownerReferences": wanted.owners}
            body = {"metadata": metadata, "spec": _difference(view.spec, wanted.spec)}
            path = f"{_collection(wanted.plural, wanted.key)}/{wanted.key[1]}"
            raw = await self._transport.patch(path, body)
        store.apply(parse_object(raw))

    async def delete(self, plural: str, view: ObjectView) -> None:
        """Delete an object as it was seen; the watch tells when it is gone.

        Raises:
            ConflictError: it has changed meanwhile: look again.
            ClusterError: it can't be deleted.
        """
        conditions = {"uid": view.uid, "resourceVersion": str(view.version)}
        body = {"preconditions": conditions, "propagationPolicy": "Background"}
        try:
            await self._transport.delete(f"{_collection(plural, view.key)}/{view.name}", body)
        except NotFoundError:
            store_of(self._world, plural).delete(view.key, view.uid)


def _collection(plural: str, key: Key) -> str:
    return f"{OWN}/namespaces/{key[0]}/{plural}" if key[0] else f"{OWN}/{plural}"


def _difference(before: Json, wanted: Json) -> Json:
    """A merge patch from one spec to another: what is no longer in a map is taken out of it."""
    patch: Json = {name: None for name in before if name not in wanted}
    for name, value in wanted.items():
        known = before.get(name)
        if value != known:
            both_maps = isinstance(known, dict) and isinstance(value, dict)
            patch[name] = _difference(known or {}, value) if both_maps else value
    return patch
