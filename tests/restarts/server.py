"""An API server that keeps Workloads and their statuses, and may lose writes or answers, or delay them."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Any

from admitter.api.workload import WorkloadStatus
from admitter.cache.views import parse_workload, timestamp
from admitter.client.errors import ApiError, UnreachableError, api_error
from admitter.policy.lifecycle import Phase, phase_of

Json = dict[str, Any]
Key = tuple[str, str]
Seen = Callable[[Json | None, Json], None]
"""Is told of a change: the object as it is, None once it is gone, and as it was last."""

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TEAM = "team"
WRITE_SECONDS = 0.01
WATCH_SECONDS = 0.02
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


def clock() -> datetime:
    """The time of the running event loop."""
    return BEGIN + timedelta(seconds=asyncio.get_running_loop().time())


def merged(before: Any, patch: Any) -> Any:
    """A JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return deepcopy(patch)
    result = deepcopy(before) if isinstance(before, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


class Server:
    """Keeps Workloads of one namespace, by name.

    Attributes:
        objects: as they are.
        epoch: of the controller that leads: admissions of any other are refused.
        fate: decides what becomes of the next write.
        watchers: are told of changes, a little later.
        moves: the phases before and after each change of a Workload.
    """

    def __init__(self, objects: Mapping[str, Json] | None = None, version: int = 1000) -> None:
        self.objects: dict[str, Json] = deepcopy(dict(objects or {}))
        self.version = version
        self.epoch = 0
        self.fate: Callable[[], Fate] = lambda: Fate.DONE
        self.watchers: list[Seen] = []
        self.moves: set[tuple[Phase, Phase]] = set()

    def copy(self) -> "Server":
        """Another one that holds the same."""
        return Server(self.objects, self.version)

    def create(self, name: str, spec: Json) -> None:
        """A user makes a Workload."""
        self.version += 1
        metadata = {"namespace": TEAM, "name": name, "uid": f"{name}-{self.version}"}
        self._put(name, {"metadata": metadata | {"creationTimestamp": timestamp(clock())}, "spec": spec})

    def change(self, name: str, patch: Json) -> None:
        """A user changes a Workload."""
        self._put(name, merged(self.objects[name], patch))

    def delete(self, name: str) -> None:
        """A Workload goes."""
        gone = self.objects.pop(name)
        self.version += 1
        self._tell(None, gone)

    def _put(self, name: str, content: Json) -> Json:
        self.version += 1
        content["metadata"] = content["metadata"] | {"resourceVersion": str(self.version)}
        if "status" in content:
            WorkloadStatus.model_validate(content["status"])  # else the API server would prune it
        before, after = (
            phase_of(parse_workload(each)) for each in (self.objects.get(name, content), content)
        )
        self.moves.add((before, after))
        self.objects[name] = content
        self._tell(content, content)
        return content

    def _tell(self, now: Json | None, last: Json) -> None:
        for watcher in self.watchers:
            asyncio.get_running_loop().call_later(WATCH_SECONDS, watcher, deepcopy(now), deepcopy(last))

    async def get(self, path: str, _query: Mapping[str, str] | None = None) -> Json:
        """Read a Workload."""
        await asyncio.sleep(WRITE_SECONDS)
        name = path.rsplit("/", 1)[-1]
        if name not in self.objects:
            raise api_error(404, {})
        return deepcopy(self.objects[name])

    async def patch(self, path: str, body: Json, query: Mapping[str, str] | None = None) -> Json:
        """Write a Workload, or its status."""
        del query
        name = path.removesuffix("/status").rsplit("/", 1)[-1]
        fate = self.fate()
        await asyncio.sleep(WRITE_SECONDS)
        match fate:
            case Fate.BUSY:
                raise api_error(429, {})
            case Fate.REFUSED:
                raise api_error(403, {})
            case Fate.OVERTAKEN if name in self.objects:
                self.change(name, {"metadata": {"annotations": {"touched": str(self.version)}}})
            case Fate.LATE:
                asyncio.get_running_loop().call_later(LATE_SECONDS, self._late, name, body)
        if fate in {Fate.LOST, Fate.LATE}:
            raise UnreachableError("the connection is lost")
        written = self._write(name, body)
        if fate is Fate.ANSWER_LOST:
            raise UnreachableError("the answer is lost")
        return deepcopy(written)

    def _late(self, name: str, body: Json) -> None:
        with suppress(ApiError):
            self._write(name, body)

    def _is_of_now(self, name: str, body: Json) -> bool:
        return bool(self.objects[name]["metadata"]["resourceVersion"] == body["metadata"]["resourceVersion"])

    def _write(self, name: str, body: Json) -> Json:
        if name not in self.objects:
            raise api_error(404, {})
        if not self._is_of_now(name, body):
            raise api_error(409, {})
        admission = (body.get("status") or {}).get("admission")
        if admission is not None and admission["epoch"] != self.epoch:
            raise api_error(403, {})
        return self._put(name, merged(self.objects[name], body))
