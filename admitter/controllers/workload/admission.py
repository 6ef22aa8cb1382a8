"""From events to admissions: the engine is fed, cycles decide, and what their plans say is written.

Previous step: a store changes (`admitter.cache.world`). Next step: the admitted Workload's Job
is started (`admitter.controllers.workload.jobs`).
"""

import asyncio
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from math import ceil
from typing import Final

from admitter.cache.preemption_status import PreemptionStatus
from admitter.cache.views import WorkloadView
from admitter.cache.world import World
from admitter.client.signal import Signal
from admitter.client.store import Key
from admitter.client.transport import Transport
from admitter.controllers.guarded import guarded
from admitter.controllers.workload.amendments import Amendments
from admitter.controllers.workload.decision_writer import DecisionWriter
from admitter.controllers.workload.engine_feed import EngineFeed
from admitter.controllers.workload.eviction_records import EvictionRecords
from admitter.controllers.workload.grace import GracePeriods
from admitter.controllers.workload.orphaned_pods import OrphanedPods
from admitter.controllers.workload.reservation_writer import ReservationWriter
from admitter.controllers.workload.waiting import WaitingReasons
from admitter.controllers.workload.writes import StatusWrites
from admitter.engine.cycle import Engine
from admitter.policy.catalog import Catalog
from admitter.policy.gate import Gate, Waiting
from admitter.policy.lifecycle import Step
from admitter.policy.pending_reservations import keep_reservations

GATHER_SECONDS: Final = 0.05
"""For how long changes of definitions are gathered at least."""
GATHER_TIMES: Final = 6.0
"""So many times as long as it took last to put them in force: most of the time is left for other work."""
LONGEST_GATHER_SECONDS: Final = 1.0


