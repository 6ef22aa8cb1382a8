"""The heads that compete in a cohort tree, and their order (docs/design/engine.md)."""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from admitter.engine.flavors.assigner import Proposal
from admitter.engine.model import Workload
from admitter.engine.preemption.receipt import Grounds
from admitter.engine.queue.equivalence import Rank
from admitter.engine.quota.book import Book
from admitter.engine.quota.fair_shares import FairShares, Share
from admitter.engine.quota.ledger import PendingReservation, Reservation
from admitter.engine.quota.tree import Node, Tree


class Nomination(NamedTuple):
    """What a workload could get, and what would have to make room for it."""

    proposal: Proposal
    victims: Sequence[Reservation] = ()  # what would have to be evicted
    grounds: Grounds = Grounds.RECLAIM  # by which rule those of other queues would
    # places of less important workloads of its queue that it would take over
    places: Sequence[PendingReservation] = ()


@dataclass(slots=True)
class CompetingHead:
    """A queue's head that competes."""

    workload: Workload
    borrowing: bool  # whether it would borrow; False as long as it might do without
    nomination: Nomination | None  # what it could get; None if that is found out when its turn comes
    nominated_at: int  # after how many decisions that was found, or glanced at


class ByRank:
    """Heads that compete, one a queue, where nothing is shared by weight: one line."""

    lazy: Final = True  # whether heads may compete that have no nomination yet

    def __init__(self) -> None:
        self._heap: list[tuple[tuple[bool, Rank], CompetingHead]] = []
        self._queues: set[str] = set()

    def __len__(self) -> int:
        return len(self._heap)

    def __contains__(self, queue: str) -> bool:
        return queue in self._queues

    def push(self, entry: CompetingHead) -> None:
        self._queues.add(entry.workload.queue)
        turn = (entry.borrowing, entry.workload.rank)  # heads that need no borrowing go first
        heapq.heappush(self._heap, (turn, entry))

    def pop(self) -> CompetingHead:
        _, entry = heapq.heappop(self._heap)
        self._queues.discard(entry.workload.queue)
        return entry

    def changed(self, queue: str) -> None:
        """The use of a queue has changed: that makes no difference."""


class ByShare:
    """Those where it is shared by weight: a tournament at each cohort, of the winners of what is below it.

    Two of them are compared where their ways to the root part: the one that needs no borrowing, then the one
    with the smaller share on its side, itself included, then rank.
    """

    lazy: Final = False

    def __init__(self, tree: Tree, book: Book, root: Node) -> None:
        self._shares = FairShares(tree, book)
        self._parents: Mapping[Node, Node | None] = tree.parents()
        self._paths = {name: list(tree.path(("queue", name))) for name in tree.members(root)}
        depths = {node: len(path) - i for path in self._paths.values() for i, node in enumerate(path)}
        self._upwards = sorted(depths, key=lambda node: (-depths[node], node))
        self._entries: dict[str, CompetingHead] = {}
        self._with: dict[str, dict[Node, Share]] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, queue: str) -> bool:
        return queue in self._entries

    def push(self, entry: CompetingHead) -> None:
        self._entries[entry.workload.queue] = entry
        self._with.pop(entry.workload.queue, None)

    def pop(self) -> CompetingHead:
        winners = {("queue", name): entry for name, entry in self._entries.items()}
        best: dict[Node, tuple[bool, Share, Rank]] = {}
        for node in self._upwards:
            entry, above = winners.get(node), self._parents.get(node)
            if entry is None or above is None:
                continue
            shares = self._with.get(entry.workload.queue) or self._shares_with(entry)
            key = (entry.borrowing, shares[node], entry.workload.rank)
            if above not in best or key < best[above]:
                winners[above], best[above] = entry, key
        entry = winners[self._upwards[-1]]
        del self._entries[entry.workload.queue]
        return entry

    def changed(self, queue: str) -> None:
        """The use of a queue has changed: forget the shares of queues below the same child of the root."""
        top = self._paths[queue][-2:-1]
        for name in list(self._with):
            if self._paths[name][-2:-1] == top:
                del self._with[name]

    def _shares_with(self, entry: CompetingHead) -> dict[Node, Share]:
        """The shares of a queue and of what is above it with one from there in."""
        queue = entry.workload.queue
        assert entry.nomination is not None, "shares are compared of nominated heads"
        usage = tuple(entry.nomination.proposal.usage.items())
        found = self._with[queue] = self._shares.with_added(queue, usage, self._paths[queue])
        return found
