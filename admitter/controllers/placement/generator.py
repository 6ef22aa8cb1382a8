"""Writes the objects that the controller makes itself (`admitter.policy.generated`)."""

from admitter.cache.views import ObjectView
from admitter.cache.world import OWN, World
from admitter.client.errors import NotFoundError
from admitter.client.source import Json
from admitter.client.store import Key
from admitter.client.transport import Transport
from admitter.policy.generated import Generated, store_of


class GeneratedObjectWriter:
    """Writes generated objects; its callers have made sure that no user owns an object of that name."""

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
            metadata = {**version, "labels": wanted.labels, "ownerReferences": [wanted.owner]}
            body = {"metadata": metadata, "spec": _difference(view.spec, wanted.spec)}
            path = f"{_collection(wanted.plural, wanted.key)}/{wanted.key[1]}"
            raw = await self._transport.patch(path, body)
        self._world.source_of(wanted.plural).take(raw)

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
