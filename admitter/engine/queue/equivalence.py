"""Equivalence classes: workloads that are alike, and when inadmissible ones are requeued.

Workloads of equal shape (all that the decision reads, except time and identity) form a class: if
its first one does not fit, none of the class does, and the class is inadmissible until something
changes that its refusal depends on. So a cycle costs as much as there are classes, not workloads.
"""

import heapq
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import NamedTuple

from admitter.engine.flavors.assigner import Proposal
from admitter.engine.model import FlavorResource, Workload
from admitter.engine.quota.back_off import BackOff
from admitter.engine.quota.cells import Cell
from admitter.engine.quota.fair_shares import NO_SHARE
from admitter.engine.quota.namespace_shares import NO_SHARE as NOTHING_KEPT
from admitter.engine.refusal import Refusal

Rank = tuple[int, float, str]

Shape = tuple[Hashable, ...]  # what makes workloads of a queue alike


class Need(NamedTuple):
    """How much must be free of one flavor and resource at least, and the cell of the queue for that."""

    key: FlavorResource
    amount: int
    cell: Cell


class EquivalenceClass:
    """Waiting workloads of one shape in one queue, first come first."""

    def __init__(
        self, requeued: Callable[["EquivalenceClass"], None], queue: str, namespace: str, shape: Shape
    ) -> None:
        """Begin with no workload; `requeued` is called when it is to be tried again."""
        self._requeued = requeued
        self.queue = queue
        # of all its workloads, where namespaces share the queue; else of the first
        self.namespace = namespace
        self.shape = shape  # what makes them alike
        self.members: dict[str, Workload] = {}
        self.inadmissible: Refusal | None = None  # why none of it fits; None if that has to be found out
        # what must be free at least, any one of it; empty if other things may help too
        self.needs: list[Need] = []
        self.refusal: Refusal | None = None  # why none of it fitted when it was marked inadmissible last
        self.share = NO_SHARE  # with fair sharing, how large a share another queue must have to give anything
        # where namespaces share the queue, how large a share one must keep to give anything
        self.giving = NOTHING_KEPT
        # what the last of it could get without evictions, if nothing in use made it that
        self.proposal: Proposal | None = None
        # what the last of it claimed: by which version of the tree, how far above its queue, and what
        self.owned: tuple[int, int, Proposal] | None = None
        # how much it needs of each flavor and resource at least, and by which version of the tree
        self.least: tuple[int, Mapping[FlavorResource, int]] | None = None
        self.back_off: BackOff | None = None  # until when nothing is evicted for it; None: something may be
        self._heap: list[tuple[Rank, str]] = []
        self._head: Workload | None = None
        # The last reported refusal, and the workloads for which it was not reported yet.
        self._reported: Refusal | None = None
        self._unreported: set[str] = set()
        self.ticket = 0
        self._quotas: list[FreedQuota] = []

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
        self._requeued(self)

    def mark_inadmissible_again(self, shortfalls: Iterable[int]) -> None:
        """It was retried in vain: it is inadmissible as before, and lacks so much of each of its needs."""
        self.inadmissible = self.refusal
        self._be_due(shortfalls)

    def stop_waiting(self) -> None:
        """Be found nowhere."""
        for quota in self._quotas:
            quota.waiting.discard(self)
        self._quotas.clear()


class FreedQuota:
    """The classes that wait for one resource in one flavor of a tree, and how much was ever freed there."""

    __slots__ = ("due", "freed", "waiting")

    def __init__(self) -> None:
        self.freed = 0
        self.waiting: set[EquivalenceClass] = set()
        self.due: list[tuple[int, int, int, EquivalenceClass]] = []


def requeue_all(classes: Collection[EquivalenceClass]) -> bool:
    """Requeue some classes; returns whether there are any."""
    for members in classes:
        members.requeue()
    return bool(classes)
