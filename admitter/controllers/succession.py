"""How shards come to this process and go from it, and how their owners agree on the trees of quota.

The new owner of a shard lets earlier writes land, and reads what quota there is and what holds some: a
follower's stores may be behind. That a Workload waits may be known too late without harm; that one holds
quota, or that there is less of it, must be known before more is given away. With several shards all owners
must know in which shard a queue is before one of them gives its quota away (docs/design/shards.md).
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeVar

import structlog

from admitter.api.conditions import WorkloadState
from admitter.cache.ownership import Versions
from admitter.cache.views import WorkloadView
from admitter.cache.world import OWN, World, workload_path
from admitter.client.errors import ApiError, ClusterError, NotFoundError, UnreadableError, level_of
from admitter.client.informer import read_all
from admitter.client.pages import pages
from admitter.client.store import Key, key_of
from admitter.client.transport import Transport
from admitter.election.elector import ElectionListener, lease_name, shard_leases
from admitter.election.lease_lock import Term
from admitter.election.leases import SYSTEM_CLOCKS, Clocks, LeaseCache, whole_number
from admitter.names import EPOCH_ANNOTATION, NAMESPACE, NEEDED_ANNOTATION, SEEN_ANNOTATION, SERVICE_ACCOUNT
from admitter.policy.eviction_records import any_limits

T = TypeVar("T")

PAUSE_SECONDS: Final = 0.2
WATCH_SECONDS: Final = 0.5
"""Watches have so long to bring changes that other owners know of, before all is read."""
HOLDING: Final = (WorkloadState.ADMITTED, WorkloadState.EVICTED)
WORKLOADS: Final = f"{OWN}/workloads"
READ_AT_A_TIME: Final = 32
ACCOUNT: Final = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{SERVICE_ACCOUNT}"
LONGEST_EPOCH: Final = 18
"""Digits of a 64-bit integer that may grow by one."""
UNKNOWN_SECONDS: Final = 0.5
"""An API server may learn of a new epoch so much later: it lets an earlier one pass, and refuses this one."""
FENCED_WRITE_SECONDS: Final = 1.5
"""After this time the API server gives up an admission."""

log = structlog.get_logger(__name__)


class Candidacy(Protocol):
    """This process's part in the election of owners."""

    @property
    def shard_count(self) -> int:
        """The number of shards."""

    @property
    def lease_cache(self) -> LeaseCache | None:
        """The Leases of all processes."""

    def start(self, listener: ElectionListener) -> None:
        """Take part from now on."""

    def publish(self, shard: int, annotations: dict[str, str]) -> None:
        """Have annotations written to the Lease of a shard."""

    def release(self, shard: int) -> None:
        """Let others have a shard."""


class Decider(Protocol):
    """What decides about trees."""

    def lead(self, epochs: dict[int, int]) -> None:
        """Decide in more shards, or in trees that were contested."""

    def refresh(self) -> None:
        """Decide by the trees as they are known now."""

    async def drained(self) -> None:
        """Wait until all writes that were decided before now have ended."""

    def abandon(self) -> None:
        """Decide in fewer shards."""


