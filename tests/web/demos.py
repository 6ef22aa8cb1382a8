"""The page of the made-up cluster, frozen at one moment, for tests and pictures."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

from admitter.insight.forecast.deadline import NO_LIMIT
from admitter.web.demo.cluster import PAST_SECONDS, DemoCluster
from admitter.web.demo.mirror import SEED, DemoMirror
from admitter.web.demo.persons import DemoPage
from admitter.web.history import History
from admitter.web.scene import WebScene
from admitter.web.sessions import Sessions
from admitter.web.stage import Stage

NOW: Final = 1_795_773_600.0  # 2026-11-27T10:00:00Z


class Frozen:
    """A made-up cluster; its time moves on only when it is told to."""

    def __init__(self, now: float = NOW, seed: int = SEED, past: float = PAST_SECONDS) -> None:
        """Let its past happen."""
        self.now = now
        history = History()
        self.cluster = DemoCluster(seed, now, past)
        self.mirror = DemoMirror(self.cluster, history, lambda: self.now)
        self.mirror.recall()
        self.stage = Stage(self.mirror, NO_LIMIT, history)
        self._look()

    def _look(self) -> None:
        known, snapshot = self.mirror.look()
        revision = self.cluster.revision
        scene = WebScene(known, snapshot, revision, self.stage.limits, lambda: self.mirror.controllers)
        self.stage.take_in(scene)
        self.scene = scene

    async def show(self) -> None:
        """Let browsers know of the newest scene."""
        self.stage.put(self.scene)

    async def move_on(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self._look()
        await self.show()


@asynccontextmanager
async def demo_page(frozen: Frozen) -> AsyncIterator[str]:
    """The address of the page that shows it."""
    await frozen.show()
    page = DemoPage(frozen.stage, Sessions(lambda: 0.0))
    runner = web.AppRunner(page.app(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield "http://{}:{}".format(*runner.addresses[0][:2])
    finally:
        await runner.cleanup()
