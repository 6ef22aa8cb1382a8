"""What becomes of a decision that the API server is too busy to take."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any, cast

import pytest

from admitter.cache.namespace_views import parse_namespace
from admitter.cache.views import parse_object, parse_workload
from admitter.client.errors import ClusterError, UnreachableError, api_error
from admitter.client.transport import Transport
from admitter.controllers.app import App
from admitter.controllers.lifecycle import Lifecycle

Json = dict[str, Any]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FIRST, SECOND = "first", "second"
BUSY = [api_error(429, {}, "1"), api_error(503, {}), UnreachableError("no answer")]


def raw(name: str, spec: Json, namespace: str = "", number: int = 1) -> Json:
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": f"uid-{name}",
        "resourceVersion": str(number),
        "generation": 1,
        "creationTimestamp": f"2026-01-01T00:00:{number:02}Z",
    }
    return {"metadata": metadata, "spec": spec}


class Server:
    """Keeps two Workloads, of which the first asks for all of a strict queue's quota, the second for half.

    Attributes:
        failures: what the next writes of admissions fail with.
        acts: whether it acts on a write that fails.
        tried: the names of Workloads with an admission to be written, in order.
        barred: the names of those that were written so that a lost admission comes too late.
    """

    def __init__(self) -> None:
        self.failures: list[ClusterError] = []
        self.acts = False
        self.tried: list[str] = []
        self.barred: list[str] = []
        self.version = 100
        self.workloads = {name: self._workload(name, n) for n, name in enumerate((FIRST, SECOND), start=1)}
        self.app = App(cast("Transport", self), lambda: NOON, Random(1))
        self.lifecycle = Lifecycle(self.app)
        self._fill()

    def _workload(self, name: str, number: int) -> Json:
        cpu = "2" if name == FIRST else "1"
        pod_set = {"name": "main", "count": 1, "requests": {"cpu": cpu}}
        return raw(name, {"queueName": "main", "podSets": [pod_set], "active": True}, "team", number)

    def _fill(self) -> None:
        world = self.app.world
        world.namespaces.apply(parse_namespace(raw("team", {})))
        world.flavors.apply(parse_object(raw("any", {})))
        quota = [{"name": "cpu", "flavors": [{"name": "any", "quota": {"min": "2"}}]}]
        spec = {"namespaceSelector": {}, "queueingStrategy": "StrictFIFO", "resources": quota}
        world.cluster_queues.apply(parse_object(raw("strict", spec)))
        world.local_queues.apply(parse_object(raw("main", {"clusterQueue": "strict"}, "team")))
        for workload in self.workloads.values():
            world.workloads.apply(parse_workload(workload))
        self.lifecycle.routing.follow()

    @asynccontextmanager
    async def deciding(self) -> AsyncIterator[None]:
        """Cycles run and are written for as long as a block lasts."""
        self.app.admissions.lead({0: 1})
        running = asyncio.create_task(self.app.admissions.run())
        yield
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition():  # noqa: ASYNC110  # each turn of the loop lets the controller go on
                await asyncio.sleep(0)

    def change(self, name: str, **spec: Any) -> None:
        """A user changes a Workload, and the controller learns of it."""
        self._store(name, self.workloads[name] | {"spec": self.workloads[name]["spec"] | spec})
        self.app.world.workloads.apply(parse_workload(self.workloads[name]))

    def _store(self, name: str, content: Json) -> Json:
        self.version += 1
        metadata = content["metadata"] | {"resourceVersion": str(self.version)}
        self.workloads[name] = content | {"metadata": metadata}
        return self.workloads[name]

    async def patch(self, path: str, body: Json, query: Json | None = None) -> Json:
        if not path.endswith("/status"):
            return self._bar(path.rsplit("/", 1)[-1], body["metadata"])
        assert query, "the server is told how long an admission may take"
        name = path.split("/")[-2]
        self.tried.append(name)
        failure = self.failures.pop(0) if self.failures else None
        await asyncio.sleep(0)
        if failure is None or self.acts:
            self._store(name, self.workloads[name] | {"status": body["status"]})
        if failure is not None:
            raise failure
        return self.workloads[name]

    def _bar(self, name: str, metadata: Json) -> Json:
        before = self.workloads[name]["metadata"]["resourceVersion"]
        assert metadata == {"resourceVersion": before, "annotations": {"admitter.dev/returned": before}}
        self.barred.append(name)
        return self._store(name, self.workloads[name])

    async def get(self, path: str) -> Json:
        return self.workloads[path.rsplit("/", 1)[-1]]

    def admitted(self) -> list[str]:
        return [n for n, w in self.workloads.items() if w.get("status", {}).get("admission")]


@pytest.mark.parametrize("error", BUSY, ids=["throttled", "unavailable", "no answer"])
async def test_the_first_workload_stays_first_while_the_server_is_too_busy(error: ClusterError) -> None:
    server = Server()
    server.failures = [error] * 5
    async with server.deciding():
        await server.until(lambda: server.admitted() != [])
    assert server.admitted() == [FIRST]
    assert server.tried == [FIRST] * 6, "the second never got what the first was given"
    assert server.barred == ([FIRST] * 5 if isinstance(error, UnreachableError) else [])


async def test_a_workload_refused_on_the_merits_is_put_aside_for_the_next() -> None:
    server = Server()
    server.failures = [api_error(403, {})]
    async with server.deciding():
        await server.until(lambda: server.admitted() != [])
    assert server.admitted() == [SECOND]
    assert server.tried == [FIRST, SECOND]


async def test_an_admission_with_a_lost_answer_is_not_written_again() -> None:
    server = Server()
    server.failures, server.acts = [UnreachableError("connection lost")], True
    async with server.deciding():
        await server.until(lambda: server.app.world.workloads.get(("team", FIRST)).admission is not None)  # type: ignore[union-attr]  # it is there
        await server.until(lambda: not server.app.admissions._writing)
    assert (server.admitted(), server.tried) == ([FIRST], [FIRST])


async def test_a_workload_paused_while_the_server_is_too_busy_is_not_admitted() -> None:
    server = Server()
    server.failures = [api_error(429, {})] * 1_000_000
    async with server.deciding():
        await server.until(lambda: len(server.tried) > 3)
        server.change(FIRST, active=False)
        await server.until(lambda: SECOND in server.tried)
        server.failures = []
        await server.until(lambda: server.admitted() != [])
    assert server.admitted() == [SECOND]
