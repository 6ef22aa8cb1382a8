"""Reads JobKinds, the definitions of what they describe, and the objects of those that work.

Kinds come and go: with a JobKind, with the definition of its resource, or with a change of one of them.
What is known of a kind then changes in `World.kinds`, and its objects come into `World.jobs` or leave it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING, Any, Final

import orjson
import structlog

from admitter.api.conditions import ActiveReason
from admitter.cache.described_views import source_of_kind
from admitter.cache.job_resources import JOB, OF_PODS, resource_of
from admitter.cache.views import JobView, ObjectView
from admitter.cache.world import KnownKind, Manifest, World, parse_manifest
from admitter.client.errors import ClusterError, NotFoundError, is_retryable
from admitter.client.informer import Informer
from admitter.client.signal import Signal
from admitter.client.source import Source
from admitter.client.store import Key, Unreadable
from admitter.client.transport import Transport
from admitter.following.related_objects import Change, RelatedObjects
from admitter.policy.defects import Defect

if TYPE_CHECKING:
    from admitter.api.job_kind import JobKind
    from admitter.kinds.registry import Kinds

Json = dict[str, Any]

ANEW_SECONDS: Final = 1.0
"""Changes of related objects within such a time are looked at together: any user may make some."""
REST: Final = 20
"""So many times as long as reading took then is not read again: it takes a twentieth of the time at most."""
RETRY_SECONDS: Final = 5.0
"""After so long it is looked again whether what could not be read has been read since."""
LONGEST_RETRY_SECONDS: Final = 320.0
"""So seldom it is looked again after a JobKind with a wrong plural: it is made anew, and that is heard of."""
SERVED_SECONDS: Final = 30.0
"""After so long it is looked again which kinds the groups of related objects have: more may have come."""
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class _Read:
    """Objects that are read now."""

    informer: Informer[Any]
    task: asyncio.Task[None]
    source: Source[Any]
    stated: bytes = b""  # what the JobKind said when this began
    related: frozenset[str] = frozenset()  # groups and versions of what else it is read from


class KindInformers:
    """Keeps what is read in step with the JobKinds that there are."""

    def __init__(self, world: World, transport: Transport, random: Random) -> None:
        """Call `run` once JobKinds have been read."""
        self.synced = asyncio.Event()  # once the kinds of the beginning have been read, or could not be
        # the objects of a kind are known now, or are not any more; by what their titles begin with
        self.changed: Signal[[str]] = Signal()
        self.problems: dict[str, Defect | None] = {}  # why JobKinds do not work, by name; None: it does
        self.judged: Signal[[]] = Signal()  # that has changed
        self._world, self._transport, self._random = world, transport, random
        self._again = asyncio.Event()
        self._group = asyncio.TaskGroup()
        self._related = RelatedObjects(transport, random, self._related_changed)
        self._stale: set[Change] = set()  # the related objects that have changed
        self._unread: dict[Key, None] = {}  # what could not be read anew, as it is tried again
        self._rested = 0.0  # from when on objects may be read anew, in the time of the event loop
        # JobKinds of kinds that the API server does not serve, so that there are no objects of them
        self._gone: set[str] = set()
        self._unsure: set[str] = set()  # JobKinds of which that is to be looked at again
        self._misnamed: set[str] = set()  # JobKinds of kinds that are served by another plural
        self._patience = RETRY_SECONDS  # after so long those are looked at again
        self._definitions: dict[str, _Read] = {}
        self._objects: dict[str, _Read] = {}

    async def run(self) -> None:
        """Follow JobKinds and their definitions until cancelled."""
        async with self._group:
            self._world.job_kinds.listen(self._job_kind_changed)
            while True:
                self._again.clear()
                await self._update()
                self.synced.set()
                if not self._misnamed:
                    self._patience = RETRY_SECONDS
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._pause()):
                        await self._again.wait()

    def _pause(self) -> float | None:
        """After how many seconds it is looked again without news; None: not before there are some."""
        if not self._is_sure():
            return RETRY_SECONDS
        seconds = [SERVED_SECONDS] if any(read.related for read in self._objects.values()) else []
        if self._misnamed:
            seconds.append(self._patience)
            self._patience = min(2 * self._patience, LONGEST_RETRY_SECONDS)
        return min(seconds, default=None)

    def _is_sure(self) -> bool:
        """Whether everything was read that tells which kinds there are."""
        read = (each.informer.synced.is_set() for each in self._definitions.values())
        return all(read) and not self._related.failures and not self._unsure

    def _read(self, source: Source[Any], stated: bytes = b"") -> _Read:
        """Begin to read; a change of a definition is looked at."""
        informer = Informer(self._transport, source, self._random)
        if source.path == DEFINITIONS:
            source.store.listen(lambda _old, _new: self._again.set())
        task = self._group.create_task(informer.run(), name=f"informer {source.path}")
        return _Read(informer, task, source, stated)

    def _job_kind_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        if old is None or new is None or old.spec != new.spec:
            self._again.set()

    def _related_changed(self, change: Change) -> None:
        """Objects that are read from what changes are to be read anew, once for many changes."""
        if not self._stale:
            loop = asyncio.get_running_loop()
            loop.call_later(max(ANEW_SECONDS, self._rested - loop.time()), self._again.set)
        self._stale.add(change)

    async def _update(self) -> None:
        views = sorted(self._world.job_kinds, key=lambda view: (view.created, view.name))
        raws: list[Json] = [{"metadata": {"name": view.name}, "spec": view.spec} for view in views]
        if not raws and not self._objects and not self.problems:
            return
        from admitter.kinds.registry import Kinds  # noqa: PLC0415  # slow to load, and needed for this alone

        self._related.failures.clear()
        self._gone, self._unsure, self._misnamed = set(), set(), set()
        declared = Kinds(raws, {}).declared
        await self._read_definitions(declared)
        kinds = Kinds(raws, dict(self._schemas()))
        kinds.find_all()
        problems: dict[str, Defect | None] = {
            each.name: (
                ActiveReason.CONFLICT if each.taken else ActiveReason.INVALID_SPEC,
                "; ".join(map(str, each.problems)),
            )
            for each in kinds.defects
        }
        wanted: dict[str, JobKind] = {}
        for kind in declared:
            sort, name = kind.spec.resource.kind.lower(), kind.metadata.name
            if resource_of(kind).path == JOB.path:
                problems.setdefault(name, None)
            elif sort in wanted or sort in OF_PODS:
                by = f"JobKind {wanted[sort].metadata.name}" if sort in wanted else "Admitter itself"
                words = f"spec.resource.kind: objects are called {sort}/NAME by {by} already"
                problems.setdefault(name, (ActiveReason.CONFLICT, words))
            elif not problems.setdefault(name, await self._unserved(kind)):
                words = await self._related.follow(kind, self._group)
                if words:
                    problems[name] = (ActiveReason.DEFINITION_NOT_FOUND, f"spec.related: {words}")
                else:
                    wanted[sort] = kind
        self._related.release({version for kind in declared for version in _related_versions(kind)})
        await self._follow(wanted, kinds)
        await self._read_anew()
        for sort, kind in wanted.items():
            informer = self._objects[sort].informer
            if not informer.synced.is_set():
                words = (
                    f"{informer.path} can't be read: {informer.failure}; admitter install --only-kinds gives "
                    "the controller the right"
                )
                problems[kind.metadata.name] = (ActiveReason.NOT_READ, words)
        self._note_others(declared, wanted, problems)
        if problems != self.problems:
            self.problems = problems
            self.judged()

    async def _read_definitions(self, declared: "list[JobKind]") -> None:
        """Read the definitions of what is described, and no others: they are large."""
        names = {_definition_of(kind) for kind in declared}
        for name in self._definitions.keys() - names:
            self._definitions.pop(name).task.cancel()
        for name in sorted(names - self._definitions.keys()):
            self._definitions[name] = self._read(Source(DEFINITIONS, parse_manifest, name=name))
        for each in list(self._definitions.values()):
            await each.informer.tried.wait()

    def _schemas(self) -> Iterator[tuple[tuple[str, str], Json]]:
        for read in self._definitions.values():
            for view in read.source.store:
                yield from _schemas_in(view)

    async def _unserved(self, kind: "JobKind") -> Defect | None:
        """Why the API server does not serve what a JobKind describes; None if it does."""
        name, resource = _definition_of(kind), kind.spec.resource
        view = self._definition(name)
        if view is None:
            return ActiveReason.DEFINITION_NOT_FOUND, await self._without_definition(kind)
        if (resource.api_version, resource.kind) not in dict(_schemas_in(view)):
            words = f"spec.resource: definition {name} serves no {resource.version} {resource.kind}"
            return ActiveReason.DEFINITION_NOT_FOUND, words
        if view.raw["spec"].get("scope") == "Cluster":
            words = f"spec.resource: objects of definition {name} are in no namespace, so in no queue"
            return ActiveReason.INVALID_SPEC, words
        return None

    async def _without_definition(self, kind: "JobKind") -> str:
        """What it means that a definition of this name can't be read.

        There are no objects only if the API server does not serve the kind: the name may be wrong.
        """
        name, resource = _definition_of(kind), kind.spec.resource
        informer, words = self._definitions[name].informer, f"definition {name} is not there"
        if not informer.synced.is_set():
            return f"{name}: {informer.failure}"
        try:
            plural = await _served_as(self._transport, resource.group, resource.kind)
        except ClusterError as error:
            self._unsure.add(kind.metadata.name)
            return f"{words}, and it is not known whether {resource.kind} has another one: {error}"
        if plural is None:
            self._gone.add(kind.metadata.name)
            return words
        self._misnamed.add(kind.metadata.name)
        right = f"make a JobKind with plural {plural}, and delete this one"
        return (
            f"spec.resource.plural: {words}: {resource.kind} objects are {plural}.{resource.group}: {right}"
        )

    def _definition(self, name: str) -> Manifest | None:
        found: Manifest | None = self._definitions[name].source.store.get(("", name))
        return found

    async def _follow(self, wanted: "dict[str, JobKind]", kinds: "Kinds") -> None:
        """Read the objects of some kinds and of no others."""
        stated = {
            sort: orjson.dumps([kind.spec.model_dump(mode="json"), _around(kind, kinds)])
            for sort, kind in wanted.items()
        }
        for sort in [each for each, read in self._objects.items() if stated.get(each) != read.stated]:
            self._stop(sort)
        started = [sort for sort in wanted if sort not in self._objects]
        for sort in started:
            self._start(sort, wanted[sort], kinds, stated[sort])
        for sort in started:
            informer = self._objects[sort].informer
            await informer.tried.wait()
            if not informer.synced.is_set():
                problem = f"{informer.path} can't be read: {informer.failure}"
                self._world.kinds[sort] = replace(self._world.kinds[sort], problem=problem)

    async def _read_anew(self) -> None:
        """Read the objects again of which what is kept depends on related ones that have changed."""
        loop = asyncio.get_running_loop()
        if loop.time() < self._rested:
            return
        await self._related.look_again()
        stale, self._stale = self._stale, set()
        failed, self._unread = self._unread, {}
        order = {key: place for place, key in enumerate(failed, 1)}
        found = (
            (read, view)
            for read in self._objects.values()
            if read.related
            for view in read.source.store
            if view.key in failed or _depends(view, stale)
        )
        # what failed before comes last, and so holds up none of the others
        due = deque(sorted(found, key=lambda each: order.get(each[1].key, 0)))
        spent = 0.0
        while due:
            read, view = due.popleft()
            try:
                raw = await self._transport.get(view.path)
            except NotFoundError:
                continue
            except ClusterError as error:
                level = logging.DEBUG if view.key in failed else logging.WARNING
                log.log(level, "object not read anew", path=view.path, error=str(error))
                self._unread[view.key] = None
                if is_retryable(error):  # others may fare no better now
                    self._unread = dict.fromkeys(each.key for _, each in due) | self._unread
                    break
                continue
            began = loop.time()
            now = read.source.seen(raw)
            if now is not None and not isinstance(now, Unreadable):
                read.source.store.take_again(now)
            spent += loop.time() - began
        self._rested = loop.time() + REST * spent
        if self._stale or self._unread:
            pause = ANEW_SECONDS if self._stale else RETRY_SECONDS
            loop.call_later(max(pause, REST * spent), self._again.set)

    def _start(self, sort: str, kind: "JobKind", kinds: "Kinds", stated: bytes) -> None:
        source = source_of_kind(kind, kinds, self._related.find)
        resource = resource_of(kind)
        self._world.kinds[sort] = KnownKind(source, f"{resource.plural} have not been read yet", resource)
        self._world.jobs.include(source.store)
        read = self._objects[sort] = self._read(source, stated)
        read.related = _related_versions(kind)
        self._group.create_task(self._synced(sort, read), name=f"kind {sort}")
        log.info("kind begins", path=source.path)

    async def _synced(self, sort: str, read: _Read) -> None:
        """Note that all objects of a kind have been read."""
        await read.informer.synced.wait()
        if self._objects.get(sort) is read:
            self._world.kinds[sort] = replace(self._world.kinds[sort], problem="")
            self.changed(sort)
            self._again.set()

    def _stop(self, sort: str) -> None:
        """Know nothing of a kind any more: its objects may be there still, and run."""
        read = self._objects.pop(sort)
        read.task.cancel()
        self._world.kinds[sort] = replace(self._world.kinds[sort], source=None, problem="it has just changed")
        read.source.store.clear()
        log.info("kind ends", path=read.source.path)

    def _note_others(
        self, declared: "list[JobKind]", wanted: "dict[str, JobKind]", problems: dict[str, Defect | None]
    ) -> None:
        """Note why nothing is known of objects of other kinds; of one without a definition there are none."""
        found: dict[str, KnownKind] = {}
        for kind in declared:
            sort, name = kind.spec.resource.kind.lower(), kind.metadata.name
            problem = problems[name]
            if sort not in wanted and problem is not None:
                words = "" if name in self._gone else f"JobKind {name} does not work: {problem[1]}"
                if sort not in found or not found[sort].problem:  # there may be objects of the other one
                    found[sort] = KnownKind(None, words, resource_of(kind))
        for sort in self._world.kinds.keys() - {"", *OF_PODS} - wanted.keys() - found.keys():
            del self._world.kinds[sort]
            self.changed(sort)
        for sort, known in found.items():
            if self._world.kinds.get(sort) != known:
                self._world.kinds[sort] = known
                self.changed(sort)


def _depends(view: JobView, stale: AbstractSet[Change]) -> bool:
    """Whether what is known of an object was read from what has changed, and still matters."""
    return not view.finished and any(
        (each[0],) in stale
        or not stale.isdisjoint((*each[:2], place, each[2]) for place in (view.namespace, ""))
        for each in view.related
    )


async def _served_as(transport: Transport, group: str, kind: str) -> str | None:
    """The plural by which the API server serves a kind, in any version of its group; None: it does not.

    Objects of kinds that differ in capitals only have the same names here.

    Raises:
        ClusterError: it does not answer.
    """
    versions = ["v1"]
    if group:
        try:
            versions = [each["version"] for each in (await transport.get(f"/apis/{group}"))["versions"]]
        except NotFoundError:
            return None
    for version in versions:
        path = f"/apis/{group}/{version}" if group else f"/api/{version}"
        for each in (await transport.get(path))["resources"]:
            if each["kind"].lower() == kind.lower() and "/" not in each["name"]:
                return str(each["name"])
    return None


def _related_versions(kind: "JobKind") -> frozenset[str]:
    return frozenset(each.api_version for each in kind.spec.related)


def _definition_of(kind: "JobKind") -> str:
    """The name of the definition of what a JobKind describes."""
    return f"{kind.spec.resource.plural}.{kind.spec.resource.group}"


def _around(kind: "JobKind", kinds: "Kinds") -> Json:
    """The JobKinds that decide besides about objects of a kind: those of objects within its objects."""
    if all(each.object is None for each in kind.spec.pod_sets):
        return {}
    return {each.metadata.name: each.spec.model_dump(mode="json") for each in kinds.declared}


def _schemas_in(view: Manifest) -> Iterator[tuple[tuple[str, str], Json]]:
    """The schemas of the versions that a definition serves, by group and version, and kind."""
    spec = view.raw["spec"]
    for version in spec["versions"]:
        if version.get("served"):
            schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
            yield (f"{spec['group']}/{version['name']}", spec["names"]["kind"]), schema
