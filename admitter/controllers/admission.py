"""From events to admissions: feeds the engine, runs its cycles, writes what its plans say.

Previous step: a store changes (`admitter.controllers.world`). Next step: the admitted Workload's Job
is started (`admitter.controllers.jobs`).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from math import ceil
from typing import Final

import structlog

from admitter.api.conditions import WaitingReason
from admitter.cluster.errors import ApiError, ClusterError, ConflictError, NotFoundError
from admitter.cluster.store import Key
from admitter.cluster.transport import Json, Transport
from admitter.controllers import status
from admitter.controllers.gate import Gate, Waiting
from admitter.controllers.grace import GracePeriods
from admitter.controllers.remainders import Remainders
from admitter.controllers.views import JobView, PodView, Preemption, WorkloadView, at, parse_workload
from admitter.controllers.waiting import WaitingReasons
from admitter.controllers.world import World, workload_name, workload_path
from admitter.convert.pod_sets import job_count
from admitter.engine import model
from admitter.engine.amounts import InvalidQuantityError
from admitter.engine.contest import Eviction
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission

WRITES_AT_A_TIME: Final = 32
PAUSE_SECONDS: Final = 1.0
GATHER_SECONDS: Final = 0.05
"""For how long changes of definitions are gathered at least."""
GATHER_TIMES: Final = 6.0
"""So many times as long as it took last to put them in force: most of the time is left for other work."""
LONGEST_GATHER_SECONDS: Final = 1.0
REFUSED_SECONDS: Final = 10.0
"""For how long a Workload does not compete after the API server refused its admission or its evictions."""

log = structlog.get_logger(__name__)


class Admissions:
    """Decides and writes admissions.

    What the engine admits is reserved in its state before it is written. A write whose outcome is
    unknown stays reserved until the API server has said what it holds.
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
        self._grace = grace
        self._reasons = reasons
        self._transport = transport
        self._remainders = Remainders(world, engine, transport, self._freed)
        self.usage_changed: Callable[[str], None] = lambda _: None
        self.decided: Callable[[], None] = lambda: None
        self._keys: dict[str, Key] = {}
        self._writing: dict[str, asyncio.Task[None]] = {}
        self._refused: set[str] = set()
        self._changed_pods: set[Key] = set()
        self._slots = asyncio.Semaphore(WRITES_AT_A_TIME)
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._gather = GATHER_SECONDS

    def workload_changed(self, old: WorkloadView | None, new: WorkloadView | None) -> None:
        """A Workload came, changed or went."""
        self._grace.workload_changed(old, new)
        if old is not None and new is not None and old.evict_at is not None and new.evicting:
            self._reasons.evicted(new)
        if old is not None and new is None:
            self._keys.pop(old.uid, None)
            self._reasons.forget(old.key)
            self._engine.withdraw(old.uid)
            self._engine.set_pods(old.uid, ())
            if old.admission is not None:
                self._remainders.workload_gone(old)
            else:
                self._engine.release(old.uid)
        elif new is not None:
            self._evaluate(new)
        self.wake()

    def pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        """A labelled pod came, changed or went."""
        self._remainders.pod_changed(old, new)
        pod = new if new is not None else old
        if pod is not None and pod.usage.pool:
            self._changed_pods.add((pod.namespace, pod.workload))
            self._wake.set()
        self.wake()

    def _take_pods_in(self) -> None:
        """Tell the engine of pods that came and went; those of one Workload together."""
        changed, self._changed_pods = self._changed_pods, set()
        for key in changed:
            workload = self._world.workloads.get(key)
            if workload is not None:
                self._set_pods(workload)

    def _set_pods(self, workload: WorkloadView) -> None:
        """By the age of its pods an elastic quota's Workload is over quota, or is not."""
        if workload.admission is not None and workload.admission.pool:
            pods = sorted((pod.created, pod.name) for pod in self._world.pods_of(workload.key) if pod.live)
            job = self._world.job_of(workload.key)
            places = sum(pod_set.count for pod_set in workload.admission.pod_sets)
            wanted = job_count(job.spec, self._counted(job)) if job is not None else places
            left_over = max(0, places - max(wanted, len(pods)))
            self._engine.set_pods(workload.uid, tuple(pods), left_over)

    def job_changed(self, key: Key) -> None:
        """The Job of a Workload came, changed or went."""
        self._remainders.job_changed(key)
        self.reconsider(key)

    def reconsider(self, key: Key) -> None:
        """Something that decides whether a Workload may compete has changed."""
        workload = self._world.workloads.get(key)
        if workload is not None:
            self._evaluate(workload)
            self.wake()

    def keys_of(self, uids: Iterable[str]) -> list[Key]:
        """The keys of Workloads."""
        return [self._keys[uid] for uid in uids if uid in self._keys]

    def wake(self) -> None:
        """Run a cycle if there is anything to decide."""
        if self._engine.changed or self._gate.stale or any(self._spared()):
            self._wake.set()

    def _freed(self, queue: str) -> None:
        """Quota became free that nothing else tells of."""
        self.usage_changed(queue)
        self.wake()

    def _spared(self) -> Iterator[WorkloadView]:
        """Who has been told that he will be evicted, and need not be after all."""
        for told in self._grace.unneeded():
            if told.uid not in self._writing and told.uid not in self._refused:
                yield told

    def _evaluate(self, workload: WorkloadView) -> None:
        """Bring the engine up to date with one Workload."""
        uid = workload.uid
        self._keys[uid] = workload.key
        if uid in self._writing:
            return  # its answer decides
        job = self._world.job_of(workload.key)
        if workload.admission is not None:
            self._engine.withdraw(uid)
            self._reserve(workload, job, workload.admission)
            self._reasons.forget(workload.key)
            return
        self._engine.release(uid)
        if workload.finished:
            self._engine.withdraw(uid)
            self._reasons.forget(workload.key)
            return
        outcome = self._gate.check(workload, job)
        if isinstance(outcome, Waiting):
            self._engine.withdraw(uid)
            self._reasons.want(workload.key, outcome)
        else:
            self._compete(workload, job, outcome)

    def _reserve(self, workload: WorkloadView, job: JobView | None, admission: Admission) -> None:
        # One whose spec can't be counted, since it was changed by hand, is no candidate for eviction.
        known = self._competitor(workload, job, admission.queue)
        self._engine.reserve(workload.uid, admission, known, workload.since, workload.namespace)
        if workload.evicting:
            self._engine.goes(workload.uid)
        self._set_pods(workload)

    def _compete(self, workload: WorkloadView, job: JobView | None, queue: str) -> None:
        if workload.uid in self._refused:
            return  # its turn comes when the pause is over
        try:
            competing = self._gate.competitor(workload, job, queue)
        except InvalidQuantityError as error:  # only made by hand: a Job's requests are checked before
            self._engine.withdraw(workload.uid)
            words = f"its requests can't be counted: {error}"
            self._reasons.want(workload.key, Waiting(WaitingReason.INVALID_REQUESTS, words))
            return
        self._engine.submit(competing)

    def _competitor(self, workload: WorkloadView, job: JobView | None, queue: str) -> model.Workload | None:
        """A Workload as the engine sees it; None if its requests can't be counted."""
        try:
            return self._gate.competitor(workload, job, queue)
        except InvalidQuantityError:
            return None

    def restore(self) -> None:
        """Keep the places of those for whom others were evicted before this controller started."""
        for victim in self._world.workloads:
            wanted = victim.preemption
            if (
                wanted is None
                or victim.finished
                or (preemptor := self._world.workloads.get(wanted.key)) is None
            ):
                continue
            job = self._world.job_of(wanted.key)
            waits = preemptor.uid == wanted.uid and preemptor.admission is None and not preemptor.finished
            if not waits or self._gate.check(preemptor, job) != wanted.admission.queue:
                continue
            competing = self._competitor(preemptor, job, wanted.admission.queue)
            if competing is not None and self._gate.suits(wanted.admission, competing):
                told = victim.evict_at is not None and not victim.evicting
                self._engine.evict(victim.uid, competing, wanted.admission, told=told)

    async def run(self) -> None:
        """Decide whenever something changed, until cancelled.

        1. Events have brought the engine up to date; definitions of one moment are put in force together.
        2. A cycle makes a plan.
        3. Its admissions and evictions are written side by side; its reasons to wait, merged, a little later.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._remainders.queue.run(), name="remainders")
            while True:
                await self._wake.wait()
                await self._refresh()
                self._wake.clear()
                self._take_pods_in()
                plan = self._engine.cycle(int(self._grace.now().timestamp()))
                for uid, refusal in plan.refusals.items():
                    self._reasons.want(self._keys[uid], self._gate.waits(refusal))
                for workload, admission in plan.admissions:
                    task = group.create_task(self._admit(self._keys[workload.uid], workload, admission))
                    self._writing[workload.uid] = task
                for eviction in plan.evictions:
                    uid = eviction.victim.holder
                    self._writing[uid] = group.create_task(
                        self._evict(self._keys[uid], eviction, self._writing.get(uid))
                    )
                for told in list(self._spared()):
                    self._writing[told.uid] = group.create_task(self._spare(told))
                self._wake_at(self._engine.due)
                self.decided()

    async def _refresh(self) -> None:
        """Put changed definitions in force, those of a while together."""
        if self._gate.stale:
            loop = asyncio.get_running_loop()
            await asyncio.sleep(self._gather)
            began = loop.time()
            self._gate.refresh()
            taken = GATHER_TIMES * (loop.time() - began)
            self._gather = min(max(GATHER_SECONDS, taken), LONGEST_GATHER_SECONDS)

    def _wake_at(self, due: float | None) -> None:
        """Run a cycle when somebody may be preempted who may not yet."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due is not None:
            left = max(0.0, ceil(due) - self._grace.now().timestamp())  # cycles count whole seconds
            self._timer = asyncio.get_running_loop().call_later(left, self._wake.set)

    def _counted(self, job: JobView) -> Json:
        """The status of a Job, with the pods that have succeeded since it was written."""
        pods = self._world.pods_of((job.namespace, workload_name(job)))
        succeeded = sum(pod.succeeded for pod in pods)
        return {"succeeded": max(succeeded, int(job.status["succeeded"]))}

    async def _admit(self, key: Key, workload: model.Workload, admission: Admission) -> None:
        try:
            async with self._slots:
                await self._write(key, workload, admission)
        except ClusterError as error:
            await self._failed("admission not written", key, workload.uid, error)
        finally:
            self._written(key, workload.uid)

    async def _write(self, key: Key, workload: model.Workload, admission: Admission) -> None:
        view = self._world.workloads.get(key)
        if view is None or self._competitor(view, self._world.job_of(key), workload.queue) != workload:
            return  # it changed after the decision: it competes again as what it is now
        raw = await self._transport.patch(
            f"{workload_path(key)}/status", status.admitted(view, admission, self._grace.now())
        )
        admitted = parse_workload(raw)
        self._world.workloads.apply(admitted)
        self._reasons.admitted(admitted)
        log.info("admitted", namespace=key[0], workload=key[1], cluster_queue=admission.queue)

    def _written(self, key: Key, uid: str) -> None:
        """A write has come to its end: what the API server holds decides again."""
        if self._writing.get(uid) is asyncio.current_task():
            del self._writing[uid]
        current = self._world.workloads.get(key)
        if current is None or current.uid != uid:
            self._engine.release(uid)
        else:
            self._evaluate(current)
        self.wake()

    async def _failed(self, what: str, key: Key, uid: str, error: ClusterError) -> None:
        """A write has failed: find out what is true, and do not write the same again at once."""
        conflict = isinstance(error, ConflictError | NotFoundError)
        log.log(
            logging.DEBUG if conflict else logging.WARNING,
            what,
            namespace=key[0],
            workload=key[1],
            error=str(error),
        )
        self._pause(uid, error)
        await self._settle(key, uid)

    def _pause(self, uid: str, error: ClusterError) -> None:
        """Let a Workload compete only after a while if the API server refuses what is written for it."""
        if not isinstance(error, ApiError) or isinstance(error, ConflictError | NotFoundError):
            return

        def over() -> None:
            self._refused.discard(uid)
            if uid in self._keys:
                self.reconsider(self._keys[uid])

        self._refused.add(uid)
        asyncio.get_running_loop().call_later(REFUSED_SECONDS, over)

    async def _evict(self, key: Key, eviction: Eviction, earlier: asyncio.Task[None] | None) -> None:
        """Write that a Workload has to go; if that is not to be had, its preemptor competes anew.

        Args:
            key: of the victim.
            eviction: who has to go for whom.
            earlier: writes the victim's admission, and has to come to its end first.
        """
        uid = eviction.victim.holder
        if earlier is not None:
            await asyncio.wait([earlier])
        try:
            async with self._slots:
                await self._write_eviction(key, eviction)
        except ClusterError as error:
            await self._failed("eviction not written", key, uid, error)
            self._pause(eviction.preemptor.uid, error)
        finally:
            current = self._world.workloads.get(key)
            if current is None or current.uid != uid or not (current.evicting or current.evict_at):
                self._engine.spare(uid)
            if eviction.preemptor.uid in self._refused:
                self._engine.withdraw(eviction.preemptor.uid)
            self._written(key, uid)

    async def _spare(self, workload: WorkloadView) -> None:
        """Write that a Workload need not go after all: the engine plans with it again."""
        key, uid = workload.key, workload.uid
        try:
            async with self._slots:
                current = self._world.workloads.get(key)
                if current is not None and current.uid == uid and current.evict_at and not current.evicting:
                    body = status.spared(current, self._grace.now())
                    raw = await self._transport.patch(f"{workload_path(key)}/status", body)
                    self._world.workloads.apply(parse_workload(raw))
        except ClusterError as error:
            await self._failed("end of a grace period not written", key, uid, error)
        finally:
            self._written(key, uid)

    async def _write_eviction(self, key: Key, eviction: Eviction) -> None:
        view, preemptor = self._world.workloads.get(key), self._keys.get(eviction.preemptor.uid)
        if view is None or view.admission is None or view.evicting or preemptor is None:
            return  # it has gone, or goes already, or nobody needs its place any more
        by = Preemption(preemptor, eviction.preemptor.uid, eviction.admission)
        now = self._grace.now()
        if eviction.grace:
            # One who was told before, for somebody who has gone since, is granted no more time.
            until = at(view.evict_at or ceil(now.timestamp() + eviction.grace))
            body = status.told(view, by, until, now)
        else:
            body = status.preempted(view, by, now)
        evicted = parse_workload(await self._transport.patch(f"{workload_path(key)}/status", body))
        self._world.workloads.apply(evicted)
        self._reasons.evicted(evicted)
        what = "told to end" if eviction.grace else "preempted"
        log.info(what, namespace=key[0], workload=key[1], by="/".join(preemptor))

    async def _settle(self, key: Key, uid: str) -> None:
        """Ask the API server, for as long as it takes, what has become of a write that failed."""
        while True:
            try:
                self._world.workloads.apply(parse_workload(await self._transport.get(workload_path(key))))
            except NotFoundError:
                self._world.workloads.delete(key, uid)
            except ClusterError as error:
                log.warning("can't read a workload", namespace=key[0], workload=key[1], error=str(error))
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            return
