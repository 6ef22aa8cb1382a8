"""One process among those that share the shards: which Leases it takes, keeps, and gives up for others.

Each shard has a Lease, which makes sure that it has one owner. A member of the replica set says so by a Lease
of its own: from who is there everybody can tell who has the right to which shard (`rendezvous`). That is a
matter of order alone: whoever is wrong about it takes a Lease later, or earlier than others would like.
A single shard needs no order, and no members: whoever is first has it.
"""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from typing import Final, Protocol

import structlog

from admitter.cluster.board import LEASES, PART_OF, SYSTEM_CLOCKS, Board, Clocks, Record, limited
from admitter.cluster.errors import ClusterError, ConflictError, NotFoundError
from admitter.cluster.lease import Election, LeaseSettings, Term, Title
from admitter.cluster.rendezvous import ranked
from admitter.cluster.transport import Json, Transport
from admitter.names import (
    LEASE,
    MEMBER_LABEL,
    NEEDED_ANNOTATION,
    SEEN_ANNOTATION,
    SHARD_LABEL,
    SHARDS_ANNOTATION,
)

PATIENCE_SECONDS: Final = 3.0
"""For so long a shard is left to who has the right to it; for each place further behind, once more."""
STEADY_SECONDS: Final = 2.0
"""A member has to be there for so long before a shard is given up for it."""
OUT_OF_TURN_SECONDS: Final = 60.0
"""For so long a shard is kept by who took it because others did not."""
MEMBER_RENEWAL_SECONDS: Final = 0.5
FORGOTTEN_SECONDS: Final = 60.0
"""The Leases of members are removed that have not been renewed for so long."""

log = structlog.get_logger(__name__)


class Told(Protocol):
    """Who is told of what happens to this process."""

    def won(self, shard: int, term: Term) -> None:
        """A shard is this process's; it may decide once that has settled."""

    def wanted(self, shard: int) -> None:
        """Another process has the right to a shard: it is to be released."""

    def looked(self) -> None:
        """The Leases have been looked at."""


def lease_name(shard: int) -> str:
    """The name of a shard's Lease."""
    return f"{LEASE}-shard-{shard}" if shard else LEASE


def shard_leases(leases: Iterable[Record]) -> Iterator[tuple[int, int, Record]]:
    """Those Leases that are of shards: which shard, of how many, and the Lease."""
    for record in leases:
        shard, number = record.labels.get(SHARD_LABEL, ""), record.notes.get(SHARDS_ANNOTATION, "")
        if shard.isdecimal() and number.isdecimal():
            yield int(shard), int(number), record


