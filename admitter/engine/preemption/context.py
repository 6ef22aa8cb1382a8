"""What victims are looked for in."""

from dataclasses import dataclass

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
    limited: bool = True  # whether limits on evictions count
    kept_by_limits: bool = False  # whether one has kept a workload, as far as any was looked at

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
                self.kept_by_limits = True
                return max(ready, opening)
        return ready

    def gives_at(self, queue: str) -> float:
        """From when on one more workload of a queue may be evicted, by limits on all of them together.

        In seconds since the epoch; inf: never.
        """
        opening = 0.0
        for node in self.tree.limiting(queue) if self.limited else ():
            opening = max(opening, self.ledger.evictions.window(node, self.now).opens(1))
        self.kept_by_limits |= opening > self.now
        return opening

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
