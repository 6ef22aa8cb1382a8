"""The Leases of all controllers: how they are timed and read, and since when each is unchanged."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import structlog

from admitter.api.forms import fitted
from admitter.client.errors import UnreachableError, UnreadableError
from admitter.client.transport import Json, Transport
from admitter.names import NAMESPACE

LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
PART_OF: Final = {"app.kubernetes.io/part-of": "admitter"}
CALL_SECONDS: Final = 1.0
MOST_DIGITS: Final = 18
HANDED_OVER: Final = "admitter.dev/handed-over"
"""Annotation of a Lease: when its last holder released it, none of that holder's writes was in flight."""

log = structlog.get_logger(__name__)


def monotonic() -> float:
    """Seconds, also those in which the machine was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


@dataclass(frozen=True, slots=True)
class Clocks:
    """Where the time comes from: by `monotonic` all is decided; the Lease shows `now`, in UTC, to people."""

    monotonic: Callable[[], float] = monotonic
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def micro_time(self) -> str:
        """The time that people see, as a Lease writes it."""
        return self.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


SYSTEM_CLOCKS: Final = Clocks()


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """How a Lease is kept; all in seconds."""

    # a Lease that has not been renewed for so long may be taken; a Lease counts whole seconds
    duration: int = 2
    margin: float = 0.5  # its holder stops writing so much earlier
    renewal: float = 0.4  # the time between renewals
    look: float = 0.25  # the time between two reads by followers


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What the API server says of a Lease."""

    name: str
    resource_version: str
    holder: str  # the identity of the process that holds it; empty if it was released
    transitions: int  # how often it has changed hands
    duration: float  # the seconds without renewal after which it may be taken
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    acquired: str = ""  # since when its holder has it, as the API server says it; empty if it says nothing
    renewed: str = ""  # when its holder renewed it last, likewise

    @property
    def handed_over(self) -> bool:
        return not self.holder and HANDED_OVER in self.annotations


def parse_lease(lease: Json) -> LeaseRecord:
    """A Lease as the API server sends it; UnreadableError if a field of it is not what it has to be."""
    try:
        lease = fitted("leases", lease)
    except ValueError as error:
        raise UnreadableError(f"a Lease can't be read: {error}") from error
    spec, metadata = lease.get("spec") or {}, lease["metadata"]
    return LeaseRecord(
        metadata["name"],
        metadata["resourceVersion"],
        spec.get("holderIdentity") or "",
        int(spec.get("leaseTransitions") or 0),
        float(spec.get("leaseDurationSeconds") or 0),
        metadata.get("annotations") or {},
        metadata.get("labels") or {},
        spec.get("acquireTime") or "",
        spec.get("renewTime") or "",
    )


def lease_manifest(metadata: Json, spec: Json) -> Json:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


def whole_number(text: str) -> int | None:
    """The number that a label or an annotation is; None if it is none, or longer than any that is written."""
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None


async def within_call_limit(call: Awaitable[Json]) -> Json:
    """The answer of one call that ends well before a Lease expires; UnreachableError after `CALL_SECONDS`."""
    try:
        async with asyncio.timeout(CALL_SECONDS):
            return await call
    except TimeoutError as error:
        raise UnreachableError(f"no answer within {CALL_SECONDS:.0f} s") from error


@dataclass(frozen=True, slots=True)
class _Reading:
    """Each Lease and since when it is unchanged, and the times of the first refresh and of the last one."""

    leases: Mapping[str, tuple[LeaseRecord, float]] = field(default_factory=dict)
    first: float | None = None
    last: float = 0.0


@dataclass(eq=False)
class LeaseCache:
    """Leases by name. Time counts only up to the last refresh: a process that can't read sees none expire.

    One thread refreshes; others may read.
    """

    transport: Transport  # tries each call once
    min_duration: float  # the seconds for which a Lease is its holder's at least, whatever its spec says
    clocks: Clocks = SYSTEM_CLOCKS
    _reading: _Reading = field(default_factory=_Reading)
    _wrong: set[str] = field(default_factory=set)
    _refreshed: asyncio.Event = field(default_factory=asyncio.Event)

    def __iter__(self) -> Iterator[LeaseRecord]:
        return iter([record for record, _ in self._reading.leases.values()])

    async def refresh(self) -> None:
        """Read all Leases; those that have changed count from now.

        One that can't be read is left out: as long as it is there, no process can take it.
        """
        selector = ",".join(f"{name}={value}" for name, value in PART_OF.items())
        listed = await within_call_limit(self.transport.get(LEASES, {"labelSelector": selector}))
        now, before = self.clocks.monotonic(), self._reading
        leases = {}
        for record in self._readable(listed["items"]):
            known = before.leases.get(record.name)
            same = known is not None and known[0].resource_version == record.resource_version
            leases[record.name] = known if known is not None and same else (record, now)
        self._reading = _Reading(leases, now if before.first is None else before.first, now)
        self._refreshed.set()
        self._refreshed = asyncio.Event()

    def _readable(self, items: list[Json]) -> Iterator[LeaseRecord]:
        """The Leases that can be read; what is wrong with another is logged once."""
        wrong = set()
        for item in items:
            try:
                yield parse_lease(item)
            except UnreadableError as error:
                wrong.add(str(error))
        for words in sorted(wrong - self._wrong):
            log.warning("a lease is left out", error=words)
        self._wrong = wrong

    async def next_refresh(self) -> None:
        await self._refreshed.wait()

    def get(self, name: str) -> LeaseRecord | None:
        record, _ = self._reading.leases.get(name, (None, 0.0))
        return record

    def expired_for(self, name: str) -> float | None:
        """The seconds for which a Lease has been missing, released or not renewed; None if it is held."""
        reading = self._reading
        if reading.first is None:
            return None
        if name not in reading.leases:
            return reading.last - reading.first
        record, since = reading.leases[name]
        held_for = 0.0 if record.handed_over else max(record.duration, self.min_duration)
        expired = reading.last - since - held_for
        return expired if expired > 0 or record.handed_over else None

    def is_held(self, record: LeaseRecord) -> bool:
        """Whether a Lease of the cache has a holder that renews it."""
        return bool(record.holder) and self.expired_for(record.name) is None
