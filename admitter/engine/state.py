"""What the engine knows between cycles: the tree, who holds what, who waits, and for what."""

from collections.abc import Iterable, Mapping

from admitter.engine.explain import Refusal
from admitter.engine.flavors import Assigner
from admitter.engine.ledger import Ledger, Reservation
from admitter.engine.model import Flavor, FlavorResource, Workload
from admitter.engine.pending import Pending, Waiters
from admitter.engine.policy import Queue, WithinQueue
from admitter.engine.quota import Tree


class State:
    """Changed in place by events and by decisions.

    Attributes:
        tree: queues, cohorts and their quotas.
        ledger: who holds what.
        flavors: by name.
        assigner: finds flavors on what is planned.
        pending: what waits, by queue; queues in which nothing waits are not in it.
        changed: queues in which something could be decided.
    """

    def __init__(self) -> None:
        self.tree = Tree()
        self.ledger = Ledger(self.tree)
        self.flavors: dict[str, Flavor] = {}
        self.assigner = Assigner(self.ledger.planned, self.flavors)
        self.pending: dict[str, Pending] = {}
        self.changed: set[str] = set()
        self._waiters = Waiters()
        self._queue_of: dict[str, str] = {}

    def waiting(self, uid: str) -> Workload | None:
        """A workload that waits in a queue."""
        queue = self._queue_of.get(uid)
        return self.pending[queue].get(uid) if queue is not None else None

    def enqueue(self, workload: Workload) -> None:
        """Let a workload wait that does not."""
        self._queue_of[workload.uid] = workload.queue
        if workload.queue not in self.pending:
            self.pending[workload.queue] = Pending(workload.queue)
        members = self.pending[workload.queue].add(workload)
        queue = self.tree.queues.get(workload.queue)
        age_counts = (
            queue is not None and queue.preemption.within is WithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY
        )
        if age_counts and members.head() is workload:
            members.wake()  # it is older than those for whom nobody could be preempted
        self.changed.add(workload.queue)

    def dequeue(self, uid: str) -> str | None:
        """Let a workload wait no longer; returns the queue in which it did."""
        queue = self._queue_of.pop(uid, None)
        if queue is not None:
            pending = self.pending[queue]
            pending.remove(uid)
            if not len(pending):
                del self.pending[queue]
        return queue

    def park(self, workload: Workload, refusal: Refusal, evictable: Mapping[FlavorResource, int]) -> None:
        """Do not try a class again before something changes that its refusal depends on.

        Args:
            workload: the head of the class.
            refusal: why it does not fit.
            evictable: the most that evictions could have freed for it.
        """
        queue = self.tree.queues[workload.queue]
        members = self.pending[workload.queue].class_of(workload)
        shortfalls = self._shortfalls(workload, queue, evictable)
        self._waiters.park(members, refusal, self.tree.root(workload.queue), shortfalls)

    def _shortfalls(
        self, workload: Workload, queue: Queue, evictable: Mapping[FlavorResource, int]
    ) -> list[tuple[FlavorResource, int]]:
        """How much of each flavor and resource has to be freed at least before a workload may fit.

        With several pod sets, several numbers of pods, or cohorts under cohorts, anything may help.
        """
        keys = self.assigner.interests(workload, queue)
        (first, *others) = workload.pod_sets
        levels = sum(1 for _ in self.tree.path(("queue", queue.name)))
        if others or first.min_count is not None or levels > 2:
            return [(key, 1) for key in keys]
        requests = dict(first.requests)
        book = self.ledger.planned
        found = []
        for key in keys:
            needed = requests[key[1]] * first.count
            lacking = needed - book.cell(queue.name, key).available() - evictable.get(key, 0)
            found.append((key, max(1, lacking)))
        return found

    def freed(self, queue: str, usage: Iterable[tuple[FlavorResource, int]]) -> set[str]:
        """Quota became free in the plan: whoever may fit now is to be tried again.

        In the queue itself that is everybody: it may be entitled now to take back what it lent.

        Returns:
            The queues in which somebody was woken.
        """
        names = set()
        root = self.tree.root(queue)
        for members in self._waiters.freed(root, usage):
            members.wake()
            names.add(members.queue)
        pending = self.pending.get(queue)
        if pending is not None:
            pending.wake()
            names.add(queue)
        if self.tree.fair(root):
            names |= self._stir(self._kin(queue))  # their side's share is smaller now
        self.changed |= names
        self.changed.add(queue)
        return names

    def exposed(self, queue: str, keys: Iterable[FlavorResource]) -> set[str]:
        """Somebody may be preempted now who could not be before: whoever preempts is to be tried again.

        Returns:
            The queues in which somebody was woken.
        """
        root = self.tree.root(queue)
        if self.tree.fair(root):
            names = self._stir(self.tree.members(root))  # this side's share is larger now
        else:
            names = set()
            for members in self._waiters.waiting(root, keys):
                if self._preempts(members.queue):
                    members.wake()
                    names.add(members.queue)
        self.changed |= names
        return names

    def _preempts(self, queue: str) -> bool:
        found = self.tree.queues.get(queue)
        return found is not None and found.preemption.allowed

    def _kin(self, queue: str) -> list[str]:
        """The queues on a queue's side of the root."""
        *_, side = [node for node in self.tree.path(("queue", queue)) if node != self.tree.root(queue)]
        return self.tree.below(side)

    def _stir(self, queues: Iterable[str]) -> set[str]:
        """Try all again who wait in some queues and may preempt; returns the queues of those."""
        names = {name for name in queues if name in self.pending and self._preempts(name)}
        for name in names:
            self.pending[name].wake()
        return names

    def freed_by(self, reservation: Reservation) -> set[str]:
        """As `freed`, with all that a reservation held."""
        return self.freed(reservation.queue, reservation.usage)

    def wake(self, queue: str) -> None:
        """Anything may have changed for those who wait in a queue."""
        if queue in self.pending:
            self.pending[queue].wake()
        self.changed.add(queue)
