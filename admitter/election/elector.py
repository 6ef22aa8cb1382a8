"""One process among those that share the shards: which Leases it takes, keeps, and hands over.

Each shard has a Lease, which makes sure that it has one owner. A member of the replica set shows itself by a
Lease of its own, and every process computes from the members which of them has the right to which shard
(`rendezvous`). That right decides the order alone: a process that is wrong about it takes a Lease later, or
earlier, than others would like. A single shard needs no order and no members: the first process has it.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final, Protocol

import structlog

from admitter.client.errors import ClusterError, ConflictError, NotFoundError
from admitter.client.transport import Json, Transport
from admitter.election.lease_lock import LeaseLock, Term
from admitter.election.leases import (
    LEASES,
    PART_OF,
    SYSTEM_CLOCKS,
    Clocks,
    LeaseCache,
    LeaseRecord,
    LeaseSettings,
    lease_manifest,
    whole_number,
    within_call_limit,
)
from admitter.election.rendezvous import ranked
from admitter.names import (
    LEASE,
    MEMBER_LABEL,
    NEEDED_ANNOTATION,
    SEEN_ANNOTATION,
    SHARD_LABEL,
    SHARDS_ANNOTATION,
)

TURN_SECONDS: Final = 3.0
"""A free shard is left to the member first in rank for so long; to each further member once more."""
STEADY_SECONDS: Final = 2.0
"""A member must have been present for so long before a shard is handed over to it."""
OUT_OF_TURN_SECONDS: Final = 60.0
"""A member that took a shard out of turn keeps it for so long."""
MEMBER_RENEWAL_SECONDS: Final = 0.5
FORGOTTEN_SECONDS: Final = 60.0
"""A member's Lease that has not been renewed for so long is deleted."""

log = structlog.get_logger(__name__)


class ElectionListener(Protocol):
    """What is called when something happens to this process's shards."""

    def acquired(self, shard: int, term: Term) -> None:
        """A shard is this process's; it may decide there once earlier writes have landed."""

    def release_requested(self, shard: int) -> None:
        """Another process has the right to a shard: it is to be released."""

    def leases_refreshed(self) -> None:
        """The Leases have been read."""


def lease_name(shard: int) -> str:
    return f"{LEASE}-shard-{shard}" if shard else LEASE


def shard_leases(leases: Iterable[LeaseRecord]) -> Iterator[tuple[int, int, LeaseRecord]]:
    """The Leases of shards: the shard, the number of shards that its holder knows, and the Lease."""
    for record in leases:
        shard = whole_number(record.labels.get(SHARD_LABEL, ""))
        shard_count = whole_number(record.annotations.get(SHARDS_ANNOTATION, ""))
        if shard is not None and shard_count is not None:
            yield shard, shard_count, record


