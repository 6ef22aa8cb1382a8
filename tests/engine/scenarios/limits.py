"""No window has more evictions than limits allow: counted beside the engine, by what happens."""

from collections import defaultdict
from collections.abc import Iterator

from admitter.engine.policy import EvictionLimit
from admitter.engine.tree_cycle import PlannedEviction
from tests.engine.scenarios import cases
from tests.engine.scenarios.driver import Check, Play
from tests.engine.scenarios.records import Node, limits_above

Begun = tuple[float, str, str]  # when an eviction began, of which workload, and of which queue it held quota


class Limits(Check):
    """Counts for each workload the evictions in the time span of its queue's limit."""

    rule = "limits"

    def __init__(self) -> None:
        super().__init__()
        self._times: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)

    def goes(self, play: Play, victim: str, preemptor: str) -> None:
        self._times[victim].append((play.now, preemptor))

    def refused(self, victim: str) -> None:
        self._times[victim].pop()

    def evicted(self, play: Play, eviction: PlannedEviction) -> None:
        uid, queue = eviction.victim.holder, play.world.queues.get(eviction.victim.queue)
        limit = queue.eviction_limit if queue is not None else None
        if limit is None or uid in play.world.leaving:
            return
        self.met += 1
        recent = [each for each in self._times[uid] if each[0] > play.now - limit.per]
        if len(recent) >= limit.count:
            raise self.broken(f"{uid} is evicted again, within {limit.per:g} s it was for {recent}")


class CommonLimits(Check):
    """Counts the evictions of all workloads of a queue, and of all below a Cohort.

    What is decided stays within all limits as they are then, whenever it begins. What began where nothing was
    limited is not counted: no record has it.
    """

    rule = "windows"

    def __init__(self) -> None:
        super().__init__()
        self._begun: list[Begun] = []
        self._decided: list[tuple[str, str]] = []

    def goes(self, play: Play, victim: str, _preemptor: str) -> None:
        queue = play.world.running[victim].admission.queue
        if limits_above(play.world, queue):
            self._begun.append((play.now, victim, queue))

    def refused(self, victim: str) -> None:
        last = [each for each in self._begun if each[1] == victim][-1:]
        self._begun = [each for each in self._begun if each not in last]

    def evicted(self, _play: Play, eviction: PlannedEviction) -> None:
        self._decided.append((eviction.victim.holder, eviction.victim.queue))

    def outside(self, _play: Play, event: object) -> None:
        if isinstance(event, cases.Refuse):
            self._decided.clear()

    def quiet(self, play: Play) -> None:
        world = play.world
        flying = [
            (play.now, uid, world.running[uid].admission.queue)
            for uid, leaving in world.leaving.items()
            if not leaving.going
        ]
        decided, self._decided = self._decided, []
        for uid, queue in decided:
            for node, limit, below in _limits(play, queue):
                counted = [
                    e for e in (*self._begun, *flying) if e[2] in below and e[0] > play.now - limit.per
                ]
                self.met += 1
                if len(counted) > limit.count:
                    raise self.broken(f"{node}: {counted} after the decision about {uid}, {limit} allowed")

    def rest(self, play: Play) -> None:
        """Without edits no window at any time has more."""
        if any(isinstance(step.event, cases.Edit) for step in play.scenario.steps):
            return
        for end, _, queue in self._begun:
            for node, limit, below in _limits(play, queue):
                inside = [e for e in self._begun if e[2] in below and end - limit.per < e[0] <= end]
                self.met += 1
                if len(inside) > limit.count:
                    raise self.broken(f"{node}: {inside} until {end:g} s, {limit} allowed")


def _limits(play: Play, queue: str) -> Iterator[tuple[Node, EvictionLimit, frozenset[str]]]:
    """The limits on an eviction from a queue, each with the queues that count in it."""
    above = {name: limits_above(play.world, name) for name in play.world.queues}
    for node, limit in above[queue].items():
        yield node, limit, frozenset(name for name, limits in above.items() if node in limits)
