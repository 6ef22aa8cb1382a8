"""What administrators define: queues, cohorts, their quota and their rules, as immutable values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from math import inf
from typing import Final

from admitter.engine.model import FlavorResource
from admitter.names import ELASTIC_QUOTA_QUEUE


class Strategy(StrEnum):
    """What a workload that does not fit means for those behind it."""

    BEST_EFFORT_FIFO = "BestEffortFIFO"
    STRICT_FIFO = "StrictFIFO"


class WithinQueue(StrEnum):
    """The victims that a workload may have in its own queue."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    LOWER_OR_NEWER_EQUAL_PRIORITY = "LowerOrNewerEqualPriority"


class Reclaim(StrEnum):
    """The victims that a workload may have in other queues of the cohort to get back what its queue lent."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    ANY = "Any"


class BorrowWithin(StrEnum):
    """The victims that a workload may have in other queues of the cohort in order to borrow."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    GUARANTEED_SHARE = "GuaranteedShare"


@dataclass(frozen=True, slots=True)
class Quota:
    """Limits on one resource in one flavor, in the resource's unit."""

    minimum: int = 0  # its own; what is unused of it can be lent
    maximum: int | None = None  # the most that may be in use, borrowed quota included; None: no such limit
    lending_limit: int | None = None  # the most of an unused minimum that others get; None: all of it


@dataclass(frozen=True, slots=True)
class PreemptionPolicy:
    """The victims that a queue's workloads may have."""

    within: WithinQueue = WithinQueue.NEVER  # in the same queue
    reclaim: Reclaim = Reclaim.NEVER  # elsewhere, while the queue stays within its own quota
    borrow: BorrowWithin = BorrowWithin.NEVER  # elsewhere, while the queue borrows
    # the highest priority of a victim of `LowerPriority`; None: any below the preemptor's
    threshold: int | None = None

    @property
    def allowed(self) -> bool:
        """Whether anything may be preempted at all."""
        return not (
            self.within is WithinQueue.NEVER
            and self.reclaim is Reclaim.NEVER
            and self.borrow is BorrowWithin.NEVER
        )


@dataclass(frozen=True, slots=True)
class VictimTerms:
    """What is granted to workloads that may be preempted, in seconds."""

    grace: float = 0.0  # how long the eviction of a preempted one is pending
    runtime: float = 0.0  # how long one has to have held its quota before it may be preempted

    def at_most(self, other: "VictimTerms") -> "VictimTerms":
        return VictimTerms(min(self.grace, other.grace), min(self.runtime, other.runtime))


NO_TERMS: Final = VictimTerms()
ANY_TERMS: Final = VictimTerms(inf, inf)


@dataclass(frozen=True, slots=True)
class EvictionLimit:
    """How many evictions for others there may be: of one workload, or of all below a queue or Cohort."""

    count: int  # so many at most
    per: float  # in any time span of so many seconds


@dataclass(frozen=True, slots=True)
class Fungibility:
    """When a flavor that could do is passed over for the next one."""

    borrow: bool = True  # take a flavor that fits by borrowing, rather than try the next
    preempt: bool = False  # take a flavor that fits by preempting, rather than try the next


@dataclass(frozen=True, slots=True)
class Group:
    """Codependent resources: a pod set gets one flavor for all of them. Flavors are tried in this order."""

    resources: tuple[str, ...]
    flavors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Queue:
    """A ClusterQueue's rules."""

    name: str
    strategy: Strategy
    groups: tuple[Group, ...]  # disjoint groups of resources and of flavors
    quotas: Mapping[FlavorResource, Quota] = field(hash=False)  # by flavor and resource
    cohort: str = ""  # the cohort that it shares quota in; empty for none
    fungibility: Fungibility = Fungibility()  # how flavors are chosen
    preemption: PreemptionPolicy = PreemptionPolicy()  # the victims that its workloads may have
    admits: bool = True  # False for a queue that lends and counts what it uses, but admits nothing
    # with fair sharing, how much more than a queue of weight 1 it may borrow; 0: only what no other else
    # wants
    weight: Fraction = Fraction(1)
    # a name under which use of all flavors counts together, and `quotas` are; empty: each by itself
    pool: str = ""
    lenient: bool = False  # whether what it does not count is not limited either, instead of refused
    victim_terms: VictimTerms = NO_TERMS  # what its workloads are granted before they are preempted
    # by resource, the most that may be in use in all flavors together
    limits: Mapping[str, int] = field(default_factory=dict, hash=False)
    by_namespace: bool = False  # whether the namespace with the smallest share in it goes first
    eviction_limit: EvictionLimit | None = None  # how often each of its workloads may be evicted; None: any
    max_evictions: EvictionLimit | None = None  # the same of all its workloads together

    def key(self, flavor: str, resource: str) -> FlavorResource:
        """Where use of a resource in a flavor counts."""
        return (self.pool or flavor, resource)

    def keys(self) -> tuple[FlavorResource, ...]:
        """Where use of all that the queue counts can count."""
        keys = (self.key(f, r) for group in self.groups for r in group.resources for f in group.flavors)
        return tuple(dict.fromkeys(keys))

    @property
    def is_plain(self) -> bool:
        """Whether it has nothing of its own, and does not preempt in order to borrow."""
        nothing = not any(quota.minimum for quota in self.quotas.values())
        return nothing and self.preemption.borrow is BorrowWithin.NEVER

    def covered(self) -> tuple[str, ...]:
        """The resources that the queue counts."""
        return tuple(resource for group in self.groups for resource in group.resources)


def left_behind(name: str, pool: str) -> Queue:
    """The queue of an elastic quota that is gone, as long as something is used in it."""
    cohort = ELASTIC_QUOTA_QUEUE
    return Queue(name, Strategy.BEST_EFFORT_FIFO, (), {}, cohort, admits=False, pool=pool, lenient=True)


@dataclass(frozen=True, slots=True)
class Cohort:
    """A Cohort object; a cohort that is only named needs none."""

    name: str
    parent: str = ""  # the cohort above it; empty for none
    # `minimum` is added to what its queues lend, `maximum` caps what the whole subtree uses
    quotas: Mapping[FlavorResource, Quota] = field(default_factory=dict, hash=False)
    weight: Fraction = Fraction(1)  # as of a queue, among its siblings
    fair: bool = False  # whether what is borrowed below it is shared by weight; counts at the root only
    victim_terms: VictimTerms = ANY_TERMS  # the most that queues below it may grant
    # the most evictions of workloads of all queues below it together; None: any number
    max_evictions: EvictionLimit | None = None