@dataclass(eq=False)
class Elector:
    """Takes part in the election until a Lease is lost.

    The transport tries each call once, and is used for nothing else; the identity is unique among all
    processes, ever. `other_shard_count` is what other holders know, if it is not this process's number.
    """

    transport: Transport
    identity: str
    shard_count: int
    settings: LeaseSettings
    listener: ElectionListener
    clocks: Clocks = SYSTEM_CLOCKS
    other_shard_count: int | None = None
    _release_requested: set[int] = field(default_factory=set)
    _kept_until: dict[int, float] = field(default_factory=dict)
    _members: dict[str, float] = field(default_factory=dict)
    _last_failure: str = ""

    def __post_init__(self) -> None:
        self.cache = LeaseCache(self.transport, self.settings.duration, self.clocks)
        self._locks = [self._lock(shard) for shard in range(self.shard_count)]
        self._released = [asyncio.Event() for _ in range(self.shard_count)]
        self._member_name = f"admitter-member-{blake2b(self.identity.encode(), digest_size=8).hexdigest()}"
        self._member_path = f"{LEASES}/{self._member_name}"

    def _lock(self, shard: int) -> LeaseLock:
        lock = LeaseLock(
            self.transport, self.cache, lease_name(shard), self.identity, self.settings, self.clocks
        )
        lock.labels = {SHARD_LABEL: str(shard)}
        shards = str(self.shard_count)
        lock.taken_with = {SHARDS_ANNOTATION: shards, SEEN_ANNOTATION: None, NEEDED_ANNOTATION: None}
        return lock

    @property
    def exclusive_until(self) -> float:
        """The monotonic time before which no other process can hold any shard that this one holds."""
        held = [lock.exclusive_until for lock in self._locks if lock.held]
        return min(held, default=float("-inf"))

    def publish(self, shard: int, annotations: dict[str, str]) -> None:
        """Have annotations written to the Lease of a shard that is held, with its next renewal."""
        self._locks[shard].annotations = annotations

    def release(self, shard: int) -> None:
        """Let others have a shard: nothing more is decided in it, and no write is in flight."""
        self._released[shard].set()

    async def run(self) -> None:
        tasks = [asyncio.create_task(self._refresh_repeatedly())]
        if self.shard_count > 1:
            tasks.append(asyncio.create_task(self._renew_membership()))
        tasks += [asyncio.create_task(self._hold_repeatedly(shard)) for shard in range(self.shard_count)]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def leave(self, clean: Collection[int]) -> None:
        """Leave the election, after `run`: hand over the Leases of shards that are clean; all others expire.

        In a clean shard no write is in flight, neither of this process nor of an earlier owner.
        """
        if self.shard_count > 1:
            with suppress(ClusterError):
                await within_call_limit(self.transport.delete(self._member_path))
        leaving = [self._locks[shard] for shard in clean]
        await asyncio.gather(*(self._hand_over(lock) for lock in leaving if lock.held))

    async def _hand_over(self, lock: LeaseLock) -> None:
        try:
            await lock.hand_over()
        except ClusterError as error:
            log.warning("a lease is not handed over", error=str(error))

    async def _refresh_repeatedly(self) -> None:
        """Read all Leases again and again; the holder of the only one need not."""
        while True:
            if self.shard_count > 1 or not self._locks[0].held:
                try:
                    await self.cache.refresh()
                    await self._react()
                    self._last_failure = ""
                except ClusterError as error:
                    if self._last_failure != str(error):
                        self._last_failure = str(error)
                        log.warning("the leases can't be read", error=self._last_failure)
                self.listener.leases_refreshed()
            await self.clocks.sleep(self.settings.look)

    async def _react(self) -> None:
        """Compute from the Leases which members are present, and which shards are to be handed over."""
        others = {
            shard_count
            for _, shard_count, record in shard_leases(self.cache)
            if shard_count != self.shard_count and self.cache.is_held(record)
        }
        other = min(others, default=None)
        if other is not None and other != self.other_shard_count:
            log.error("others have another number of shards: waiting for them to stop", theirs=other)
        self.other_shard_count = other
        now, before = self.clocks.monotonic(), self._members
        self._members = {name: before.get(name, now) for name in self._present()}
        for shard, lock in enumerate(self._locks):
            if lock.held and shard not in self._release_requested and self._has_better_owner(shard, now):
                self._release_requested.add(shard)
                self.listener.release_requested(shard)
        await self._delete_stale_leases()

    def _present(self) -> Iterator[str]:
        """The members that are present, this process among them if there are any."""
        if self.shard_count > 1:
            yield self.identity
        for record in self.cache:
            counts = record.annotations.get(SHARDS_ANNOTATION) == str(self.shard_count)
            if MEMBER_LABEL in record.labels and counts and self.cache.is_held(record):
                yield record.holder

    def _has_better_owner(self, shard: int, now: float) -> bool:
        """Whether a shard of this process should go to another member."""
        if now < self._kept_until.get(shard, now) or not self._members:
            return False
        steady = [m for m, since in self._members.items() if now - since >= STEADY_SECONDS]
        return ranked({*steady, self.identity}, shard)[0] != self.identity

    def _entitled(self, shard: int) -> bool:
        """Whether this process is to take a free shard now."""
        if self.other_shard_count is not None or any(self._surplus_leases()):
            return False
        if not self._members:
            return self.shard_count == 1
        rank = ranked(self._members, shard).index(self.identity)
        free_for = self.cache.expired_for(lease_name(shard)) or 0.0
        if rank and free_for > TURN_SECONDS * rank:
            self._kept_until[shard] = self.clocks.monotonic() + OUT_OF_TURN_SECONDS
            return True
        return not rank

    def _surplus_leases(self) -> Iterator[LeaseRecord]:
        """Leases of shards that do not exist any more: a paused holder may wake up and renew its own."""
        for shard, _, record in shard_leases(self.cache):
            if shard >= self.shard_count:
                yield record

    async def _delete_stale_leases(self) -> None:
        """Delete Leases that are not renewed: of shards that do not exist, and of members that left."""
        if self.other_shard_count is not None:
            return
        stale = [record for record in self._surplus_leases() if not self.cache.is_held(record)]
        members = [r for r in self.cache if MEMBER_LABEL in r.labels] if self._locks[0].held else []
        stale += [r for r in members if (self.cache.expired_for(r.name) or 0.0) > FORGOTTEN_SECONDS]
        for record in stale:
            with suppress(ConflictError, NotFoundError):
                unchanged: Json = {"preconditions": {"resourceVersion": record.resource_version}}
                await within_call_limit(self.transport.delete(f"{LEASES}/{record.name}", unchanged))

    async def _hold_repeatedly(self, shard: int) -> None:
        """Take a shard when it is this process's turn, keep it, hand it over; until a Lease is lost."""
        lock, released = self._locks[shard], self._released[shard]
        while True:
            term = await lock.acquire(lambda: self._entitled(shard))
            self.listener.acquired(shard, term)
            holding = asyncio.create_task(lock.renew_until_lost())
            leaving = asyncio.create_task(released.wait())
            try:
                await asyncio.wait([holding, leaving], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (holding, leaving):
                    task.cancel()
                await asyncio.wait([holding, leaving])
            if not released.is_set():  # it stays held and is never exclusive again: nothing may be written
                log.warning("a lease is lost", lease=lease_name(shard))
                return
            await self._hand_over(lock)
            released.clear()
            self._release_requested.discard(shard)

    async def _renew_membership(self) -> None:
        """Keep the Lease by which others know that this process is present."""
        metadata = {
            "name": self._member_name,
            "labels": {**PART_OF, MEMBER_LABEL: ""},
            "annotations": {SHARDS_ANNOTATION: str(self.shard_count)},
        }
        while True:
            spec: Json = {
                "holderIdentity": self.identity,
                "leaseDurationSeconds": self.settings.duration,
                "renewTime": self.clocks.micro_time(),
            }
            try:
                try:
                    await within_call_limit(self.transport.patch(self._member_path, {"spec": spec}))
                except NotFoundError:
                    await within_call_limit(self.transport.create(LEASES, lease_manifest(metadata, spec)))
            except ClusterError as error:
                log.debug("the member's lease is not renewed", error=str(error))
            await self.clocks.sleep(MEMBER_RENEWAL_SECONDS)
