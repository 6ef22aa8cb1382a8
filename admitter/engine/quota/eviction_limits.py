"""How often one workload may be evicted for others: docs/design/eviction-limits.md."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from admitter.engine.policy import EvictionLimit


@dataclass(frozen=True, slots=True)
class LimitReached:
    """Why a workload that others would be let in for is not evicted."""

    queue: str  # its queue
    limit: EvictionLimit
    until: float  # when it may be evicted again, in seconds since the epoch; inf: never


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
