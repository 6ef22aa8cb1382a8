"""Why each Workload waits, written when it changes and at most once a second.

Most reasons never get written: the Workload is admitted before its turn comes.
"""

import asyncio
from dataclasses import dataclass, field
from typing import Final

import structlog

from admitter.api.conditions import ConditionType, EventReason
from admitter.cache.job_resources import GROUP_SORT, sort_of
from admitter.cache.views import WorkloadView
from admitter.cache.world import World, workload_path
from admitter.client.errors import ClusterError, ConflictError, NotFoundError, is_retryable, level_of
from admitter.client.failures import REFUSALS_TOLD, Failures, is_rejected
from admitter.client.pace import Pace
from admitter.client.store import Key
from admitter.client.transport import Transport
from admitter.controllers.telemetry.events import Events, Subject
from admitter.controllers.telemetry.makers import Makers
from admitter.names import API_VERSION
from admitter.policy import status
from admitter.policy.gate import Gate, Waiting
from admitter.policy.messages import same_but_for_use

PAUSE_SECONDS: Final = 1.0
WRITES_AT_A_TIME: Final = 8

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class WaitingReasons:
    """Collects reasons and writes those that are news."""

    world: World
    gate: Gate
    events: Events
    transport: Transport
    clock: status.Clock
    pace: Pace
    makers: Makers
    # of writes to statuses of Workloads, be it of reasons or of decisions
    failures: Failures[Key] = field(init=False)
    _wanted: dict[Key, Waiting] = field(default_factory=dict)
    _spelled: dict[int, tuple[Waiting, str]] = field(default_factory=dict)
    _ready: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.failures = Failures(self._refused, REFUSALS_TOLD, is_rejected)

    def want(self, key: Key, waiting: Waiting) -> None:
        self._wanted[key] = waiting
        self._ready.set()

    def forget(self, key: Key) -> None:
        self._wanted.pop(key, None)

    def gone(self, key: Key) -> None:
        """There is no such Workload any more."""
        self.forget(key)
        self.failures.over(key)

    def admitted(self, workload: WorkloadView) -> None:
        message = workload.condition(ConditionType.ADMITTED).get("message", "")
        self.events.record(self._subject(workload), EventReason.ADMITTED, str(message))
        self.makers.admitted(workload)

    def evicted(self, workload: WorkloadView) -> None:
        """Tell the user that a Workload has to stop."""
        if workload.evicting:
            evicted = workload.condition(ConditionType.EVICTED)
            reason, message = evicted.get("reason", ""), evicted.get("message", "")
        else:
            reason = EventReason.EVICTION_PENDING
            message = workload.condition(ConditionType.EVICTION_PENDING).get("message", "")
        self.events.record(self._subject(workload), reason, message, topic="eviction")

    def tell_limit(self, workload: WorkloadView, words: str) -> None:
        """Tell the user that an annotation on the time to be ready does not count as it is written."""
        self.events.record(self._subject(workload), EventReason.READY_TIMEOUT, words, topic="ready timeout")

    def promised(self, workload: WorkloadView) -> None:
        """Tell the user that a Workload has a pending reservation."""
        reserved = workload.condition(ConditionType.QUOTA_RESERVED)
        self.events.record(self._subject(workload), reserved.get("reason", ""), reserved.get("message", ""))

    async def run(self) -> None:
        while True:
            await self._ready.wait()
            await asyncio.sleep(PAUSE_SECONDS)
            await self.flush()

    async def flush(self) -> None:
        self._ready.clear()
        self._spelled.clear()
        keys = list(self._wanted)
        await asyncio.gather(*(self._work(keys) for _ in range(min(WRITES_AT_A_TIME, len(keys)))))

    async def _work(self, keys: list[Key]) -> None:
        while keys:
            key = keys.pop()
            waiting = self._wanted.get(key)
            if waiting is not None and not await self._write(key, waiting):
                self._ready.set()  # again in the next round
            elif self._wanted.get(key) is waiting:  # an equal one is news: what may be told has changed
                self._wanted.pop(key, None)

    async def _write(self, key: Key, waiting: Waiting) -> bool:
        """Write a reason if it is news; False: try again."""
        workload = self.world.workloads.get(key)
        if workload is None or workload.admission is not None or workload.finished:
            return True
        if not self.world.owners.owns(key) or key in self.world.workloads.unreadable:
            return True  # the shard's owner writes why; if it can't be read, an event says so
        message, queue = self._message(waiting), self.gate.queue_of(workload)
        if _says(workload, waiting.reason, message, queue):
            return True
        try:
            async with self.pace.turn():
                why, now = (waiting.reason, message), self.clock()
                body = status.waiting(workload, *why, now, queue, waiting.back_off)
                raw = await self.transport.patch(f"{workload_path(key)}/status", body)
            self.world.read_workloads.take(raw)
        except (ConflictError, NotFoundError):
            return False  # it changed meanwhile: the newer one is on its way here
        except ClusterError as error:
            self.failed("reason not written", key, error)
            if is_rejected(error):
                self._refused(key, error)  # at once: asking again would change nothing
            return not is_retryable(error)
        self.failures.over(key, "reason not written")
        self.events.record(self._subject(workload), waiting.reason, message)
        await self.makers.waits(workload, waiting.reason, message)
        return True

    def failed(self, what: str, key: Key, error: ClusterError) -> None:
        """A write to the status of a Workload has failed."""
        level = level_of(error)
        if self.world.workloads.get(key) is not None:  # its end is told once: what fails later would stay
            level = self.failures.note(key, error, what).level
        log.log(level, what, namespace=key[0], workload=key[1], error=str(error))

    def _refused(self, key: Key, error: Exception) -> None:
        """The API server goes on refusing a write to the status of a Workload."""
        workload = self.world.workloads.get(key)
        if workload is not None:
            self.events.record_refusal(self._subject(workload), error, "the status of its Workload")

    def _subject(self, workload: WorkloadView) -> Subject:
        """What an event on a Workload is attached to: its Job, if it has one of a kind that is known."""
        known = workload.job is not None and sort_of(workload.job[0]) != GROUP_SORT  # a group is no object
        if (
            known
            and workload.job is not None
            and not self.world.unknown_kind(workload.job[0], workload.group)
        ):
            title, uid = workload.job
            kind = self.world.kinds[sort_of(title)].resource
            name = title.rpartition("/")[2]
            return Subject(kind.api_version, kind.kind, workload.namespace, name, uid)
        return Subject(API_VERSION, "Workload", workload.namespace, workload.name, workload.uid)

    def _message(self, waiting: Waiting) -> str:
        """The sentence with what is in use now: made once for all that wait for the same."""
        known = self._spelled.get(id(waiting))
        if known is None:  # the object is kept too, so that no other one gets its identity
            known = self._spelled[id(waiting)] = (waiting, self.gate.message_at(waiting, self.clock()))
        return known[1]


def _says(workload: WorkloadView, reason: str, message: str, queue: str | None) -> bool:
    """Whether a status says already why its Workload waits; what was in use when it did is no news."""
    written = workload.condition(ConditionType.QUOTA_RESERVED)
    same = written.get("reason") == reason and workload.status.get("clusterQueue") == queue
    return same and same_but_for_use(str(written.get("message")), message)
