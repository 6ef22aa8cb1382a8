"""What a simulation keeps of each workload, and its events."""

from dataclasses import dataclass, field
from typing import NamedTuple

from admitter.cache.views import JobView, WorkloadView
from admitter.engine.model import Admission
from admitter.policy.gate import Waiting
from admitter.policy.lifecycle import Phase

Key = tuple[str, str]


class Event(NamedTuple):
    """Something that happened to a workload.

    Attributes:
        time: when, in seconds since the epoch.
        kind: `Admitted`, `EvictionPending`, `Spared`, `Preempted`, `Evicted` or `Finished`.
        key: namespace and name of the Workload.
        queue: the ClusterQueue.
        reason: one word.
        preemptor: namespace and name of the preemptor.
    """

    time: float
    kind: str
    key: Key
    queue: str
    reason: str
    preemptor: Key | None = None


@dataclass(slots=True)
class Run:
    """One admission of a workload.

    Attributes:
        queue: the ClusterQueue.
        start: in seconds since the epoch.
        end: likewise; None as long as it runs.
        evicted: whether it ended by an eviction.
    """

    queue: str
    start: float
    end: float | None = None
    evicted: bool = False


@dataclass(slots=True)
class Item:
    """A workload of the simulation.

    Attributes:
        job: its Job; None for a Workload without one.
        runtime: from its admission, in seconds; None: for ever.
        phase: where it is in its life.
        admission: what it holds, or held last.
        runs: its admissions, in order.
        order: its last admission's place among all admissions.
        waiting: why it waits.
        queue: the ClusterQueue that it is in; None if its LocalQueue leads nowhere.
        preempted: when it was preempted, in seconds since the epoch; None once it is admitted again.
    """

    view: WorkloadView
    job: JobView | None
    runtime: float | None
    phase: Phase = Phase.PENDING
    admission: Admission | None = None
    runs: list[Run] = field(default_factory=list)
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
