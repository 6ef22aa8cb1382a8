"""What the rest of the engine reports to `requeue`: something after which what was refused may fit."""

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from admitter.engine.model import FlavorResource, Workload
from admitter.engine.quota.tree import Node

Amounts = Collection[tuple[FlavorResource, int]]
"""How much of each flavor and resource."""


class UsageShrank(NamedTuple):
    """A queue uses so much less by the plan than before."""

    queue: str
    usage: Amounts


class ClaimsLessened(NamedTuple):
    """Others have to leave so much less for a queue than before."""

    queue: str
    usage: Amounts


class UsageGrew(NamedTuple):
    """A queue uses more by the plan than before, or other workloads of it may be evicted.

    Attributes:
        queue: its name.
        keys: in what it, or a cohort above it, borrows more than before.
        newcomer: what uses more; None: anything of the queue.
    """

    queue: str
    keys: Collection[FlavorResource]
    newcomer: Workload | None = None


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


class Redefined(NamedTuple):
    """Queues, cohorts or flavors were defined anew.

    Attributes:
        queues: for which that makes a difference.
        roots: of the trees for which it does.
    """

    queues: AbstractSet[str]
    roots: AbstractSet[Node]


OfQueue = (
    UsageShrank | PendingReservationMade | Arrived | NextMayDiffer | TimerDue | BackOffTurned | TermsChanged
)
Event = OfQueue | ClaimsLessened | UsageGrew | RoundBegan | EvictionCancelled | Redefined
