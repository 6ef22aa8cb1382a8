"""One term of a process: it fills its stores, follows, decides in the shards that it leads, and stops."""

import asyncio
import contextlib
import gc
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final

import structlog

from admitter.client.errors import ApiError
from admitter.client.informer import Informer
from admitter.controllers.app import App
from admitter.controllers.placement.guards import say_what_is_missing
from admitter.controllers.routing import Routing
from admitter.controllers.succession import Candidacy, Succession
from admitter.election.elector import lease_name

STOP_SECONDS: Final = 5.0
"""For how long what is being written may go on once it is to stop."""
TELL_SECONDS: Final = 0.5
"""For how long users get events afterwards: no process decides meanwhile; the next leader sends the rest."""

log = structlog.get_logger(__name__)


async def _first_read(informer: Informer[Any]) -> None:
    """Wait until a collection has been read, and say what to do if the account has no right to it."""
    await informer.tried.wait()
    if isinstance(informer.failure, ApiError) and informer.failure.status == HTTPStatus.FORBIDDEN:
        words = "roles of an older release: run admitter install of this one, or upgrade with Helm"
        log.error("waiting for a right", path=informer.path, error=str(informer.failure), remedy=words)
    await informer.synced.wait()


class Role(StrEnum):
    """What this process is to its cluster."""

    STARTING = "not synced with the API server yet"
    FOLLOWER = "follower"
    LEADER = "leader"
    STOPPING = "stopping"

    @property
    def ready(self) -> bool:
        """Whether it leads, or could at once."""
        return self in {Role.FOLLOWER, Role.LEADER}


class AppLifecycle:
    """Runs a controller from its start to its end; `overruled` is set if another controller decides.

    `lacks` says what its API server lacks, in a sentence; empty: nothing.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._shards = app.world.shards
        self.overruled = app.admissions.overruled
        self.routing = Routing(app)
        self.role = Role.STARTING
        self.lacks = ""
        self._leads = asyncio.Event()
        self._queues = (app.jobs.queue, app.namespaces.queue, app.local_queues.queue, app.placement.queue)
        self._writers = (*self._queues, app.statuses, app.marks, app.events, app.decisions)
        for writer in self._writers:
            writer.closed = True
        app.metrics.leads(lease_name(0), holds=False)

    @property
    def led(self) -> list[int]:
        return sorted(self._shards.epochs)

    async def run(self, candidacy: Candidacy) -> None:
        """Control until cancelled.

        1. The stores are filled.
        2. What is known is fed in, quota that is held before anything is decided.
        3. Changes are followed, and nothing is written, until this process leads.
        4. What an earlier leader has written last is taken in. Decisions are made and written.
        """
        self._shards.spread(candidacy.shard_count)
        try:
            await self._run(candidacy)
        finally:
            self.role = Role.STARTING
            for shard in range(candidacy.shard_count):
                self._app.metrics.leads(lease_name(shard), holds=False)
            self.stop_timers()
            gc.unfreeze()

    async def _run(self, candidacy: Candidacy) -> None:
        app = self._app
        async with asyncio.TaskGroup() as group:
            for informer in app.informers:
                group.create_task(informer.run(), name=f"informer {informer.path}")
            for informer in app.informers:
                await _first_read(informer)
            group.create_task(app.kinds.run(), name="kinds")
            await app.kinds.synced.wait()
            self.lacks = await say_what_is_missing(app.transport)
            self.routing.follow()
            gc.freeze()  # what was read stays: to look through it for garbage again and again would stop us
            group.create_task(app.admissions.run(), name="admissions")
            group.create_task(app.room.run(), name="room")
            self.role = Role.FOLLOWER
            log.info("ready", jobs=len(app.world.jobs), workloads=len(app.world.workloads))
            succession = Succession(app.world, self, app.transport, candidacy)
            group.create_task(succession.run(), name="succession")
            await self._leads.wait()
            group.create_task(app.jobs.queue.run(), name="jobs")
            group.create_task(app.reasons.run(), name="reasons")
            group.create_task(app.events.run(), name="events")
            group.create_task(app.statuses.run(), name="statuses")
            group.create_task(app.statuses.visible.run(), name="visible queues")
            group.create_task(app.job_kinds.run(), name="job kinds")
            group.create_task(app.marks.run(), name="marks")
            group.create_task(app.namespaces.queue.run(), name="namespaces")
            group.create_task(app.local_queues.queue.run(), name="local queues")
            group.create_task(app.placement.queue.run(), name="placement")

    async def stop(self) -> frozenset[int]:
        """Come to an orderly end; `run` is to be cancelled afterwards.

        Nothing is decided or begun any more. What is being written may come to its end within `STOP_SECONDS`;
        what takes longer is for the next leader to find out. Then events are sent for `TELL_SECONDS`. Returns
        the shards that this process has led, and for which nothing is on its way any more.
        """
        app = self._app
        led: frozenset[int] = frozenset()
        self.role = Role.STOPPING
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                await asyncio.gather(app.admissions.finish(), *(queue.finish() for queue in self._queues))
                led = frozenset(self._shards.epochs)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TELL_SECONDS):
                await asyncio.gather(app.events.flush(), app.reasons.flush(), app.statuses.flush())
        return led

    def stop_timers(self) -> None:
        """Nothing of this controller happens any more."""
        app = self._app
        parts = (app.grace, app.deadlines, app.ready, app.unscheduled, app.admissions, app.shortage_evictions)
        for part in parts:
            part.close()

    def lead(self, epochs: dict[int, int]) -> None:
        """Decide and write for some shards more; what their leaders had to do may have been left undone."""
        if self.role is Role.STOPPING:
            return
        self._app.admissions.lead(epochs)
        self._open()
        self.routing.look_at_all()
        for shard, epoch in epochs.items():
            log.info("deciding", shard=shard, epoch=epoch)
        self._leads.set()

    def abandon(self) -> None:
        self._app.admissions.abandon_trees()
        self._open()

    def refresh(self) -> None:
        self._app.admissions.refresh()

    async def drained(self) -> None:
        await self._app.admissions.drained()

    def _open(self) -> None:
        """Write what belongs to the shards that are led; what is in none is in shard 0."""
        led = self._shards.epochs
        for writer in self._writers:
            writer.closed = not led
        app = self._app
        for queue in (app.namespaces.queue, app.local_queues.queue, app.placement.queue):
            queue.closed = 0 not in led
        for shard in range(self._shards.number):
            self._app.metrics.leads(lease_name(shard), holds=shard in led)
        if self.role is not Role.STOPPING:
            self.role = Role.LEADER if led else Role.FOLLOWER
