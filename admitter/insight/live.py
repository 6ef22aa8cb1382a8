"""A cluster as it is now, followed by watches: snapshots of it cost the API server no further calls."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from http import HTTPStatus
from random import Random
from typing import Final

import structlog

from admitter.cache.world import World
from admitter.client.errors import ApiError, ClusterError, DeniedError
from admitter.client.informer import Informer
from admitter.client.store import Store
from admitter.client.transport import Transport
from admitter.convert.settings import Settings
from admitter.following.kind_informers import KindInformers
from admitter.insight.controller_status import ControllerStatus
from admitter.insight.lease_watch import LeaseWatch
from admitter.insight.pages import spelled, without_right
from admitter.policy.snapshot import Facts, Snapshot, sources_of

REST: Final = 4.0
"""The pause after a snapshot, in multiples of the time it took: most of the time is left for other work."""
LEAST_PAUSE_SECONDS: Final = 1.0
QUIET_SECONDS: Final = 15.0
"""After so long a snapshot is made without a change: recent admissions depend on the time."""

log = structlog.get_logger(__name__)


class Mirror:
    """Follows all kinds that decisions depend on, and the Leases of the controllers, and makes snapshots."""

    def __init__(
        self, transport: Transport, settings: Settings, random: Random, now: Callable[[], float]
    ) -> None:
        """Nothing is read yet; the transport's user must be allowed to list and watch all of it.

        `random` spreads the ends of watches over time, and `now` tells the seconds since the epoch.
        """
        self._settings = settings
        self._now = now
        kept = sources_of(World()).items()
        self._sources = {name: replace(source, store=Store(remembered=0)) for name, source in kept}
        self._described = World()  # the objects of described kinds, and nothing else
        self._described.job_kinds = self._sources["jobkinds"].store
        self._kinds = KindInformers(self._described, transport, random)
        self._informers = [Informer(transport, source, random) for source in self._sources.values()]
        self._leases = LeaseWatch(transport)
        self._transport = transport
        self._changed = asyncio.Event()
        self.revision = 0  # grows with every change
        for source in self._sources.values():
            source.store.listen(self._note)
        self._described.jobs.listen(self._note)

    def _note(self, _old: object, _new: object) -> None:
        self.revision += 1
        self._changed.set()

    async def check(self) -> None:
        """Return if all can be listed, or if that is not known.

        Raises:
            DeniedError: the user may not list a kind.
        """
        for plural, source in self._sources.items():
            try:
                await self._transport.get(source.path, {"limit": "1"})
            except ApiError as error:
                if error.status == HTTPStatus.FORBIDDEN:
                    denied = DeniedError(spelled(source.path, error))
                    if not source.optional:
                        raise denied from error
                    log.warning(without_right(plural, denied))
            except ClusterError:
                return

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Follow until the end of the block, which begins once everything has been read."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(each.run(), name=f"informer {each.path}") for each in self._informers]
            tasks.append(group.create_task(self._leases.follow(), name="leases"))
            for source, informer in zip(self._sources.values(), self._informers, strict=True):
                await (informer.tried if source.optional else informer.synced).wait()
            tasks.append(group.create_task(self._kinds.run(), name="kinds"))
            await self._kinds.synced.wait()
            yield
            for task in tasks:
                task.cancel()

    @property
    def failure(self) -> tuple[str, ClusterError] | None:
        """The first collection that is not followed now, and why; None: no failure is known."""
        failed = ((each.path, each.failure) for each in self._informers)
        return next(((path, error) for path, error in failed if error is not None), None)

    @property
    def controllers(self) -> ControllerStatus:
        """Whether a controller decides, as of a few seconds ago."""
        return self._leases.status()

    def facts(self) -> Facts:
        views = {name: {view.key: view for view in each.store} for name, each in self._sources.items()}
        views["jobs"] |= {job.key: job for job in self._described.jobs}
        kinds = (kind for sort, kind in self._described.kinds.items() if sort and kind.source is not None)
        read = frozenset(kind.resource.collection for kind in kinds if not kind.problem)
        return Facts(self._now(), self._settings, views, read if views["jobkinds"] else None)

    async def snapshots(self) -> AsyncIterator[tuple[Facts, Snapshot]]:
        """A snapshot now, then one after changes, with pauses that leave time for other work."""
        loop = asyncio.get_running_loop()
        while True:
            self._changed.clear()
            known, began = self.facts(), loop.time()
            yield known, await asyncio.to_thread(Snapshot, known)
            await asyncio.sleep(max(LEAST_PAUSE_SECONDS, REST * (loop.time() - began)))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), QUIET_SECONDS)
