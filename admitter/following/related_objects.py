"""Objects that describe pods of others, such as the runtimes of TrainJobs: all of their API group is read.

Which of its kinds an object names is known only once it is read.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from admitter.cache.world import Manifest, parse_manifest
from admitter.client.errors import ClusterError
from admitter.client.informer import Informer
from admitter.client.source import Source
from admitter.client.transport import Transport

if TYPE_CHECKING:
    from admitter.api.job_kind import JobKind

Json = dict[str, Any]


class RelatedObjects:
    """Reads what JobKinds name as related; `changed` is called with the group and version of what changes."""

    def __init__(self, transport: Transport, random: Random, changed: Callable[[str], None]) -> None:
        self._transport, self._random, self._changed = transport, random, changed
        self.failures: set[str] = set()  # the JobKinds of which something can't be read
        # by group and version: the informers by kind, each with its task
        self._read: dict[str, dict[str, tuple[Informer[Any], asyncio.Task[None]]]] = {}

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
            for informer, _ in self._read[version].values():
                await informer.tried.wait()
                if not informer.synced.is_set():
                    problem = f"{informer.path} can't be read: {informer.failure}"
            if more:
                self._changed(version)
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
            source = Source(f"/apis/{version}/{each['name']}", parse_manifest)
            informer = Informer(self._transport, source, self._random)
            task = group.create_task(informer.run(), name=f"informer {source.path}")
            self._read[version][each["kind"]] = (informer, task)
            source.store.listen(partial(self._look, version, informer))
        return not first and before != self._read[version].keys()

    def _look(
        self, version: str, informer: Informer[Any], old: Manifest | None, new: Manifest | None
    ) -> None:
        if informer.synced.is_set() and _spec(old) != _spec(new):
            self._changed(version)

    def release(self, versions: set[str]) -> None:
        """Read no others than these."""
        for version in self._read.keys() - versions:
            for _, task in self._read.pop(version).values():
                task.cancel()

    def find(self, namespace: str, version: str, kind: str, name: str) -> Json | None:
        """An object in a namespace, or in none."""
        informer, _ = self._read.get(version, {}).get(kind, (None, None))
        if informer is None:
            return None
        places = (informer.store.get((place, name)) for place in (namespace, ""))
        return next((view.raw for view in places if view is not None), None)


def _spec(view: Manifest | None) -> object:
    return view.raw.get("spec") if view is not None else None
