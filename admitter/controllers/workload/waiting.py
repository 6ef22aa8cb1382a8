"""Why each Workload waits, written when it changes and at most once a second.

Most reasons never get written: the Workload is admitted before its turn comes.
"""

import asyncio
from typing import Final

import structlog

from admitter.api.conditions import ConditionType, EventReason
from admitter.cache.views import WorkloadView
from admitter.cache.world import World, workload_path
from admitter.client.errors import (
    ClusterError,
    ConflictError,
    NotFoundError,
    is_retryable,
    level_of,
)
from admitter.client.pace import Pace
from admitter.client.store import Key
from admitter.client.transport import Transport
from admitter.controllers.telemetry.events import Events, Subject
from admitter.names import API_VERSION
from admitter.policy import status
from admitter.policy.gate import Waiting

PAUSE_SECONDS: Final = 1.0
WRITES_AT_A_TIME: Final = 8

log = structlog.get_logger(__name__)


class WaitingReasons:
    """Collects reasons and writes those that are news."""

    def __init__(
        self, world: World, events: Events, transport: Transport, clock: status.Clock, pace: Pace
    ) -> None:
        self._world = world
        self._events = events
        self._transport = transport
        self._clock = clock
        self._pace = pace
        self._wanted: dict[Key, Waiting] = {}
        self._ready = asyncio.Event()

    def want(self, key: Key, waiting: Waiting) -> None:
        """A Workload waits for this reason from now on."""
        self._wanted[key] = waiting
        self._ready.set()

    def forget(self, key: Key) -> None:
        """A Workload waits no longer."""
        self._wanted.pop(key, None)

    def admitted(self, workload: WorkloadView) -> None:
        """Tell the user that a Workload has been admitted."""
        message = workload.condition(ConditionType.ADMITTED).get("message", "")
        self._events.record(subject(workload), EventReason.ADMITTED, str(message))

    def evicted(self, workload: WorkloadView) -> None:
        """Tell the user that a Workload has to stop."""
        if workload.evicting:
            evicted = workload.condition(ConditionType.EVICTED)
            reason, message = evicted.get("reason", ""), evicted.get("message", "")
        else:
            reason = EventReason.EVICTION_PENDING
            message = workload.condition(ConditionType.EVICTION_PENDING).get("message", "")
        self._events.record(subject(workload), reason, message, topic="eviction")

    def promised(self, workload: WorkloadView) -> None:
        """Tell the user that a Workload has a pending reservation."""
        reserved = workload.condition(ConditionType.QUOTA_RESERVED)
        self._events.record(subject(workload), reserved.get("reason", ""), reserved.get("message", ""))

    async def run(self) -> None:
        while True:
            await self._ready.wait()
            await asyncio.sleep(PAUSE_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        self._ready.clear()
        keys = list(self._wanted)
        await asyncio.gather(*(self._work(keys) for _ in range(min(WRITES_AT_A_TIME, len(keys)))))

    async def _work(self, keys: list[Key]) -> None:
        while keys:
            key = keys.pop()
            waiting = self._wanted.get(key)
            if waiting is not None and not await self._write(key, waiting):
                self._ready.set()  # again in the next round
            elif self._wanted.get(key) == waiting:
                self._wanted.pop(key, None)

    async def _write(self, key: Key, waiting: Waiting) -> bool:
        """Write a reason if it is news; False: try again."""
        workload = self._world.workloads.get(key)
        if workload is None or workload.admission is not None or workload.finished:
            return True
        if not self._world.owners.owns(key) or key in self._world.workloads.unreadable:
            return True  # the shard's owner writes why; if it can't be read, an event says so
        written = workload.condition(ConditionType.QUOTA_RESERVED)
        if (written.get("reason"), written.get("message")) == (waiting.reason, waiting.message):
            return True
        try:
            async with self._pace.turn():
                now, back_off = self._clock(), waiting.back_off
                body = status.waiting(workload, waiting.reason, waiting.message, now, back_off)
                raw = await self._transport.patch(f"{workload_path(key)}/status", body)
            self._world.read_workloads.take(raw)
        except (ConflictError, NotFoundError):
            return False  # it changed meanwhile: the newer one is on its way here
        except ClusterError as error:
            level = level_of(error)
            log.log(level, "reason not written", namespace=key[0], workload=key[1], error=str(error))
            return not is_retryable(error)  # otherwise asking again would change nothing
        self._events.record(subject(workload), waiting.reason, waiting.message)
        return True


def subject(workload: WorkloadView) -> Subject:
    """What an event on a Workload is attached to: its Job, if it has one."""
    if workload.job is not None:
        name, uid = workload.job
        return Subject("batch/v1", "Job", workload.namespace, name, uid)
    return Subject(API_VERSION, "Workload", workload.namespace, workload.name, workload.uid)
