"""What becomes of a Workload after its admission: `spec.lifecycle` of ClusterQueues and Cohorts.

A field that a ClusterQueue leaves out is that of the nearest Cohort above that has it.
"""

from pydantic import Field

from admitter.api.base import Duration, Int32, Model


class Backoff(Model):
    """How long a Workload waits after an eviction for readiness."""

    base: Duration = 60
    """The wait after the first eviction, such as 30s, 5m or 1h30m."""
    factor: Int32 = Field(default=2, ge=1, le=100)
    """Each further wait in a row is so many times as long as the one before."""
    max: Duration = 3600
    """The longest wait, such as 30s, 5m or 1h30m."""


class GiveUp(Model):
    """When a Workload that does not become ready is paused (spec.active false). Whichever comes first."""

    attempts: Int32 | None = Field(default=None, ge=1, le=1_000_000)
    """After so many evictions in a row for which its own pods are to blame. Absent: any number."""
    after: Duration | None = None
    """With the first such eviction so long after the admission that began the row, such as 6h or 2d. Absent:
    any time."""


class Lifecycle(Model):
    """What becomes of a Workload after its admission."""

    ready_timeout: Duration | None = None
    """How long after its admission all pods of a Workload have to be ready, or to have succeeded, such as 90s
    or 30m. After that it is evicted, and tried again later. 0: no limit. Absent everywhere: 30m for Jobs, and
    no limit for other kinds."""
    recovery_timeout: Duration | None = None
    """How long a Workload that was ready may lack a ready pod before it is evicted, such as 90s or 30m.
    0: no limit. Absent everywhere: as readyTimeout. Means nothing where readyTimeout is 0."""
    backoff: Backoff | None = None
    """How long a Workload waits after an eviction for readiness; it holds nothing meanwhile, and no other
    waits for it. Absent everywhere: 60s, twice as long each time, at most 1h."""
    give_up: GiveUp | None = None
    """When a Workload that does not become ready is paused. Evictions for want of a node count for nothing
    here. Absent everywhere: never."""
