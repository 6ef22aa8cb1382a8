"""Events on Jobs: what `kubectl describe job` tells its user. Best effort: the first thing to be dropped."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

import structlog

from admitter.cluster.errors import ClusterError
from admitter.cluster.transport import Json, Transport
from admitter.controllers.status import Clock
from admitter.controllers.views import timestamp
from admitter.names import CONTROLLER_NAME

MOST_WAITING: Final = 1000
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


class Events:
    """Writes events one after the other; of those that wait, only the newest a subject is kept."""

    def __init__(self, transport: Transport, clock: Clock) -> None:
        self._transport = transport
        self._clock = clock
        self._waiting: OrderedDict[str, tuple[Subject, str, str]] = OrderedDict()
        self._ready = asyncio.Event()
        self._written = 0

    def record(self, subject: Subject, reason: str, message: str) -> None:
        """Have an event written soon, unless a newer one on its subject or too many others come first."""
        self._waiting.pop(subject.uid, None)
        self._waiting[subject.uid] = (subject, reason, message)
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)
        self._ready.set()

    async def run(self) -> None:
        """Write events until cancelled."""
        while True:
            await self._ready.wait()
            self._ready.clear()
            while self._waiting:
                _, (subject, reason, message) = self._waiting.popitem(last=False)
                try:
                    await self._transport.create(
                        f"/api/v1/namespaces/{subject.namespace}/events",
                        self._event(subject, reason, message),
                    )
                except ClusterError as error:  # a namespace that is going away takes no events
                    log.debug(
                        "event dropped", namespace=subject.namespace, name=subject.name, error=str(error)
                    )

    def _event(self, subject: Subject, reason: str, message: str) -> Json:
        now = self._clock()
        self._written += 1
        unique = f"{int(now.timestamp() * 1_000_000):x}{self._written % 4096:03x}"
        return {
            "metadata": {"name": f"{subject.name}.{unique}", "namespace": subject.namespace},
            "involvedObject": {
                "apiVersion": subject.api_version,
                "kind": subject.kind,
                "namespace": subject.namespace,
                "name": subject.name,
                "uid": subject.uid,
            },
            "type": "Normal",
            "reason": reason,
            "message": message.encode()[:LONGEST_MESSAGE].decode(errors="ignore"),
            "source": {"component": CONTROLLER_NAME},
            "reportingComponent": CONTROLLER_NAME,
            "reportingInstance": CONTROLLER_NAME,
            "firstTimestamp": timestamp(now),
            "lastTimestamp": timestamp(now),
            "count": 1,
        }
