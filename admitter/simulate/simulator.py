"""Runs a timeline: the controllers' catalog and gate and the engine, with a clock that jumps.

A step is: apply the changes of this moment, run one cycle of the engine, carry out its plan at once.
Evicted workloads end at once and wait again; admitted workloads end after their runtime.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from admitter.engine.tree_cycle import Plan
from admitter.policy.snapshot import Snapshot
from admitter.simulate.arrivals import Arrivals
from admitter.simulate.items import Event
from admitter.simulate.lifecycles import Lasts, Lifecycles
from admitter.simulate.manifests import Change, Timeline
from admitter.simulate.rounds import Endless, Rounds


class Simulator:
    """One simulation."""

    def __init__(
        self, timeline: Timeline, snapshot: Snapshot, lasts: Lasts = lambda _view, _ran: None
    ) -> None:
        """Start from a snapshot, which is used up; `lasts` says the runtimes of the workloads in it."""
        self.start = self.now = timeline.start  # in seconds since the epoch
        self.engine = snapshot.engine
        self._world = snapshot.world
        self._lifecycles = Lifecycles(snapshot, lasts)
        self._arrivals = Arrivals(timeline, snapshot, self._lifecycles)
        self.items, self.errors = self._lifecycles.items, self._arrivals.errors  # workloads by UID
        self.gone = self._lifecycles.gone  # workloads that have run, and were deleted
        self.cycles = 0  # how many there were while workloads waited
        self._rounds = Rounds(self.engine, self.items, self._lifecycles.age)
        self.endless: Endless | None = None  # the preemption loop that has stopped it; None if there is none

    def run(
        self,
        *,
        cycles: int | None = None,
        until: float | None = None,
        watch: Callable[[float], None] = lambda _: None,
        decided: Callable[[Plan, float], None] = lambda _plan, _now: None,
    ) -> Iterator[Event]:
        """Go on until nothing changes any more, or there is a preemption loop.

        Stop after so many `cycles` with waiting workloads, or at the time `until`. `watch` is called with the
        time whenever all of that moment has happened, and `decided` with each plan and the time before it is
        carried out. Times are in seconds since the epoch.
        """
        lives, arrivals = self._lifecycles, self._arrivals
        while True:
            if _is_due(arrivals.due, self.now):
                self._rounds.begin_anew()
            for event in chain(lives.finish(self.now), arrivals.take_in(self.now)):
                self._rounds.begin_anew()
                yield event
            yield from lives.expire(self.now)
            yield from lives.start_evictions(self.now)
            yield from lives.evict_late(self.now)
            lives.release()
            lives.try_again(self.now)
            pending = lives.pending_evictions
            to_come = bool(arrivals.to_come) or lives.readiness.due is not None
            self.endless = self._rounds.look(self.now, pending, to_come=to_come)
            if self.endless is not None:
                watch(self.now)
                return
            if self.engine.changed or _is_due(self.engine.due, self.now):
                self.cycles += self.engine.busy
                plan = self.engine.cycle(self.now)
                self._rounds.decided(plan.evictions)
                decided(plan, self.now)
                yield from lives.carry_out(plan, self.now)
                if self.cycles == cycles:
                    watch(self.now)
                    return
                continue
            yield from lives.cancel_evictions(self.now)
            shrunk = lives.shrink(self.now)
            if shrunk:
                self._rounds.begin_anew()
                yield from shrunk
                continue
            watch(self.now)
            times = (arrivals.due, lives.due, self.engine.due)
            following = min((time for time in times if time is not None), default=None)
            if until is not None and (following is None or following > until):
                self.now = max(self.now, until)
                watch(self.now)
                return
            if following is None:
                return
            self.now = following

    def add(self, changes: Iterable[Change]) -> None:
        """Let more happen, none of it before the time that was simulated last."""
        self._arrivals.add(changes)

    @property
    def to_come(self) -> int:
        """How many changes of the timeline have not happened yet."""
        return self._arrivals.to_come

    def queue_names(self) -> set[str]:
        """All ClusterQueues there are, and the queues of elastic quotas."""
        return {view.name for view in self._world.cluster_queues} | self.elastic_queue_names()

    def elastic_queue_names(self) -> set[str]:
        """The queues of elastic quotas, and those of deleted quotas in which workloads still run."""
        return {name for name, queue in self.engine.tree.queues.items() if queue.pool}


def _is_due(time: float | None, now: float) -> bool:
    return time is not None and time <= now
