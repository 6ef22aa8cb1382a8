"""From events to admissions: feeds the engine, runs its cycles, writes what its plans say.

Previous step: a store changes (`admitter.cache.world`). Next step: the admitted Workload's Job
is started (`admitter.controllers.workload.jobs`).
"""

import asyncio
import time
from collections.abc import Iterable, Iterator
from math import ceil
from typing import Final

import structlog

from admitter.cache.pod_views import PodView
from admitter.cache.preemption_status import PreemptionStatus
from admitter.cache.views import Json, WorkloadView, at
from admitter.cache.world import World, workload_path
from admitter.client.errors import (
    ClusterError,
    ConflictError,
    NotFoundError,
    is_busy,
    is_fenced,
    is_outcome_unknown,
    level_of,
)
from admitter.client.signal import Signal
from admitter.client.store import Key
from admitter.client.transport import Transport
from admitter.controllers.guarded import guarded
from admitter.controllers.succession import FENCED_WRITE_SECONDS
from admitter.controllers.workload.grace import GracePeriods
from admitter.controllers.workload.orphaned_pods import OrphanedPods
from admitter.controllers.workload.reservation_writer import REFUSED_SECONDS, ReservationWriter
from admitter.controllers.workload.unknown_outcome import resolve
from admitter.controllers.workload.waiting import WaitingReasons
from admitter.engine import model
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission
from admitter.engine.tree_cycle import PlannedEviction
from admitter.policy import status
from admitter.policy.gate import Gate, Waiting
from admitter.policy.intake import Intake
from admitter.policy.messages import passing_message, receipt_message, workload_title
from admitter.policy.pending_reservations import keep_places

WRITES_AT_A_TIME: Final = 32
GATHER_SECONDS: Final = 0.05
"""For how long changes of definitions are gathered at least."""
GATHER_TIMES: Final = 6.0
"""So many times as long as it took last to put them in force: most of the time is left for other work."""
LONGEST_GATHER_SECONDS: Final = 1.0

IN_TIME: Final = {"timeout": f"{FENCED_WRITE_SECONDS * 1000:.0f}ms"}
"""The API server gives up an admission after that time, so that a new leader need not wait longer for it."""

log = structlog.get_logger(__name__)