@dataclass(eq=False)
class Admissions:
    """Runs cycles whenever something changed."""

    world: World
    engine: Engine
    catalog: Catalog
    gate: Gate
    reasons: WaitingReasons
    grace: GracePeriods
    transport: Transport
    records: EvictionRecords

    def __post_init__(self) -> None:
        # a queue with this name has quota free again that orphaned pods used
        self.usage_changed: Signal[[str]] = Signal()
        self.decided: Signal[[float]] = Signal()  # a cycle is over that took so many seconds
        self._cycle_due = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._gather = GATHER_SECONDS
        self._shards = self.world.shards
        world, reasons = self.world, self.reasons
        writes = StatusWrites(world, self.transport, self.grace.clock)
        self._orphaned_pods = OrphanedPods(self.world, self.engine, self.transport, self._freed)
        self._reservations = ReservationWriter(world, self.engine, reasons, writes)
        self._amended = Amendments(world, reasons, writes)
        for written in (self._reservations, self._amended):
            written.on_due.listen(self._cycle_due.set)
        orphaned = self._orphaned_pods
        # changes of pods and Jobs concern the feed alone
        self.feed = EngineFeed(world, self.engine, self.gate, reasons, orphaned, self.schedule_cycle)
        self._writer = DecisionWriter(
            world, self.gate, self.feed, reasons, self._reservations, writes, self.records
        )
        # set when the API server says that another controller decides
        self.overruled = self._writer.overruled
        self._reworded: set[str] = set()
        self.catalog.news.queue.listen(self._reworded.add)

    def workload_changed(self, old: WorkloadView | None, new: WorkloadView | None) -> None:
        self.grace.workload_changed(old, new)
        if new is not None:
            self._reservations.seen(new)
            begins = new.evicting and old is not None and not old.evicting
            if begins and self.world.owners.owns(new.key):
                self.reasons.evicted(new)
        self.feed.workload_changed(old, new)

    def keys_of(self, uids: Iterable[str]) -> list[Key]:
        return [self.feed.keys[uid] for uid in uids if uid in self.feed.keys]

    def deciding(self) -> Iterator[Key]:
        """For each Workload with an admission that is being written, its LocalQueue."""
        for workload in map(self.world.workloads.get, self.keys_of(self.feed.writing)):
            if workload is not None and workload.admission is None:
                yield workload.namespace, workload.queue

    def schedule_cycle(self) -> None:
        changed = self.engine.changed or self.catalog.stale or self.feed.changed_pods
        if changed or any(map(self._may_amend, self.grace.needless())):
            self._cycle_due.set()

    def _amendments(self) -> Iterator[tuple[WorkloadView, PreemptionStatus | None]]:
        """Victims with a pending eviction for another preemptor than before; or with None, for none."""
        for victim, due in self.grace.pending():
            if self._may_amend(victim):
                by = self._reservations.passed_on(victim)
                if by is not None or due is Step.CANCEL:
                    yield victim, by

    def _may_amend(self, victim: WorkloadView) -> bool:
        if victim.uid in self.feed.writing or victim.uid in self.feed.refused:
            return False
        return self.world.owners.owns(victim.key)

    def _freed(self, queue: str) -> None:
        self.usage_changed(queue)
        self.schedule_cycle()

    def lead(self, epochs: dict[int, int]) -> None:
        """Decide for more shards, by their epochs; pending reservations of their earlier owners are kept."""
        self._shards.epochs.update(epochs)
        self.engine.resume(self._shards.decides)
        self._reservations.adopt(keep_reservations(self.world, self.engine, self.gate, self._reservations))
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
                if self._writer.finishing:
                    return
                self.feed.take_pods()
                if self._shards.epochs:
                    await guarded(self._decide(group), "to decide")

    def refresh(self) -> None:
        """Put changed definitions in force at once."""
        self.catalog.refresh()
        self.schedule_cycle()

    async def drained(self) -> None:
        """Wait for the end of all writes that were decided before now."""
        await self._writer.drained()
        await self._reservations.drained()

    def abandon_trees(self) -> None:
        """Drop pending reservations in trees that other processes own now."""
        self.engine.abandon_trees(self._shards.decides)
        self._reservations.abandon_trees()

    async def finish(self) -> None:
        """Decide nothing more, and wait until what was decided is written, or refused."""
        await self._writer.finish()
        await self._reservations.drained()

    async def _decide(self, group: asyncio.TaskGroup) -> None:
        began = time.perf_counter()
        plan = self.engine.cycle(int(self.grace.clock().timestamp()), self._shards.decides)
        took = time.perf_counter() - began
        keys, planned = self.feed.keys, dict[str, tuple[Key, Waiting]]()
        refusals = dict(chain.from_iterable(self.engine.refusals(name).items() for name in self._reworded))
        self._reworded.clear()  # what a queue tells of its use may have changed, though its refusals have not
        for uid, waiting in self.gate.all_wait({**refusals, **plan.refusals}):
            self.reasons.want(keys[uid], waiting)
            if uid in plan.planned:
                planned[uid] = (keys[uid], waiting)
        self._reservations.decided(planned)
        self._writer.write(group, plan)
        for victim, by in list(self._amendments()):
            self._writer.amend(group, victim, by)
        self._amended.decided(plan, keys, self._reservations.generation)
        self._amended.write(group)
        self._reservations.write(group, self.feed.writing)
        self._run_at(self.engine.due)
        self.decided(took)

    async def _refresh(self) -> None:
        """Put changed definitions in force, those of a while together."""
        if self.catalog.stale:
            loop = asyncio.get_running_loop()
            await asyncio.sleep(self._gather)
            began = loop.time()
            self.catalog.refresh()
            taken = GATHER_TIMES * (loop.time() - began)
            self._gather = min(max(GATHER_SECONDS, taken), LONGEST_GATHER_SECONDS)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _run_at(self, due: float | None) -> None:
        """Run a cycle when a `minRuntime` or a back-off ends."""
        self.close()
        self._timer = None
        if due is not None:
            left = max(0.0, ceil(due) - self.grace.clock().timestamp())  # cycles count whole seconds
            self._timer = asyncio.get_running_loop().call_later(left, self._cycle_due.set)
