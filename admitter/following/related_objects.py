"""Objects that describe pods of others, such as the runtimes of TrainJobs: all of their API group is read.

Which of its kinds an object names is known only once it is read.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from admitter.cache.related_views import RelatedRoom, RelatedView, source_of_related
from admitter.client.errors import ClusterError, NotFoundError
from admitter.client.informer import Informer
from admitter.client.source import Source
from admitter.client.store import Unreadable, either
from admitter.client.transport import Transport

if TYPE_CHECKING:
    from admitter.api.job_kind import JobKind

Json = dict[str, Any]

Change = tuple[str, ...]
"""Group and version of what has changed, or these with kind, namespace and name of the one object."""


class RelatedObjects:
    """Reads what JobKinds name as related; `changed` is called with what changes."""

    def __init__(self, transport: Transport, random: Random, changed: Callable[[Change], None]) -> None:
        self._transport, self._random, self._changed = transport, random, changed
        self.failures: set[str] = set()  # the JobKinds of which something can't be read
        # by group and version: the sources by kind, each with its informer and the task of that
        self._read: dict[str, dict[str, tuple[Source[RelatedView], Informer[Any], asyncio.Task[None]]]] = {}
        self._room = RelatedRoom()

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
        return self._room.keep(source.path, view)

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
            self._room.free(source.path, key)
        same = old is not None and new is not None and (old.text, old.size) == (new.text, new.size)
        if informer.synced.is_set() and not same:
            self._changed((*kind, *key))

    async def look_again(self) -> None:
        """Read of what had no room as much as there is room for now."""
        for source in [source for read in self._read.values() for source, _, _ in read.values()]:
            for view in [each for each in source.store if not each.text]:
                if not self._room.has(view):
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

    def release(self, versions: Iterable[str]) -> None:
        """Read no others than these."""
        for version in self._read.keys() - set(versions):
            for source, _, task in self._read.pop(version).values():
                task.cancel()
                for view in source.store:
                    self._room.free(source.path, view.key)

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
        return view.content(kind) if view is not None else None
