"""Preempting so that shares move together: `fairSharing` (docs/design/fair-sharing.md).

A workload that borrows may evict those of another queue as long as that queue, after all of it, has
no smaller share than its own then has. They are compared where their ways to the root part. The
proof that this comes to an end is in docs/design/fair-sharing.md; each condition here is a step of it.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from heapq import heapify, heappop, heappush

from admitter.engine.model import FlavorResource, Usage, Workload
from admitter.engine.policy import PreemptionPolicy, Queue
from admitter.engine.preemption import borrow, reclaim
from admitter.engine.preemption.candidates import Candidate, Group, PreemptionRule, place
from admitter.engine.quota.book import Book
from admitter.engine.quota.fair_shares import ENDLESS, FairShares, Share
from admitter.engine.quota.lines import Lesser
from admitter.engine.quota.tree import Node, Tree


def lesser(policy: PreemptionPolicy, preemptor: Workload) -> Lesser:
    """Which workloads of other queues a queue's policy lets a workload preempt, if the shares do."""
    reclaimed, borrowed = reclaim.lesser(policy.reclaim, preemptor), borrow.lesser(policy, preemptor)
    return Lesser(max(reclaimed.below, borrowed.below))


class FairPreemption(PreemptionRule):
    """Takes from the queue with the largest share first, and never past the point where they are equal."""

    def __init__(
        self, tree: Tree, book: Book, queue: Queue, usage: Usage, own: Mapping[FlavorResource, int]
    ) -> None:
        """Begin with nothing taken out; the candidates of the preemptor's own queue hold `own` together."""
        self._tree = tree
        self._queue = queue.name
        self._usage = usage
        # What the queue would use more at least: candidates of its own come last, and may all be out then.
        self._least = tuple((key, amount - own.get(key, 0)) for key, amount in usage) + tuple(
            (key, -amount) for key, amount in own.items() if key not in dict(usage)
        )
        self._shares = FairShares(tree, book)
        self._path = list(tree.path(("queue", queue.name)))
        self._before = {node: self._shares.of(node) for node in self._path}
        self._after: dict[Usage, dict[Node, Share]] = {}
        self._ways: dict[str, tuple[int, list[Node]]] = {}
        self._out: Counter[str] = Counter()

    def order(self, pools: Iterable[Group]) -> Iterator[Candidate]:
        """Nearest relatives first, of these the largest share; in a queue as ever; one's own queue last."""
        own: list[Candidate] = []
        others: dict[str, deque[Candidate]] = {}
        for candidate in sorted((c for pool in pools for c in pool.members()), key=place):
            if candidate.pool.own:
                own.append(candidate)
            else:
                others.setdefault(candidate.pool.queue, deque()).append(candidate)
        heap = [(self._turn(name), name) for name in others]
        heapify(heap)
        while heap:
            turn, name = heappop(heap)
            if turn == self._turn(name):
                yield others[name].popleft()
            if others[name]:  # its turn only moves back: shares get smaller while others go
                heappush(heap, (self._turn(name), name))
        yield from own

    @property
    def share(self) -> Share:
        """The least share of the queue with the preemptor in: all of its own candidates are out."""
        return self._share_after(self._path[0], self._least)

    def could_give(self, queue: str) -> bool:
        """Whether a queue's share is large enough now to give anything at all."""
        return self._fair_to(queue, self._least)

    def may_go(self, candidate: Candidate) -> bool:
        """Whether its queue borrows, keeps its own, and could still have no smaller share than the other.

        Candidates of the preemptor's own queue are taken out later: whether the whole set is fair is what
        `holds` says.
        """
        if candidate.pool.own:
            return True
        chains = candidate.contested()
        if not reclaim.exceeds(chain for chain, _ in chains) or not borrow.spares(chains):
            return False
        name = candidate.pool.queue
        candidate.move(-1)
        self._shares.changed(name)
        fair = self._fair_to(name, self._least)
        candidate.move(1)
        self._shares.changed(name)
        return fair

    def holds(self) -> bool:
        """Whether it is fair to all queues that lose, and no cohort above both sides loses by it."""
        if not self._out:
            return True
        nearest = min(self._way(name)[0] for name in self._out)
        return all(self._fair_to(name, self._usage) for name in self._out) and all(
            self._share_after(node, self._usage) >= self._before[node] for node in self._path[nearest + 1 :]
        )

    def moved(self, candidate: Candidate, sign: int) -> None:
        name = candidate.pool.queue
        if not candidate.pool.own:
            self._out[name] -= sign
            self._out += Counter()  # without those that are back
        self._shares.changed(name)
        self._after.clear()

    def _way(self, name: str) -> tuple[int, list[Node]]:
        """Where the ways to the root part: the place of the own node in the path; the others, downwards."""
        found = self._ways.get(name)
        if found is None:
            path = list(self._tree.path(("queue", name)))
            common = next(node for node in path if node in self._path)
            down = path[: path.index(common)][::-1]
            found = self._ways[name] = (self._path.index(common) - 1, down)
        return found

    def _turn(self, name: str) -> tuple[int, list[tuple[bool, Fraction]]]:
        """When a queue has to give: near ones before far ones, large shares before small ones."""
        mine, down = self._way(name)
        shares = [self._shares.of(node) for node in down]
        return mine, [(not endless, -share) for endless, share in shares]

    def _fair_to(self, name: str, added: Usage) -> bool:
        """Whether a queue's side has no smaller share than the preemptor's, which uses so much more."""
        place, (theirs, *_) = self._way(name)
        node = self._path[place]
        mine = self._share_after(node, added)
        if mine == ENDLESS:
            return False
        if not self._tree.weight(theirs):
            return True  # it borrowed what no other queue wanted
        share = self._shares.of(theirs)
        return mine < share or (mine == share and self._before[node] < mine)

    def _share_after(self, node: Node, added: Usage) -> Share:
        """The share of a node of the own path if the preemptor's queue uses so much more."""
        found = self._after.get(added)
        if found is None:
            found = self._after[added] = self._shares.with_added(self._queue, added, self._path)
        return found[node]
