"""What is kept of objects that describe pods of others: what can be used, and what there is room for."""

import asyncio
from collections.abc import Mapping
from random import Random
from typing import Any, Self, cast

import orjson
import pytest

from admitter.api.base import checked
from admitter.api.job_kind import JobKind
from admitter.cache.related_views import parse_related
from admitter.cache.room import OF_ONE
from admitter.cache.views import LONGEST_TEMPLATE
from admitter.client.errors import NotFoundError
from admitter.client.transport import Transport
from admitter.following.related_objects import Change, RelatedObjects
from admitter.kinds import KindError
from tests.convergence.test_children import SHIPPED

Json = dict[str, Any]

VERSION = "trainer.kubeflow.org/v1alpha1"
KIND = "TrainingRuntime"
LARGEST = 1_500_000


def runtime(name: str, size: int = 0, version: int = 1, namespace: str = "team", **more: Any) -> Json:
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"u-{name}",
        "resourceVersion": str(version),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {"kind": KIND, "metadata": metadata, "spec": {"text": "x" * size}, **more}


class Server:
    """Has TrainingRuntimes, and watches that bring nothing.

    Attributes:
        asked: the names of those that were asked for.
    """

    def __init__(self, *there: Json) -> None:
        self.there, self.asked = {raw["metadata"]["name"]: raw for raw in there}, list[str]()

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        if path == f"/apis/{VERSION}":
            return {"resources": [{"name": "trainingruntimes", "kind": KIND, "verbs": ["watch"]}]}
        if query is not None:
            return {"items": list(self.there.values()), "metadata": {"resourceVersion": "1"}}
        name = path.rpartition("/")[2]
        self.asked.append(name)
        if name not in self.there:
            raise NotFoundError(404, "NotFound", name)
        return self.there[name]

    def stream(self, _path: str, _query: Mapping[str, str]) -> "Server":
        return self

    async def __aenter__(self) -> None:
        await asyncio.Event().wait()

    async def __aexit__(self, *_: object) -> None:
        """There is nothing to close."""


class Reading:
    """Related objects as they are read of a server.

    Attributes:
        changes: what was said to change.
    """

    def __init__(self, *there: Json) -> None:
        self.server, self.changes = Server(*there), list[Change]()
        self.related = RelatedObjects(cast("Transport", self.server), Random(1), self.changes.append)

    async def __aenter__(self) -> Self:
        kind, _ = checked(JobKind, SHIPPED["trainjob"])
        assert kind is not None
        self._group = await asyncio.TaskGroup().__aenter__()
        assert await self.related.follow(kind, self._group) == ""
        return self

    async def __aexit__(self, *_: object) -> None:
        self.related.release(())
        await self._group.__aexit__(None, None, None)

    def find(self, name: str, namespace: str = "team") -> Json | None:
        return self.related.find(namespace, VERSION, KIND, name)

    def take(self, raw: Json) -> None:
        """The API server says that an object is this now."""
        self.related._read[VERSION][KIND][0].take(raw)

    def delete(self, name: str) -> None:
        raw = self.server.there.pop(name)["metadata"]
        self.related._read[VERSION][KIND][0].store.delete((raw["namespace"], name), raw["uid"])

    @property
    def kept(self) -> int:
        return sum(len(view.text) for view in self.related._read[VERSION][KIND][0].store)


def test_nothing_is_kept_that_no_expression_can_use() -> None:
    raw = runtime("a", status={"text": "x" * LARGEST})
    raw["metadata"] |= {
        "labels": {"team": "a"},
        "managedFields": [{"manager": "x" * 1000}] * 1000,
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x" * 200_000, "a": "b"},
    }
    kept = orjson.loads(parse_related(raw).text)
    metadata = {"name": "a", "namespace": "team", "labels": {"team": "a"}, "annotations": {"a": "b"}}
    assert kept == {"kind": KIND, "metadata": metadata, "spec": {"text": ""}}


async def test_what_is_too_long_is_not_kept_and_says_so() -> None:
    async with Reading(runtime("largest", LARGEST), runtime("usual", 1000)) as reading:
        with pytest.raises(KindError, match=f"TrainingRuntime largest.* at most {LONGEST_TEMPLATE} are read"):
            reading.find("largest")
        assert reading.find("usual") is not None
        assert reading.find("none") is None
        assert reading.kept < 2000


async def test_a_namespace_fills_no_more_than_its_part_and_what_had_no_room_comes_in_later() -> None:
    flood = [runtime(f"r{n:04}", LONGEST_TEMPLATE - 200) for n in range(400)]
    async with Reading(*flood) as reading:
        assert OF_ONE - LONGEST_TEMPLATE < reading.kept <= OF_ONE
        with pytest.raises(KindError, match="the others leave it no room"):
            reading.find("r0399")
        reading.take(runtime("sound", 1000, version=2, namespace="other"))
        assert reading.find("sound", "other") is not None
        reading.changes.clear()
        reading.delete("r0000")
        assert reading.changes == [(VERSION, KIND, "team", "r0000")]
        await reading.related.look_again()
        assert len(reading.changes) == 2, "one has come in, and is said to have changed"
        assert reading.find(reading.changes[1][3]) is not None
        assert reading.server.asked == [reading.changes[1][3]], "there is no room for the others"
        assert reading.kept <= OF_ONE + LONGEST_TEMPLATE


async def test_only_a_change_of_what_is_kept_is_one() -> None:
    async with Reading(runtime("a")) as reading:
        reading.take(runtime("a", version=2, status={"seen": True}))
        assert reading.changes == []
        reading.take(runtime("a", 10, version=3))
        assert reading.changes == [(VERSION, KIND, "team", "a")]
