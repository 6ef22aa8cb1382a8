"""No workload is evicted more often than its queue allows: counted beside the engine, by what happens."""

from collections import defaultdict

from admitter.engine.tree_cycle import PlannedEviction
from tests.engine.scenarios.driver import Check, Play


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