class Campaign:
    """Takes part until a Lease is lost.

    Attributes:
        board: the Leases of all.
        other_number: of how many shards the holders of Leases know, if not of as many as this process.
    """

    def __init__(
        self,
        transport: Transport,
        identity: str,
        number: int,
        settings: LeaseSettings,
        told: Told,
        clocks: Clocks = SYSTEM_CLOCKS,
    ) -> None:
        """Prepare.

        Args:
            transport: tries each call once, and is used for nothing else.
            identity: of no other process, ever.
            number: how many shards there are.
            settings: of the Leases.
            told: is told what happens.
            clocks: where the time comes from.
        """
        self.board = Board(transport, settings.duration, clocks)
        self.other_number: int | None = None
        self._transport = transport
        self._identity = identity
        self._number = number
        self._settings = settings
        self._told = told
        self._clocks = clocks
        notes = {SHARDS_ANNOTATION: str(number), SEEN_ANNOTATION: None, NEEDED_ANNOTATION: None}
        self._elections = [
            Election(
                transport,
                self.board,
                Title(lease_name(shard), {SHARD_LABEL: str(shard)}, notes),
                identity,
                settings,
                clocks,
            )
            for shard in range(number)
        ]
        self._released = [asyncio.Event() for _ in range(number)]
        self._wanted: set[int] = set()
        self._kept_until: dict[int, float] = {}
        self._members: dict[str, float] = {}
        self._failed = ""

    @property
    def sure_until(self) -> float:
        """Until when nobody else can have any shard that this process has, by the monotonic clock."""
        held = [election.sure_until for election in self._elections if election.held]
        return min(held, default=float("-inf"))

    def publish(self, shard: int, notes: dict[str, str]) -> None:
        """Have annotations written to the Lease of a shard that is held, with its next renewal."""
        self._elections[shard].notes = notes

    def release(self, shard: int) -> None:
        """Nothing more is decided for a shard, and nothing is on its way: somebody else may have it."""
        self._released[shard].set()

    async def run(self) -> None:
        """Take part until a Lease is lost."""
        tasks = [asyncio.create_task(self._look())]
        if self._number > 1:
            tasks.append(asyncio.create_task(self._be_a_member()))
        tasks += [asyncio.create_task(self._keep(shard)) for shard in range(self._number)]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def leave(self, clean: Collection[int]) -> None:
        """Take part no more; to be called after `run`.

        Args:
            clean: shards for which nothing is on its way any more, neither of this process nor of an earlier
                owner; they are handed over. Leases of others are left to run out.
        """
        if self._number > 1:
            with suppress(ClusterError):
                await limited(self._transport.delete(self._member_path))
        leaving = [self._elections[shard] for shard in clean]
        await asyncio.gather(*(self._hand_over(election) for election in leaving if election.held))

    async def _hand_over(self, election: Election) -> None:
        try:
            await election.hand_over()
        except ClusterError as error:
            log.warning("a lease is not handed over", error=str(error))

    async def _look(self) -> None:
        """Look at all Leases again and again; who has the only one need not."""
        while True:
            if self._number > 1 or not self._elections[0].held:
                try:
                    await self.board.look()
                    await self._consider()
                    self._failed = ""
                except ClusterError as error:
                    if self._failed != str(error):
                        self._failed = str(error)
                        log.warning("the leases can't be read", error=self._failed)
                self._told.looked()
            await self._clocks.sleep(self._settings.look)

    async def _consider(self) -> None:
        """See who is there, and what follows from it."""
        others = {
            number
            for _, number, record in shard_leases(self.board)
            if number != self._number and self.board.is_held(record)
        }
        other = min(others, default=None)
        if other is not None and other != self.other_number:
            log.error("others have another number of shards: waiting for them to stop", theirs=other)
        self.other_number = other
        now, before = self._clocks.monotonic(), self._members
        self._members = {name: before.get(name, now) for name in self._present()}
        for shard, election in enumerate(self._elections):
            if election.held and shard not in self._wanted and self._is_due(shard, now):
                self._wanted.add(shard)
                self._told.wanted(shard)
        await self._clear_away()

    def _present(self) -> Iterator[str]:
        """The members that are there, this process among them if there are any."""
        if self._number > 1:
            yield self._identity
        for record in self.board:
            counts = record.notes.get(SHARDS_ANNOTATION) == str(self._number)
            if MEMBER_LABEL in record.labels and counts and self.board.is_held(record):
                yield record.holder

    def _is_due(self, shard: int, now: float) -> bool:
        """Whether a shard should go to another member."""
        if now < self._kept_until.get(shard, now) or not self._members:
            return False
        steady = [m for m, since in self._members.items() if now - since >= STEADY_SECONDS]
        return ranked({*steady, self._identity}, shard)[0] != self._identity

    def _entitled(self, shard: int) -> bool:
        """Whether a shard that nobody has is to be taken by this process now."""
        if self.other_number is not None or any(self._surplus()):
            return False
        if not self._members:
            return self._number == 1
        place = ranked(self._members, shard).index(self._identity)
        over_for = self.board.over_for(lease_name(shard)) or 0.0
        if place and over_for > PATIENCE_SECONDS * place:
            self._kept_until[shard] = self._clocks.monotonic() + OUT_OF_TURN_SECONDS
            return True
        return not place

    def _surplus(self) -> Iterator[Record]:
        """Leases of shards that do not exist: as long as they do, who had them may wake up and renew them."""
        for shard, _, record in shard_leases(self.board):
            if shard >= self._number:
                yield record

    async def _clear_away(self) -> None:
        """Remove what nobody renews any more: Leases of shards that are not, and of members that were."""
        if self.other_number is not None:
            return
        gone = [record for record in self._surplus() if not self.board.is_held(record)]
        members = [r for r in self.board if MEMBER_LABEL in r.labels] if self._elections[0].held else []
        gone += [r for r in members if (self.board.over_for(r.name) or 0.0) > FORGOTTEN_SECONDS]
        for record in gone:
            with suppress(ConflictError, NotFoundError):
                unchanged: Json = {"preconditions": {"resourceVersion": record.version}}
                await limited(self._transport.delete(f"{LEASES}/{record.name}", unchanged))

    async def _keep(self, shard: int) -> None:
        """Take a shard when it is this process's turn, keep it, release it for others; until it is lost."""
        election, released = self._elections[shard], self._released[shard]
        while True:
            term = await election.win(lambda: self._entitled(shard))
            self._told.won(shard, term)
            holding = asyncio.create_task(election.hold())
            leaving = asyncio.create_task(released.wait())
            try:
                await asyncio.wait([holding, leaving], return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (holding, leaving):
                    task.cancel()
                await asyncio.wait([holding, leaving])
            if not released.is_set():  # it stays held and is never sure again: nothing may be written at all
                log.warning("a lease is lost", lease=lease_name(shard))
                return
            await self._hand_over(election)
            released.clear()
            self._wanted.discard(shard)

    @property
    def _member_path(self) -> str:
        return f"{LEASES}/{self._member_name}"

    @property
    def _member_name(self) -> str:
        return f"admitter-member-{blake2b(self._identity.encode(), digest_size=8).hexdigest()}"

    async def _be_a_member(self) -> None:
        """Say that this process is there."""
        while True:
            spec: Json = {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": self._settings.duration,
                "renewTime": self._clocks.micro_time(),
            }
            try:
                try:
                    await limited(self._transport.patch(self._member_path, {"spec": spec}))
                except NotFoundError:
                    await limited(self._transport.create(LEASES, self._member(spec)))
            except ClusterError as error:
                log.debug("the member's lease is not renewed", error=str(error))
            await self._clocks.sleep(MEMBER_RENEWAL_SECONDS)

    def _member(self, spec: Json) -> Json:
        metadata = {
            "name": self._member_name,
            "labels": {**PART_OF, MEMBER_LABEL: ""},
            "annotations": {SHARDS_ANNOTATION: str(self._number)},
        }
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