class Admissions:
    """Decides and writes admissions.

    What the engine admits is reserved in its state before it is written. After a write with an unknown
    outcome it stays reserved until the API server has said what it stores.

    Attributes:
        restored: whether what was there at the start has been taken in.
        overruled: set when the API server says that another controller decides.
        usage_changed: a queue with this name has quota free again that orphaned pods used.
        decided: a cycle is over that took so many seconds.
    """

    def __init__(
        self,
        world: World,
        engine: Engine,
        gate: Gate,
        reasons: WaitingReasons,
        grace: GracePeriods,
        transport: Transport,
    ) -> None:
        self._world = world
        self._engine = engine
        self._gate = gate
        self._intake = Intake(world, engine, gate)
        self._grace = grace
        self._reasons = reasons
        self._transport = transport
        self._orphaned_pods = OrphanedPods(world, engine, transport, self._freed)
        self.usage_changed: Signal[[str]] = Signal()
        self.decided: Signal[[float]] = Signal()
        self._keys: dict[str, Key] = {}
        self._writing: dict[str, asyncio.Task[None]] = {}
        self._refused: set[str] = set()
        self._changed_pods: set[Key] = set()
        self._slots = asyncio.Semaphore(WRITES_AT_A_TIME)
        self.restored = False
        self.overruled = asyncio.Event()
        self._cycle_due = asyncio.Event()
        self._reservations = ReservationWriter(world, engine, reasons, transport, grace.now, self._slots)
        self._reservations.on_due.listen(self._cycle_due.set)
        self._timer: asyncio.TimerHandle | None = None
        self._shards = world.shards
        self._gather = GATHER_SECONDS
        self._finishing = False

    def workload_changed(self, old: WorkloadView | None, new: WorkloadView | None) -> None:
        """A Workload came, changed or went."""
        self._grace.workload_changed(old, new)
        over = old is not None and new is not None and old.evict_at is not None and new.evicting
        if new is not None and over and self._world.owners.owns(new.key):
            self._reasons.evicted(new)
        if old is not None and new is None:
            self._keys.pop(old.uid, None)
            self._reasons.forget(old.key)
            self._intake.gone(old)
            if old.admission is not None:
                self._orphaned_pods.workload_gone(old)
            else:
                self._engine.release(old.uid)
        elif new is not None:
            if new.admission is not None and (old is None or old.admission is None):
                self._orphaned_pods.workload_admitted(new)
            self._reservations.seen(new)
            self._evaluate(new)
        self.schedule_cycle()

    def pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        """A labelled pod came, changed or went."""
        self._orphaned_pods.pod_changed(old, new)
        if new is not None and new.has_run:
            self._engine.use(new.workload_uid)
        pod = new if new is not None else old
        if pod is not None and pod.usage.pool:
            self._changed_pods.add((pod.namespace, pod.workload))
            self._cycle_due.set()
        self.schedule_cycle()

    def _take_pods_in(self) -> None:
        """Take in pods that came and went; those of one Workload together."""
        changed, self._changed_pods = self._changed_pods, set()
        for key in changed:
            self._intake.take_pods(key)

    def job_changed(self, key: Key) -> None:
        """The Job of a Workload came, changed or went."""
        self._orphaned_pods.job_changed(key)
        self.reconsider(key)

    def reconsider(self, key: Key) -> None:
        """Something that decides whether a Workload may compete has changed."""
        workload = self._world.workloads.get(key)
        if workload is not None:
            self._evaluate(workload)
            self.schedule_cycle()

    def keys_of(self, uids: Iterable[str]) -> list[Key]:
        """The keys of Workloads."""
        return [self._keys[uid] for uid in uids if uid in self._keys]

    def deciding(self) -> Iterator[Key]:
        """For each Workload with an admission that is being written, its LocalQueue."""
        for workload in map(self._world.workloads.get, self.keys_of(self._writing)):
            if workload is not None and workload.admission is None:
                yield workload.namespace, workload.queue

    def schedule_cycle(self) -> None:
        """Run a cycle if there is anything to decide."""
        if self._engine.changed or self._gate.stale or any(self._cancellable()):
            self._cycle_due.set()

    def _freed(self, queue: str) -> None:
        """Orphaned pods are gone: their quota is free."""
        self.usage_changed(queue)
        self.schedule_cycle()

    def _cancellable(self) -> Iterator[WorkloadView]:
        """Workloads with a pending eviction that is to be cancelled."""
        return filter(self._may_amend, self._grace.no_longer_needed())

    def _passed_on(self) -> Iterator[tuple[WorkloadView, PreemptionStatus]]:
        """Workloads with a pending eviction for another preemptor than before."""
        for victim in filter(self._may_amend, self._grace.still_needed()):
            if (by := self._reservations.passed_on(victim)) is not None:
                yield victim, by

    def _may_amend(self, victim: WorkloadView) -> bool:
        if victim.uid in self._writing or victim.uid in self._refused:
            return False
        return self._world.owners.owns(victim.key)

    def _evaluate(self, workload: WorkloadView) -> None:
        """Bring the engine up to date with one Workload."""
        if not self.restored:
            return
        uid = workload.uid
        self._keys[uid] = workload.key
        if uid in self._writing:
            return  # its answer decides
        outcome = self._intake.take(workload, pauses=uid in self._refused)
        if isinstance(outcome, Waiting):
            self._reasons.want(workload.key, outcome)
        elif outcome is None or not self._shards.leads_queue(outcome):
            self._reasons.forget(workload.key)  # it waits no longer, or why it does only a leader knows

    def restore(self) -> None:
        """Take in the Workloads that there are, those that hold quota first."""
        self.restored = True
        for workload in sorted(self._world.workloads, key=lambda workload: workload.admission is None):
            self._evaluate(workload)

    def lead(self, epochs: dict[int, int]) -> None:
        """Decide for some shards more; pending reservations of their earlier owners are kept.

        Args:
            epochs: of these shards; admissions carry it.
        """
        self._shards.epochs.update(epochs)
        self._engine.resume(self._shards.decides)
        self._reservations.adopt(keep_places(self._world, self._engine, self._gate, self._reservations))
        self._orphaned_pods.lead()
        self._cycle_due.set()

    async def run(self) -> None:
        """Decide whenever something changed, until cancelled.

        1. Events have brought the engine up to date; definitions of one moment are put in force together.
           A follower does no more.
        2. A cycle makes a plan.
        3. Its admissions and evictions are written side by side; its reasons to wait, merged, a little later.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._orphaned_pods.queue.run(), name="orphaned pods")
            while True:
                await self._cycle_due.wait()
                await guarded(self._refresh(), "to put definitions in force")
                self._cycle_due.clear()
                if self._finishing:
                    return
                self._take_pods_in()
                if self._shards.epochs:
                    await guarded(self._decide(group), "to decide")

    def refresh(self) -> None:
        """Put changed definitions in force at once."""
        self._gate.refresh()
        self.schedule_cycle()

    async def drained(self) -> None:
        """Wait for the end of all writes that were decided before now."""
        if self._writing:
            await asyncio.wait([*self._writing.values()])
        await self._reservations.drained()

    def abandon_trees(self) -> None:
        """Drop pending reservations in trees that other processes own now."""
        self._engine.abandon_trees(self._shards.decides)
        self._reservations.abandon_trees()

    async def finish(self) -> None:
        """Decide nothing more, and wait until what was decided is written, or refused."""
        self._finishing = True
        while self._writing:
            await asyncio.wait(self._writing.values())
        await self._reservations.drained()

    async def _decide(self, group: asyncio.TaskGroup) -> None:
        began = time.perf_counter()
        plan = self._engine.cycle(int(self._grace.now().timestamp()), self._shards.decides)
        took = time.perf_counter() - began
        planned: dict[str, tuple[Key, Waiting]] = {}
        for uid, waiting in self._gate.all_wait(plan.refusals):
            self._reasons.want(self._keys[uid], waiting)
            if uid in plan.planned:
                planned[uid] = (self._keys[uid], waiting)
        self._reservations.decided(planned)
        for workload, admission in plan.admissions:
            passed = plan.passed.get(workload.uid)
            key = self._keys[workload.uid]
            title = workload_title(*self._keys[passed.workload.uid], key[0]) if passed else ""
            passing = passing_message(passed, title) if passed else ""
            work = self._admit(key, workload, admission, passing)
            self._writing[workload.uid] = group.create_task(guarded(work, "to admit"))
        for eviction in plan.evictions:
            uid, preemptor = eviction.victim.holder, eviction.preemptor.uid
            generation = self._reservations.generation(preemptor, self._keys[preemptor])
            work = self._evict(self._keys[uid], eviction, generation, self._writing.get(uid))
            self._writing[uid] = group.create_task(guarded(work, "to evict"))
        for victim, by in [*self._passed_on(), *((victim, None) for victim in self._cancellable())]:
            work = self._amend_pending_eviction(victim, by)
            self._writing[victim.uid] = group.create_task(guarded(work, "to tell"))
        self._reservations.amend(group, plan, self._keys)
        self._reservations.write(group, self._writing)
        self._run_at(self._engine.due)
        self.decided(took)

    async def _refresh(self) -> None:
        """Put changed definitions in force, those of a while together."""
        if self._gate.stale:
            loop = asyncio.get_running_loop()
            await asyncio.sleep(self._gather)
            began = loop.time()
            self._gate.refresh()
            taken = GATHER_TIMES * (loop.time() - began)
            self._gather = min(max(GATHER_SECONDS, taken), LONGEST_GATHER_SECONDS)

    def close(self) -> None:
        """Nothing more is decided."""
        if self._timer is not None:
            self._timer.cancel()

    def _run_at(self, due: float | None) -> None:
        """Run a cycle when a `minRuntime` or a back-off ends."""
        self.close()
        self._timer = None
        if due is not None:
            left = max(0.0, ceil(due) - self._grace.now().timestamp())  # cycles count whole seconds
            self._timer = asyncio.get_running_loop().call_later(left, self._cycle_due.set)

    async def _admit(self, key: Key, workload: model.Workload, admission: Admission, passing: str) -> None:
        try:
            while not (await self._admit_once(key, workload, admission, passing) or self._finishing):
                pass
        finally:
            self._written(key, workload.uid)

    async def _admit_once(
        self, key: Key, workload: model.Workload, admission: Admission, passing: str
    ) -> bool:
        """Write an admission; False if the server is too busy: it stays decided and keeps its turn."""
        await self._reservations.drained(workload.uid)  # both would name the same version of the Workload
        try:
            async with self._slots:
                await self._write(key, workload, admission, passing)
        except ClusterError as error:
            await self._failed("admission not written", key, workload.uid, error)
            return not is_busy(error)
        return True

    async def _write(self, key: Key, workload: model.Workload, admission: Admission, passing: str) -> None:
        view, job = self._world.workloads.get(key), self._world.job_of(key)
        if view is None or view.admission is not None or self._gate.check(view, job) != workload.queue:
            return  # it has been written already, or may not be admitted any more
        if self._gate.countable(view, job, workload.queue) != workload:
            return  # it changed after the decision: it competes again as what it is now
        term = self._shards.epoch_of(admission.queue)
        if term is None:
            return  # another process owns the tree by now, or the tree is contested
        generation = self._reservations.generation(view.uid, key)
        body = status.admitted(view, admission, term, self._grace.now(), passing, generation)
        raw = await self._transport.patch(f"{workload_path(key)}/status", body, query=IN_TIME)
        self._reasons.admitted(self._world.read_workloads.take(raw))

    def _written(self, key: Key, uid: str) -> None:
        """A write has ended: the object in the API server counts again."""
        if self._writing.get(uid) is asyncio.current_task():
            del self._writing[uid]
        current = self._world.workloads.get(key)
        if current is not None and current.uid == uid:
            self._evaluate(current)
            if current.evict_at is not None and self._reservations.passed_on(current) is not None:
                self._cycle_due.set()  # its preemptor has changed meanwhile
        elif not self._orphaned_pods.counts(key, uid):  # it was deleted meanwhile, and its pods may go on
            self._engine.release(uid)
        self.schedule_cycle()

    async def _failed(self, what: str, key: Key, uid: str, error: ClusterError) -> None:
        """A write has failed: find out what is true, and do not write the same again at once."""
        log.log(level_of(error), what, namespace=key[0], workload=key[1], error=str(error))
        self._pause(uid, error)
        await resolve(self._world, self._transport, key, uid, lost=is_outcome_unknown(error))

    def _pause(self, uid: str, error: ClusterError) -> None:
        """Let a Workload compete only after a while if the API server refuses what is written for it.

        A server that is too busy refuses nothing: the Workload keeps its turn, and no other overtakes it.
        """
        if is_fenced(error):
            self.overruled.set()
        if is_busy(error) or isinstance(error, ConflictError | NotFoundError):
            return

        def over() -> None:
            self._refused.discard(uid)
            if uid in self._keys:
                self.reconsider(self._keys[uid])

        self._refused.add(uid)
        asyncio.get_running_loop().call_later(REFUSED_SECONDS, over)

    async def _evict(
        self, key: Key, eviction: PlannedEviction, generation: int, earlier: asyncio.Task[None] | None
    ) -> None:
        """Write an eviction; if the API server refuses it, the preemptor competes anew.

        Args:
            key: of the victim.
            eviction: the victim and its preemptor.
            generation: of the preemptor's pending reservation.
            earlier: writes the victim's admission, and has to end first.
        """
        uid = eviction.victim.holder
        if earlier is not None:
            await asyncio.wait([earlier])
        try:
            async with self._slots:
                await self._write_eviction(key, eviction, generation)
        except ClusterError as error:
            await self._failed("eviction not written", key, uid, error)
            self._pause(eviction.preemptor.uid, error)
        finally:
            current = self._world.workloads.get(key)
            if current is None or current.uid != uid or not (current.evicting or current.evict_at):
                self._engine.cancel_eviction(uid)
            if eviction.preemptor.uid in self._refused:
                self._engine.withdraw(eviction.preemptor.uid)
            self._written(key, uid)

    async def _amend_pending_eviction(self, workload: WorkloadView, by: PreemptionStatus | None) -> None:
        """Write the new preemptor of a pending eviction, or that the eviction is cancelled."""
        key, uid = workload.key, workload.uid
        try:
            async with self._slots:
                current = self._world.workloads.get(key)
                if current is None or current.uid != uid or not current.evict_at or current.evicting:
                    return
                if by is not None:
                    await self._reassign(current, by)
                else:
                    await self._patch(current, status.eviction_cancelled(current, self._grace.now()))
        except ClusterError as error:
            await self._failed("end of a grace period not written", key, uid, error)
        finally:
            self._written(key, uid)

    async def _write_eviction(self, key: Key, eviction: PlannedEviction, generation: int) -> None:
        view, preemptor = self._world.workloads.get(key), self._keys.get(eviction.preemptor.uid)
        if view is None or view.admission is None or preemptor is None:
            return  # the victim has ended, or its preemptor is gone
        if self._shards.epoch_of(eviction.admission.queue) is None:
            return  # the new owner of the tree decides anew
        why = receipt_message(eviction)
        by = PreemptionStatus(preemptor, eviction.preemptor.uid, eviction.admission, generation, why=why)
        if view.evicting:
            await self._reassign(view, by)
            return
        now = self._grace.now()
        if eviction.grace:
            # A victim of an earlier preemptor that is gone keeps the time of its first pending eviction.
            until = at(view.evict_at or ceil(now.timestamp() + eviction.grace))
            body = status.eviction_pending(view, by, until, now)
        else:
            body = status.preempted(view, by, now)
        self._reasons.evicted(await self._patch(view, body))

    async def _reassign(self, view: WorkloadView, by: PreemptionStatus) -> None:
        """Write the new preemptor of an eviction that is pending or has started."""
        if view.evicted_for == (by.uid, by.generation):
            return
        if view.evicting:
            await self._patch(view, status.reassigned(view, by))
        elif view.evict_at is not None:
            written = await self._patch(
                view, status.eviction_pending(view, by, at(view.evict_at), self._grace.now())
            )
            self._reasons.evicted(written)

    async def _patch(self, view: WorkloadView, body: Json) -> WorkloadView:
        raw = await self._transport.patch(f"{workload_path(view.key)}/status", body)
        return self._world.read_workloads.take(raw)
