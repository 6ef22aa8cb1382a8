"""What becomes of a decision that the API server is too busy to take."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from admitter.cache.world import OWN, workload_path
from admitter.client.errors import ClusterError, UnreachableError, api_error
from admitter.controllers.app import App
from admitter.controllers.lifecycle import AppLifecycle
from tests.apiserver.server import ApiServer, place
from tests.patience import PATIENCE_SECONDS

Json = dict[str, Any]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
FIRST, SECOND = "first", "second"
BUSY = [api_error(429, {}, "1"), api_error(503, {}), UnreachableError("no answer")]


class Server(ApiServer):
    """Keeps two Workloads, of which the first asks for all of a strict queue's quota, the second for half.

    Attributes:
        failures: what the next writes of admissions fail with.
        acts: whether it acts on a write that fails.
        tried: the names of Workloads with an admission to be written, in order.
        barred: the names of those that were written so that a lost admission comes too late.
    """

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[ClusterError] = []
        self.acts = False
        self.tried: list[str] = []
        self.barred: list[str] = []
        quota = [{"name": "cpu", "flavors": [{"name": "any", "quota": {"min": "2"}}]}]
        strict = {"namespaceSelector": {}, "queueingStrategy": "StrictFIFO", "resources": quota}
        self._define("/api/v1/namespaces", "team")
        self._define(f"{OWN}/resourceflavors", "any")
        self._define(f"{OWN}/clusterqueues", "strict", **strict)
        self._define(f"{OWN}/namespaces/team/localqueues", "main", clusterQueue="strict")
        for name, cpu in ((FIRST, "2"), (SECOND, "1")):
            pod_set = {"name": "main", "count": 1, "requests": {"cpu": cpu}}
            spec = {"queueName": "main", "podSets": [pod_set], "active": True}
            self._define(f"{OWN}/namespaces/team/workloads", name, **spec)
        self.app = App(self, lambda: NOON, Random(1))
        self.lifecycle = AppLifecycle(self.app)
        for plural in self.objects:
            for raw in self.objects[plural].values():
                self.app.world.source_of(plural).take(raw)
        self.lifecycle.routing.follow()

    def _define(self, path: str, name: str, **spec: Any) -> None:
        self.make(path, {"metadata": {"name": name}, "spec": spec})

    @asynccontextmanager
    async def deciding(self) -> AsyncIterator[None]:
        """Cycles run and are written for as long as a block lasts."""
        self.app.admissions.lead({0: 1})
        running = asyncio.create_task(self.app.admissions.run())
        yield
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    async def turns_until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():  # noqa: ASYNC110  # each turn of the loop lets the controller go on
                await asyncio.sleep(0)

    def change(self, path: str, patch: Json) -> None:
        """A user changes an object, and the controller learns of it."""
        self.app.world.source_of(place(path).plural).take(self.write(path, patch))

    async def patch(
        self, path: str, body: Json, content_type: str = "", query: Mapping[str, str] | None = None
    ) -> Json:
        del content_type
        name = place(path).name
        if not path.endswith("/status"):
            before = self.workload(name)["metadata"]["resourceVersion"]
            returned = {"resourceVersion": before, "annotations": {"admitter.dev/returned": before}}
            assert body["metadata"] == returned
            self.barred.append(name)
            return self.write(path, body)
        assert query, "the server is told how long an admission may take"
        self.tried.append(name)
        failure = self.failures.pop(0) if self.failures else None
        await asyncio.sleep(0)
        if failure is None or self.acts:
            self.write(path, body)
        if failure is not None:
            raise failure
        return self.workload(name)

    def workload(self, name: str) -> Json:
        return self.find(workload_path(("team", name)))

    def admitted(self) -> list[str]:
        names = (FIRST, SECOND)
        return [name for name in names if (self.workload(name).get("status") or {}).get("admission")]


@pytest.mark.parametrize("error", BUSY, ids=["throttled", "unavailable", "no answer"])
async def test_the_first_workload_stays_first_while_the_server_is_too_busy(error: ClusterError) -> None:
    server = Server()
    server.failures = [error] * 5
    async with server.deciding():
        await server.turns_until(lambda: server.admitted() != [])
    assert server.admitted() == [FIRST]
    assert server.tried == [FIRST] * 6, "the second never got what the first was given"
    assert server.barred == ([FIRST] * 5 if isinstance(error, UnreachableError) else [])


async def test_a_workload_refused_on_the_merits_is_put_aside_for_the_next() -> None:
    server = Server()
    server.failures = [api_error(403, {})]
    async with server.deciding():
        await server.turns_until(lambda: server.admitted() != [])
    assert server.admitted() == [SECOND]
    assert server.tried == [FIRST, SECOND]


async def test_an_admission_with_a_lost_answer_is_not_written_again() -> None:
    server = Server()
    server.failures, server.acts = [UnreachableError("connection lost")], True
    async with server.deciding():
        known = server.app.world.workloads
        await server.turns_until(lambda: any(view.admission is not None for view in known))
        await server.turns_until(lambda: not server.app.admissions.feed.writing)
    assert (server.admitted(), server.tried) == ([FIRST], [FIRST])


async def test_a_workload_paused_while_the_server_is_too_busy_is_not_admitted() -> None:
    server = Server()
    server.failures = [api_error(429, {})] * 1_000_000
    async with server.deciding():
        await server.turns_until(lambda: len(server.tried) > 3)
        server.change(workload_path(("team", FIRST)), {"spec": {"active": False}})
        await server.turns_until(lambda: SECOND in server.tried)
        server.failures = []
        await server.turns_until(lambda: server.admitted() != [])
    assert server.admitted() == [SECOND]
