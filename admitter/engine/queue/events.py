"""What the rest of the engine reports to `requeue`: something after which what was refused may fit."""

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from admitter.engine.model import FlavorResource, Workload
from admitter.engine.quota.tree import Node

Amounts = Collection[tuple[FlavorResource, int]]  # how much of each flavor and resource


class UsageShrank(NamedTuple):
    """A queue uses so much less by the plan than before."""

    queue: str
    usage: Amounts


class ClaimsLessened(NamedTuple):
    """Others have to leave so much less for a queue than before."""

    queue: str
    usage: Amounts


class UsageGrew(NamedTuple):
    """A queue uses more by the plan than before, or other workloads of it may be evicted."""

    queue: str  # its name
    keys: Collection[FlavorResource]  # in what it, or a cohort above it, borrows more than before
    newcomer: Workload | None = None  # what uses more; None: anything of the queue


class PendingReservationMade(NamedTuple):
    """A workload of a queue, of some priority, gets a pending reservation."""

    queue: str
    priority: int


class RoundBegan(NamedTuple):
    """The heads of a tree are about to compete: all that was decided or reported before is in the plan."""

    root: Node


class Arrived(NamedTuple):
    """A workload waits in a queue that did not."""

    queue: str
    workload: Workload


class NextMayDiffer(NamedTuple):
    """The next candidate of a queue may be another one, or its pending reservations wait for other things."""

    queue: str


class TimerDue(NamedTuple):
    """A workload has run long enough to be evicted for some that wait in a queue."""

    queue: str


class BackOffTurned(NamedTuple):
    """For some namespace of a queue nothing is evicted from now on, or again something may be."""

    queue: str


class TermsChanged(NamedTuple):
    """In a queue shares count otherwise, others may be evicted, or another process has decided about it."""

    queue: str


class EvictionCancelled(NamedTuple):
    """A victim in a queue stays, and counts again."""

    queue: str


class FewerEvictions(NamedTuple):
    """Limits count fewer evictions of a queue's workloads than before."""

    queue: str


class EvictionsMoved(NamedTuple):
    """Limits count evictions of a queue's workloads at another time than before."""

    queue: str


class Redefined(NamedTuple):
    """Queues, cohorts or flavors were defined anew."""

    queues: AbstractSet[str]  # for which that makes a difference
    roots: AbstractSet[Node]  # of the trees for which it does


OfQueue = (
    UsageShrank | PendingReservationMade | Arrived | NextMayDiffer | TimerDue | BackOffTurned | TermsChanged
)
OfTree = EvictionCancelled | FewerEvictions
Event = OfQueue | ClaimsLessened | UsageGrew | RoundBegan | OfTree | EvictionsMoved | Redefined
