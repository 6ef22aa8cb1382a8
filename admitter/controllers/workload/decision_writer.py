"""Writes the admissions and evictions of a plan, and what becomes of pending evictions.

Previous step: a cycle has decided (`workload.admission`). Next step: the admitted Workload's Job is started
(`workload.jobs`), or an evicted one's is stopped (`workload.eviction`).
"""

import asyncio
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from admitter.cache.preemption_status import PreemptionStatus
from admitter.cache.resize_status import ResizeStatus, resize_of
from admitter.cache.run_time_status import run_time_of
from admitter.cache.views import WorkloadView
from admitter.cache.world import World
from admitter.client.errors import (
    ClusterError,
    ConflictError,
    NotFoundError,
    is_busy,
    is_fenced,
    is_outcome_unknown,
)
from admitter.client.store import Key
from admitter.controllers.guarded import guarded
from admitter.controllers.succession import FENCED_WRITE_SECONDS
from admitter.controllers.workload.engine_feed import EngineFeed
from admitter.controllers.workload.eviction_records import EvictionRecords
from admitter.controllers.workload.reservation_writer import ReservationWriter
from admitter.controllers.workload.waiting import WaitingReasons
from admitter.controllers.workload.writes import REFUSED_SECONDS, StatusWrites
from admitter.engine import model
from admitter.engine.model import Admission
from admitter.engine.quota.extras import Extra
from admitter.engine.tree_cycle import Plan, PlannedEviction
from admitter.policy import replicas, status
from admitter.policy.gate import Gate
from admitter.policy.growing import decided
from admitter.policy.lifecycle import Phase, Step, phase_of, planned_eviction
from admitter.policy.messages import passing_message, receipt_message, workload_title
from admitter.policy.run_time import admitted_message, run_time_json

IN_TIME: Final = {"timeout": f"{FENCED_WRITE_SECONDS * 1000:.0f}ms"}
"""The API server gives up an admission after that time, so that a new leader need not wait longer for it."""

NOT_ADMITTED: Final = "admission not written"
NOT_EVICTED: Final = "eviction not written"
NOT_RESIZED: Final = "number of pods not written"
NOT_AMENDED: Final = "end of a grace period not written"


