"""Writes the objects that the controller makes itself (`admitter.policy.generated`)."""

from dataclasses import dataclass

from admitter.cache.views import ObjectView
from admitter.cache.world import World, collection_path
from admitter.client.errors import NotFoundError
from admitter.client.source import Json
from admitter.client.transport import Transport
from admitter.policy.generated import Generated, store_of


@dataclass(eq=False)
class GeneratedObjectWriter:
    """Writes generated objects; its callers have made sure that no user owns an object of that name.

    A ConflictError says that an object has changed meanwhile, or exists though it is not known yet: look
    again.
    """

    world: World
    transport: Transport

    async def put(self, wanted: Generated) -> None:
        """Create an object, or set it right; nothing is written if it is."""
        store = store_of(self.world, wanted.plural)
        view, collection = store.get(wanted.key), collection_path(wanted.plural, wanted.key[0])
        if view is None:
            raw = await self.transport.create(collection, wanted.manifest())
        elif wanted.is_right(view):
            return
        else:
            version = {"resourceVersion": str(view.version)}
            metadata = {**version, "labels": wanted.labels, "ownerReferences": [wanted.owner]}
            body = {"metadata": metadata, "spec": _difference(view.spec, wanted.spec)}
            raw = await self.transport.patch(f"{collection}/{wanted.key[1]}", body)
        self.world.source_of(wanted.plural).take(raw)

    async def delete(self, plural: str, view: ObjectView) -> None:
        """Delete an object as it was seen; the watch tells when it is gone."""
        conditions = {"uid": view.uid, "resourceVersion": str(view.version)}
        body = {"preconditions": conditions, "propagationPolicy": "Background"}
        try:
            await self.transport.delete(f"{collection_path(plural, view.namespace)}/{view.name}", body)
        except NotFoundError:
            store_of(self.world, plural).delete(view.key, view.uid)


def _difference(before: Json, wanted: Json) -> Json:
    """A merge patch from one spec to another: what is no longer in a map is taken out of it."""
    patch: Json = {name: None for name in before if name not in wanted}
    for name, value in wanted.items():
        known = before.get(name)
        if value != known:
            both_maps = isinstance(known, dict) and isinstance(value, dict)
            patch[name] = _difference(known or {}, value) if both_maps else value
    return patch
