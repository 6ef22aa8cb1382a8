"""Pending reservations that a more important workload of the same queue may take over."""

from admitter.engine.model import Workload
from admitter.engine.policy import Queue
from admitter.engine.quota.ledger import Ledger, PendingReservation


def lesser_reservations(ledger: Ledger, workload: Workload, queue: Queue) -> list[PendingReservation]:
    """Pending reservations of less important workloads of a workload's queue, the least first.

    Where namespaces take turns, of its own namespace. A displaced workload takes none, as it evicts nothing
    that could come back (docs/design/preemption.md).
    """
    reservations = ledger.pending_in(queue.name)
    if not reservations or ledger.is_displaced(workload.uid):
        return []
    lesser = [
        pending
        for pending in reservations
        if pending.workload.priority < workload.priority
        and (not queue.by_namespace or pending.namespace == workload.namespace)
    ]
    return sorted(lesser, key=lambda pending: pending.workload.rank, reverse=True)
