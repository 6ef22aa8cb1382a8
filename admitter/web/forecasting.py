"""The forecast that all users of a page share: made while a user looks, and in small pieces.

A forecast takes as many turns of the estimates as it needs, each a short one, so that an estimate never
waits for long; and all of them together take a few times what an estimate may. It is begun anew once it is
old and a user looks again. Until the first is there, the answer is that there is none yet, and the page asks
again; if it has not come far when its time is over, there is none in time.
"""

import asyncio
from dataclasses import dataclass
from math import isinf
from typing import Final

import structlog

from admitter.insight.forecast.deadline import Allowance, Deadline
from admitter.insight.forecast.schedule import Forecaster
from admitter.web.scene import WebScene
from admitter.web.turns import AT_ONCE, QUEUEING_SECONDS, Limits

OLD_SECONDS: Final = 30.0
"""After that a forecast is made anew."""
IDLE: Final = 4.0
"""After a forecast that took so long, none is made for so many times as long."""
TOO_OLD_SECONDS: Final = 600.0
"""A forecast that is older is not shown."""
PART: Final = 0.25
"""How long one turn takes, as a part of what an estimate may take."""
IN_ALL: Final = 5.0
"""How long all turns of a forecast take, in multiples of what an estimate may take."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is known of the next hours."""

    forecast: Forecaster | None  # the newest that is there; None: there was no time
    working: bool  # whether a newer one is being made


class Forecasts:
    """Makes forecasts, one at a time."""

    def __init__(self, limits: Limits) -> None:
        """Make nothing yet."""
        self._limits = limits
        self._clock = limits.allowance.clock
        self._newest: Forecaster | None = None
        self._making: asyncio.Task[None] | None = None
        self._rests_until = float("-inf")  # by the clock

    async def of(self, scene: WebScene) -> Outlook:
        """The newest forecast; if there is none yet, it is waited for a moment."""
        if self._is_due(scene):
            self._making = asyncio.create_task(self._make(scene))
        found = self._shown(scene)
        if found is None:
            await self.made(None if isinf(self._limits.allowance.seconds) else AT_ONCE.seconds)
            found = self._shown(scene)
        return Outlook(found, self._making is not None)

    async def made(self, seconds: float | None = None) -> Forecaster | None:
        """The newest forecast once no other is being made, or after so many seconds; None: for ever."""
        if self._making is not None:
            await asyncio.wait({self._making}, timeout=seconds)
        return self._newest

    def _is_due(self, scene: WebScene) -> bool:
        if self._making is not None or self._clock() < self._rests_until:
            return False
        return self._newest is None or abs(scene.known.taken - self._newest.taken) > OLD_SECONDS

    def _shown(self, scene: WebScene) -> Forecaster | None:
        found = self._newest
        return found if found is not None and scene.known.taken - found.taken < TOO_OLD_SECONDS else None

    async def _make(self, scene: WebScene) -> None:
        making = _Making(scene)
        part = Allowance(self._limits.allowance.seconds * PART, self._clock)
        most = self._limits.allowance.seconds * IN_ALL
        try:
            while not making.is_over and making.spent < most:
                await self._limits.estimating.result(making.go_on, part, QUEUEING_SECONDS)
                forecast = making.forecast
                if self._newest is None and forecast is not None and forecast.is_whole:
                    self._newest = forecast  # how sure it is follows
            if making.forecast is not None and making.forecast.reached > making.forecast.taken:
                self._newest = making.forecast
        finally:
            self._making = None
            self._rests_until = self._clock() + IDLE * making.spent
            log.debug("forecast", spent=round(making.spent, 3))


class _Making:
    """A forecast on its way, in one thread at a time."""

    def __init__(self, scene: WebScene) -> None:
        self._scene = scene
        self.forecast: Forecaster | None = None
        self.spent = 0.0  # seconds in threads
        self.is_over = False

    def go_on(self, deadline: Deadline) -> bool:
        """Go on until the deadline, or the end; always True."""
        began = deadline.clock()
        try:
            self._play(deadline)
        except Exception:  # the page shows all else
            log.exception("the forecast failed")
            self.is_over = True
        self.spent += deadline.clock() - began
        return True

    def _play(self, deadline: Deadline) -> None:
        if self.forecast is None:
            self.forecast = Forecaster(self._scene.known, self._scene.snapshot)
        for _ in self.forecast.play():
            if deadline.is_over():
                return
        self.is_over = True
