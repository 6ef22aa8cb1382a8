"""Writes pending reservations, and their end, to statuses; `policy.pending_reservations` reads them.

Previous step: a cycle has made pending reservations or ended some (`workload.admission`). The status of the
preemptor and the evictions of its victims are written in any order: the evictions name the generation.
"""

import asyncio
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

import structlog

from admitter.cache.preemption_status import PreemptionStatus, ReservationStatus
from admitter.cache.views import Json, WorkloadView
from admitter.cache.world import World, workload_path
from admitter.client.errors import ClusterError, ConflictError, is_retryable, level_of
from admitter.client.store import Key
from admitter.client.transport import Transport
from admitter.controllers.guarded import guarded
from admitter.controllers.workload.waiting import WaitingReasons
from admitter.engine.cycle import Engine
from admitter.engine.tree_cycle import Plan
from admitter.policy import status
from admitter.policy.gate import Waiting
from admitter.policy.pending_reservations import ReportedReservation

PAUSE_SECONDS: Final = 1.0
REFUSED_SECONDS: Final = 10.0
"""For how long nothing is tried again for a Workload after the API server has refused a write for good."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ReservationRecord:
    """What the status of a Workload is to say of its place.

    Attributes:
        key: namespace and name of the Workload.
        queue: in which the place is.
        place: it; without an admission once it has been taken or given up.
        waiting: why the Workload waits, to be written with it; None: that has been written.
    """

    key: Key
    queue: str
    place: ReservationStatus
    waiting: Waiting | None = None


class ReservationWriter:
    """Keeps the places in statuses as they are in the engine.

    Attributes:
        on_due: called when `write` should be called soon, since something has to be written again.
    """

    def __init__(
        self,
        world: World,
        engine: Engine,
        reasons: WaitingReasons,
        transport: Transport,
        clock: status.Clock,
        slots: asyncio.Semaphore,
    ) -> None:
        """Prepare.

        Args:
            world: all objects.
            engine: knows which places are kept.
            reasons: tells users.
            transport: to the API server.
            clock: the time.
            slots: bounds how much is written at a time.
        """
        self._world = world
        self._ledger = engine.ledger
        self._holds = engine.ledger.pending_reservations
        self._reasons = reasons
        self._transport = transport
        self._clock = clock
        self._slots = slots
        self.on_due: Callable[[], None] = lambda: None
        self._records: dict[str, ReservationRecord] = {}
        self._due: dict[str, None] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def __contains__(self, uid: object) -> bool:
        """Whether more is known here of the place of a Workload than its status says."""
        return uid in self._records

    def adopt(self, found: Iterable[ReportedReservation]) -> None:
        """Keep up what statuses promise: what is not kept is void, what only victims tell of is written.

        Args:
            found: what `keep_places` has read.
        """
        for each in found:
            hold = self._holds.get(each.uid)
            place = ReservationStatus(each.generation, hold.admission if hold is not None else None)
            self._records[each.uid] = ReservationRecord(each.key, each.admission.queue, place)
            self._due[each.uid] = None  # what is written already is not written again

    def seen(self, view: WorkloadView) -> None:
        """A Workload has changed: what its status promises by a write of an earlier process is put right."""
        place, wanted, made = view.reservation, view.preemption, self._records.get(view.uid)
        if made is not None and made.place != place and view.uid not in self._tasks:
            self._due[view.uid] = None
            self.on_due()
        elif made is None and place.admission is not None:
            self._void(view, place.generation, place.admission.queue)
        if wanted is None or wanted.generation <= self.generation(wanted.uid, wanted.key):
            return
        preemptor = self._world.workloads.get(wanted.key)
        if preemptor is not None and preemptor.uid == wanted.uid:
            self._void(preemptor, wanted.generation, wanted.admission.queue)

    def _void(self, view: WorkloadView, generation: int, queue: str) -> None:
        if self._world.shards.epoch_of(queue) is not None:
            self._records[view.uid] = ReservationRecord(view.key, queue, ReservationStatus(generation))
            self._due[view.uid] = None
            self.on_due()

    def decided(self, planned: Mapping[str, tuple[Key, Waiting]]) -> None:
        """Take in what a cycle has come to.

        Args:
            planned: the Workloads to which it has promised a place, by UID: key, and why each waits for it.
        """
        for uid, (key, waiting) in planned.items():
            hold = self._holds.get(uid)
            if hold is not None:
                place = ReservationStatus(self.generation(uid, key) + 1, hold.admission)
                self._records[uid] = ReservationRecord(key, hold.queue, place, waiting)
                self._due[uid] = None
        for uid in self._records.keys() - self._holds.keys():
            made = self._records[uid]
            if made.place.admission is not None:
                # One that is given up is over: whatever the Workload gets later was not made by its victims.
                ended = made.place.generation + (self._ledger.held(uid) is None)
                self._records[uid] = replace(made, place=ReservationStatus(ended), waiting=None)
                self._due[uid] = None

    def abandon_trees(self) -> None:
        """Others decide now about places in some trees, and write what becomes of them."""
        for uid in self._records.keys() - self._holds.keys():
            if self._world.shards.epoch_of(self._records[uid].queue) is None:
                self._forget(uid)

    def generation(self, uid: str, key: Key) -> int:
        """How many places have been promised to a Workload."""
        made, view = self._records.get(uid), self._world.workloads.get(key)
        written = view.reservation.generation if view is not None and view.uid == uid else 0
        return max(written, made.place.generation if made is not None else 0)

    def passed_on(self, told: WorkloadView) -> PreemptionStatus | None:
        """The place for which a Workload goes that was told to go for another one; None if there is no such.

        What it leaves has come to another Workload than before, since that one got in elsewhere.
        """
        uid = self._ledger.preemptor(told.uid) or ""
        made = self._records.get(uid)
        if made is None or made.place.admission is None or told.evicted_for == (uid, made.place.generation):
            return None
        return PreemptionStatus(made.key, uid, made.place.admission, made.place.generation)

    def amend(self, group: asyncio.TaskGroup, plan: Plan, keys: Mapping[str, Key]) -> None:
        """Begin to write what a cycle has changed of evictions that are over, or have begun.

        What fails stays as it was: then a next leader lets a Workload evict less until something ends.

        Args:
            group: where that is done.
            plan: what the cycle has come to.
            keys: of Workloads, by UID.
        """
        for each in plan.reassigned:
            key, view = keys[each.preemptor.uid], self._world.workloads.get(keys.get(each.victim, ("", "")))
            if view is not None and view.uid == each.victim and view.evict_at is None and view.preemption:
                generation = self.generation(each.preemptor.uid, key)
                by = PreemptionStatus(
                    key, each.preemptor.uid, each.admission, generation, why=view.preemption.why
                )
                group.create_task(guarded(self._amended(view, status.reassigned(view, by)), "to amend"))
        for uid in plan.restored:
            view = self._world.workloads.get(keys.get(uid, ("", "")))
            if view is not None and view.uid == uid and view.admission is None and view.preemption:
                group.create_task(guarded(self._amended(view, status.restored(view)), "to amend"))

    async def _amended(self, view: WorkloadView, body: Json) -> None:
        try:
            async with self._slots:
                raw = await self._transport.patch(f"{workload_path(view.key)}/status", body)
                self._world.read_workloads.take(raw)
        except ClusterError as error:
            namespace, name = view.key
            log.info("eviction not amended", namespace=namespace, workload=name, error=str(error))

    def write(self, group: asyncio.TaskGroup, admitting: Container[str]) -> None:
        """Begin to write what is due.

        Args:
            group: where that is done.
            admitting: the UIDs of Workloads whose admission is being written: that says what it should.
        """
        for uid in [uid for uid in self._due if uid not in self._tasks and uid not in admitting]:
            if self._view(uid) is None:
                self._forget(uid)
            else:
                self._tasks[uid] = group.create_task(guarded(self._written(uid), "to promise"))

    async def drained(self, uid: str | None = None) -> None:
        """Wait for the answers to what is being written, of one Workload or of all."""
        tasks = [task for each, task in self._tasks.items() if uid in {None, each}]
        if tasks:
            await asyncio.wait(tasks)

    def _view(self, uid: str) -> WorkloadView | None:
        """The Workload whose place has to be written; None if nothing would be decided by that here."""
        made = self._records[uid]
        view = self._world.workloads.get(made.key)
        if view is None or view.uid != uid or view.admission is not None or view.finished:
            return None
        return view if self._world.shards.epoch_of(made.queue) is not None else None

    def _forget(self, uid: str) -> None:
        self._records.pop(uid, None)
        self._due.pop(uid, None)

    async def _written(self, uid: str) -> None:
        """Write a place, once; what fails is tried again a little later."""
        try:
            async with self._slots:
                await self._write(uid)
        except ClusterError as error:
            key = self._records[uid].key
            log.log(level_of(error), "place not written", namespace=key[0], workload=key[1], error=str(error))
            self._due.pop(uid, None)
            passes = isinstance(error, ConflictError) or is_retryable(error)
            pause = PAUSE_SECONDS if passes else REFUSED_SECONDS
            asyncio.get_running_loop().call_later(pause, self._try_again, uid)
        finally:
            del self._tasks[uid]
            if uid in self._due:
                self.on_due()  # meanwhile it has become another one

    def _try_again(self, uid: str) -> None:
        if uid in self._records:
            self._due[uid] = None
            self.on_due()

    async def _write(self, uid: str) -> None:
        made, view = self._records[uid], self._view(uid)
        if view is None:
            self._forget(uid)
            return
        if view.reservation != made.place:
            if made.waiting is not None:
                told = made.waiting.reason, made.waiting.message
                body = status.reservation_pending(view, made.place, *told, self._clock())
            else:
                body = status.reservation_changed(view, made.place)
            path = f"{workload_path(made.key)}/status"
            written = self._world.read_workloads.take(await self._transport.patch(path, body))
            if made.waiting is not None:
                self._reasons.promised(written)
        if self._records.get(uid) == made:
            self._due.pop(uid, None)
            if made.place.admission is None:
                self._forget(uid)
