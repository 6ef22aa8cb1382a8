"""What a simulation keeps of each workload, and its events."""

from dataclasses import dataclass, field
from typing import NamedTuple

from admitter.cache.views import JobView, WorkloadView
from admitter.engine.model import Admission
from admitter.policy.gate import Waiting
from admitter.policy.lifecycle import Phase

Key = tuple[str, str]


class Event(NamedTuple):
    """Something that happened to a workload."""

    time: float  # when, in seconds since the epoch
    kind: str  # `Admitted`, `EvictionPending`, `Spared`, `Preempted`, `Evicted`, `Resized` or `Finished`
    key: Key  # namespace and name of the Workload
    queue: str  # the ClusterQueue
    reason: str  # one word
    preemptor: Key | None = None  # its namespace and name


@dataclass(slots=True)
class Run:
    """One admission of a workload."""

    queue: str  # the ClusterQueue
    start: float  # in seconds since the epoch
    end: float | None = None  # likewise; None as long as it runs
    evicted: bool = False  # whether it ended by an eviction


@dataclass(slots=True)
class Item:
    """A workload of the simulation."""

    view: WorkloadView
    job: JobView | None  # None for a Workload without one
    runtime: float | None  # from its admission, in seconds; None: for ever
    phase: Phase = Phase.PENDING
    admission: Admission | None = None  # what it holds, or held last
    runs: list[Run] = field(default_factory=list)  # its admissions, in order
    order: int = 0  # its last admission's place among all admissions
    waiting: Waiting | None = None
    queue: str | None = None  # the ClusterQueue that it is in; None if its LocalQueue leads nowhere
    # when it was preempted, in seconds since the epoch; None once it is admitted again
    preempted: float | None = None
    # how long after an admission its pods are ready, in seconds; None: at once
    ready_after: float | None = None
    evictions: tuple[float, ...] = ()  # when it was preempted, the oldest first: the last times

    @property
    def unplaced(self) -> bool:
        """Whether it is a Job for which no queue has been found."""
        return self.job is not None and self.job.queue is None

    @property
    def created(self) -> float:
        """What its age counts from, in seconds since the epoch."""
        return self.job.created if self.job is not None else self.view.created

    @property
    def name(self) -> str:
        """The name that its user knows: the Job's, if it has one."""
        return self.job.name if self.job is not None else self.view.name

    def waits(self, now: float) -> list[tuple[float, float]]:
        """When it waited, until `now`, in seconds since the epoch."""
        ends = [self.created, *(now if run.end is None else run.end for run in self.runs)]
        waits_now = self.phase in {Phase.PENDING, Phase.EVICTED}
        starts = [*(run.start for run in self.runs), *([now] if waits_now else [])]
        return [(end, start) for end, start in zip(ends, starts, strict=False) if start > end]

    def stop(self, now: float, *, evicted: bool = False) -> None:
        """It runs no more, if it did."""
        if self.runs and self.runs[-1].end is None:
            self.runs[-1].end, self.runs[-1].evicted = now, evicted


class End(NamedTuple):
    """The end of one of a workload's starts."""

    time: float
    uid: str
    start: int
