"""Limits on evictions for others, and what queues remember of evictions (docs/design/eviction-limits.md)."""

from typing import Final

from pydantic import Field

from admitter.api.base import Duration, Int32, Model, Moment

MOST_EVICTIONS: Final = 10
"""So many evictions of a Workload are remembered at most."""
MOST_EVICTIONS_OF_QUEUE: Final = 100
"""So many evictions of all Workloads of a queue are remembered at most."""


class EvictionLimit(Model):
    """How often one Workload may be evicted for others."""

    count: Int32 = Field(ge=0, le=MOST_EVICTIONS)
    """So often at most. 0: never."""
    per: Duration
    """In any time span of this length, such as 30m, 4h or 1d."""


class CommonEvictionLimit(Model):
    """How many evictions of Workloads for others there may be, of all of them together."""

    count: Int32 = Field(ge=0, le=MOST_EVICTIONS_OF_QUEUE)
    """So many at most. 0: none."""
    per: Duration
    """In any time span of this length, such as 30m, 4h or 1d."""


class RecordedEviction(Model):
    """The eviction of a Workload for another one; the Workload may be gone since."""

    at: Moment
    """When it began at the latest, in whole seconds."""
    uid: str = Field(max_length=128)
    """The UID of the Workload."""
