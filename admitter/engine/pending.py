"""The order of what waits in one queue, and what of it is parked.

Workloads of equal shape (all that the decision reads, except time and identity) form a class: if
its first one does not fit, none of the class does, and the class is parked until something changes
that its refusal depended on. So a cycle costs as much as there are classes, not workloads.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import partial

from admitter.engine.explain import Reason, Refusal
from admitter.engine.fairness import NO_SHARE, Share
from admitter.engine.model import FlavorResource, Workload
from admitter.engine.namespaces import NO_SHARE as NOTHING_KEPT
from admitter.engine.policy import Queue, Strategy
from admitter.engine.quota import Node

Shape = tuple[Hashable, ...]
"""What makes workloads of a queue alike."""

Rank = tuple[int, float, str]
Needs = list[tuple[FlavorResource, int]]
"""How much must be free of one flavor and resource at least."""


def _nobody_cares() -> None:
    """What happens when a class is to be tried again, unless somebody listens."""


class Class:
    """Waiting workloads of one shape in one queue, first come first.

    Attributes:
        queue: the queue's name.
        members: by UID.
        parked: why none of it fits; None if that has to be found out.
        needs: how much must be free of one flavor and resource at least; empty if other things may help too.
        refusal: why none of it fitted when it was parked last.
        share: with fair sharing, how large a share another queue must have to give anything.
        giving: where namespaces share the queue, how large a share one must keep to give anything.
        awake: is called when it is to be tried again, or for the first time.
    """

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.members: dict[str, Workload] = {}
        self.parked: Refusal | None = None
        self.needs: Needs = []
        self.refusal: Refusal | None = None
        self.share = NO_SHARE
        self.giving = NOTHING_KEPT
        self.awake: Callable[[], object] = _nobody_cares
        self._heap: list[tuple[Rank, str]] = []
        # Who has not been told yet what stops the class.
        self._told: Refusal | None = None
        self._untold: set[str] = set()
        self.ticket = 0
        self._places: list[_Place] = []

    def add(self, workload: Workload) -> None:
        """Take a workload in."""
        self.members[workload.uid] = workload
        self._untold.add(workload.uid)
        heapq.heappush(self._heap, (workload.rank, workload.uid))

    def remove(self, uid: str) -> None:
        """Let a workload go."""
        del self.members[uid]
        self._untold.discard(uid)
        if len(self._heap) > 2 * len(self.members) + 8:  # mostly entries of workloads that are gone
            self._heap = [(workload.rank, workload.uid) for workload in self.members.values()]
            heapq.heapify(self._heap)

    def head(self) -> Workload | None:
        """Its first workload."""
        while self._heap:
            rank, uid = self._heap[0]
            workload = self.members.get(uid)
            if workload is not None and workload.rank is rank:
                return workload
            heapq.heappop(self._heap)
        return None

    def tell(self, refusal: Refusal) -> Iterator[str]:
        """Those for whom this refusal is news."""
        news = list(self._untold) if refusal == self._told else list(self.members)
        self._told = refusal
        self._untold.clear()
        yield from sorted(news)

    def tell_anew(self) -> None:
        """Somebody else may have told them something since."""
        self._told = None

    def wait_at(self, places: Iterable[tuple["_Place", int]]) -> None:
        """Be found in some places until it is woken, and be due when so much has been freed there."""
        self.leave()
        for place, shortfall in places:
            self._places.append(place)
            place.waiting.add(self)
            heapq.heappush(place.due, (place.freed + shortfall, id(self), self.ticket, self))

    def wake(self) -> None:
        """It has to be tried again, in every way."""
        self.needs = []
        self.share = NO_SHARE
        self.giving = NOTHING_KEPT
        self.retry()

    def retry(self) -> None:
        """It may fit now that others have freed something."""
        self.parked = None
        self.leave()
        self.awake()

    def leave(self) -> None:
        """Be due nowhere."""
        self.ticket += 1
        for place in self._places:
            place.waiting.discard(self)
        self._places.clear()


class _Place:
    """Who waits for one resource in one flavor of a tree, and how much of it was ever freed there."""

    __slots__ = ("due", "freed", "waiting")

    def __init__(self) -> None:
        self.freed = 0
        self.waiting: set[Class] = set()
        self.due: list[tuple[int, int, int, Class]] = []


class Waiters:
    """Parked classes by what their refusals depend on: a flavor and resource in a tree.

    What a class lacks is known when it is parked. Before so much has been freed in its tree it can't
    fit, whoever else comes and goes: what others take in the meantime only adds to what it lacks.
    """

    def __init__(self) -> None:
        self._places: defaultdict[tuple[Node, FlavorResource], _Place] = defaultdict(_Place)

    def park(
        self, members: Class, refusal: Refusal, root: Node, shortfalls: Iterable[tuple[FlavorResource, int]]
    ) -> None:
        """Park a class until enough of one of some keys is freed in its tree."""
        members.parked = members.refusal = refusal
        members.wait_at((self._places[root, key], shortfall) for key, shortfall in shortfalls)

    def freed(self, root: Node, usage: Iterable[tuple[FlavorResource, int]]) -> list[Class]:
        """Who may fit now that so much was freed in a tree."""
        found: dict[Class, None] = {}
        for key, amount in usage:
            place = self._places.get((root, key))
            if place is None:
                continue
            place.freed += amount
            while place.due and place.due[0][0] <= place.freed:
                _, _, ticket, members = heapq.heappop(place.due)
                if ticket == members.ticket and members in place.waiting:
                    found[members] = None
        return list(found)

    def waiting(self, root: Node, keys: Iterable[FlavorResource]) -> list[Class]:
        """All who wait for one of some keys in a tree."""
        found: dict[Class, None] = {}
        for key in keys:
            place = self._places.get((root, key))
            if place is not None:
                found.update(dict.fromkeys(sorted(place.waiting, key=lambda members: members.queue)))
        return list(found)


class Pending:
    """All that waits in one queue."""

    def __init__(self, queue: str) -> None:
        self._queue = queue
        self._classes: dict[Shape, Class] = {}
        self._class_of: dict[str, Class] = {}
        self._awake: dict[Class, None] = {}

    def __len__(self) -> int:
        return len(self._class_of)

    def __contains__(self, uid: str) -> bool:
        return uid in self._class_of

    def get(self, uid: str) -> Workload:
        """A workload that waits."""
        return self._class_of[uid].members[uid]

    def add(self, workload: Workload) -> Class:
        """Let a workload wait; returns its class."""
        shape = self._shape(workload)
        members = self._classes.get(shape)
        if members is None:
            members = self._classes[shape] = Class(self._queue)
            members.awake = partial(self._awake.setdefault, members)
            members.awake()
        self._class_of[workload.uid] = members
        members.add(workload)
        return members

    def remove(self, uid: str) -> None:
        """A workload waits no longer."""
        members = self._class_of.pop(uid)
        workload = members.members[uid]
        members.remove(uid)
        if not members.members:
            members.wake()
            self._awake.pop(members, None)
            del self._classes[self._shape(workload)]

    def workloads(self) -> list[Workload]:
        """All that wait."""
        return [members.members[uid] for uid, members in self._class_of.items()]

    def wake(self) -> None:
        """Something that any of the parked ones may depend on has changed."""
        for members in self._classes.values():
            members.wake()

    def tell_anew(self) -> None:
        """Whatever was told why somebody waits has to be told again."""
        for members in self._classes.values():
            members.tell_anew()

    def disturb(self) -> bool:
        """The queue uses more than before: of that something might be evicted; whether anybody was woken.

        Rank decides in the queue: what came later makes no room for who was refused before.
        """
        for members in self._classes.values():
            members.needs = []
        return False

    @property
    def unsure(self) -> bool:
        """Whether it is not known of all what they need."""
        return not all(members.needs for members in self._classes.values())

    def wake_if(self, entitled: Callable[[Needs], bool]) -> bool:
        """Try those again who are entitled to what they need, or if that is unknown; if there are any."""
        found = [m for m in self._classes.values() if not m.needs or entitled(m.needs)]
        for members in found:
            members.retry()
        return bool(found)

    def stir(self, share: Share) -> bool:
        """Wake those to whom a queue of some share might have to give; returns whether there are any."""
        found = [m for m in self._classes.values() if m.share <= share]
        for members in found:
            members.wake()
        return bool(found)

    def class_of(self, workload: Workload) -> Class:
        """The class of a waiting workload."""
        return self._class_of[workload.uid]

    def in_order(self) -> list[Workload]:
        """All that wait, in the order in which they would go if all fitted."""
        return sorted(self.workloads(), key=lambda workload: workload.rank)

    def _shape(self, workload: Workload) -> Shape:
        return (workload.priority, workload.pod_sets)

    def candidate(self, strategy: Strategy) -> Workload | None:
        """Who is to be tried next; None if nobody is."""
        if strategy is Strategy.STRICT_FIFO:
            first = self._foremost(self._classes.values())
            return None if first is None or self._class_of[first.uid].parked is not None else first
        for members in tuple(self._awake):
            if members.parked is not None:
                del self._awake[members]
        return self._foremost(self._awake)

    @staticmethod
    def _foremost(classes: Iterable[Class]) -> Workload | None:
        """The first workload of some classes."""
        first: Workload | None = None
        for members in classes:
            head = members.head()
            if head is not None and (first is None or head.rank < first.rank):
                first = head
        return first

    def ahead_of(self, workload: Workload) -> Workload | None:
        """The first of those who came before somebody, or are more important, and still wait."""
        first = self._foremost(self._classes.values())
        return first if first is not None and first.rank < workload.rank else None

    def refusal(self, workload: Workload, queue: Queue) -> Refusal | None:
        """What stops a workload; None if that has to be found out.

        Under `StrictFIFO` only the first class is refused for what it asks; the rest waits behind it.
        """
        members = self._class_of[workload.uid]
        return self._refusal(members, queue, self._first(queue))

    def news(self, queue: Queue) -> Iterator[tuple[str, Refusal]]:
        """Who waits for a reason that was not told before, and for which."""
        first = self._first(queue)
        for members in self._classes.values():
            refusal = self._refusal(members, queue, first)
            if refusal is not None:
                for uid in members.tell(refusal):
                    yield uid, refusal

    def _first(self, queue: Queue) -> Workload | None:
        """The head that all others wait for; None if they do not."""
        if queue.strategy is not Strategy.STRICT_FIFO:
            return None
        return self._foremost(self._classes.values())

    @staticmethod
    def _refusal(members: Class, queue: Queue, first: Workload | None) -> Refusal | None:
        blocked = first is not None and members.head() is not first
        return Refusal(Reason.BEHIND_HEAD, queue.name) if blocked else members.parked
