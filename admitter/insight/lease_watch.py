"""Watches the Leases of the controllers, to know which of them are renewed.

The clocks of this machine and of the controllers may differ, so a time in a Lease proves little. A Lease that
changes between two looks has a living holder. One that does not change for its duration and a margin has
none. Only where the Lease was renewed a moment ago by this machine's clock too, one look is enough.
Next step: `admitter.insight.controller_status`.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from admitter.cache.timestamps import seconds
from admitter.client.errors import ApiError, ClusterError, UnreadableError
from admitter.client.transport import Transport
from admitter.election.elector import lease_name, shard_leases
from admitter.election.leases import (
    HANDED_OVER,
    LEASES,
    PART_OF,
    SYSTEM_CLOCKS,
    Clocks,
    LeaseRecord,
    LeaseSettings,
    parse_lease,
)
from admitter.insight.controller_status import ControllerStatus, ShardLease

LOOK_SECONDS: Final = 0.3
"""The pause between two looks of a command, in seconds."""
PACE_SECONDS: Final = 2.0
"""The same of a view that stays."""
ANSWER_SECONDS: Final = 5.0
MARGIN_SECONDS: Final = 1.0
"""A Lease may be renewed so much later than it should be, in seconds."""
LONGEST_SECONDS: Final = 5.0
"""The most that a Lease's own duration counts for: users can edit it."""
STALE_SECONDS: Final = 30.0
"""Two clocks differ by less than this. A Lease that is older by this clock is watched for a second only."""
MOST_SHARDS: Final = 1024
"""Shards that are looked at, whatever a Lease says of their number."""
LAPSE_SECONDS: Final = 10.0
"""After so long without a look, nothing that was seen before counts."""
_DENIED: Final = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class _Watched:
    """A Lease, since when it is unchanged by the monotonic clock, and whether it has changed before."""

    record: LeaseRecord
    since: float
    changed: bool


class LeaseWatch:
    """The Leases of the controllers, as they were seen."""

    def __init__(self, transport: Transport, clocks: Clocks = SYSTEM_CLOCKS) -> None:
        """Nothing is read yet; the transport's user must be allowed to list Leases where controllers are."""
        self._transport = transport
        self._clocks = clocks
        self._watched: dict[str, _Watched] = {}
        self._looked = float("-inf")
        self._problem = "its Lease has not been read yet"
        self._denied = False

    async def settle(self) -> ControllerStatus:
        """Look until it is known which Leases are renewed: once, or for seconds where that is in doubt."""
        first = self._clocks.monotonic()
        while True:
            await self.look()
            status = self.status()
            settled = not status.problem and all(each.alive is not None for each in status.shards)
            over = self._clocks.monotonic() - first > LONGEST_SECONDS + MARGIN_SECONDS
            if settled or over or self._denied:
                return status
            await self._clocks.sleep(LOOK_SECONDS)

    async def follow(self) -> None:
        """Look again and again, until cancelled."""
        while True:
            await self.look()
            await self._clocks.sleep(PACE_SECONDS)

    async def look(self) -> None:
        """Read the Leases once; one that can't be read counts as missing."""
        selector = ",".join(f"{name}={value}" for name, value in PART_OF.items())
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                listed = await self._transport.get(LEASES, {"labelSelector": selector})
        except TimeoutError:
            self._fail(f"no answer from the API server within {ANSWER_SECONDS:.0f} s")
            return
        except ClusterError as error:
            self._denied = isinstance(error, ApiError) and error.status in _DENIED
            self._fail(str(error))
            return
        now = self._clocks.monotonic()
        before = self._watched if now - self._looked < LAPSE_SECONDS else {}
        self._watched, self._looked, self._problem, self._denied = {}, now, "", False
        for item in listed["items"]:
            with suppress(UnreadableError):
                record = parse_lease(item)
                self._watched[record.name] = _seen(record, before.get(record.name), now)

    def _fail(self, words: str) -> None:
        """Forget what was seen: while the API server is away no controller can renew a Lease."""
        self._watched, self._problem = {}, words

    def status(self) -> ControllerStatus:
        now = self._clocks.now().timestamp()
        if self._problem:
            return ControllerStatus((), now, self._problem)
        count = self._shard_count()
        return ControllerStatus(tuple(self._shard(number) for number in range(count)), now, count=count)

    def _shard_count(self) -> int:
        """The number of shards that the living holders know, or else the last ones did."""
        counts = self._counts(each for each in self._watched.values() if self._is_alive(each))
        most = max(counts or self._counts(self._watched.values()), default=1)
        return min(max(most, 1), MOST_SHARDS)

    @staticmethod
    def _counts(watched: Iterable[_Watched]) -> list[int]:
        return [count for _, count, _ in shard_leases(each.record for each in watched)]

    def _shard(self, number: int) -> ShardLease:
        name = lease_name(number)
        watched = self._watched.get(name)
        if watched is None:
            return ShardLease(number, name, alive=False, exists=False)
        record = watched.record
        return ShardLease(
            number,
            name,
            self._is_alive(watched),
            holder=record.holder or record.annotations.get(HANDED_OVER, ""),
            released=not record.holder,
            since=_time(record.acquired) if record.holder else None,
            renewed=_time(record.renewed),
        )

    def _is_alive(self, watched: _Watched) -> bool | None:
        """Whether a Lease has a holder that renews it; None: it has to be watched for longer."""
        record, renewed = watched.record, _time(watched.record.renewed)
        silence = _silence(record)
        age = self._clocks.now().timestamp() - renewed if renewed is not None else None
        needed = MARGIN_SECONDS if age is not None and age > STALE_SECONDS else silence
        if self._looked - watched.since >= needed:
            return False
        if not record.holder:
            return None
        fresh = age is not None and -MARGIN_SECONDS <= age < silence
        return True if watched.changed or fresh else None


def _seen(record: LeaseRecord, before: _Watched | None, now: float) -> _Watched:
    if before is None:
        return _Watched(record, now, changed=False)
    same = (record.holder, record.renewed) == (before.record.holder, before.record.renewed)
    return _Watched(record, before.since if same else now, before.changed or not same)


def _silence(record: LeaseRecord) -> float:
    """For how long a Lease may be unchanged, in seconds."""
    return min(max(record.duration, LeaseSettings().duration), LONGEST_SECONDS) + MARGIN_SECONDS


def _time(text: str) -> float | None:
    """A time of a Lease in seconds since the epoch; None: it is none."""
    try:
        return seconds(text)
    except ValueError:
        return None
