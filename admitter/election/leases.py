"""A Lease of the controllers: how it is named, read and timed. Next: `lease_cache`, `lease_lock`."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from admitter.api.forms import fitted
from admitter.client.errors import UnreachableError, UnreadableError
from admitter.client.transport import Json
from admitter.names import NAMESPACE

LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
PART_OF: Final = {"app.kubernetes.io/part-of": "admitter"}
CALL_SECONDS: Final = 1.0
MOST_DIGITS: Final = 18
HANDED_OVER: Final = "admitter.dev/handed-over"
"""Annotation of a Lease: when its last holder released it, none of that holder's writes was in flight."""


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
    """How a Lease is kept; all in seconds.

    Attributes:
        duration: a Lease that has not been renewed for so long may be taken; a Lease counts whole seconds.
        margin: its holder stops writing so much earlier.
        renewal: the time between renewals.
        look: the time between two reads by followers.
    """

    duration: int = 2
    margin: float = 0.5
    renewal: float = 0.4
    look: float = 0.25


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """What the API server says of a Lease.

    Attributes:
        holder: the identity of the process that holds it; empty if it was released.
        transitions: how often it has changed hands.
        duration: the seconds without renewal after which it may be taken.
        acquired: since when its holder has it, as the API server says it; empty if it says nothing.
        renewed: when its holder renewed it last, likewise.
    """

    name: str
    resource_version: str
    holder: str
    transitions: int
    duration: float
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    acquired: str = ""
    renewed: str = ""

    @property
    def handed_over(self) -> bool:
        return not self.holder and HANDED_OVER in self.annotations


def parse_lease(lease: Json) -> LeaseRecord:
    """A Lease as the API server sends it.

    Raises:
        UnreadableError: a field of it is not what it has to be.
    """
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
    """The answer of one call that ends well before a Lease expires.

    Raises:
        UnreachableError: there is none within `CALL_SECONDS`.
    """
    try:
        async with asyncio.timeout(CALL_SECONDS):
            return await call
    except TimeoutError as error:
        raise UnreachableError(f"no answer within {CALL_SECONDS:.0f} s") from error
