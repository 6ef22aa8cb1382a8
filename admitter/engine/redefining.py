"""Which new definitions concern no other queue, so that nothing that waits elsewhere is tried again."""

from collections.abc import Iterable
from dataclasses import replace

from admitter.engine.policy import Queue
from admitter.engine.quota.ledger import Ledger
from admitter.engine.quota.tree import Tree


def without_effect_on_others(
    ledger: Ledger, tree: Tree, queues: Iterable[Queue], gone: Iterable[str]
) -> set[str]:
    """Which of some queues make no difference to others by what they are to be: before they are defined.

    If only the limits of one change, it takes and gives what it did. Or no workload holds quota in it, so
    that none can be evicted from it; it has nothing of its own that others could have; and it takes from
    none without having that, which would make a difference to others. Those that are `gone` are to be
    removed.
    """
    after: dict[str, Queue | None] = {**{queue.name: queue for queue in queues}, **dict.fromkeys(gone)}
    found = set()
    for name, queue in after.items():
        before = tree.queues.get(name)
        if before is not None and queue is not None and replace(before, limits=queue.limits) == queue:
            found.add(name)
        elif not (
            ledger.reservations(name) or name in ledger.queues_with_pending or ledger.evictions.of(name)
        ):
            found.update([name] if all(each is None or each.is_plain for each in (before, queue)) else ())
    return found
