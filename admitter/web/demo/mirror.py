"""The made-up cluster as the page sees it: facts of each moment, and what was before."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from admitter.insight.controller_status import ControllerStatus, ShardLease
from admitter.insight.forecast.deadline import Allowance
from admitter.policy.snapshot import Facts, Snapshot
from admitter.web.demo.cluster import BEFORE_SECONDS, STEP_SECONDS, DemoCluster
from admitter.web.history import History
from admitter.web.scene import WebScene
from admitter.web.stage import Stage
from admitter.web.turns import Limits

PAUSE_SECONDS: Final = 10.0
"""How often the page gets something new: more often would cost CPU even without viewers."""
SEED: Final = 20
"""Everything in the made-up cluster follows from this, and from when it begins."""
_LEASE: Final = "admitter-controller"
_HOLDER: Final = "admitter-controller-6c9f7d5b8-x2lqv"


class DemoMirror:
    """Follows a made-up cluster in place of a real one."""

    def __init__(self, cluster: DemoCluster, history: History, now: Callable[[], float]) -> None:
        """What happened before is added to the history; `now` tells the seconds since the epoch."""
        self._cluster = cluster
        self._history = history
        self._limits = Limits(Allowance(0.0))
        self._now = now

    @property
    def controllers(self) -> ControllerStatus:
        """The made-up controller has led since long before."""
        since = self._cluster.start - BEFORE_SECONDS
        lease = ShardLease(0, _LEASE, alive=True, holder=_HOLDER, since=since, renewed=self._now())
        return ControllerStatus((lease,), self._now())

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        """Work out what was before."""
        await asyncio.to_thread(self.recall)
        yield

    def recall(self) -> None:
        """Let the past happen, and note it in the history: it takes some seconds."""
        gc.disable()  # what is made stays
        try:
            self._cluster.advance(self._now(), self._note)
        finally:
            gc.enable()

    def _note(self, snapshot: Snapshot) -> None:
        passed = snapshot.now - self._cluster.start
        if not passed or passed % self._sample_seconds(snapshot.now):
            return  # nothing has happened yet, or it is between two samples
        known = Facts(snapshot.now)
        scene = WebScene(known, snapshot, self._cluster.revision, self._limits, lambda: self.controllers)
        self._history.add(scene)

    def _sample_seconds(self, time: float) -> float:
        """From one sample of the past to the next; a picture of hours needs fewer."""
        return STEP_SECONDS if time > self._now() - 3600.0 else 2 * STEP_SECONDS

    async def snapshots(self) -> AsyncIterator[tuple[Facts, Snapshot]]:
        """The cluster now, and again after each pause."""
        while True:
            yield await asyncio.to_thread(self.look)
            await asyncio.sleep(PAUSE_SECONDS)

    def look(self) -> tuple[Facts, Snapshot]:
        """The cluster now."""
        self._cluster.advance(self._now())
        known = self._cluster.facts()
        return known, Snapshot(known)


def demo_stage(now: Callable[[], float], allowance: Allowance, seed: int = SEED) -> Stage:
    """A stage that shows a made-up cluster once it runs; `now` tells the seconds since the epoch."""
    history = History()
    return Stage(DemoMirror(DemoCluster(seed, now()), history, now), allowance, history)
