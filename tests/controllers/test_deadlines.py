"""One heap and one timer for the ends of maximum run times."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from admitter.cache.views import WorkloadView, at, parse_workload, timestamp
from admitter.client.store import Key
from admitter.controllers.workload.deadlines import Deadlines
from tests.patience import PATIENCE_SECONDS

START = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)


class Wall:
    """A wall clock that runs as the loop's does, from a moment on."""

    def __init__(self) -> None:
        self._zero = asyncio.get_running_loop().time()

    def __call__(self) -> datetime:
        return START + timedelta(seconds=asyncio.get_running_loop().time() - self._zero)


def workload(name: str, left: float) -> WorkloadView:
    admission = {"clusterQueue": "q", "podSets": [{"name": "main", "count": 1}]}
    deadline = timestamp(at(START.timestamp() + left))
    return parse_workload(
        {
            "metadata": {
                "name": name,
                "namespace": "team",
                "uid": f"u-{name}",
                "resourceVersion": "1",
                "creationTimestamp": timestamp(START),
            },
            "spec": {"queueName": "main", "podSets": [{"name": "main", "count": 1}]},
            "status": {"admission": admission, "runTime": {"deadline": deadline}},
        }
    )


def test_each_is_told_at_its_deadline_and_what_has_gone_is_not() -> None:
    async def play() -> list[Key]:
        told: list[Key] = []
        last = asyncio.Event()

        def over(key: Key) -> None:
            told.append(key)
            if key[1] == "late":
                last.set()

        deadlines = Deadlines(Wall(), over)
        late, early, gone = workload("late", 2), workload("early", 1), workload("gone", 1)
        released = workload("released", 1)
        for view in (late, early, gone, released):
            deadlines.workload_changed(None, view)
        deadlines.workload_changed(early, replace(early, version=2))  # no other deadline: told once
        deadlines.workload_changed(gone, None)
        deadlines.workload_changed(released, replace(released, admission=None))
        await asyncio.wait_for(last.wait(), PATIENCE_SECONDS)
        deadlines.close()
        return told

    assert asyncio.run(play()) == [("team", "early"), ("team", "late")]


def test_a_deadline_that_has_passed_is_told_at_once() -> None:
    async def play() -> Key:
        told: asyncio.Queue[Key] = asyncio.Queue()
        deadlines = Deadlines(Wall(), told.put_nowait)
        deadlines.workload_changed(None, workload("past", -600))
        try:
            return await asyncio.wait_for(told.get(), PATIENCE_SECONDS)
        finally:
            deadlines.close()

    assert asyncio.run(play()) == ("team", "past")
