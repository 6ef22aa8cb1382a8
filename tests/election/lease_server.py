"""An API server that keeps Leases, as slowly and unreliably as chance wants."""

from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime
from random import Random
from typing import Any

from admitter.client.errors import UnreachableError, api_error
from admitter.election.leases import LEASES
from tests.client.virtual_time import VirtualTime

Json = dict[str, Any]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class LeaseServer:
    """Keeps Leases.

    Attributes:
        leases: by name, as they are.
        slowness: seconds that each way may take.
        losses: the part of calls with a lost answer, half of them before they are heard.
        down: whether nothing gets through.
        calls: how many have come.
    """

    def __init__(self, time: VirtualTime, random: Random, slowness: float = 0.0, losses: float = 0.0) -> None:
        self.leases: dict[str, Json] = {}
        self.slowness, self.losses, self.down = slowness, losses, False
        self.calls = 0
        self._time, self._random = time, random
        self._version = 0

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        await self._way()
        if path == LEASES:
            assert query == {"labelSelector": "app.kubernetes.io/part-of=admitter"}
            answer: Json = {"items": deepcopy(list(self.leases.values()))}
        else:
            answer = deepcopy(self._named(path))
        await self._way()
        return answer

    def edit(self, name: str, **spec: Any) -> None:
        """A user changes a Lease by hand."""
        self._version += 1
        lease = self.leases[name]
        metadata = lease["metadata"] | {"resourceVersion": str(self._version)}
        self.leases[name] = {"metadata": metadata, "spec": lease["spec"] | spec}

    async def create(self, path: str, body: Json) -> Json:
        assert path == LEASES
        await self._way()
        name = body["metadata"]["name"]
        if name in self.leases:
            raise api_error(409, {"reason": "AlreadyExists"})
        return await self._written(name, body["metadata"], body["spec"])

    async def patch(self, path: str, body: Json) -> Json:
        await self._way()
        known = self._named(path)
        metadata = body.get("metadata", {})
        self._compare(known, metadata)
        labels = known["metadata"].get("labels", {}) | metadata.get("labels", {})
        notes = known["metadata"].get("annotations", {}) | metadata.get("annotations", {})
        notes = {name: note for name, note in notes.items() if note is not None}
        merged = known["metadata"] | {"labels": labels, "annotations": notes}
        return await self._written(known["metadata"]["name"], merged, known.get("spec", {}) | body["spec"])

    async def delete(self, path: str, body: Json | None = None) -> Json:
        await self._way()
        known = self._named(path)
        self._compare(known, (body or {}).get("preconditions", {}))
        del self.leases[known["metadata"]["name"]]
        await self._way()
        return {}

    def _named(self, path: str) -> Json:
        name = path.removeprefix(f"{LEASES}/")
        if name not in self.leases:
            raise api_error(404, {})
        return self.leases[name]

    @staticmethod
    def _compare(known: Json, wanted: Json) -> None:
        version = wanted.get("resourceVersion")
        if version is not None and version != known["metadata"]["resourceVersion"]:
            raise api_error(409, {})

    async def _written(self, name: str, metadata: Json, spec: Json) -> Json:
        self._version += 1
        written = {"metadata": metadata | {"resourceVersion": str(self._version)}, "spec": spec}
        self.leases[name] = written
        await self._way()
        return deepcopy(written)

    async def _way(self) -> None:
        self.calls += 1
        await self._time.sleep(self._random.random() * self.slowness)
        if self.down or self._random.random() < self.losses:
            raise UnreachableError("lost")