@dataclass(eq=False)
class Succession:
    """Takes shards, gives them up, and asks and answers other owners."""

    world: World
    decider: Decider
    transport: Transport
    candidacy: Candidacy
    clocks: Clocks = SYSTEM_CLOCKS

    def __post_init__(self) -> None:
        self._shards = self.world.shards
        self._terms: dict[int, Term] = {}
        self._epochs: dict[int, int] = {}
        self._beginning = asyncio.Lock()
        self._quota_read: set[int] = set()
        self._fenced: set[int] = set()
        self._seen: Versions | None = None
        self._needed: Versions | None = None
        self._due = asyncio.Event()
        self._news = asyncio.Event()
        self._catching_up = asyncio.Lock()
        self._group: asyncio.TaskGroup | None = None
        self._shards.on_contested.listen(self._due.set)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            self._group = group
            self.candidacy.start(self)
            group.create_task(self._take_over(), name="take over")
            group.create_task(self._answer(), name="answer")

    def acquired(self, shard: int, term: Term) -> None:
        """A shard is this process's, and is taken over."""
        self._shards.active = True
        self._terms[shard] = term
        self._spawn(self._begin_epoch(shard, term))
        self._spawn(self._read_quota(shard, term))

    def release_requested(self, shard: int) -> None:
        self._spawn(self._give_up(shard))

    def leases_refreshed(self) -> None:
        self._news.set()

    def _spawn(self, doing: Coroutine[Any, Any, None]) -> None:
        assert self._group is not None, "no shard is acquired before the start"
        self._group.create_task(doing)

    async def _begin_epoch(self, shard: int, term: Term) -> None:
        """Begin an epoch, and wait until no write of an earlier one is in flight."""
        async with self._beginning:
            begin = partial(begin_epoch, self.transport, shard, self.candidacy.shard_count, self.clocks)
            epoch = await self._persistently(begin)
        await self.clocks.sleep(UNKNOWN_SECONDS + (0.0 if term.handed_over else FENCED_WRITE_SECONDS))
        if self._terms.get(shard) is term:
            self._epochs[shard] = epoch
            self._fenced.add(shard)
            self._publish()
            self._news.set()

    async def _read_quota(self, shard: int, term: Term) -> None:
        """Know the quota as any earlier owner of a shard may have known it: a limit may have been cut."""
        await self._read("elasticquotas")
        await self._read("compositeelasticquotas")
        await self._catch_up()
        if self._terms.get(shard) is term:
            self._quota_read.add(shard)
            self._due.set()

    async def _take_over(self) -> None:
        """Decide in new shards once all others leave them alone, and what holds quota is known."""
        while True:
            await self._due.wait()
            self._due.clear()
            taken = {shard: self._terms[shard] for shard in self._quota_read - self._shards.epochs.keys()}
            contested = dict(self._shards.contested)
            if not taken and not (contested and self._shards.epochs):
                continue
            self._needed = self._shards.versions
            self._publish()
            await self._agreed(self._needed)
            if any_limits(self.world):  # an earlier owner may have recorded evictions until now
                await self._read("clusterqueues")
            await self._persistently(partial(read_holders, self.world, self.transport))
            self._shards.mark_agreed(contested)
            kept = {shard: term for shard, term in taken.items() if self._terms.get(shard) is term}
            self.decider.lead({shard: self._epochs[shard] for shard in kept})

    async def _agreed(self, needed: Versions) -> None:
        """Wait until all owners decide by the trees as they are known here, or newer ones."""
        while not self._all_have_seen(needed):
            self._news.clear()
            await self._news.wait()

    def _all_have_seen(self, needed: Versions) -> bool:
        cache = self.candidacy.lease_cache
        for shard in range(self.candidacy.shard_count):
            if shard in self._terms:
                if shard not in self._fenced:
                    return False
                continue
            record = cache.get(lease_name(shard)) if cache is not None else None
            if cache is None or record is None or not cache.is_held(record):
                return False  # its next owner reads the trees as soon as it has the Lease
            ((_, shard_count, _),) = [*shard_leases([record])] or [(shard, 0, record)]
            seen = _versions(record.annotations.get(SEEN_ANNOTATION))
            if shard_count != self.candidacy.shard_count or seen is None or not _reaches(seen, needed):
                return False
        return True

    async def _answer(self) -> None:
        """Bring the trees up to the versions that other owners ask for."""
        while True:
            await self._news.wait()
            self._news.clear()
            cache = self.candidacy.lease_cache
            annotations = [record.annotations for _, _, record in shard_leases(cache or ())]
            asked = [needed for each in annotations if (needed := _versions(each.get(NEEDED_ANNOTATION)))]
            most = (max((n for n, _ in asked), default=0), max((n for _, n in asked), default=0))
            if self._terms and not _reaches(self._seen or (0, 0), most):
                await self._catch_up(most)

    async def _catch_up(self, wanted: Versions | None = None) -> None:
        """Decide by newer trees from now on, with no write in flight that was decided by older ones.

        At least the `wanted` versions are known then; None: the newest.
        """
        async with self._catching_up:
            if wanted is not None and not _reaches(self._shards.versions, wanted):
                await self.clocks.sleep(WATCH_SECONDS)
            if wanted is None or not _reaches(self._shards.versions, wanted):
                await self._read("cohorts")
                await self._read("clusterqueues")
            self.decider.refresh()
            versions = self._shards.versions
            await self.decider.drained()
            self._seen = versions
            self._publish()

    async def _read(self, plural: str) -> None:
        """Read all objects of a kind, as the API server has them, for as long as it takes."""
        await self._persistently(partial(read_all, self.transport, self.world.source_of(plural)))

    async def _persistently(self, step: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await step()
            except ClusterError as error:
                log.log(level_of(error), "can't take over yet", error=str(error))
            await self.clocks.sleep(PAUSE_SECONDS)

    def _publish(self) -> None:
        """Tell other owners which versions are known here, and which they have to know."""
        if self.candidacy.shard_count == 1:
            return
        for shard in self._terms:
            annotations = {}
            if self._needed is not None:
                annotations[NEEDED_ANNOTATION] = "{}.{}".format(*self._needed)
            if self._seen is not None and shard in self._fenced:
                annotations[SEEN_ANNOTATION] = "{}.{}".format(*self._seen)
            self.candidacy.publish(shard, annotations)

    async def _give_up(self, shard: int) -> None:
        """Decide nothing more in a shard, let writes in flight land, and let others have it."""
        while shard in self._terms and shard not in self._fenced:
            await self.clocks.sleep(PAUSE_SECONDS)  # a write of an earlier owner may be in flight
        log.info("giving a shard up", shard=shard)
        self._terms.pop(shard, None)
        self._fenced.discard(shard)
        self._quota_read.discard(shard)
        self._shards.epochs.pop(shard, None)
        self.decider.abandon()
        await self.decider.drained()
        self.candidacy.release(shard)


def _reaches(known: Versions, wanted: Versions) -> bool:
    return all(k >= w for k, w in zip(known, wanted, strict=True))


def _versions(note: str | None) -> Versions | None:
    cohorts, _, queues = (note or "").partition(".")
    known, defined = whole_number(cohorts), whole_number(queues)
    return (known, defined) if known is not None and defined is not None else None


async def begin_epoch(transport: Transport, shard: int, number: int, clocks: Clocks) -> int:
    """Write a new epoch of a shard: larger than the last, and than those of a deleted ServiceAccount.

    Epochs of shards that do not exist any more are removed: their admissions are refused from now on.
    """
    account = await transport.get(ACCOUNT)
    notes = account["metadata"].get("annotations") or {}
    last = notes.get(epoch_annotation(shard), "")
    milliseconds = int(clocks.now().timestamp() * 1000)
    epoch = max(milliseconds, int(last) + 1 if last.isdecimal() and len(last) <= LONGEST_EPOCH else 0)
    kept = {epoch_annotation(each) for each in range(number)}
    gone = [name for name in notes if name.startswith(EPOCH_ANNOTATION) and name not in kept]
    annotations = {**dict.fromkeys(gone), epoch_annotation(shard): str(epoch)}
    metadata = {"resourceVersion": account["metadata"]["resourceVersion"], "annotations": annotations}
    await transport.patch(ACCOUNT, {"metadata": metadata})
    return epoch


def epoch_annotation(shard: int) -> str:
    return f"{EPOCH_ANNOTATION}-{shard}" if shard else EPOCH_ANNOTATION


async def read_holders(world: World, transport: Transport) -> None:
    """Know all Workloads that hold quota, as the API server has them, and of no other that it holds any.

    A watch that is behind knows an admission that an earlier owner has taken back. The Job, of which a newer
    version is known, is suspended again, and would be started without an admission. Of an API server without
    the field selector for those that hold quota, all Workloads are read.
    """
    held = [view for view in world.workloads if view.admission is not None]
    listed: set[Key] = set()
    try:
        for state in HOLDING:
            listed |= await _apply_all(world, transport, {"fieldSelector": f"status.state={state}"})
    except ApiError as error:
        if error.status != HTTPStatus.BAD_REQUEST:
            raise
        listed |= await _apply_all(world, transport, {})
    behind = [view for view in held if view.key not in listed]
    for some in range(0, len(behind), READ_AT_A_TIME):
        batch = behind[some : some + READ_AT_A_TIME]
        reads = (_read_again(world, transport, view) for view in batch)
        for outcome in await asyncio.gather(*reads, return_exceptions=True):
            if outcome is not None:
                raise outcome


async def _apply_all(world: World, transport: Transport, selector: dict[str, str]) -> set[Key]:
    """Apply the Workloads of a list; returns the keys of those that can be read."""
    listed: set[Key] = set()
    async for page in pages(transport, WORKLOADS, selector):
        for raw in page["items"]:
            if world.workloads.knows(raw["metadata"]):
                listed.add(key_of(raw["metadata"]))
                continue
            with suppress(UnreadableError):  # it is noted in the store
                listed.add(world.read_workloads.take(raw).key)
    return listed


async def _read_again(world: World, transport: Transport, known: WorkloadView) -> None:
    """Apply a Workload as it is, or that it is gone."""
    try:
        raw = await transport.get(workload_path(known.key))
    except NotFoundError:
        world.workloads.delete(known.key, known.uid)
        return
    with suppress(UnreadableError):  # it is noted in the store
        world.read_workloads.take(raw)
