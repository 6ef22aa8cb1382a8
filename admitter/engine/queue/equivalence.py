"""Equivalence classes: workloads that are alike, and when inadmissible ones are requeued.

Workloads of equal shape (all that the decision reads, except time and identity) form a class: if
its first one does not fit, none of the class does, and the class is inadmissible until something
changes that its refusal depends on. So a cycle costs as much as there are classes, not workloads.
"""

import heapq
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from admitter.engine.flavors.assigner import Proposal
from admitter.engine.model import FlavorResource, Workload
from admitter.engine.quota.back_off import BackOff
from admitter.engine.quota.cells import Cell
from admitter.engine.quota.fair_shares import NO_SHARE, Share
from admitter.engine.quota.namespace_shares import NO_SHARE as NOTHING_KEPT
from admitter.engine.quota.namespace_shares import NamespaceShare
from admitter.engine.refusal import Refusal

Rank = tuple[int, float, str]

Shape = tuple[Hashable, ...]  # what makes workloads of a queue alike


class Need(NamedTuple):
    """How much must be free of one flavor and resource at least, and the cell of the queue for that."""

    key: FlavorResource
    amount: int
    cell: Cell


@dataclass(eq=False)
class EquivalenceClass:
    """Waiting workloads of one shape in one queue, first come first."""

    requeued: Callable[["EquivalenceClass"], None]  # called when it is to be tried again
    queue: str
    namespace: str  # of all its workloads, where namespaces share the queue; else of the first
    shape: Shape  # what makes them alike
    back_off: BackOff | None  # until when nothing is evicted for it; None: something may be
    members: dict[str, Workload] = field(default_factory=dict)
    inadmissible: Refusal | None = None  # why none of it fits; None if that has to be found out
    # what must be free at least, any one of it; empty if other things may help too
    needs: list[Need] = field(default_factory=list)
    unsearched: bool = False  # whether no victims were looked for: there was room, which others claimed
    refusal: Refusal | None = None  # why none of it fitted when it was marked inadmissible last
    share: Share = NO_SHARE  # with fair sharing, how large a share another queue must have to give anything
    # where namespaces share the queue, how large a share one must keep to give anything
    giving: NamespaceShare = NOTHING_KEPT
    # what the last of it could get without evictions, if nothing in use made it that
    proposal: Proposal | None = None
    # what the last of it claimed: by which version of the tree, how far above its queue, and what
    owned: tuple[int, int, Proposal] | None = None
    # how much it needs of each flavor and resource at least, and by which version of the tree
    least: tuple[int, Mapping[FlavorResource, int]] | None = None
    ticket: int = 0
    _heap: list[tuple[Rank, str]] = field(default_factory=list)
    _head: Workload | None = None
    _reported: Refusal | None = None  # the refusal that was reported last
    _unreported: set[str] = field(default_factory=set)  # the workloads for which that was not reported yet
    _quotas: list["FreedQuota"] = field(default_factory=list)

    def add(self, workload: Workload) -> None:
        self.members[workload.uid] = workload
        self._unreported.add(workload.uid)
        self._head = None
        heapq.heappush(self._heap, (workload.rank, workload.uid))

    def remove(self, uid: str) -> None:
        del self.members[uid]
        self._unreported.discard(uid)
        self._head = None
        if len(self._heap) > 2 * len(self.members) + 8:  # mostly entries of workloads that are gone
            self._heap = [(workload.rank, workload.uid) for workload in self.members.values()]
            heapq.heapify(self._heap)

    def head(self) -> Workload | None:
        if self._head is None:
            while self._heap:
                rank, uid = self._heap[0]
                workload = self.members.get(uid)
                if workload is not None and workload.rank == rank:
                    self._head = workload
                    break
                heapq.heappop(self._heap)
        return self._head

    def newly_told(self, refusal: Refusal) -> list[str]:
        """UIDs of the workloads for which this refusal is new."""
        known = refusal is self._reported or refusal == self._reported
        if known and not self._unreported:
            return []
        news = sorted(self._unreported if known else self.members)
        self._reported = refusal
        self._unreported.clear()
        return news

    def tell_anew(self) -> None:
        """Another reason may have been reported since."""
        self._reported = None

    def wait_at(self, quotas: Iterable[tuple["FreedQuota", int]]) -> None:
        """Be found by freed quota until it is requeued, and be due when so much has been freed."""
        self.stop_waiting()
        shortfalls = []
        for quota, shortfall in quotas:
            self._quotas.append(quota)
            quota.waiting.add(self)
            shortfalls.append(shortfall)
        self._be_due(shortfalls)

    def _be_due(self, shortfalls: Iterable[int]) -> None:
        """Be due when so much has been freed of each of the quotas that it waits for."""
        self.ticket += 1
        for quota, shortfall in zip(self._quotas, shortfalls, strict=True):
            heapq.heappush(quota.due, (quota.freed + shortfall, id(self), self.ticket, self))

    def requeue(self) -> None:
        """It has to be tried again, in every way."""
        self.needs = []
        self.share = NO_SHARE
        self.giving = NOTHING_KEPT
        self.proposal = None
        self.stop_waiting()
        self.retry_as_known()

    def retry_as_known(self) -> None:
        """It may fit now that others have freed something."""
        self.inadmissible = None
        self.ticket += 1
        self.requeued(self)

    def mark_inadmissible_again(self, shortfalls: Iterable[int]) -> None:
        """It was retried in vain: it is inadmissible as before, and lacks so much of each of its needs."""
        self.inadmissible = self.refusal
        self._be_due(shortfalls)

    def stop_waiting(self) -> None:
        """Be found nowhere."""
        for quota in self._quotas:
            quota.waiting.discard(self)
        self._quotas.clear()


@dataclass(slots=True, eq=False)
class FreedQuota:
    """The classes that wait for one resource in one flavor of a tree, and how much was ever freed there."""

    freed: int = 0
    waiting: set[EquivalenceClass] = field(default_factory=set)
    due: list[tuple[int, int, int, EquivalenceClass]] = field(default_factory=list)


def requeue_all(classes: Collection[EquivalenceClass]) -> bool:
    """Requeue some classes; returns whether there are any."""
    for members in classes:
        members.requeue()
    return bool(classes)
