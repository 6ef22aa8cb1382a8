"""The Leases of all controllers, as one process has read them, and since when each is unchanged."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import structlog

from admitter.client.errors import UnreadableError
from admitter.client.transport import Json, Transport
from admitter.election.leases import (
    LEASES,
    PART_OF,
    SYSTEM_CLOCKS,
    Clocks,
    LeaseRecord,
    parse_lease,
    within_call_limit,
)

log = structlog.get_logger(__name__)


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

    Attributes:
        transport: tries each call once.
        min_duration: the seconds for which a Lease is its holder's at least, whatever its spec says.
    """

    transport: Transport
    min_duration: float
    clocks: Clocks = SYSTEM_CLOCKS
    _reading: _Reading = field(default_factory=_Reading)
    _wrong: set[str] = field(default_factory=set)
    _refreshed: asyncio.Event = field(default_factory=asyncio.Event)

    def __iter__(self) -> Iterator[LeaseRecord]:
        return iter([record for record, _ in self._reading.leases.values()])

    async def refresh(self) -> None:
        """Read all Leases; those that have changed count from now.

        One that can't be read is left out: as long as it is there, no process can take it.

        Raises:
            ClusterError: they can't be read.
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
