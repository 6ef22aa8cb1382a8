"""One Lease, which one process holds at a time, and until when its holder may be sure of it.

Followers count from when they read the renewal, the holder from when it sent it, each by its own monotonic
clock. So the holder stops before any follower may take the Lease, whatever their clocks say. A write that it
sent before may still be in flight: the next holder waits for that (docs/design/high-availability.md).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import structlog

from admitter.client.errors import ClusterError, ConflictError, NotFoundError
from admitter.client.transport import Json, Transport
from admitter.election.leases import (
    HANDED_OVER,
    LEASES,
    PART_OF,
    Clocks,
    LeaseCache,
    LeaseRecord,
    LeaseSettings,
    lease_manifest,
    parse_lease,
    within_call_limit,
)

HAND_OVER_ATTEMPTS: Final = 3
MOST_TRANSITIONS: Final = 2**31 - 1

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Term:
    """The time from taking a Lease to losing it; `handed_over` if it was released with no write in flight."""

    handed_over: bool


@dataclass(eq=False)
class LeaseLock:
    """Takes one Lease and keeps it."""

    transport: Transport  # tries each call once, and is used for nothing else
    cache: LeaseCache  # where the Lease is read; the owner of the cache refreshes it
    name: str
    identity: str
    settings: LeaseSettings
    clocks: Clocks
    labels: Mapping[str, str] = field(default_factory=dict)  # beside those of all Leases
    # annotations that each holder sets anew; None removes one
    taken_with: Mapping[str, str | None] = field(default_factory=dict)
    # the monotonic time before which no other process can hold the Lease
    exclusive_until: float = float("-inf")
    # whether it was taken, and not handed over since; a Lease that is lost is never exclusive again
    held: bool = False
    annotations: Mapping[str, str] = field(default_factory=dict)  # go with each renewal
    _version: str = ""
    _leader: str = ""
    _last_failure: tuple[str, str] = ("", "")

    async def acquire(self, entitled: Callable[[], bool]) -> Term:
        """Take the Lease as soon as it is free and this process is entitled to it."""
        await self._first_read()
        while True:
            try:
                record = self.cache.get(self.name)
                if record is not None and record.holder == self.identity:
                    self._version = record.resource_version  # an earlier call succeeded without an answer
                    return self._acquired(handed_over=False)
                if self.cache.expired_for(self.name) is not None and entitled():
                    return await self._take(record)
                self._follow(record)
            except ConflictError:
                log.debug("another process was faster, or renewed after all", lease=self.name)
            except ClusterError as error:
                self._log_once("the lease can't be taken", str(error))
            await self.cache.next_refresh()

    async def _first_read(self) -> None:
        """Refresh the cache: what it has may be this process's own Lease, which was handed over since."""
        while True:
            try:
                return await self.cache.refresh()
            except ClusterError as error:
                self._log_once("the lease can't be read", str(error))
                await self.clocks.sleep(self.settings.look)

    def _follow(self, record: LeaseRecord | None) -> None:
        if record is not None and record.holder and record.holder != self._leader:
            self._leader = record.holder
            log.info("following", leader=record.holder, lease=self.name)

    def _log_once(self, what: str, error: str) -> None:
        if (what, error) != self._last_failure:
            self._last_failure = (what, error)
            log.warning(what, lease=self.name, error=error)

    async def _take(self, record: LeaseRecord | None) -> Term:
        sent, now = self.clocks.monotonic(), self.clocks.micro_time()
        spec: Json = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self.settings.duration,
            "acquireTime": now,
            "renewTime": now,
        }
        metadata: Json = {"labels": {**PART_OF, **self.labels}}
        if record is None:
            metadata["name"] = self.name
            metadata["annotations"] = {k: v for k, v in self.taken_with.items() if v is not None}
            body = lease_manifest(metadata, spec)
            written = await within_call_limit(self.transport.create(LEASES, body))
        else:
            spec["leaseTransitions"] = min(record.transitions + 1, MOST_TRANSITIONS)
            metadata["annotations"] = {**self.taken_with, HANDED_OVER: None}
            written = await self._patch(record.resource_version, spec, metadata)
        self._renewed(written, sent)
        return self._acquired(handed_over=record is not None and record.handed_over)

    def _renewed(self, written: Json, sent: float) -> None:
        self._version = parse_lease(written).resource_version
        self.exclusive_until = sent + self.settings.duration - self.settings.margin

    def _acquired(self, *, handed_over: bool) -> Term:
        self.held = True
        log.info("leading", lease=self.name, handed_over=handed_over)
        return Term(handed_over)

    async def renew_until_lost(self) -> None:
        """Renew the Lease until another process has it or it is gone."""
        while True:
            await self.clocks.sleep(self.settings.renewal)
            try:
                if not await self._renew():
                    self.exclusive_until = float("-inf")
                    return
                self._last_failure = ("", "")
            except ClusterError as error:
                self._log_once("the lease is not renewed", str(error))

    async def _renew(self) -> bool:
        """Renew it once; False if another process has it."""
        sent = self.clocks.monotonic()
        metadata: Json = {"annotations": dict(self.annotations)} if self.annotations else {}
        try:
            duration = self.settings.duration  # written each time, in case a user has edited it
            spec: Json = {"renewTime": self.clocks.micro_time(), "leaseDurationSeconds": duration}
            written = await self._patch(self._version, spec, metadata)
        except NotFoundError:
            return False
        except ConflictError:
            record = await self._read()
            if record is None or record.holder != self.identity:
                return False
            self._version = record.resource_version  # an earlier renewal succeeded without an answer
            return True
        self._renewed(written, sent)
        return True

    async def hand_over(self) -> None:
        """Release the Lease, so that no process waits until it expires; no write may be in flight."""
        self.held, self.exclusive_until, self.annotations = False, float("-inf"), {}
        spec: Json = {"holderIdentity": "", "renewTime": self.clocks.micro_time()}
        for _ in range(HAND_OVER_ATTEMPTS):
            try:
                await self._patch(self._version, spec, {"annotations": {HANDED_OVER: self.identity}})
            except ConflictError:  # with a renewal that got no answer
                record = await self._read()
                if record is not None and record.holder == self.identity:
                    self._version = record.resource_version
                    continue
            return

    async def _read(self) -> LeaseRecord | None:
        try:
            return parse_lease(await within_call_limit(self.transport.get(f"{LEASES}/{self.name}")))
        except NotFoundError:
            return None

    async def _patch(self, version: str, spec: Json, metadata: Json) -> Json:
        body = {"metadata": {"resourceVersion": version, **metadata}, "spec": spec}
        return await within_call_limit(self.transport.patch(f"{LEASES}/{self.name}", body))
