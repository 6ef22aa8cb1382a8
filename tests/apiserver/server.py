"""An API server in memory: versions, conflicts, pages and watches as of a real one, and faults on demand.

What is stored is never changed in place, so that what was read stays what it was.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from functools import reduce
from typing import Any, NamedTuple
from urllib.parse import unquote

import orjson
from prometheus_client import CollectorRegistry

from admitter.cache.views import timestamp
from admitter.client.errors import ApiError, NotFoundError, UnreachableError, api_error
from admitter.client.metrics import CallMetrics
from admitter.client.store import Key, key_of
from admitter.client.transport import STRATEGIC_PATCH, Transport

Json = dict[str, Any]
Changed = Callable[[str, Json | None, Json | None], None]
"""Called with a plural, and an object before and after a change; None: it was not, or is not, there."""

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
BOOKMARK_SECONDS = 60.0
LATE_SECONDS = 5.0


class Fate(Enum):
    """What becomes of a write."""

    DONE = auto()
    LOST = auto()
    ANSWER_LOST = auto()
    LATE = auto()
    OVERTAKEN = auto()
    BUSY = auto()
    REFUSED = auto()


FAULTS = tuple(fate for fate in Fate if fate is not Fate.DONE)


class Place(NamedTuple):
    """What a path names; without a name a collection."""

    plural: str
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> Key:
        return (self.namespace, self.name)


def clock() -> datetime:
    """The time of the running event loop."""
    return BEGIN + timedelta(seconds=asyncio.get_running_loop().time())


def place(path: str) -> Place:
    """What a path names."""
    parts = path.strip("/").split("/")
    rest, namespace = parts[2:] if parts[0] == "api" else parts[3:], ""
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        namespace, rest = rest[1], rest[2:]
    plural, name, subresource = (*rest, "", "", "")[:3]
    return Place(plural, namespace, unquote(name), subresource)


def merged(before: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return deepcopy(patch)
    result = dict(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


class ApiServer(Transport):
    """Keeps objects of any kind; its asynchronous methods are those of a transport to it.

    Attributes:
        objects: by plural and key.
        version: the newest resource version.
        seconds: how long a call takes.
        fate: decides what becomes of the next write.
        behind: by how many seconds a watch of a plural is behind when it tells of the next change.
        grace: how many seconds an object of a plural takes to end once it is deleted.
        policies: called as `Changed` before a change; what they raise refuses it.
        metrics: what informers count.
        documents: what is read at paths that name no objects.
        called: called with the path of each write by a call, and the name of what it creates.
    """

    def __init__(self, seconds: float = 0.0) -> None:
        self.objects: defaultdict[str, dict[Key, Json]] = defaultdict(dict)
        self.version = 1000
        self.seconds = seconds
        self.fate: Callable[[], Fate] = lambda: Fate.DONE
        self.behind: Callable[[str], float] = lambda _: 0.0
        self.grace: Callable[[str, Json], float] = lambda _plural, _raw: 0.0
        self.policies: list[Changed] = []
        self.metrics = CallMetrics(CollectorRegistry())
        self.documents: dict[str, Json] = {}
        self.called: list[Callable[[str, str], None]] = []
        self._listeners: list[Changed] = []
        self._pages: dict[str, Any] = {}
        self._history: defaultdict[str, list[tuple[str, Json]]] = defaultdict(list)
        self._forgotten = 0
        self._news: list[asyncio.Event] = []
        self._cuts = 0

    def listen(self, listener: Changed) -> None:
        """Call `listener` at each change, at once."""
        self._listeners.append(listener)

    def ignore(self, listener: Changed) -> None:
        """Call it no more."""
        self._listeners.remove(listener)

    def find(self, path: str) -> Json:
        """An object; NotFoundError without one."""
        where = place(path)
        if where.key not in self.objects[where.plural]:
            raise api_error(404, {"reason": "NotFound", "message": f"{path} not found"})
        return self.objects[where.plural][where.key]

    def make(self, path: str, body: Json) -> Json:
        """Create an object in a collection."""
        where = place(path)
        key = (where.namespace, body["metadata"]["name"])
        if where.namespace and ("", where.namespace) not in self.objects["namespaces"]:
            raise api_error(404, {"reason": "NotFound", "message": f"namespace {key[0]} not found"})
        if key in self.objects[where.plural]:
            raise api_error(409, {"reason": "AlreadyExists", "message": f"{where.plural} {key[1]} exists"})
        given = {"uid": f"uid-{self.version + 1}", "generation": 1, "creationTimestamp": timestamp(clock())}
        namespace = {"namespace": key[0]} if key[0] else {}
        content = {name: value for name, value in body.items() if name != "status"}
        return self._put(where.plural, None, content | {"metadata": body["metadata"] | namespace | given})

    def write(self, path: str, patch: Json, *, strategic: bool = False) -> Json:
        """Merge a patch into an object, or into its status; one that changes nothing makes no version.

        A strategic one replaces those conditions of a status that it names.
        """
        where, before = place(path), self.find(path)
        if strategic and "conditions" in patch.get("status", {}):
            named = {each["type"]: each for each in (before.get("status") or {}).get("conditions") or ()}
            named |= {each["type"]: each for each in patch["status"]["conditions"]}
            patch = {**patch, "status": {**patch["status"], "conditions": list(named.values())}}
        metadata = patch.get("metadata") or {}
        _check(before, metadata)
        content = {name: value for name, value in patch.items() if name not in {"status", "metadata"}}
        changes = {name: value for name, value in metadata.items() if name not in {"resourceVersion", "uid"}}
        status = {"status": patch.get("status") or {}}
        after: Json = merged(before, status if where.subresource else content | {"metadata": changes})
        if after == before:
            return before
        generation = before["metadata"]["generation"] + (after.get("spec") != before.get("spec"))
        return self._put(
            where.plural, before, after | {"metadata": after["metadata"] | {"generation": generation}}
        )

    def remove(self, path: str, preconditions: Json | None = None) -> Json:
        """Delete an object, and all that it owns."""
        where, gone = place(path), self.find(path)
        _check(gone, preconditions or {})
        grace = self.grace(where.plural, gone)
        if grace > 0:
            if "deletionTimestamp" in gone["metadata"]:
                return gone
            asyncio.get_running_loop().call_later(grace, self._end, path, gone["metadata"]["uid"])
            return self.write(path, {"metadata": {"deletionTimestamp": timestamp(clock())}})
        return self._gone(where.plural, gone)

    def _end(self, path: str, uid: str) -> None:
        """The time that an object had to end is over."""
        where = place(path)
        now = self.objects[where.plural].get(where.key)
        if now is not None and now["metadata"]["uid"] == uid:
            self._gone(where.plural, now)

    def _gone(self, plural: str, gone: Json) -> Json:
        self._put(plural, gone, None)
        uid = gone["metadata"]["uid"]
        for kind, objects in list(self.objects.items()):
            for key, raw in list(objects.items()):
                owners = raw["metadata"].get("ownerReferences") or ()
                if key in objects and any(owner["uid"] == uid for owner in owners):
                    self.remove(f"/apis/any/any/namespaces/{key[0]}/{kind}/{key[1]}")
        return gone

    def _put(self, plural: str, before: Json | None, after: Json | None) -> Json:
        for policy in self.policies:
            policy(plural, before, after)
        self.version += 1
        content = after or before
        assert content is not None
        last = content | {"metadata": content["metadata"] | {"resourceVersion": str(self.version)}}
        if after is None:
            del self.objects[plural][key_of(last["metadata"])]
        else:
            self.objects[plural][key_of(last["metadata"])] = last
        kind = "DELETED" if after is None else "MODIFIED" if before is not None else "ADDED"
        self._history[plural].append((kind, last))
        for listener in list(self._listeners):
            listener(plural, last if after is None else before, None if after is None else last)
        for news in self._news:
            news.set()
        return last

    async def until(self, condition: Callable[[], bool], seconds: float = 3600.0) -> None:
        """Wait until something is so, looking at each change."""
        with self._heard() as news:
            async with asyncio.timeout(seconds):
                while not condition():
                    await news.wait()
                    news.clear()

    def cut_watches(self, *, forget: bool = False) -> None:
        """End all watches; `forget` makes all versions until now too old to go on from."""
        self._cuts += 1
        if forget:
            self._forgotten = self.version
        for news in self._news:
            news.set()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        await asyncio.sleep(self.seconds)
        where = place(path)
        if path in self.documents:
            return self.documents[path]
        if where.name or not where.plural:
            return self.find(path)
        asked = query or {}
        version, items = self._pages.pop(asked.get("continue", ""), ()) or (
            str(self.version),
            [raw for _, raw in sorted(self.objects[where.plural].items()) if _selected(raw, where, asked)],
        )
        limit = int(asked.get("limit") or len(items))
        metadata = {"resourceVersion": version}
        if len(items) > limit:
            selector = asked.get("labelSelector", "")  # of several lists of one path each goes on by itself
            metadata["continue"] = f"{version}-{path}-{selector}-{len(items)}"
            self._pages[metadata["continue"]] = (version, items[limit:])
        return {"items": items[:limit], "metadata": metadata}

    async def create(self, path: str, body: Json, query: Mapping[str, str] | None = None) -> Json:
        del query
        return await self._called(path, lambda: self.make(path, body), body["metadata"].get("name", ""))

    async def patch(
        self, path: str, body: Json, content_type: str = "", query: Mapping[str, str] | None = None
    ) -> Json:
        del query
        strategic = content_type == STRATEGIC_PATCH
        return await self._called(path, lambda: self.write(path, body, strategic=strategic))

    async def delete(self, path: str, body: Json | None = None) -> Json:
        return await self._called(path, lambda: self.remove(path, (body or {}).get("preconditions")))

    async def _called(self, path: str, write: Callable[[], Json], name: str = "") -> Json:
        for listener in self.called:
            listener(path, name)
        fate = self.fate()
        await asyncio.sleep(self.seconds)
        match fate:
            case Fate.BUSY:
                raise api_error(429, {})
            case Fate.REFUSED:
                raise api_error(403, {})
            case Fate.OVERTAKEN:
                with suppress(NotFoundError):
                    self.write(path.removesuffix("/status"), _touched(self.version))
            case Fate.LATE:
                asyncio.get_running_loop().call_later(LATE_SECONDS, _late, write)
        if fate in {Fate.LOST, Fate.LATE}:
            raise UnreachableError("the connection is lost")
        written = write()
        if fate is Fate.ANSWER_LOST:
            raise UnreachableError("the answer is lost")
        return written

    @asynccontextmanager
    async def stream(self, path: str, query: Mapping[str, str]) -> AsyncIterator[AsyncIterator[bytes]]:
        await asyncio.sleep(self.seconds)
        yield self._watch(place(path), query)

    async def _watch(self, where: Place, query: Mapping[str, str]) -> AsyncIterator[bytes]:
        version, cuts = int(query["resourceVersion"]), self._cuts
        end = asyncio.get_running_loop().time() + float(query["timeoutSeconds"])
        if version < self._forgotten:
            yield _line("ERROR", {"code": 410, "reason": "Expired", "message": "too old resource version"})
            return
        history = self._history[where.plural]
        position = sum(int(raw["metadata"]["resourceVersion"]) <= version for _, raw in history)
        with self._heard() as news:
            while asyncio.get_running_loop().time() < end:
                for kind, raw in history[position:]:
                    position += 1
                    if _selected(raw, where, query):
                        await asyncio.sleep(self.behind(where.plural))
                        yield _line(kind, raw)
                if cuts != self._cuts:
                    raise UnreachableError("the watch is cut")
                if position == len(history):
                    yield _line("BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}})
                    with suppress(TimeoutError):
                        async with asyncio.timeout(BOOKMARK_SECONDS):
                            await news.wait()
                    news.clear()

    @contextmanager
    def _heard(self) -> Iterator[asyncio.Event]:
        """An event that is set at each change, for as long as a block lasts."""
        news = asyncio.Event()
        self._news.append(news)
        try:
            yield news
        finally:
            self._news.remove(news)


def _check(before: Json, preconditions: Json) -> None:
    """Refuse a write that was meant for another version, or for another object of the same name."""
    for name in ("uid", "resourceVersion"):
        if preconditions.get(name, before["metadata"][name]) != before["metadata"][name]:
            raise api_error(409, {"reason": "Conflict", "message": f"{name} is another one"})


def _selected(raw: Json, where: Place, query: Mapping[str, str]) -> bool:
    """Whether a list or a watch has an object."""
    metadata = raw["metadata"]
    if where.namespace not in {"", metadata.get("namespace")}:
        return False
    labels = metadata.get("labels") or {}
    for name, equal, value in (part.partition("=") for part in query.get("labelSelector", "").split(",")):
        if name and (name not in labels or (equal and labels[name] != value)):
            return False
    field, _, value = query.get("fieldSelector", "").partition("=")
    found: Any = reduce(lambda at, part: at.get(part) or {}, field.split("."), raw)
    return not field or found == value


def _line(kind: str, raw: Json) -> bytes:
    return orjson.dumps({"type": kind, "object": raw}) + b"\n"


def _touched(version: int) -> Json:
    return {"metadata": {"annotations": {"touched": str(version)}}}


def _late(write: Callable[[], Json]) -> None:
    with suppress(ApiError):
        write()
