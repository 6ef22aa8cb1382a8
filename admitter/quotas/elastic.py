"""ElasticQuotas as queues of the engine: the quota of each namespace (docs/design/elastic-quota.md).

All of them share one cohort, and each counts the sum of its flavors, so use is booked in one pool.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from admitter.api.base import LONGEST_NAME, own_name
from admitter.api.elastic_quota import SharedQuotaSpec
from admitter.convert.definitions import limit, victim_terms
from admitter.engine.policy import (
    BorrowWithin,
    Group,
    PreemptionPolicy,
    Queue,
    Quota,
    Reclaim,
    Strategy,
    WithinQueue,
)
from admitter.names import ANY_NODE, ELASTIC_QUOTA_QUEUE
from admitter.quantities.amounts import to_amount

COHORT: Final = ELASTIC_QUOTA_QUEUE
POOL: Final = "elastic_quota"  # the name under which they count what they use; no flavor's

RULES: Final = PreemptionPolicy(WithinQueue.LOWER_PRIORITY, Reclaim.ANY, BorrowWithin.GUARANTEED_SHARE)

_SHORT: Final = {"ElasticQuota": "eq", "CompositeElasticQuota": "ceq"}


@dataclass(frozen=True, slots=True)
class Declared:
    """An elastic quota as an administrator has declared it."""

    kind: str  # `ElasticQuota` or `CompositeElasticQuota`
    namespace: str
    name: str
    created: float  # when it was made, in seconds since the epoch
    namespaces: tuple[str, ...]  # those that it is for
    manages_all: bool = False  # whether it is for all of their Jobs, and not only for those that ask for it
    manages_pods: bool = False  # likewise for the pods of its namespace; the API server's policy sees to it

    @property
    def age(self) -> tuple[float, str, str, str]:
        """The oldest first; of one age by name."""
        return (self.created, self.namespace, self.name, self.kind)

    @property
    def queue(self) -> str:
        """The name of its queue: no ClusterQueue's, for it has underscores, and short enough for a label."""
        full = f"{_SHORT[self.kind]}_{self.namespace}_{self.name}"
        if len(full) <= LONGEST_NAME:
            return full
        digest = sha256(full.encode()).hexdigest()[:10]
        return f"{full[: LONGEST_NAME - len(digest) - 2].rstrip('_')}__{digest}"  # no other name has two

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


def governing(declared: Iterable[Declared]) -> tuple[dict[str, Declared], dict[Declared, str]]:
    """The quotas in force: of those that want one namespace the oldest, for all of its namespaces or none.

    Returns the quota that governs each namespace, and for those that govern none the reason.
    """
    by_namespace: dict[str, Declared] = {}
    conflicts: dict[Declared, str] = {}
    for quota in sorted(declared, key=lambda quota: quota.age):
        taken = next((n for n in quota.namespaces if n in by_namespace), None)
        if taken is None:
            by_namespace.update(dict.fromkeys(quota.namespaces, quota))
        else:
            conflicts[quota] = f"namespace {taken} is governed by {by_namespace[taken]}, which is older"
    return by_namespace, conflicts


def queue(declared: Declared, spec: SharedQuotaSpec, *, admits: bool = True) -> Queue:
    """The queue of a quota that is in force.

    Raises:
        InvalidQuantityError: a limit can't be counted.
    """
    minimum = {own_name(name): to_amount(name, quantity) for name, quantity in spec.min.items()}
    maximum = {own_name(name): limit(name, quantity) for name, quantity in spec.max.items()}
    resources = tuple(dict.fromkeys((*minimum, *maximum)))
    flavors = tuple(spec.flavors) or (ANY_NODE,)
    return Queue(
        declared.queue,
        Strategy.BEST_EFFORT_FIFO,
        (Group(resources, flavors),) if resources else (),
        {(POOL, r): Quota(minimum.get(r, 0), maximum.get(r)) for r in resources},
        COHORT,
        preemption=RULES,
        admits=admits,
        pool=POOL,
        lenient=True,
        victim_terms=victim_terms(spec.preemption),
    )


def kind_of_queue(name: str) -> str:
    """The kind of the object that a queue of the engine stands for; empty for no queue."""
    short, underscore, _ = name.partition("_")
    if underscore:  # which is in no name of a ClusterQueue
        return next(kind for kind, own in _SHORT.items() if own == short)
    return "ClusterQueue" if name else ""
