"""An eviction that limits count is recorded in its ClusterQueue before it begins."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import Any

import pytest

from admitter.cache.timestamps import seconds
from admitter.cache.views import WorkloadView, parse_object, parse_workload
from admitter.cache.world import OWN, World
from admitter.client.errors import ApiError, ClusterError, UnreachableError, api_error
from admitter.controllers.workload.eviction_records import TRIES, EvictionRecords
from admitter.engine.policy import EvictionLimit, Queue, Strategy
from admitter.engine.quota.tree import Tree
from tests.apiserver.loop import run
from tests.apiserver.server import ApiServer, Fate, clock

Json = dict[str, Any]

QUEUE = f"{OWN}/clusterqueues/q"


class Desk:
    """One ClusterQueue, which has a limit, on an API server in memory.

    Attributes:
        writes: how many statuses were written, or were to be.
    """

    def __init__(self, *, limited: bool = True) -> None:
        self.server, self.world, tree = ApiServer(seconds=0.01), World(), Tree()
        limit = EvictionLimit(5, 3600) if limited else None
        tree.set_queue(Queue("q", Strategy.BEST_EFFORT_FIFO, (), {}, max_evictions=limit))
        raw = self.server.make(f"{OWN}/clusterqueues", {"metadata": {"name": "q"}, "spec": {}})
        self.world.cluster_queues.apply(parse_object(raw))
        self.records = EvictionRecords(self.world, tree, self.server, clock)
        self.writes = 0
        self.server.called.append(self._count)

    def _count(self, *_: str) -> None:
        self.writes += 1

    def record(self) -> list[tuple[float, str]]:
        status = self.server.find(QUEUE).get("status") or {}
        return [(seconds(each["at"]), each["uid"]) for each in status.get("evictions") or ()]

    async def evict(self, uid: str) -> datetime | None:
        """Evict a Workload; returns when that is written."""
        return await self.records.begin(victim(uid), self._written(uid))

    def _written(self, uid: str) -> Callable[[datetime], Awaitable[datetime]]:
        async def write(now: datetime) -> datetime:
            await asyncio.sleep(0)
            assert now.timestamp() <= max(at for at, each in self.record() if each == uid)
            return now

        return write


def victim(uid: str) -> WorkloadView:
    metadata = {"name": uid, "namespace": "team", "uid": uid, "resourceVersion": "1", "generation": 1}
    metadata |= {"creationTimestamp": "2026-01-01T00:00:00Z"}
    status = {"admission": {"clusterQueue": "q", "podSets": []}}
    return parse_workload({"metadata": metadata, "spec": {"podSets": []}, "status": status})


def answering(*errors: ClusterError) -> Callable[[datetime], Awaitable[datetime]]:
    """A write that fails so."""

    async def write(now: datetime) -> datetime:
        for error in errors:
            raise error
        return now

    return write


def fates(server: ApiServer, fates: Iterable[Fate]) -> None:
    """What becomes of the next writes."""
    coming = iter(fates)
    server.fate = lambda: next(coming, Fate.DONE)


def test_it_is_recorded_before_and_no_earlier_than_it_begins() -> None:
    async def story() -> None:
        desk = Desk()
        began = clock()
        assert await desk.evict("one") is not None
        ((at, uid),) = desk.record()
        assert uid == "one"
        assert 1 <= at - began.timestamp() <= 2
        assert desk.writes == 1

    run(story())


def test_without_a_limit_nothing_is_recorded() -> None:
    async def story() -> None:
        desk = Desk(limited=False)
        assert await desk.records.begin(victim("one"), answering()) is not None
        assert desk.writes == 0

    run(story())


def test_evictions_that_are_due_meanwhile_share_the_next_write() -> None:
    async def story() -> None:
        desk = Desk()
        await asyncio.gather(*(desk.evict(f"w{number}") for number in range(40)))
        assert len({uid for _, uid in desk.record()}) == 40
        assert desk.writes <= 2

    run(story())


def test_what_is_remembered_is_bounded() -> None:
    async def story() -> None:
        desk = Desk()
        for number in range(130):
            await desk.evict(f"w{number:03}")
        assert [uid for _, uid in desk.record()] == [f"w{number:03}" for number in range(30, 130)]

    run(story())


def test_a_status_that_was_written_by_others_meanwhile_is_read_and_nothing_of_it_is_lost() -> None:
    async def story() -> None:
        desk = Desk()
        earlier = {"at": "2026-01-01T00:00:00Z", "uid": "earlier"}
        desk.server.write(f"{QUEUE}/status", {"status": {"evictions": [earlier], "pendingWorkloads": 3}})
        await desk.evict("one")
        assert [uid for _, uid in desk.record()] == ["earlier", "one"]
        assert desk.server.find(QUEUE)["status"]["pendingWorkloads"] == 3

    run(story())


def test_a_write_that_takes_too_long_is_made_again_with_a_later_time() -> None:
    async def story() -> None:
        desk = Desk()
        slow = iter([3.0])

        def fate() -> Fate:
            desk.server.seconds = next(slow, 0.01)
            return Fate.DONE

        desk.server.fate = fate
        began = clock().timestamp()
        written = await desk.evict("one")
        assert written is not None
        ((at, _),) = desk.record()
        assert at >= written.timestamp() >= began + 3
        assert desk.writes == 2

    run(story())


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        (api_error(409, {}), 0),
        (api_error(403, {}), 0),
        (api_error(429, {}), 0),
        (api_error(500, {}), 1),
        (UnreachableError("no answer"), 1),
    ],
)
def test_it_is_taken_out_if_it_has_not_begun_for_certain(error: ClusterError, kept: int) -> None:
    async def story() -> None:
        desk = Desk()
        with pytest.raises(type(error)):
            await desk.records.begin(victim("one"), answering(error))
        assert len(desk.record()) == kept

    run(story())


def test_it_is_taken_out_if_there_is_nothing_to_write_any_more() -> None:
    async def story() -> None:
        async def nothing(_: datetime) -> datetime | None:
            return None

        desk = Desk()
        assert await desk.records.begin(victim("one"), nothing) is None
        assert desk.record() == []

    run(story())


@pytest.mark.parametrize("fate", [Fate.LOST, Fate.ANSWER_LOST, Fate.BUSY, Fate.REFUSED])
def test_nothing_begins_if_it_can_not_be_recorded(fate: Fate) -> None:
    async def story() -> None:
        desk = Desk()
        fates(desk.server, [fate])
        with pytest.raises(ClusterError):
            await desk.evict("one")
        assert len(desk.record()) == (fate is Fate.ANSWER_LOST), "one too many at most"
        await desk.evict("two")
        assert "two" in {uid for _, uid in desk.record()}

    run(story())


def test_it_is_tried_again_while_others_write_but_not_for_ever() -> None:
    async def story() -> None:
        desk = Desk()
        fates(desk.server, [Fate.OVERTAKEN] * (TRIES - 1))
        await desk.evict("one")
        assert [uid for _, uid in desk.record()] == ["one"]
        fates(desk.server, [Fate.OVERTAKEN] * TRIES)
        with pytest.raises(ApiError):
            await desk.evict("two")
        assert [uid for _, uid in desk.record()] == ["one"]

    run(story())


def test_of_a_queue_that_is_gone_nothing_is_recorded() -> None:
    async def story() -> None:
        desk = Desk()
        desk.server.remove(QUEUE)
        assert await desk.records.begin(victim("one"), answering()) is not None
        desk.world.cluster_queues.delete(("", "q"), next(iter(desk.world.cluster_queues)).uid)
        assert await desk.records.begin(victim("two"), answering()) is not None

    run(story())
