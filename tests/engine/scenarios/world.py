"""What is true outside the engine while a scenario is played."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from admitter.engine.model import Admission, FlavorResource, Workload
from admitter.engine.policy import Cohort, Queue
from admitter.engine.quota.extras import Extra
from admitter.engine.refusal import Refusal
from tests.engine.scenarios.arithmetic import Quotas


@dataclass(slots=True)
class Running:
    """A workload that holds quota.

    Attributes:
        workload: what it is; None once it is deleted and only its pods are left.
        admission: what it holds.
        whole: what it was admitted with, once it holds something else.
        extra: what it runs beyond its admission, or could, by pod set; by an empty name if it has only one.
        shrinks_at: when extra pods that are to end have ended.
        since: when it was admitted.
        namespace: with the share of the queue that it uses.
        pods: since when its pods are there; None if they are not.
        checkpoint: when it says that it has last saved its work; 0: it says nothing.
    """

    workload: Workload | None
    admission: Admission
    since: float
    namespace: str
    pods: float | None = None
    checkpoint: float = 0.0
    whole: Admission | None = None
    extra: dict[str, Extra] = field(default_factory=dict)
    shrinks_at: float | None = None


@dataclass(slots=True)
class Leaving:
    """A victim on its way out.

    Attributes:
        at: when it is gone; before it goes, when it is to go.
        going: whether it goes: before that it may yet be cancelled.
        preemptor: what it goes for.
    """

    at: float
    going: bool
    preemptor: str


@dataclass(slots=True)
class World:
    """What is true outside the engine.

    Attributes:
        queues: as they are defined now.
        cohorts: likewise.
        weights: of namespaces.
        running: what holds quota, by UID.
        waiting: what waits or has a place that is being made.
        leaving: victims.
        told: why the waiting ones wait, as they were told last.
        records: when workloads of a queue were evicted for others, with their UIDs, by queue.
    """

    queues: dict[str, Queue]
    cohorts: dict[str, Cohort]
    weights: dict[str, int]
    running: dict[str, Running] = field(default_factory=dict)
    waiting: dict[str, Workload] = field(default_factory=dict)
    leaving: dict[str, Leaving] = field(default_factory=dict)
    told: dict[str, Refusal] = field(default_factory=dict)
    records: dict[str, tuple[tuple[float, str], ...]] = field(default_factory=dict)

    def quotas(self) -> Quotas:
        """The arithmetic of the definitions."""
        return Quotas(self.queues, self.cohorts)

    def use(self, holders: Iterable[str]) -> dict[str, dict[FlavorResource, int]]:
        """What some of the running ones use, by queue."""
        sums: dict[str, dict[FlavorResource, int]] = {}
        for uid in holders:
            admission = self.running[uid].admission
            add(sums, admission)
        return sums


def add(sums: dict[str, dict[FlavorResource, int]], admission: Admission) -> None:
    """Add what an admission holds to what queues use."""
    used = sums.setdefault(admission.queue, {})
    for assignment in admission.pod_sets:
        flavors = dict(assignment.flavors)
        for resource, amount in assignment.usage:
            key = (admission.pool or flavors[resource], resource)
            used[key] = used.get(key, 0) + amount
