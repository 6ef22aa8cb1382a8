"""The Leases of all controllers, as one process has seen them, and since when each is as it is."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from admitter.cluster.errors import UnreachableError
from admitter.cluster.transport import Json, Transport
from admitter.names import NAMESPACE

LEASES: Final = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
PART_OF: Final = {"app.kubernetes.io/part-of": "admitter"}
CALL_SECONDS: Final = 1.0
HANDED_OVER: Final = "admitter.dev/handed-over"
"""Annotation of a Lease: its last holder had nothing on its way when it let go."""


def monotonic() -> float:
    """Seconds, also those in which the machine was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if sys.platform == "linux" else time.monotonic()


@dataclass(frozen=True, slots=True)
class Clocks:
    """Where the time comes from.

    Attributes:
        monotonic: seconds by which everything is decided.
        now: the time that the Lease shows to people, in UTC.
        sleep: waits so many seconds.
    """

    monotonic: Callable[[], float] = monotonic
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    def micro_time(self) -> str:
        """The time that people see, as a Lease writes it."""
        return self.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


SYSTEM_CLOCKS: Final = Clocks()


@dataclass(frozen=True, slots=True)
class Record:
    """A Lease.

    Attributes:
        name: in the namespace of the controllers.
        version: its resource version.
        holder: who holds it; empty: nobody does.
        transitions: how often it has changed hands.
        duration: for how many seconds it is held without being renewed.
        notes: its annotations.
        labels: its labels.
    """

    name: str
    version: str
    holder: str
    transitions: int
    duration: float
    notes: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def handed(self) -> bool:
        """Whether its last holder has let go of it, with nothing on its way."""
        return not self.holder and HANDED_OVER in self.notes


@dataclass(frozen=True, slots=True)
class _View:
    """What was seen.

    Attributes:
        leases: each, and since when it is as it is.
        began: when the first look was; None: there was none.
        looked: when the last one was.
    """

    leases: Mapping[str, tuple[Record, float]] = field(default_factory=dict)
    began: float | None = None
    looked: float = 0.0


def parsed(lease: Json) -> Record:
    """A Lease as the API server tells of it."""
    spec, metadata = lease.get("spec") or {}, lease["metadata"]
    return Record(
        metadata["name"],
        metadata["resourceVersion"],
        spec.get("holderIdentity") or "",
        int(spec.get("leaseTransitions") or 0),
        float(spec.get("leaseDurationSeconds") or 0),
        metadata.get("annotations") or {},
        metadata.get("labels") or {},
    )


async def limited(call: Awaitable[Json]) -> Json:
    """One call, in less time than a Lease lasts."""
    try:
        async with asyncio.timeout(CALL_SECONDS):
            return await call
    except TimeoutError as error:
        raise UnreachableError(f"no answer within {CALL_SECONDS:.0f} s") from error


class Board:
    """What the last look has shown. Only a look lets time count: who sees nothing takes nothing for over.

    One thread looks; others may ask.
    """

    def __init__(self, transport: Transport, least: float, clocks: Clocks = SYSTEM_CLOCKS) -> None:
        """Prepare; nothing is read yet.

        Args:
            transport: tries each call once.
            least: for how many seconds a Lease is its holder's at least, whatever it says.
            clocks: where the time comes from.
        """
        self._transport = transport
        self._least = least
        self._clock = clocks.monotonic
        self._view = _View()
        self._next = asyncio.Event()

    def __iter__(self) -> Iterator[Record]:
        return iter([record for record, _ in self._view.leases.values()])

    async def look(self) -> None:
        """Read all Leases; those that have changed count from now.

        Raises:
            ClusterError: they can't be read.
        """
        selector = ",".join(f"{name}={value}" for name, value in PART_OF.items())
        listed = await limited(self._transport.get(LEASES, {"labelSelector": selector}))
        now, before = self._clock(), self._view
        leases = {}
        for record in map(parsed, listed["items"]):
            known = before.leases.get(record.name)
            same = known is not None and known[0].version == record.version
            leases[record.name] = known if known is not None and same else (record, now)
        self._view = _View(leases, now if before.began is None else before.began, now)
        self._next.set()
        self._next = asyncio.Event()

    async def looked(self) -> None:
        """Wait for the next look."""
        await self._next.wait()

    def lease(self, name: str) -> Record | None:
        """A Lease as it was seen last."""
        record, _ = self._view.leases.get(name, (None, 0.0))
        return record

    def over_for(self, name: str) -> float | None:
        """For how many seconds nobody has held a Lease, or renewed it in time; None if somebody holds it."""
        view = self._view
        if view.began is None:
            return None
        if name not in view.leases:
            return view.looked - view.began
        record, since = view.leases[name]
        over = view.looked - since - (0.0 if record.handed else max(record.duration, self._least))
        return over if over > 0 or record.handed else None

    def is_held(self, record: Record) -> bool:
        """Whether a Lease of the board has a holder who renews it."""
        return bool(record.holder) and self.over_for(record.name) is None
