"""Which rule keeps a running Workload from being evicted for one that waits, in words.

The engine has decided that it may not be evicted; this module only says why
(docs/design/engine.md, *Preemption*).
"""

from admitter.engine.cycle import Engine
from admitter.engine.model import Workload
from admitter.engine.policy import BorrowWithin, PreemptionPolicy, Reclaim, WithinQueue
from admitter.engine.quota.ledger import Reservation
from admitter.policy.messages import queue_title

NOT_ENOUGH = "its eviction would not be enough"


def reason_not_evicted(uid: str, waiting: Workload, engine: Engine) -> str:
    """Why a workload that holds quota is not evicted for one that waits for it."""
    if engine.ledger.evicting(uid):
        return "it is being evicted already"
    held = engine.ledger.held(uid)
    if held is None or held.workload is None:
        return "it can't be evicted"
    policy = engine.tree.queues[waiting.queue].preemption
    if held.queue == waiting.queue:
        return _in_its_own_queue(policy, held.workload.priority, waiting.priority)
    if not _borrows(held, engine):
        return f"{queue_title(held.queue)} uses no more than its own quota"
    return _elsewhere(policy, held.workload.priority, waiting)


def _in_its_own_queue(policy: PreemptionPolicy, priority: int, mine: int) -> str:
    if policy.within is WithinQueue.NEVER:
        return "preemption.withinClusterQueue is Never"
    if priority > mine or (priority == mine and policy.within is WithinQueue.LOWER_PRIORITY):
        return f"its priority {priority} is not lower than {mine}"
    return "it is not newer" if priority == mine else NOT_ENOUGH


def _borrows(held: Reservation, engine: Engine) -> bool:
    used = engine.ledger.used(held.queue)
    known = held.queue in engine.tree.queues
    return known and any(used.get(key, 0) > engine.tree.minimum(held.queue, key) for key, _ in held.usage)


def _elsewhere(policy: PreemptionPolicy, priority: int, waiting: Workload) -> str:
    if policy.reclaim is Reclaim.NEVER and policy.borrow is BorrowWithin.NEVER:
        return "preemption.reclaimWithinCohort is Never"
    if policy.reclaim is Reclaim.LOWER_PRIORITY and priority >= waiting.priority:
        return f"its priority {priority} is not lower than {waiting.priority}"
    if policy.borrow is BorrowWithin.NEVER:
        return (
            f"{queue_title(waiting.queue)} would have to borrow, and preemption.borrowWithinCohort is Never"
        )
    return NOT_ENOUGH
