"""The order of what waits in one queue, and what of it is parked.

Workloads of equal shape (all that the decision reads, except time and identity) form a class: if
its first one does not fit, none of the class does, and the class is parked until the queue changes.
So a cycle costs as much as there are classes, not as there are workloads.
"""

import heapq
from collections.abc import Iterator

from admitter.engine.explain import Reason, Refusal
from admitter.engine.model import PodSet, Queue, Strategy, Workload

Shape = tuple[int, tuple[PodSet, ...]]
Rank = tuple[int, float, str]


class _Class:
    """Waiting workloads of one shape, first come first."""

    def __init__(self) -> None:
        self.members: dict[str, Workload] = {}
        self.parked: Refusal | None = None
        self._heap: list[tuple[Rank, str]] = []
        # Who has not been told yet what stops the class.
        self._told: Refusal | None = None
        self._untold: set[str] = set()

    def add(self, workload: Workload) -> None:
        self.members[workload.uid] = workload
        self._untold.add(workload.uid)
        heapq.heappush(self._heap, (workload.rank, workload.uid))

    def remove(self, uid: str) -> None:
        del self.members[uid]
        self._untold.discard(uid)
        if len(self._heap) > 2 * len(self.members) + 8:  # mostly entries of workloads that are gone
            self._heap = [(workload.rank, workload.uid) for workload in self.members.values()]
            heapq.heapify(self._heap)

    def head(self) -> Workload | None:
        while self._heap:
            rank, uid = self._heap[0]
            workload = self.members.get(uid)
            if workload is not None and workload.rank == rank:
                return workload
            heapq.heappop(self._heap)
        return None

    def tell(self, refusal: Refusal) -> Iterator[str]:
        """Those for whom this refusal is news."""
        news = list(self._untold) if refusal == self._told else list(self.members)
        self._told = refusal
        self._untold.clear()
        yield from sorted(news)


class Pending:
    """All that waits in one queue."""

    def __init__(self) -> None:
        self._classes: dict[Shape, _Class] = {}
        self._shapes: dict[str, Shape] = {}

    def __len__(self) -> int:
        return len(self._shapes)

    def __contains__(self, uid: str) -> bool:
        return uid in self._shapes

    def get(self, uid: str) -> Workload:
        """A workload that waits."""
        return self._classes[self._shapes[uid]].members[uid]

    def add(self, workload: Workload) -> None:
        """Let a workload wait."""
        shape = (workload.priority, workload.pod_sets)
        self._shapes[workload.uid] = shape
        self._classes.setdefault(shape, _Class()).add(workload)

    def remove(self, uid: str) -> None:
        """A workload waits no longer."""
        shape = self._shapes.pop(uid)
        members = self._classes[shape]
        members.remove(uid)
        if not members.members:
            del self._classes[shape]

    def wake(self) -> None:
        """Something that could let the parked ones in has changed."""
        for members in self._classes.values():
            members.parked = None

    def heads(self) -> list[Workload]:
        """The first workload of every class, in the queue's order."""
        heads = [head for members in self._classes.values() if (head := members.head()) is not None]
        return sorted(heads, key=lambda workload: workload.rank)

    def successor(self, workload: Workload) -> Workload | None:
        """The first of the class of a workload that has just left."""
        members = self._classes.get((workload.priority, workload.pod_sets))
        return members.head() if members else None

    def parked(self, workload: Workload) -> Refusal | None:
        """What stopped the class of a waiting workload, if nothing has changed since."""
        return self._classes[self._shapes[workload.uid]].parked

    def park(self, workload: Workload, refusal: Refusal) -> None:
        """The class of a waiting workload is not tried again until `wake`."""
        self._classes[self._shapes[workload.uid]].parked = refusal

    def news(self, queue: Queue) -> Iterator[tuple[str, Refusal]]:
        """Who waits for a reason that was not told before, and for which.

        Under `StrictFIFO` only the first class is refused for what it asks; the rest waits behind it.
        """
        behind = Refusal(Reason.BEHIND_HEAD, queue.name)
        for place, head in enumerate(self.heads()):
            members = self._classes[self._shapes[head.uid]]
            strict = queue.strategy is Strategy.STRICT_FIFO
            refusal = behind if strict and place else members.parked
            if refusal is not None:
                for uid in members.tell(refusal):
                    yield uid, refusal
