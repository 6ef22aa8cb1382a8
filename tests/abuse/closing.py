"""What is looked at when tenants have stopped: sound Jobs end, and no quota is lost."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from tests.abuse.operations import KEEP, path
from tests.abuse.scene import GROUNDS, Ground
from tests.abuse.shapes import sound_job
from tests.abuse.watcher import HAND
from tests.faults.api import Api, RefusedError

Json = dict[str, Any]

SOUND_EVERY: Final = 2.0
"""Seconds between two sound Jobs of a namespace."""
SOUND_SECONDS: Final = 120.0
"""In which the last sound Job ends, on a machine with other things to do."""
EMPTY_SECONDS: Final = 120.0
WHOLE_SECONDS: Final = 120.0
TOGETHER_SECONDS: Final = 10
"""For which Jobs run that are to run at the same time: long enough that the last one starts within it."""
LOOK_SECONDS: Final = 0.5
TRACKED: Final = "batch.kubernetes.io/job-tracking"
WHOLE: Final = {
    "managed-a": "14",
    "managed-b": "6",
    "open-a": "16",
    "elastic-all": "8",
    "elastic-open": "8",
    "elastic-some": "10",
    "sound": "8",
    "elastic-sound": "8",
}
"""Namespace → all CPU that its queue may use, while no other uses any."""


def _grounds(*, with_tenants: bool) -> list[Ground]:
    return [ground for ground in GROUNDS if bool(ground.tenants) is with_tenants]


async def sound_jobs(api: Api, over: asyncio.Event) -> int:
    """Create Jobs in order, one after the other, until it is over; returns how many in each namespace."""
    number = 0
    while not over.is_set():
        for ground in _grounds(with_tenants=False):
            made = sound_job(ground, f"work-{number}", pods=2, seconds=1)
            await api.create(path(ground.namespace, "jobs"), made)
        number += 1
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), SOUND_EVERY)
    return number


async def _jobs(api: Api, grounds: Iterable[Ground]) -> list[Json]:
    return [job for g in grounds for job in (await api.get(path(g.namespace, "jobs")))["items"]]


def _unfinished(jobs: Iterable[Json]) -> list[str]:
    return [
        f"{job['metadata']['namespace']}/{job['metadata']['name']}"
        for job in jobs
        if not (job.get("status") or {}).get("completionTime")
    ]


async def _finished(api: Api, grounds: Iterable[Ground], seconds: float) -> list[str]:
    """The Jobs that have not ended after so many seconds."""
    chosen, loop = list(grounds), asyncio.get_running_loop()
    end = loop.time() + seconds
    while True:
        left = _unfinished(await _jobs(api, chosen))
        if not left or loop.time() > end:
            return left
        await asyncio.sleep(LOOK_SECONDS)


async def sound_jobs_end(api: Api) -> tuple[list[str], float]:
    """The sound Jobs that do not end in time, and how long one has waited for its start at the most."""
    left = await _finished(api, _grounds(with_tenants=False), SOUND_SECONDS)
    waits = [0.0]
    for job in await _jobs(api, _grounds(with_tenants=False)):
        if "startTime" in job["status"]:
            created, started = job["metadata"]["creationTimestamp"], job["status"]["startTime"]
            waits.append((datetime.fromisoformat(started) - datetime.fromisoformat(created)).total_seconds())
    return left, max(waits)


async def clear(api: Api) -> list[str]:
    """Delete all that tenants have made; returns what is still there after some time."""
    loop = asyncio.get_running_loop()
    end = loop.time() + EMPTY_SECONDS
    while True:
        left = [
            f"{kind} {each['metadata']['namespace']}/{each['metadata']['name']}"
            for ground in _grounds(with_tenants=True)
            for kind in ("cronjobs", "jobs", "experiments", "workloads", "pods")
            for each in await _cleared(api, ground.namespace, kind)
        ]
        if not left or loop.time() > end:
            return left
        await asyncio.sleep(LOOK_SECONDS)


async def _cleared(api: Api, namespace: str, kind: str) -> list[Json]:
    """Delete a collection, without the finalizers of tenants; returns what was there.

    Where Experiments have no definition there are none.
    """
    collection = path(namespace, kind)
    try:
        items = list((await api.get(collection))["items"])
    except RefusedError as error:
        if error.status != 404:
            raise
        return []
    for each in items:
        metadata = each["metadata"]
        by_tenants = {KEEP} | ({TRACKED} if metadata["name"].startswith(HAND) else set())
        kept = metadata.get("finalizers") or []
        if by_tenants & set(kept):
            others = [name for name in kept if name not in by_tenants] or None
            with suppress(RefusedError):  # it has changed or gone meanwhile; the next look tells
                await api.patch(f"{collection}/{metadata['name']}", {"metadata": {"finalizers": others}})
    if items:
        await api.delete(collection)
    return items


async def lost_quota(api: Api) -> list[str]:
    """Jobs that ask for all that a queue has, and do not end: some of it is lost.

    One after the other they may have all of it. Then Jobs for what is guaranteed to each elastic quota run at
    the same time, and use all CPU of them together.
    """
    grounds = [ground for ground in GROUNDS if ground.namespace in WHOLE]
    for ground in grounds:
        made = sound_job(ground, "whole", cpu=WHOLE[ground.namespace])
        await api.create(path(ground.namespace, "jobs"), made)
    if lost := await _finished(api, grounds, WHOLE_SECONDS):
        return lost
    elastic = [ground for ground in GROUNDS if ground.elastic]
    for ground in elastic:
        made = sound_job(ground, "guaranteed", cpu=ground.elastic["min"]["cpu"], seconds=TOGETHER_SECONDS)
        await api.create(path(ground.namespace, "jobs"), made)
    return await _finished(api, elastic, WHOLE_SECONDS)
