"""What victims are looked for in."""

from dataclasses import dataclass, field

from admitter.engine.model import FlavorResource, Workload
from admitter.engine.policy import Queue, WithinQueue
from admitter.engine.preemption import within_queue
from admitter.engine.quota.capacity import Capacity
from admitter.engine.quota.eviction_limits import opens
from admitter.engine.quota.ledger import Ledger, Reservation
from admitter.engine.quota.tree import Tree


@dataclass(slots=True)
class PreemptionContext:
    """What victims are looked for in; `now` is in seconds since the epoch."""

    tree: Tree
    ledger: Ledger
    capacity: Capacity
    now: float = 0.0
    # whether workloads are kept that were evicted as often as a limit of their queue allows
    limited: bool = True
    # the UIDs of those that were, as far as any was looked at
    kept_by_limits: set[str] = field(default_factory=set)

    def may_go_at(self, reservation: Reservation) -> float:
        """From when on a workload may be preempted, in seconds since the epoch; inf: never.

        That is when it has run long enough, and was not evicted too often before.
        """
        queue, workload = self.tree.queues.get(reservation.queue), reservation.workload
        if queue is None or workload is None:
            return 0.0
        runtime = self.tree.victim_terms(queue.name).runtime
        ready = reservation.since + runtime if runtime else 0.0
        if queue.eviction_limit is not None and self.limited:
            opening = opens(queue.eviction_limit, workload.evictions)
            if opening > self.now:
                self.kept_by_limits.add(reservation.holder)
                return max(ready, opening)
        return ready

    def giving(self, queue: Queue, preemptor: Workload, key: FlavorResource) -> int:
        """What victims in a queue would free of a resource in a flavor, for a workload of the same queue.

        Between namespaces that share a queue shares decide, in the end; here all of other namespaces may go.
        """
        policy = queue.preemption.within
        if policy is WithinQueue.NEVER:
            return 0
        lesser = within_queue.lesser(policy, preemptor)
        if queue.name not in self.tree.apart:
            line = self.ledger.lines.of(queue.name).get(key)
            return line.amount(lesser) if line is not None else 0
        shared = queue.name in self.ledger.sharing
        return sum(
            dict(reservation.usage).get(key, 0)
            for reservation in self.ledger.candidates(queue.name)
            if (victim := reservation.workload) is not None
            and (lesser.has(victim) or (shared and victim.namespace != preemptor.namespace))
            and self.may_go_at(reservation) <= self.now
        )
