"""What victims are looked for in."""

from dataclasses import dataclass

from admitter.engine.model import FlavorResource, Workload
from admitter.engine.policy import Queue, WithinQueue
from admitter.engine.preemption import within_queue
from admitter.engine.quota.capacity import Capacity
from admitter.engine.quota.ledger import Ledger
from admitter.engine.quota.tree import Tree


@dataclass(slots=True)
class PreemptionContext:
    """What victims are looked for in; `now` is in seconds since the epoch."""

    tree: Tree
    ledger: Ledger
    capacity: Capacity
    now: float = 0.0

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
        shared, runtime = queue.name in self.ledger.sharing, self.tree.victim_terms(queue.name).runtime
        return sum(
            dict(reservation.usage).get(key, 0)
            for reservation in self.ledger.candidates(queue.name)
            if (victim := reservation.workload) is not None
            and (lesser.has(victim) or (shared and victim.namespace != preemptor.namespace))
            and reservation.since + runtime <= self.now
        )
