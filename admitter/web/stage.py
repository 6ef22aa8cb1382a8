"""The newest scene, the requests that wait for a newer one, and use of quota over time."""

import asyncio
from collections import deque
from typing import Any, Final

import structlog

from admitter.insight.controller_status import ControllerStatus
from admitter.insight.forecast.deadline import Allowance
from admitter.insight.live import Mirror
from admitter.quantities.amounts import CPU
from admitter.web.scene import WebScene
from admitter.web.turns import Limits

Json = dict[str, Any]

SAMPLE_SECONDS: Final = 15.0
SAMPLES: Final = 240
"""Samples of one hour for each queue, while this process runs: longer history is for Prometheus."""

log = structlog.get_logger(__name__)

_Sample = tuple[float, tuple[str, ...], tuple[int, ...]]
"""A moment, resources in flavors, and the use of each. Resources that are only borrowed may be missing."""


class Stage:
    """Makes a scene whenever something has changed, and keeps the last one; the first once all was read."""

    def __init__(self, mirror: Mirror, allowance: Allowance) -> None:
        self.limits = Limits(allowance)
        self._mirror = mirror
        self.scene: WebScene | None = None
        self._next = asyncio.Event()
        self._samples: dict[str, deque[_Sample]] = {}
        self._sampled = float("-inf")

    @property
    def controllers(self) -> ControllerStatus:
        return self._mirror.controllers

    async def run(self) -> None:
        async with self._mirror.following():
            log.info("everything has been read")
            async for known, snapshot in self._mirror.snapshots():
                revision = self._mirror.revision
                scene = WebScene(known, snapshot, revision, self.limits, lambda: self.controllers)
                await asyncio.to_thread(scene.work_out)
                self.put(scene)

    def put(self, scene: WebScene) -> None:
        self.scene = scene
        self._sample(scene)
        self._next.set()
        self._next = asyncio.Event()

    async def newer(self, than: WebScene | None) -> WebScene:
        while self.scene is None or self.scene is than:
            await self._next.wait()
        return self.scene

    def _sample(self, scene: WebScene) -> None:
        if scene.known.taken - self._sampled < SAMPLE_SECONDS:
            return
        self._sampled = scene.known.taken
        there = {}
        for line in scene.lines:
            if line.node[0] == "queue":
                samples = self._samples.get(line.node[1]) or deque(maxlen=SAMPLES)
                keys = tuple(f"{use.resource} in {use.flavor}" for use in line.uses)
                if samples and samples[-1][1] == keys:
                    keys = samples[-1][1]  # all samples share one tuple
                amounts = tuple(use.used // (1000 if use.resource == CPU else 1) for use in line.uses)
                samples.append((scene.known.taken, keys, amounts))
                there[line.node[1]] = samples
        self._samples = there

    def course(self, queue: str) -> Json:
        """Use of a queue over time: moments, in seconds since the epoch, and the use then."""
        samples = self._samples.get(queue, ())
        used = [dict(zip(keys, amounts, strict=True)) for _, keys, amounts in samples]
        found = dict.fromkeys(key for each in used for key in each)
        return {
            "times": [time for time, _, _ in samples],
            "used": {key: [each.get(key, 0) for each in used] for key in found},
        }
