"""Objects that describe pods of others, such as the runtimes of TrainJobs: all of their API group is read.

Which of its kinds an object names is known only once it is read. What expressions and paths can use is kept,
as text, and only so much of it as there is room for.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

import orjson

from admitter.api.forms import DESCRIBED, fitted
from admitter.cache.room import fits
from admitter.cache.views import LONGEST_TEMPLATE, Meta, meta
from admitter.client.errors import ClusterError, NotFoundError
from admitter.client.informer import Informer
from admitter.client.source import Source
from admitter.client.store import Key, Unreadable, either
from admitter.client.transport import Transport
from admitter.kinds import KindError

if TYPE_CHECKING:
    from admitter.api.job_kind import JobKind

Json = dict[str, Any]

Change = tuple[str, ...]
"""Group and version of what has changed, or these with kind, namespace and name of the one object."""
_METADATA: Final = ("name", "namespace", "labels", "annotations")
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The object once more."""


@dataclass(frozen=True, slots=True)
class RelatedView(Meta):
    """An object, as JSON without its status; empty if there is no room for it, or it is too long."""

    text: bytes
    size: int  # bytes of the text, or of what it would be


def parse_related(raw: Json) -> RelatedView:
    """The view of an object; ValueError if it can't be written."""
    metadata = {name: value for name, value in raw["metadata"].items() if name in _METADATA}
    if isinstance(metadata.get("annotations"), dict):
        metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k != _APPLIED}
    try:
        text = orjson.dumps({k: v for k, v in raw.items() if k != "status"} | {"metadata": metadata})
    except TypeError as error:
        raise ValueError(str(error)) from error
    return RelatedView(*meta(raw["metadata"]), text if len(text) <= LONGEST_TEMPLATE else b"", len(text))


def source_of_related(path: str) -> Source[RelatedView]:
    """What is read of the objects of a collection."""
    return Source(path, parse_related, fitted=partial(fitted, DESCRIBED))


class RelatedObjects:
    """Reads what JobKinds name as related; `changed` is called with what changes."""

    def __init__(self, transport: Transport, random: Random, changed: Callable[[Change], None]) -> None:
        self._transport, self._random, self._changed = transport, random, changed
        self.failures: set[str] = set()  # the JobKinds of which something can't be read
        # by group and version: the sources by kind, each with its informer and the task of that
        self._read: dict[str, dict[str, tuple[Source[RelatedView], Informer[Any], asyncio.Task[None]]]] = {}
        self._held: dict[tuple[str, Key], int] = {}  # bytes that are kept, by collection and object
        self._of: Counter[str] = Counter()  # the same, by namespace

    async def follow(self, kind: "JobKind", group: asyncio.TaskGroup) -> str:
        """Read what a JobKind names; returns why that can't be read, or an empty text."""
        problem = ""
        for version in {each.api_version for each in kind.spec.related}:
            more = False
            try:
                more = await self._begin(version, kind.spec.resource.kind, group)
            except ClusterError as error:
                if version not in self._read:
                    problem = f"{version} can't be read: {error}"
                    continue
            for _, informer, _ in self._read[version].values():
                await informer.tried.wait()
                if not informer.synced.is_set():
                    problem = f"{informer.path} can't be read: {informer.failure}"
            if more:
                self._changed((version,))
        if problem:
            self.failures.add(kind.metadata.name)
        return problem

    async def _begin(self, version: str, but: str, group: asyncio.TaskGroup) -> bool:
        """Read all kinds that are served now; returns whether there are more than before."""
        served = (await self._transport.get(f"/apis/{version}"))["resources"]
        first = version not in self._read
        before = set(self._read.setdefault(version, {}))
        for each in served:
            if "/" in each["name"] or each["kind"] in {but, *before} or "watch" not in each["verbs"]:
                continue
            source = source_of_related(f"/apis/{version}/{each['name']}")
            informer = Informer(self._transport, source, self._random)
            source.store.keep = partial(self._keep, source)
            source.store.listen(partial(self._look, (version, each["kind"]), source, informer))
            task = group.create_task(informer.run(), name=f"informer {source.path}")
            self._read[version][each["kind"]] = (source, informer, task)
        return not first and before != self._read[version].keys()

    def _keep(self, source: Source[RelatedView], view: RelatedView) -> RelatedView:
        """An object as far as there is room for it."""
        self._free(source, view.key)
        if not view.text or not fits(self._of[view.namespace], self._of.total(), view.size):
            return replace(view, text=b"")
        self._held[source.path, view.key] = view.size
        self._of[view.namespace] += view.size
        return view

    def _free(self, source: Source[RelatedView], key: Key) -> None:
        self._of[key[0]] -= self._held.pop((source.path, key), 0)
        if not self._of[key[0]]:
            del self._of[key[0]]

    def _look(
        self,
        kind: Change,
        source: Source[RelatedView],
        informer: Informer[Any],
        old: RelatedView | None,
        new: RelatedView | None,
    ) -> None:
        key = either(old, new).key
        if new is None:
            self._free(source, key)
        same = old is not None and new is not None and (old.text, old.size) == (new.text, new.size)
        if informer.synced.is_set() and not same:
            self._changed((*kind, *key))

    async def look_again(self) -> None:
        """Read of what had no room as much as there is room for now."""
        for source in [source for read in self._read.values() for source, _, _ in read.values()]:
            for view in [each for each in source.store if not each.text]:
                if not self._has_room_now(view):
                    continue
                try:
                    place = f"namespaces/{view.namespace}/" if view.namespace else ""
                    above, _, plural = source.path.rpartition("/")
                    found = source.seen(await self._transport.get(f"{above}/{place}{plural}/{view.name}"))
                except NotFoundError:
                    continue
                except ClusterError:
                    return
                if found is not None and not isinstance(found, Unreadable):
                    source.store.take_again(found)

    def _has_room_now(self, view: RelatedView) -> bool:
        held = (self._of[view.namespace], self._of.total())
        return view.size <= LONGEST_TEMPLATE and fits(*held, view.size)

    def release(self, versions: Iterable[str]) -> None:
        """Read no others than these."""
        for version in self._read.keys() - set(versions):
            for source, _, task in self._read.pop(version).values():
                task.cancel()
                for view in source.store:
                    self._free(source, view.key)

    def find(self, namespace: str, version: str, kind: str, name: str) -> Json | None:
        """An object in a namespace, or in none.

        Raises:
            KindError: it is not kept.
        """
        source, _, _ = self._read.get(version, {}).get(kind, (None, None, None))
        if source is None:
            return None
        places = (source.store.get((place, name)) for place in (namespace, ""))
        view = next((view for view in places if view is not None), None)
        if view is not None and not view.text:
            said = f"{kind} {name}, which its pods are described by, takes {view.size} bytes"
            if view.size > LONGEST_TEMPLATE:
                raise KindError(f"{said}, and at most {LONGEST_TEMPLATE} are read")
            raise KindError(f"{said}, and the others leave it no room")
        found: Json | None = orjson.loads(view.text) if view is not None else None
        return found
