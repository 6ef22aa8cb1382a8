"""Events on Jobs: what `kubectl describe job` tells its user. Best effort: the first thing to be dropped."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Final

import structlog

from admitter.api.conditions import NORMAL_EVENTS, EventReason
from admitter.cache.job_resources import POD
from admitter.cache.pod_groups import GroupView
from admitter.cache.views import JobView, timestamp
from admitter.client.errors import ApiError, ClusterError, ConflictError, is_retryable
from admitter.client.pace import Pace
from admitter.client.transport import Json, Transport
from admitter.names import CONTROLLER_NAME
from admitter.policy.status import Clock

MOST_WAITING: Final = 10_000
MOST_REMEMBERED: Final = 10_000
ATTEMPTS: Final = 10
"""So often an event is tried while the API server fails: for 50 s, if it is the only one."""
PAUSE_SECONDS: Final = 0.1
"""After a failure; twice as long after each more in a row."""
LONGEST_PAUSE_SECONDS: Final = 30.0
_DIGITS: Final = 16
LONGEST_MESSAGE: Final = 1024
"""Bytes that the API server takes in an event's message."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Subject:
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def place(self) -> str:
        """The namespace of its events: those of what is in none are in `default`."""
        return self.namespace or "default"


def subject_of(job: JobView) -> Subject:
    """What an event on a job object is attached to; that on a group of pods, to its oldest."""
    if isinstance(job, GroupView):
        return Subject(POD.api_version, POD.kind, job.namespace, *job.first)
    kind, name = job.resource, job.name.rpartition("/")[2]
    return Subject(kind.api_version, kind.kind, job.namespace, name, job.uid)


@dataclass(frozen=True, slots=True)
class _Said:
    """An event that waits."""

    subject: Subject
    reason: str
    message: str
    lasting: bool
    attempts: int = 1

    @property
    def digest(self) -> str:
        """The same for the same words on the same object."""
        words = "\n".join((self.subject.uid, self.reason, self.message))
        return sha256(words.encode()).hexdigest()[:_DIGITS]


class Events:
    """Writes events one after the other; of those that wait, only the newest of a subject's topic is kept.

    Closed, it drops them: a follower does nothing that users need to know.
    """

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        pace: Pace,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._pace = pace
        self._sleep = sleep
        self._pause = PAUSE_SECONDS
        self.closed = False
        self._waiting: OrderedDict[tuple[str, str], _Said] = OrderedDict()
        self._written_here: OrderedDict[str, None] = OrderedDict()
        self._ready = asyncio.Event()
        self._written = 0

    def record(
        self, subject: Subject, reason: str, message: str, *, lasting: bool = False, topic: str = ""
    ) -> None:
        """Have an event written soon, unless a newer one of its topic or too many others come first.

        A `lasting` event tells what is so, and not what happens: it is said again when it comes true again,
        but not after a restart, as long as the API server keeps what was said before. An event replaces those
        of the same topic and subject that are not written yet. A Workload that is preempted waits in the next
        moment: its user is told both.
        """
        if self.closed:
            return
        key = (subject.uid, topic)
        self._waiting.pop(key, None)
        self._waiting[key] = _Said(subject, reason, message, lasting)
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)
        self._ready.set()

    def record_refusal(self, subject: Subject, error: Exception, what: str = "what it needs") -> None:
        """Have it told that the API server goes on refusing to write `what` for an object."""
        if isinstance(error, ApiError):
            words = f"the API server refuses {what}: {error}"
            self.record(subject, EventReason.WRITE_REFUSED, words, topic="refused")

    def refused(self, job: JobView | None, error: Exception) -> None:
        """The same for a Job: one that is gone or over needs nothing any more."""
        if job is not None and not job.finished:
            self.record_refusal(subject_of(job), error)

    async def run(self) -> None:
        while True:
            await self._ready.wait()
            self._ready.clear()
            await self.flush()

    async def flush(self) -> None:
        """Write what waits; what the API server fails to take comes again after all others."""
        while self._waiting:
            key, said = self._waiting.popitem(last=False)
            try:
                async with self._pace.turn():
                    await self._write(said)
            except ClusterError as error:
                if said.attempts < ATTEMPTS and is_retryable(error) and not self.closed:
                    self._waiting.setdefault(key, replace(said, attempts=said.attempts + 1))
                    await self._sleep(self._pause)
                    self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
                    continue
                # a namespace that is going away takes no events
                place = {"namespace": said.subject.namespace, "name": said.subject.name}
                log.debug("event dropped", **place, error=str(error))
            self._pause = PAUSE_SECONDS

    async def _write(self, said: _Said) -> None:
        """Write an event; one that lasts has a name by which it is known again after a restart."""
        path = f"/api/v1/namespaces/{said.subject.place}/events"
        digest = said.digest if said.lasting else ""
        if digest and digest not in self._written_here:
            try:
                await self._transport.create(path, self._event(said, digest))
            except ConflictError:
                log.debug("event is there", namespace=said.subject.namespace, name=said.subject.name)
            self._written_here[digest] = None  # not before: one that is dropped may be said later
            if len(self._written_here) > MOST_REMEMBERED:
                self._written_here.popitem(last=False)
            return
        self._written += 1
        unique = f"{int(self._clock().timestamp() * 1_000_000):x}{self._written % 4096:03x}"
        await self._transport.create(path, self._event(said, unique))

    def _event(self, said: _Said, unique: str) -> Json:
        now, subject = self._clock(), said.subject
        return {
            "metadata": {"name": f"{subject.name}.{unique}", "namespace": subject.place},
            "involvedObject": {
                "apiVersion": subject.api_version,
                "kind": subject.kind,
                "namespace": subject.namespace,
                "name": subject.name,
                "uid": subject.uid,
            },
            "type": "Normal" if said.reason in NORMAL_EVENTS else "Warning",
            "reason": said.reason,
            "message": said.message.encode()[:LONGEST_MESSAGE].decode(errors="ignore"),
            "source": {"component": CONTROLLER_NAME},
            "reportingComponent": CONTROLLER_NAME,
            "reportingInstance": CONTROLLER_NAME,
            "firstTimestamp": timestamp(now),
            "lastTimestamp": timestamp(now),
            "count": 1,
        }
