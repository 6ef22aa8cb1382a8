"""What a scenario consists of: definitions, and what happens one after the other. Immutable values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from admitter.engine.model import Admission, Flavor, Workload
from admitter.engine.policy import NO_TERMS, Cohort, PreemptionPolicy, Queue, Quota


@dataclass(frozen=True, slots=True)
class Arrive:
    """A workload comes; once admitted it runs for `runs` seconds, or for ever if that is None."""

    workload: Workload
    runs: int | None


@dataclass(frozen=True, slots=True)
class End:
    """One of the running workloads ends. `which` counts through them by UID, round and round."""

    which: int


@dataclass(frozen=True, slots=True)
class Delete:
    """One of the running workloads is deleted; its pods are there for so many seconds more."""

    which: int
    lingers: int


@dataclass(frozen=True, slots=True)
class Withdraw:
    """One of the waiting workloads is deleted."""

    which: int


@dataclass(frozen=True, slots=True)
class Change:
    """One of the waiting workloads gets another priority."""

    which: int
    priority: int


@dataclass(frozen=True, slots=True)
class Edit:
    """A queue or a Cohort is defined anew."""

    definition: Queue | Cohort


@dataclass(frozen=True, slots=True)
class Weigh:
    """A namespace gets another weight."""

    namespace: str
    weight: int


@dataclass(frozen=True, slots=True)
class Lose:
    """The first admission of the next plan that has any is not written."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """The first eviction of the next plan that has any is not written: the caller cancels it."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """Everything that the engine knows of workloads is told again."""


@dataclass(frozen=True, slots=True)
class Restart:
    """Another engine goes on, which reads what was decided."""


@dataclass(frozen=True, slots=True)
class Revalue:
    """One of those that run gets another priority, as by its WorkloadPriorityClass.

    Attributes:
        which: which of them, by the order of their UIDs, round and round.
        priority: the new one.
    """

    which: int
    priority: int


@dataclass(frozen=True, slots=True)
class Resize:
    """Pods of one of those that run end for good, or are needed again.

    Attributes:
        which: which of them, by the order of their UIDs, round and round.
        pods: how many of each pod set are left, modulo one more than was admitted.
    """

    which: int
    pods: int


@dataclass(frozen=True, slots=True)
class Save:
    """One of those that run says that it has saved its work.

    Attributes:
        which: which of them, by the order of their UIDs, round and round.
        ago: how many seconds ago, or before they are over if that is negative.
    """

    which: int
    ago: int


@dataclass(frozen=True, slots=True)
class Grow:
    """One of those that run could use more pods than it was admitted with.

    Attributes:
        which: which of them, by the order of their UIDs, round and round.
        pods: how many more.
    """

    which: int
    pods: int


OfOne = End | Delete | Withdraw | Change | Revalue | Resize | Save | Grow
Event = Arrive | OfOne | Edit | Weigh | Lose | Refuse | Repeat | Restart


@dataclass(frozen=True, slots=True)
class Step:
    """Something that happens so many seconds after the step before."""

    after: int
    event: Event


@dataclass(frozen=True, slots=True)
class Scenario:
    """One case.

    Attributes:
        seed: the number that it is made from.
        part: of what it has most.
        flavors: kinds of hardware.
        cohorts: Cohort objects.
        queues: ClusterQueues, or the queues of elastic quotas.
        weights: of namespaces.
        departures: how long a victim takes to leave, in seconds: the first, the second and so on, round
            and round.
        pods: after how many seconds the pods of what was admitted are there.
        steps: what happens.
        extra: how many more pods than they were admitted with workloads could use, by UID.
        spans: how long they wait until they may grow, in seconds: of a workload one of these.
    """

    seed: int
    part: str
    flavors: tuple[Flavor, ...]
    cohorts: tuple[Cohort, ...]
    queues: tuple[Queue, ...]
    weights: Mapping[str, int]
    departures: tuple[int, ...]
    pods: int
    steps: tuple[Step, ...]
    extra: Mapping[str, int] = field(default_factory=dict)
    spans: tuple[int, ...] = (0,)

    def told(self) -> Iterator[str]:
        """The definitions, one a line."""
        yield f"scenario {self.seed} ({self.part})"
        for flavor in self.flavors:
            labels = " ".join(f"{key}={value}" for key, value in flavor.labels)
            taints = " ".join(f"taint {taint}" for taint in flavor.taints)
            yield f"  flavor {flavor.name} {labels} {taints}".rstrip()
        definitions: list[Queue | Cohort] = [*self.cohorts, *self.queues]
        yield from (f"  {told(definition)}" for definition in definitions)
        for namespace, weight in self.weights.items():
            yield f"  namespace {namespace}: weight {weight}"
        yield f"  victims leave after {list(self.departures)} s, pods come after {self.pods} s"
        if self.extra:
            yield f"  could use more pods: {dict(self.extra)}, after {list(self.spans)} s"


def told(definition: Queue | Cohort) -> str:
    """A definition in one line."""
    quotas = ", ".join(f"{r} of {f} {_quota(quota)}" for (f, r), quota in definition.quotas.items())
    if isinstance(definition, Cohort):
        place = f"{definition.name} below {definition.parent or 'nothing'}"
        fair = " fair sharing," if definition.fair else ""
        limits = "; ".join([quotas, *_common_limit(definition)])
        return f"Cohort {place}:{fair} weight {definition.weight}; {limits}"
    groups = " ".join(f"{'+'.join(g.resources)} in {'/'.join(g.flavors)};" for g in definition.groups)
    words = [f"weight {definition.weight}"] if definition.weight != 1 else []
    words += ["namespaces take turns"] if definition.by_namespace else []
    words += [f"limits {dict(definition.limits)}"] if definition.limits else []
    words += [] if definition.admits else ["stopped"]
    words += ["elastic"] if definition.pool else []
    fungibility = definition.fungibility
    words += [] if fungibility.borrow else ["tries the next flavor before it borrows"]
    words += ["preempts before it tries the next flavor"] if fungibility.preempt else []
    if definition.victim_terms != NO_TERMS:
        words.append(
            f"grace {definition.victim_terms.grace:g} s, minRuntime {definition.victim_terms.runtime:g} s"
        )
    if definition.eviction_limit is not None:
        limit = definition.eviction_limit
        words.append(f"each is evicted {limit.count} times in {limit.per:g} s at most")
    words += _common_limit(definition)
    words.append(_policy(definition.preemption))
    kind = f"{definition.strategy} queue {definition.name} in {definition.cohort or 'nothing'}"
    return f"{kind}: {groups} {quotas}; {'; '.join(words)}"


def _common_limit(definition: Queue | Cohort) -> list[str]:
    limit = definition.max_evictions
    return [] if limit is None else [f"{limit.count} evictions in {limit.per:g} s at most"]


def _quota(quota: Quota) -> str:
    most = "" if quota.maximum is None else f" max {quota.maximum}"
    lending = "" if quota.lending_limit is None else f" lendingLimit {quota.lending_limit}"
    return f"min {quota.minimum}{most}{lending}"


def _policy(policy: PreemptionPolicy) -> str:
    if not policy.allowed:
        return "preempts nothing"
    threshold = "" if policy.threshold is None else f" up to {policy.threshold}"
    return f"within {policy.within}, reclaim {policy.reclaim}, borrow {policy.borrow}{threshold}"


def held(admission: Admission) -> str:
    """An admission in one line."""
    return " ".join(
        f"{amount} {resource} of {dict(each.flavors)[resource]}"
        for each in admission.pod_sets
        for resource, amount in each.usage
    )


def asks(workload: Workload) -> str:
    """A workload in one line."""
    sets = []
    for pod_set in workload.pod_sets:
        least = "" if pod_set.min_count is None else f" (at least {pod_set.min_count})"
        requests = " ".join(f"{amount} {resource}" for resource, amount in pod_set.requests)
        where = "".join(f" on {key}={value}" for key, value in pod_set.node_selector)
        where += " tolerates taints" if pod_set.tolerations else ""
        sets.append(f"{pod_set.count}{least} x [{requests}]{where}")
    who = f"{workload.uid} in {workload.queue}"
    namespace = f" of {workload.namespace}" if workload.namespace else ""
    return (
        f"{who}{namespace}: priority {workload.priority}, made at {workload.created:g}, {' and '.join(sets)}"
    )
