"""Who leads: one Lease, which one process holds at a time, and for how long its holder may be sure of it.

Followers count from when they saw the Lease renewed, the holder from when it sent its renewal, each by its
own monotonic clock. So the holder stops earlier than anybody can follow it, whatever their clocks say. What
it sent before that may still be on its way: a new holder waits for it (docs/design/high-availability.md).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import structlog

from admitter.cluster.board import (
    HANDED_OVER,
    LEASES,
    PART_OF,
    SYSTEM_CLOCKS,
    Board,
    Clocks,
    Record,
    limited,
    parsed,
)
from admitter.cluster.errors import ClusterError, ConflictError, NotFoundError
from admitter.cluster.transport import Json, Transport

FAREWELLS: Final = 3
MOST_TRANSITIONS: Final = 2**31 - 1

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseSettings:
    """How a Lease is kept; all in seconds.

    Attributes:
        duration: others take a Lease that has not been renewed for so long; a Lease counts whole seconds.
        margin: its holder stops writing so much earlier.
        renewal: how often it is renewed.
        look: how often followers look at it.
    """

    duration: int = 2
    margin: float = 0.5
    renewal: float = 0.4
    look: float = 0.25


@dataclass(frozen=True, slots=True)
class Title:
    """What a Lease is called, and what it says of itself.

    Attributes:
        name: in the namespace of the controllers.
        labels: beside those of all Leases.
        notes: annotations that each holder sets anew.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Term:
    """A time of leading.

    Attributes:
        handed: whether the last holder has let go of the Lease, with nothing of its own on its way.
    """

    handed: bool


class Election:
    """Takes one Lease and keeps it.

    Attributes:
        sure_until: until when nobody else can hold the Lease, by the monotonic clock.
        held: whether it was won, and not handed over since; one that is lost is never sure again.
        notes: annotations that go with each renewal.
    """

    def __init__(
        self,
        transport: Transport,
        board: Board,
        title: Title,
        identity: str,
        settings: LeaseSettings,
        clocks: Clocks = SYSTEM_CLOCKS,
    ) -> None:
        """Prepare.

        Args:
            transport: tries each call once, and is used for nothing else.
            board: where the Lease is seen; somebody else looks.
            title: of the Lease.
            identity: of no other process, ever.
            settings: of all who want this Lease.
            clocks: where the time comes from.
        """
        self.sure_until = float("-inf")
        self.held = False
        self.notes: Mapping[str, str] = {}
        self._transport = transport
        self._board = board
        self._title = title
        self._path = f"{LEASES}/{title.name}"
        self._identity = identity
        self._settings = settings
        self._clocks = clocks
        self._version = ""
        self._leader = ""
        self._told = ("", "")

    async def win(self, entitled: Callable[[], bool]) -> Term:
        """Take the Lease as soon as nobody has it and this process is entitled to it."""
        await self._look()
        while True:
            try:
                record = self._board.lease(self._title.name)
                if record is not None and record.holder == self._identity:
                    self._version = record.version  # a call had no answer, and was heard
                    return self._won(handed=False)
                if self._board.over_for(self._title.name) is not None and entitled():
                    return await self._take(record)
                self._follow(record)
            except ConflictError:
                log.debug("somebody was faster, or the lease was renewed after all", lease=self._title.name)
            except ClusterError as error:
                self._tell("the lease can't be taken", str(error))
            await self._board.looked()

    async def _look(self) -> None:
        """What was seen before may be that this process had the Lease, which it has let go of since."""
        while True:
            try:
                return await self._board.look()
            except ClusterError as error:
                self._tell("the lease can't be read", str(error))
                await self._clocks.sleep(self._settings.look)

    def _follow(self, record: Record | None) -> None:
        if record is not None and record.holder and record.holder != self._leader:
            self._leader = record.holder
            log.info("following", leader=record.holder, lease=self._title.name)

    def _tell(self, what: str, error: str) -> None:
        """Log a failure, and the same one only once."""
        if (what, error) != self._told:
            self._told = (what, error)
            log.warning(what, lease=self._title.name, error=error)

    async def _take(self, record: Record | None) -> Term:
        sent, now = self._clocks.monotonic(), self._clocks.micro_time()
        spec: Json = {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._settings.duration,
            "acquireTime": now,
            "renewTime": now,
        }
        metadata: Json = {"labels": {**PART_OF, **self._title.labels}}
        if record is None:
            metadata["name"] = self._title.name
            metadata["annotations"] = {n: v for n, v in self._title.notes.items() if v is not None}
            body = {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": metadata,
                "spec": spec,
            }
            written = await limited(self._transport.create(LEASES, body))
        else:
            spec["leaseTransitions"] = min(record.transitions + 1, MOST_TRANSITIONS)
            metadata["annotations"] = {**self._title.notes, HANDED_OVER: None}
            written = await self._patch(record.version, spec, metadata)
        self._version = parsed(written).version
        self.sure_until = sent + self._settings.duration - self._settings.margin
        return self._won(handed=record is not None and record.handed)

    def _won(self, *, handed: bool) -> Term:
        self.held = True
        log.info("leading", lease=self._title.name, handed_over=handed)
        return Term(handed)

    async def hold(self) -> None:
        """Renew the Lease until somebody else has it or it is gone."""
        while True:
            await self._clocks.sleep(self._settings.renewal)
            try:
                if not await self._renew():
                    self.sure_until = float("-inf")
                    return
                self._told = ("", "")
            except ClusterError as error:
                self._tell("the lease is not renewed", str(error))

    async def _renew(self) -> bool:
        """Renew it once; False if it is another's."""
        sent = self._clocks.monotonic()
        metadata: Json = {"annotations": dict(self.notes)} if self.notes else {}
        try:
            lasts = self._settings.duration  # said each time, should somebody have edited it
            spec: Json = {"renewTime": self._clocks.micro_time(), "leaseDurationSeconds": lasts}
            written = await self._patch(self._version, spec, metadata)
        except NotFoundError:
            return False
        except ConflictError:
            record = await self._read()
            if record is None or record.holder != self._identity:
                return False
            self._version = record.version  # a renewal had no answer, and was heard
            return True
        self._version = parsed(written).version
        self.sure_until = sent + self._settings.duration - self._settings.margin
        return True

    async def hand_over(self) -> None:
        """Let go of the Lease, so that nobody has to wait for its end; nothing may be on its way any more."""
        self.held, self.sure_until, self.notes = False, float("-inf"), {}
        spec: Json = {"holderIdentity": "", "renewTime": self._clocks.micro_time()}
        for _ in range(FAREWELLS):
            try:
                await self._patch(self._version, spec, {"annotations": {HANDED_OVER: self._identity}})
            except ConflictError:  # by a renewal whose answer nobody has waited for
                record = await self._read()
                if record is not None and record.holder == self._identity:
                    self._version = record.version
                    continue
            return

    async def _read(self) -> Record | None:
        try:
            return parsed(await limited(self._transport.get(self._path)))
        except NotFoundError:
            return None

    async def _patch(self, version: str, spec: Json, metadata: Json) -> Json:
        body = {"metadata": {"resourceVersion": version, **metadata}, "spec": spec}
        return await limited(self._transport.patch(self._path, body))
