"""By which rule a workload is evicted for another one, and what was compared."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from admitter.engine.model import Workload
from admitter.engine.quota.book import Book
from admitter.engine.quota.fair_shares import FairShares, Share
from admitter.engine.quota.ledger import Reservation
from admitter.engine.quota.tree import Node, Tree


class Grounds(StrEnum):
    """The rule that allows an eviction (docs/design/preemption.md)."""

    LOWER_PRIORITY = "LowerPriority"  # in the preemptor's own queue
    NEWER = "NewerEqualPriority"  # in the preemptor's own queue
    # in the preemptor's own queue, of a namespace with a larger share of it
    NAMESPACE_SHARE = "NamespaceShare"
    RECLAIM = "Reclaim"  # elsewhere: the preemptor's queue, or a cohort above it, takes back what it lent
    BORROW = "BorrowLowerPriority"  # elsewhere: the preemptor borrows instead
    # elsewhere: the preemptor's queue takes its part of what no queue uses
    GUARANTEED_SHARE = "GuaranteedShare"
    FAIR_SHARE = "FairShare"  # elsewhere: of a queue or cohort with a larger share of what is borrowed


class Passing(StrEnum):
    """The rule by which a workload is admitted before another one of its queue that goes first by rank."""

    BEST_EFFORT = "BestEffortFIFO"  # what does not fit does not hold up what comes after it
    NAMESPACE_SHARE = "WeightedShare"  # the namespace with the smallest share of the queue goes first
    PROMISED = "Promised"  # it had a pending reservation when the other one came


@dataclass(frozen=True, slots=True)
class Passed:
    """A workload that was passed by one that was admitted."""

    workload: Workload  # the first of those of the queue that wait and go before by rank
    rule: Passing


@dataclass(frozen=True, slots=True)
class Compared:
    """Two places of the tree, and their weighted shares of what is borrowed there."""

    victim: Node  # where the victim's way to the root parts from the preemptor's
    preemptor: Node  # the same on the preemptor's side
    before: Share  # the victim's share before the eviction
    after: Share  # the preemptor's share once it is in


@dataclass(frozen=True, slots=True)
class Receipt:
    """Why one victim may be evicted."""

    grounds: Grounds
    compared: Compared | None = None  # shares, if it goes by those of queues and cohorts


class Receipts:
    """Writes them for the victims of one preemptor: begun before they go, finished once all is planned."""

    def __init__(
        self, tree: Tree, book: Book, preemptor: Workload, grounds: Grounds, victims: Sequence[Reservation]
    ) -> None:
        """Look at what is compared before any eviction; `grounds` are those for victims of other queues."""
        self._tree = tree
        self._book = book
        self._preemptor = preemptor
        self._grounds = grounds
        self._before: dict[Node, Share] = {}
        shares = FairShares(tree, book)
        for name in {victim.queue for victim in victims} - {preemptor.queue}:
            if grounds is Grounds.FAIR_SHARE:
                theirs, _ = parting(tree, name, preemptor.queue)
                self._before[theirs] = shares.of(theirs)

    def finished(self, victims: Sequence[Reservation]) -> list[Receipt]:
        """A receipt for each, now that they are out and the preemptor is in."""
        shares = FairShares(self._tree, self._book)
        return [self._receipt(victim, shares) for victim in victims]

    def _receipt(self, victim: Reservation, shares: FairShares) -> Receipt:
        if victim.queue == self._preemptor.queue:
            return Receipt(self._in_own_queue(victim))
        if self._grounds is not Grounds.FAIR_SHARE:
            return Receipt(self._grounds)
        theirs, mine = parting(self._tree, victim.queue, self._preemptor.queue)
        return Receipt(self._grounds, Compared(theirs, mine, self._before[theirs], shares.of(mine)))

    def _in_own_queue(self, victim: Reservation) -> Grounds:
        by_namespace = self._tree.queues[victim.queue].by_namespace
        assert victim.workload is not None, "only Workloads are evicted"
        if by_namespace and victim.workload.namespace != self._preemptor.namespace:
            return Grounds.NAMESPACE_SHARE
        lower = victim.workload.priority < self._preemptor.priority
        return Grounds.LOWER_PRIORITY if lower else Grounds.NEWER


def parting(tree: Tree, victim: str, preemptor: str) -> tuple[Node, Node]:
    """The places below the lowest cohort that two queues have in common, on the way to each."""
    mine = tree.path(("queue", preemptor))
    theirs = tree.path(("queue", victim))
    place = next(place for place, node in enumerate(theirs) if node in mine)
    return theirs[place - 1], mine[mine.index(theirs[place]) - 1]
