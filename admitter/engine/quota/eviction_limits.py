"""How often workloads may be evicted for others: docs/design/eviction-limits.md."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from admitter.engine.policy import EvictionLimit


class LimitOf(StrEnum):
    """Of which workloads evictions count together."""

    WORKLOAD = "workload"  # each by itself
    QUEUE = "queue"  # all of a queue
    COHORT = "cohort"  # all of the queues below a cohort


@dataclass(frozen=True, slots=True)
class LimitReached:
    """Why a workload that others would be let in for is not evicted."""

    queue: str  # of the workload; of a Cohort's limit the Cohort
    limit: EvictionLimit
    until: float  # when it may be evicted again, in seconds since the epoch; inf: never
    of: LimitOf = LimitOf.WORKLOAD


@dataclass(frozen=True, slots=True)
class Window:
    """The evictions that count in a limit at one moment."""

    limit: EvictionLimit
    times: tuple[float, ...]  # when they were, the oldest first, in seconds since the epoch

    @property
    def left(self) -> int:
        """How many more there may be now; negative if the limit was larger before."""
        return self.limit.count - len(self.times)

    def opens(self, more: int) -> float:
        """From when on there may be so many more; 0: at any time, inf: never."""
        if more > self.limit.count:
            return inf
        excess = more - self.left
        return self.times[excess - 1] + self.limit.per if excess > 0 else 0.0


def opens(limit: EvictionLimit | None, evictions: Sequence[float]) -> float:
    """From when on a workload may be evicted that was at some times, the oldest first.

    Then no time span that is as long as the limit's has more evictions than its count. All in seconds since
    the epoch; 0: it may be at any time, inf: never.
    """
    if limit is None:
        return 0.0
    if not limit.count:
        return inf
    return evictions[-limit.count] + limit.per if len(evictions) >= limit.count else 0.0
