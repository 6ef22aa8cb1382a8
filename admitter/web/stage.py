"""The newest scene, the requests that wait for a newer one, and the history that scenes make."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from time import monotonic
from typing import Protocol

import structlog

from admitter.insight.controller_status import ControllerStatus
from admitter.insight.forecast.deadline import Allowance
from admitter.policy.snapshot import Facts, Snapshot
from admitter.web.forecasting import Forecasts
from admitter.web.history import History
from admitter.web.namespace_search import NamespaceSearch
from admitter.web.scene import WebScene
from admitter.web.turns import Limits

log = structlog.get_logger(__name__)


class Followed(Protocol):
    """A cluster that is followed, as by `admitter.insight.live.Mirror`."""

    @property
    def controllers(self) -> ControllerStatus:
        """Whether a controller decides."""

    def following(self) -> AbstractAsyncContextManager[None]:
        """Follow until the end of the block, which begins once everything has been read."""

    def snapshots(self) -> AsyncIterator[tuple[Facts, Snapshot]]:
        """A snapshot now, then one after changes."""


class Stage:
    """Makes a scene whenever something has changed, and keeps the last one; the first once all was read."""

    def __init__(self, mirror: Followed, allowance: Allowance, history: History | None = None) -> None:
        """Show what a mirror has; without a history one begins, which ends with this process."""
        self.limits = Limits(allowance)
        self.namespaces = NamespaceSearch(monotonic)
        self.forecasts = Forecasts(self.limits)
        self.history = history if history is not None else History()
        self._mirror = mirror
        self.scene: WebScene | None = None
        self._made = 0  # scenes
        self._next = asyncio.Event()

    @property
    def controllers(self) -> ControllerStatus:
        return self._mirror.controllers

    async def run(self) -> None:
        async with self._mirror.following():
            log.info("everything has been read")
            async for known, snapshot in self._mirror.snapshots():
                self._made += 1  # what the mirror counts goes on while a thread makes the snapshot
                scene = WebScene(known, snapshot, self._made, self.limits, lambda: self.controllers)
                await asyncio.to_thread(self.take_in, scene)
                self.put(scene)

    def take_in(self, scene: WebScene) -> None:
        """Work out what all users see of a scene, and note it in the history; slow."""
        scene.work_out()
        self.history.add(scene)

    def put(self, scene: WebScene) -> None:
        self.scene = scene
        self._next.set()
        self._next = asyncio.Event()

    async def newer(self, than: WebScene | None) -> WebScene:
        while self.scene is None or self.scene is than:
            await self._next.wait()
        return self.scene
