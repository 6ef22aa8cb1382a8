"""State to plan: which of the waiting workloads are admitted now, and why the others are not.

The controller feeds every change in, calls `cycle`, and writes what the plan says. What a plan
admits is reserved at once; a write that fails is rolled back by `release`.
"""

import heapq
from collections import defaultdict
from dataclasses import dataclass, field

from admitter.engine.explain import Refusal
from admitter.engine.flavors import assign
from admitter.engine.model import Admission, Flavor, Queue, Strategy, Workload
from admitter.engine.pending import Pending
from admitter.engine.quota import Ledger


@dataclass(slots=True)
class Plan:
    """What one cycle decided.

    Attributes:
        admissions: workloads to admit, in the order of the decisions.
        refusals: by UID, who waits for a reason that was not told before.
    """

    admissions: list[tuple[Workload, Admission]] = field(default_factory=list)
    refusals: dict[str, Refusal] = field(default_factory=dict)


class Engine:
    """The state of all queues, changed in place by each event."""

    def __init__(self) -> None:
        self.ledger = Ledger()
        self._flavors: dict[str, Flavor] = {}
        self._queues: dict[str, Queue] = {}
        self._pending: defaultdict[str, Pending] = defaultdict(Pending)
        self._queue_of: dict[str, str] = {}
        self._changed: set[str] = set()

    @property
    def changed(self) -> bool:
        """Whether a cycle could decide anything."""
        return bool(self._changed)

    def set_flavor(self, flavor: Flavor) -> None:
        """Define a flavor, or change it."""
        if self._flavors.get(flavor.name) != flavor:
            self._flavors[flavor.name] = flavor
            for queue in self._queues.values():
                if any(flavor.name in group.flavors for group in queue.groups):
                    self._wake(queue.name)

    def remove_flavor(self, name: str) -> None:
        """Remove a flavor. Queues that name it must be removed before."""
        self._flavors.pop(name, None)

    def set_queue(self, queue: Queue) -> None:
        """Define a queue, or change it; all of its flavors must be defined."""
        if self._queues.get(queue.name) != queue:
            self._queues[queue.name] = queue
            self._wake(queue.name)

    def remove_queue(self, name: str) -> None:
        """Stop a queue: what waits in it stays, what is reserved stays counted."""
        self._queues.pop(name, None)

    def submit(self, workload: Workload) -> None:
        """Let a workload wait, or change one that waits."""
        queue = self._queue_of.get(workload.uid)
        if queue is not None:
            if self._pending[queue].get(workload.uid) == workload:
                return
            self.withdraw(workload.uid)
        self._queue_of[workload.uid] = workload.queue
        self._pending[workload.queue].add(workload)
        self._changed.add(workload.queue)

    def withdraw(self, uid: str) -> None:
        """A workload waits no longer; one that does not wait is no error."""
        queue = self._queue_of.pop(uid, None)
        if queue is not None:
            pending = self._pending[queue]
            pending.remove(uid)
            if len(pending):
                self._changed.add(queue)  # behind a strict head, the next one may fit
            else:
                del self._pending[queue]

    def reserve(self, holder: str, admission: Admission) -> None:
        """Set what a holder uses, whoever decided it; what is reserved counts even beyond the quota."""
        before = self.ledger.held(holder)
        if before != admission:
            self.ledger.reserve(holder, admission)
            if before is not None:
                self._wake(before.queue)

    def release(self, holder: str) -> None:
        """Free what a holder uses; one that holds nothing is no error."""
        admission = self.ledger.release(holder)
        if admission is not None:
            self._wake(admission.queue)

    def cycle(self) -> Plan:
        """Decide all that can be decided now.

        1. Only queues that changed are looked at, by name.
        2. The heads of a queue's classes are tried in its order; after an admission the class's next follows.
        3. Who waits for a new reason is told.
        """
        plan = Plan()
        changed, self._changed = sorted(self._changed), set()
        for name in changed:
            queue, pending = self._queues.get(name), self._pending.get(name)
            if queue is not None and pending is not None:
                self._decide(queue, pending, plan)
                plan.refusals.update(pending.news(queue))
                if not len(pending):
                    del self._pending[name]
        return plan

    def _decide(self, queue: Queue, pending: Pending, plan: Plan) -> None:
        strict = queue.strategy is Strategy.STRICT_FIFO
        heap = [(head.rank, head) for head in pending.heads()]
        while heap:
            _, workload = heapq.heappop(heap)
            refusal = pending.parked(workload)
            if refusal is None:
                outcome = assign(workload, queue, self._flavors, self.ledger.used(queue.name))
                if isinstance(outcome, Admission):
                    self._admit(workload, outcome, plan)
                    successor = pending.successor(workload)
                    if successor is not None:
                        heapq.heappush(heap, (successor.rank, successor))
                    continue
                pending.park(workload, outcome)
            if strict:
                return

    def _admit(self, workload: Workload, admission: Admission, plan: Plan) -> None:
        self._queue_of.pop(workload.uid)
        self._pending[workload.queue].remove(workload.uid)
        self.ledger.reserve(workload.uid, admission)
        plan.admissions.append((workload, admission))

    def _wake(self, queue: str) -> None:
        if queue in self._pending:
            self._pending[queue].wake()
            self._changed.add(queue)
