"""A new leader begins an epoch that never was, waits for what is on its way, and knows what holds quota."""

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from admitter.cache.views import parse_object
from admitter.cache.world import OWN, World
from admitter.client.errors import UnreachableError, api_error
from admitter.client.transport import Transport
from admitter.controllers.succession import ACCOUNT, WORKLOADS, Succession
from admitter.election.elector import ElectionListener
from admitter.election.lease_lock import Term
from admitter.election.leases import Clocks
from tests.client.virtual_time import VirtualTime

Json = dict[str, Any]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MILLISECONDS = int(NOON.timestamp() * 1000)


def workload(name: str, state: str, usage: str = "1") -> Json:
    pod_set = {"name": "main", "count": 1, "flavors": {"cpu": "any"}, "usage": {"cpu": usage}}
    metadata = {"name": name, "namespace": "team", "uid": name, "resourceVersion": "5"}
    metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
    admission = {"clusterQueue": "queue", "podSets": [pod_set]}
    spec = {"queueName": "main", "podSets": []}
    return {"metadata": metadata, "spec": spec, "status": {"state": state, "admission": admission}}


class Leader:
    """Leads the only shard, and notes in which epoch."""

    shard_count = 1
    lease_cache = None

    def __init__(self) -> None:
        self.epochs: dict[int, int] = {}

    def start(self, _listener: ElectionListener) -> None:
        """What it is told comes from the test."""

    def publish(self, _shard: int, _notes: dict[str, str]) -> None:
        raise AssertionError("no other process is told")

    def release(self, _shard: int) -> None:
        raise AssertionError("no other process is to have it")

    def lead(self, epochs: dict[int, int]) -> None:
        self.epochs.update(epochs)

    def refresh(self) -> None:
        """It knows no trees."""

    def abandon(self) -> None:
        """It never does."""

    async def drained(self) -> None:
        """Nothing is on its way."""


class Server:
    """Keeps the account, and lists Workloads in pages of one.

    Attributes:
        epoch: the account's annotation; None if it has none.
        selects: whether it can list by state.
        failures: how many calls fail before one works.
        quota: by its plural, the one object of a kind that defines quota.
        listed: when the lists were asked for.
    """

    def __init__(self, *workloads: Json, epoch: str | None = None) -> None:
        self.time = VirtualTime()
        self.quota: dict[str, Json] = {}
        self.epoch, self.selects, self.failures = epoch, True, 0
        self.listed: list[float] = []
        self._workloads = workloads

    async def get(self, path: str, query: Json | None = None) -> Json:
        self._fail()
        if path == ACCOUNT:
            annotations = {} if self.epoch is None else {"annotations": {"admitter.dev/epoch": self.epoch}}
            return {"metadata": {"resourceVersion": "3", **annotations}}
        if path != WORKLOADS:
            item = self.quota.get(path.removeprefix(f"{OWN}/"))
            return {"items": [item] if item else [], "metadata": {"resourceVersion": "9"}}
        query = query or {}
        self.listed.append(self.time.now)
        selector = query.get("fieldSelector", "")
        if selector and not self.selects:
            raise api_error(400, {"message": "field label not supported"})
        found = [
            w for w in self._workloads if not selector or selector == f"status.state={w['status']['state']}"
        ]
        start = int(query.get("continue") or 0)
        more = {"continue": str(start + 1)} if start + 1 < len(found) else {}
        return {"items": found[start : start + 1], "metadata": {"resourceVersion": "9", **more}}

    async def patch(self, path: str, body: Json) -> Json:
        self._fail()
        assert path == ACCOUNT
        assert body["metadata"]["resourceVersion"] == "3"
        self.epoch = body["metadata"]["annotations"]["admitter.dev/epoch"]
        return {}

    def _fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise UnreachableError("no answer") if self.failures % 2 else api_error(409, {})

    async def taken_over(self, *, handed_over: bool = False, world: World | None = None) -> tuple[int, World]:
        world = world or World()
        clocks = Clocks(lambda: self.time.now, lambda: NOON, self.time.sleep)
        leader = Leader()
        succession = Succession(world, leader, cast("Transport", self), leader, clocks)
        running = asyncio.create_task(succession.run())
        await self.time.pass_until(1)
        began = self.time.now
        succession.acquired(0, Term(handed_over))
        await self.time.pass_until(60)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        self.listed = [moment - began for moment in self.listed]
        return leader.epochs[0], world


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, MILLISECONDS),
        ("7", MILLISECONDS),
        (str(MILLISECONDS + 5000), MILLISECONDS + 5001),
        ("nonsense", MILLISECONDS),
        ("9" * 40, MILLISECONDS),
    ],
    ids=["first", "later", "the clock was set back", "nonsense", "too large for the field"],
)
async def test_an_epoch_is_larger_than_the_last(before: str | None, after: int) -> None:
    server = Server(epoch=before)
    epoch, _ = await server.taken_over()
    assert (epoch, server.epoch) == (after, str(after))


@pytest.mark.parametrize(("handed_over", "earliest"), [(False, 2.0), (True, 0.5)])
async def test_holders_of_quota_are_read_when_nothing_is_on_its_way_any_more(
    handed_over: bool, earliest: float
) -> None:
    server = Server(workload("a", "Admitted"))
    await server.taken_over(handed_over=handed_over)
    assert server.listed
    assert min(server.listed) == earliest


@pytest.mark.parametrize("selects", [True, False], ids=["by state", "all"])
async def test_all_holders_of_quota_are_taken_in(selects: bool) -> None:
    server = Server(*(workload(f"a{n}", "Admitted") for n in range(3)), workload("e", "Evicted"))
    server.selects = selects
    _, world = await server.taken_over()
    assert sorted(view.name for view in world.workloads) == ["a0", "a1", "a2", "e"]


async def test_failures_are_tried_again() -> None:
    server = Server(workload("a", "Admitted"))
    server.failures = 7
    epoch, world = await server.taken_over()
    assert epoch == MILLISECONDS
    assert len(world.workloads) == 1


async def test_one_that_can_not_be_read_harms_no_other() -> None:
    server = Server(workload("bad", "Admitted", usage="9999999999999999999E"), workload("good", "Admitted"))
    _, world = await server.taken_over()
    assert [view.name for view in world.workloads] == ["good"]


@pytest.mark.parametrize(
    ("plural", "store"),
    [
        ("cohorts", "cohorts"),
        ("clusterqueues", "cluster_queues"),
        ("elasticquotas", "elastic_quotas"),
        ("compositeelasticquotas", "composite_elastic_quotas"),
    ],
)
async def test_what_quota_there_is_is_read_though_a_watch_has_not_told_of_it(plural: str, store: str) -> None:
    def defined(version: int) -> Json:
        metadata = {
            "name": "q",
            "uid": "u",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "generation": version,
        }
        return {"metadata": {**metadata, "resourceVersion": str(version)}, "spec": {"of": version}}

    world, server = World(), Server()
    getattr(world, store).apply(parse_object(defined(4)))
    server.quota[plural] = defined(5)
    _, world = await server.taken_over(world=world)
    assert [view.spec["of"] for view in getattr(world, store)] == [5]