@dataclass(eq=False)
class DecisionWriter:
    """Writes decisions side by side.

    What the engine admits is reserved in its state before it is written. After a write with an unknown
    outcome it stays reserved until the API server has said what it stores. `overruled` is set when the API
    server says that another controller decides.
    """

    world: World
    gate: Gate
    feed: EngineFeed
    reasons: WaitingReasons
    reservations: ReservationWriter
    writes: StatusWrites
    records: EvictionRecords

    def __post_init__(self) -> None:
        self.overruled = asyncio.Event()
        self.finishing = False

    def write(self, group: asyncio.TaskGroup, plan: Plan) -> None:
        """Begin to write the admissions and evictions of a plan; `group` runs the writes."""
        keys = self.feed.keys
        for workload, admission in plan.admissions:
            key, passed = keys[workload.uid], plan.passed.get(workload.uid)
            title = workload_title(*keys[passed.workload.uid], key[0]) if passed else ""
            passing = passing_message(passed, title) if passed else ""
            self._begin(group, workload.uid, self._admit(key, workload, admission, passing), "to admit")
        for eviction in plan.evictions:
            uid, preemptor = eviction.victim.holder, eviction.preemptor.uid
            generation = self.reservations.generation(preemptor, keys[preemptor])
            work = self._evict(keys[uid], eviction, generation, self.feed.writing.get(uid))
            self._begin(group, uid, work, "to evict")
        resized: dict[str, dict[str, Extra]] = {}
        for each in plan.resized:
            resized.setdefault(each.holder, {})[each.part] = each.extra
        for uid, extras in resized.items():
            earlier = self.feed.writing.get(uid)
            self._begin(group, uid, self._resize(keys.get(uid), uid, extras, earlier), "to resize")

    def amend(self, group: asyncio.TaskGroup, victim: WorkloadView, by: PreemptionStatus | None) -> None:
        """Begin to write the new preemptor of a pending eviction; None: that the eviction is cancelled."""
        self._begin(group, victim.uid, self._amend(victim, by), "to tell")

    def _begin(self, group: asyncio.TaskGroup, uid: str, work: Coroutine[Any, Any, None], what: str) -> None:
        self.feed.writing[uid] = group.create_task(guarded(work, what))

    async def drained(self) -> None:
        if self.feed.writing:
            await asyncio.wait([*self.feed.writing.values()])

    async def finish(self) -> None:
        self.finishing = True
        while self.feed.writing:
            await self.drained()

    async def _admit(self, key: Key, workload: model.Workload, admission: Admission, passing: str) -> None:
        """Write an admission; while the server is too busy it stays decided and keeps its turn."""
        uid, again = workload.uid, True
        try:
            while again:
                await self.reservations.drained(uid)  # both would name the same version of the Workload
                try:
                    again = False
                    async with self.writes.slots:
                        await self._write_admission(key, workload, admission, passing)
                    self.reasons.failures.over(key, NOT_ADMITTED)
                except ClusterError as error:
                    await self._failed(NOT_ADMITTED, key, uid, error)
                    again = is_busy(error) and not self.finishing
        finally:
            self.feed.settle(key, uid)
            self._look_for_another_preemptor(key, uid)

    async def _write_admission(
        self, key: Key, workload: model.Workload, admission: Admission, passing: str
    ) -> None:
        view, job = self.world.workloads.get(key), self.world.job_of(key)
        if view is None or phase_of(view) is not Phase.PENDING:
            return  # it has been written already, or its work is over
        if self.gate.check(view, job) != workload.queue:
            return  # it may not be admitted any more
        if self.gate.countable(view, job, workload.queue) != workload:
            return  # it changed after the decision: it competes again as what it is now
        term = self.world.shards.epoch_of(admission.queue)
        if term is None:
            return  # another process owns the tree by now, or the tree is contested
        generation, now = self.reservations.generation(view.uid, key), self.writes.now()
        run_time = self.gate.run_time(view, job, admission.queue, now.timestamp())
        more = "; ".join(filter(None, (passing, admitted_message(run_time))))
        body = status.admitted(view, admission, term, now, more, generation)
        body["status"] |= run_time_json(run_time_of(view.status), run_time)
        limit = self.gate.ready_limit(view, job, admission.queue, now.timestamp())
        body["status"] |= limit.fields
        self.reasons.admitted(await self.writes.patch(view, body, IN_TIME))
        if limit.words:
            self.reasons.tell_limit(view, limit.words)

    async def _resize(
        self, key: Key | None, uid: str, extras: Mapping[str, Extra], earlier: asyncio.Task[None] | None
    ) -> None:
        """Write how many pods a Workload may run, once what is being written of it is; the Job comes next."""
        if key is None:
            return  # it is gone
        if earlier is not None:
            await asyncio.wait([earlier])
        try:
            async with self.writes.slots:
                await self._write_resize(key, uid, extras)
            self.reasons.failures.over(key, NOT_RESIZED)
        except ClusterError as error:
            await self._failed(NOT_RESIZED, key, uid, error, holds=True)
        finally:
            self.feed.settle(key, uid)

    async def _write_resize(self, key: Key, uid: str, extras: Mapping[str, Extra]) -> None:
        view = self.world.workloads.get(key)
        if view is None or view.uid != uid or view.admission is None or view.evicting:
            return
        term = self.world.shards.epoch_of(view.admission.queue)
        resize = self._decided(view, extras)
        if term is None or resize is None:
            return  # another process decides; or what was to shrink was never written
        body = status.resized(view, resize, term, self.writes.now())
        await self.writes.patch(view, body, IN_TIME)

    def _decided(self, view: WorkloadView, extras: Mapping[str, Extra]) -> ResizeStatus | None:
        """What `status.resize` is to say; None if what was decided is about something else than there is."""
        assert view.admission is not None
        whole = extras.get("")
        if whole is None:
            return replicas.decided(view, self.world.job_of(view.key), extras)
        resize, now = decided(view.admission, whole), resize_of(view)
        return None if resize.shrinks and (now is None or now.granted != resize.granted) else resize

    async def _evict(
        self, key: Key, eviction: PlannedEviction, generation: int, earlier: asyncio.Task[None] | None
    ) -> None:
        """Write an eviction once the victim's admission is written, which the task `earlier` does, if any.

        If the API server refuses it, the preemptor competes anew; `generation` is that of its reservation.
        """
        uid = eviction.victim.holder
        if earlier is not None:
            await asyncio.wait([earlier])
        try:
            async with self.writes.slots:
                await self._write_eviction(key, eviction, generation)
            self.reasons.failures.over(key, NOT_EVICTED)
        except ClusterError as error:
            await self._failed(NOT_EVICTED, key, uid, error)
            self._pause(eviction.preemptor.uid, error)
        finally:
            self.feed.settle_eviction(key, uid, eviction.preemptor.uid)
            self._look_for_another_preemptor(key, uid)

    async def _write_eviction(self, key: Key, eviction: PlannedEviction, generation: int) -> None:
        view, preemptor = self.world.workloads.get(key), self.feed.keys.get(eviction.preemptor.uid)
        step = planned_eviction(phase_of(view), eviction.grace) if view is not None else None
        if view is None or step is None or preemptor is None:
            return  # the victim has ended, or its preemptor is gone
        if self.world.shards.epoch_of(eviction.admission.queue) is None:
            return  # the new owner of the tree decides anew
        why = receipt_message(eviction)
        by = PreemptionStatus(preemptor, eviction.preemptor.uid, eviction.admission, generation, why=why)
        if step is Step.EVICT:
            await self.records.begin(view, partial(self._begin_eviction, view, by, eviction.grace))
        else:
            await self._write_step(view, step, by, eviction.grace)

    async def _begin_eviction(
        self, recorded: WorkloadView, by: PreemptionStatus, grace: float, now: datetime
    ) -> WorkloadView | None:
        """Begin an eviction that is recorded; None: the victim has changed, and is to take no such step."""
        view = self.world.workloads.get(recorded.key)
        if view is None or view.uid != recorded.uid or view.admission is None:
            return None
        if planned_eviction(phase_of(view), grace) is not Step.EVICT:
            return None
        return await self._write_step(view, Step.EVICT, by, now=now)

    async def _amend(self, victim: WorkloadView, by: PreemptionStatus | None) -> None:
        key, uid = victim.key, victim.uid
        try:
            async with self.writes.slots:
                current = self.world.workloads.get(key)
                if current is None or current.uid != uid or phase_of(current) is not Phase.EVICTION_PENDING:
                    return
                if by is not None:
                    await self._write_step(current, Step.REASSIGN, by)
                else:
                    await self.writes.patch(current, status.eviction_cancelled(current, self.writes.now()))
            self.reasons.failures.over(key, NOT_AMENDED)
        except ClusterError as error:
            await self._failed(NOT_AMENDED, key, uid, error)
        finally:
            self.feed.settle(key, uid)
            self._look_for_another_preemptor(key, uid)

    def _look_for_another_preemptor(self, key: Key, uid: str) -> None:
        """Run a cycle if the preemptor of a pending eviction has changed while the Workload was written."""
        current = self.world.workloads.get(key)
        if current is None or current.uid != uid or current.evict_at is None:
            return
        if self.reservations.passed_on(current) is not None:
            self.reservations.on_due()

    async def _write_step(
        self,
        view: WorkloadView,
        step: Step,
        by: PreemptionStatus,
        grace: float = 0.0,
        now: datetime | None = None,
    ) -> WorkloadView | None:
        """Write a step of a victim, and tell its user if it is to stop later; None: it is written already."""
        if step is Step.REASSIGN and view.evicted_for == (by.uid, by.generation):
            return None
        body = status.eviction(view, step, by, grace, now or self.writes.now())
        written = await self.writes.patch(view, body)
        if not (view.evicting or written.evicting):  # its change tells that an eviction begins
            self.reasons.evicted(written)
        return written

    async def _failed(
        self, what: str, key: Key, uid: str, error: ClusterError, *, holds: bool = False
    ) -> None:
        """A write has failed: find out what is true, and do not write the same again at once.

        What `holds` quota may get more by a write that comes late, unlike what does not wait any more.
        """
        self.reasons.failed(what, key, error)
        self._pause(uid, error)
        await self.writes.resolve(key, uid, lost=is_outcome_unknown(error), holds=holds)

    def _pause(self, uid: str, error: ClusterError) -> None:
        """Let a Workload compete only after a while if the API server refuses what is written for it.

        A server that is too busy refuses nothing: the Workload keeps its turn, and no other overtakes it.
        """
        if is_fenced(error):
            self.overruled.set()
        if not is_busy(error) and not isinstance(error, ConflictError | NotFoundError):
            self.feed.pause(uid, REFUSED_SECONDS)
