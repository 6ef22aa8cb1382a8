"""A world in which plans for namespaces come true at once, as an API server would let them."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from admitter.cache.namespace_views import parse_namespace
from admitter.cache.views import ObjectView, parse_object
from admitter.cache.world import World
from admitter.policy.generated import Generated, store_of
from admitter.policy.plans import NamespacePlan, plan

Json = dict[str, Any]


class Server:
    """Keeps objects as they are written."""

    def __init__(self) -> None:
        self.world = World()
        self._serial = count(1)

    def namespace(
        self, name: str, annotations: Mapping[str, str] | None = None, *, terminating: bool = False
    ) -> None:
        """Make a namespace, or change it."""
        known = self.world.namespaces.get(("", name))
        metadata = self._metadata(
            {"name": name, "annotations": annotations}, known.uid if known is not None else None
        )
        if terminating:
            metadata["deletionTimestamp"] = metadata["creationTimestamp"]
        self.world.namespaces.apply(parse_namespace({"metadata": metadata}))

    def put(self, plural: str, manifest: Json) -> ObjectView:
        """Make an object, or replace it."""
        metadata = manifest["metadata"]
        store = store_of(self.world, plural)
        known = store.get((metadata.get("namespace", ""), metadata["name"]))
        view = parse_object(
            {**manifest, "metadata": self._metadata(metadata, known.uid if known is not None else None)}
        )
        store.apply(view)
        return view

    def cohort(self, name: str) -> None:
        """Make a Cohort."""
        self.put("cohorts", {"metadata": {"name": name}})

    def delete(self, plural: str, namespace: str, name: str) -> None:
        """Delete an object, if there is one."""
        store = store_of(self.world, plural)
        view = store.get((namespace, name))
        if view is not None:
            store.delete(view.key, view.uid)

    def remove_namespace(self, name: str) -> None:
        """Delete a namespace with what is in it."""
        self.delete("localqueues", name, name)
        view = self.world.namespaces.get(("", name))
        if view is not None:
            self.world.namespaces.delete(view.key, view.uid)

    def converge(self, namespace: str) -> NamespacePlan:
        """Do what a plan says; afterwards there is nothing left to do."""
        made = plan(self.world, namespace)
        for wanted in made.put:
            self._write(wanted)
        for plural, view in made.delete:
            self.delete(plural, *view.key)
        again = plan(self.world, namespace)
        assert (again.put, again.delete) == ((), ())
        assert again.defect == made.defect
        return made

    def objects(self) -> dict[tuple[str, str, str], tuple[Json, Mapping[str, str]]]:
        """Spec and labels of all queues."""
        return {
            (plural, *view.key): (view.spec, view.labels)
            for plural in ("clusterqueues", "localqueues")
            for view in store_of(self.world, plural)
        }

    def _write(self, wanted: Generated) -> None:
        view = self.put(wanted.plural, wanted.manifest())
        assert wanted.is_right(view)

    def _metadata(self, metadata: Json, uid: str | None) -> Json:
        serial = next(self._serial)
        created = {"creationTimestamp": "2026-01-01T00:00:00Z", "resourceVersion": str(serial)}
        return {**metadata, **created, "uid": uid or f"uid-{serial}"}
