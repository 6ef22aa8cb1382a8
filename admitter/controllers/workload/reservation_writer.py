"""Writes pending reservations, and their end, to statuses; `policy.pending_reservations` reads them.

Previous step: a cycle has made pending reservations or ended some (`workload.admission`). The status of the
preemptor and the evictions of its victims are written in any order: the evictions name the generation.
"""

import asyncio
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from admitter.cache.preemption_status import PreemptionStatus, ReservationStatus
from admitter.cache.views import WorkloadView
from admitter.cache.world import World
from admitter.client.errors import ClusterError, ConflictError, is_retryable
from admitter.client.signal import Signal
from admitter.client.store import Key
from admitter.controllers.guarded import guarded
from admitter.controllers.workload.waiting import WaitingReasons
from admitter.controllers.workload.writes import PAUSE_SECONDS, REFUSED_SECONDS, StatusWrites
from admitter.engine.cycle import Engine
from admitter.policy import status
from admitter.policy.gate import Waiting
from admitter.policy.pending_reservations import ReportedReservation

NOT_WRITTEN: Final = "place not written"


@dataclass(frozen=True, slots=True)
class ReservationRecord:
    """The pending reservation that the status of a Workload is to have."""

    key: Key
    queue: str
    place: ReservationStatus  # without an admission once it was used or given up
    # why the Workload waits, to be written with it; None: that has been written
    waiting: Waiting | None = None


class ReservationWriter:
    """Keeps the pending reservations in statuses as they are in the engine.

    When `on_due` is called, `write` should be soon: something has to be written again.
    """

    def __init__(self, world: World, engine: Engine, reasons: WaitingReasons, writes: StatusWrites) -> None:
        """Write with the other decisions, in the same slots."""
        self._world = world
        self._ledger = engine.ledger
        self._pending = engine.ledger.pending_reservations
        self._reasons = reasons
        self._writes = writes
        self.on_due: Signal[[]] = Signal()
        self._records: dict[str, ReservationRecord] = {}
        self._due: dict[str, None] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def __contains__(self, uid: object) -> bool:
        """Whether a newer reservation of a Workload is known here than its status has."""
        return uid in self._records

    def adopt(self, found: Iterable[ReportedReservation]) -> None:
        """Write what `keep_reservations` found only at victims, and the end of what is not kept."""
        for each in found:
            pending = self._pending.get(each.uid)
            admission = pending.admission if pending is not None else None
            reservation = ReservationStatus(each.generation, admission)
            self._records[each.uid] = ReservationRecord(each.key, each.admission.queue, reservation)
            self._due[each.uid] = None  # what is written already is not written again

    def seen(self, view: WorkloadView) -> None:
        """A Workload has changed: a reservation that an earlier process wrote is corrected."""
        written, wanted, made = view.reservation, view.preemption, self._records.get(view.uid)
        if made is not None and made.place != written and view.uid not in self._tasks:
            self._due[view.uid] = None
            self.on_due()
        elif made is None and written.admission is not None:
            self._void(view, written.generation, written.admission.queue)
        if wanted is None or wanted.generation <= self.generation(wanted.uid, wanted.key):
            return
        preemptor = self._world.workloads.get(wanted.key)
        if preemptor is not None and preemptor.uid == wanted.uid:
            self._void(preemptor, wanted.generation, wanted.admission.queue)

    def _void(self, view: WorkloadView, generation: int, queue: str) -> None:
        """What an earlier process wrote under a generation counts no longer; a reservation kept here does.

        A late write may name a generation above that of the reservation that this process has taken over: it
        goes on under the next one. A victim with an eviction that has started keeps the old generation in its
        status: after one more restart it is not known as displaced, and may evict as any other.
        """
        if self._world.shards.epoch_of(queue) is None:
            return
        kept = self._pending.get(view.uid)
        place = ReservationStatus(generation)
        if kept is not None:
            queue, place = kept.queue, ReservationStatus(generation + 1, kept.admission)
        self._records[view.uid] = ReservationRecord(view.key, queue, place)
        self._due[view.uid] = None
        self.on_due()

    def decided(self, planned: Mapping[str, tuple[Key, Waiting]]) -> None:
        """Take in which Workloads a cycle gave pending reservations, by UID: key, and why each waits."""
        for uid, (key, waiting) in planned.items():
            pending = self._pending.get(uid)
            if pending is not None:
                reservation = ReservationStatus(self.generation(uid, key) + 1, pending.admission)
                self._records[uid] = ReservationRecord(key, pending.queue, reservation, waiting)
                self._due[uid] = None
        for uid in self._records.keys() - self._pending.keys():
            made = self._records[uid]
            if made.place.admission is not None:
                # A reservation that was given up is void: its victims made no room for a later one.
                ended = made.place.generation + (self._ledger.held(uid) is None)
                self._records[uid] = replace(made, place=ReservationStatus(ended), waiting=None)
                self._due[uid] = None

    def abandon_trees(self) -> None:
        """Other processes decide now in some trees, and write the reservations there."""
        for uid in self._records.keys() - self._pending.keys():
            if self._world.shards.epoch_of(self._records[uid].queue) is None:
                self._forget(uid)

    def generation(self, uid: str, key: Key) -> int:
        made, view = self._records.get(uid), self._world.workloads.get(key)
        written = view.reservation.generation if view is not None and view.uid == uid else 0
        return max(written, made.place.generation if made is not None else 0)

    def passed_on(self, victim: WorkloadView) -> PreemptionStatus | None:
        """The new preemptor of a victim with a pending eviction; None if it has the same as before.

        The earlier preemptor was admitted elsewhere, so the victim's quota goes to another one.
        """
        uid = self._ledger.preemptor(victim.uid) or ""
        made = self._records.get(uid)
        if made is None or made.place.admission is None or victim.evicted_for == (uid, made.place.generation):
            return None
        return PreemptionStatus(made.key, uid, made.place.admission, made.place.generation)

    def write(self, group: asyncio.TaskGroup, admitting: Container[str]) -> None:
        """Begin to write what is due, but for the UIDs in `admitting`: an admission ends the reservation."""
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
        """The Workload with a reservation that has to be written; None if it is not for this process."""
        made = self._records.get(uid)
        if made is None:
            return None  # abandoned while its write waited for its turn
        view = self._world.workloads.get(made.key)
        if view is None or view.uid != uid or view.admission is not None or view.finished:
            return None
        return view if self._world.shards.epoch_of(made.queue) is not None else None

    def _forget(self, uid: str) -> None:
        self._records.pop(uid, None)
        self._due.pop(uid, None)

    async def _written(self, uid: str) -> None:
        """Write a reservation, once; what fails is tried again a little later."""
        try:
            async with self._writes.slots:
                await self._write(uid)
        except ClusterError as error:
            if (made := self._records.get(uid)) is None:
                return  # abandoned meanwhile
            self._reasons.failed(NOT_WRITTEN, made.key, error)
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
        view = self._view(uid)
        if view is None:
            self._forget(uid)
            return
        made = self._records[uid]
        if view.reservation != made.place:
            if made.waiting is not None:
                waits = made.waiting.reason, made.waiting.message
                body = status.reservation_pending(view, made.place, *waits, self._writes.now())
            else:
                body = status.reservation_changed(view, made.place)
            written = await self._writes.patch(view, body)
            self._reasons.failures.over(made.key, NOT_WRITTEN)
            if made.waiting is not None:
                self._reasons.promised(written)
        if self._records.get(uid) == made:
            self._due.pop(uid, None)
            if made.place.admission is None:
                self._forget(uid)
