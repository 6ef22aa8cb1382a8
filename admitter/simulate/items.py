"""What a simulation keeps of each workload, and what it tells."""

from dataclasses import dataclass
from typing import NamedTuple

from admitter.cache.views import JobView, WorkloadView
from admitter.engine.model import Admission, Workload
from admitter.policy.gate import Waiting

Key = tuple[str, str]


class Event(NamedTuple):
    """Something that happened to a workload.

    Attributes:
        time: when, in seconds since the epoch.
        kind: `Admitted`, `EvictionPending`, `Spared`, `Preempted`, `Evicted` or `Finished`.
        key: namespace and name of the Workload.
        queue: the ClusterQueue.
        reason: one word.
        preemptor: namespace and name of the Workload it was preempted for.
    """

    time: float
    kind: str
    key: Key
    queue: str
    reason: str
    preemptor: Key | None = None


@dataclass(slots=True)
class Item:
    """A workload of the simulation.

    Attributes:
        view: the Workload, as the controllers see it.
        job: the Job it was made for; None for a Workload of its own.
        runtime: for how long it runs once it is admitted, in seconds; None: for ever.
        state: `Pending`, `Admitted`, `Preempted` or `Finished`.
        admission: what it holds, or held last.
        starts: how often it was admitted, so that the end of an earlier start is told from the last's.
        order: its last admission's place among all admissions.
        waiting: why it waits.
        queue: the ClusterQueue that it is in; None if its LocalQueue leads nowhere.
        preempted: when it was preempted, in seconds since the epoch; None once it is admitted again.
    """

    view: WorkloadView
    job: JobView | None
    runtime: float | None
    state: str = "Pending"
    admission: Admission | None = None
    starts: int = 0
    order: int = 0
    waiting: Waiting | None = None
    queue: str | None = None
    preempted: float | None = None

    @property
    def unplaced(self) -> bool:
        """Whether it is a Job for which no queue has been found."""
        return self.job is not None and self.job.queue is None

    @property
    def created(self) -> float:
        """What its age counts from, in seconds since the epoch."""
        return self.job.created if self.job is not None else self.view.created


@dataclass(frozen=True, slots=True)
class PendingEviction:
    """Somebody has been told that he will be evicted: when, in which of his starts, and for whom."""

    until: float
    start: int
    preemptor: Workload


class End(NamedTuple):
    """When one of a workload's starts comes to its end."""

    time: float
    uid: str
    start: int
