"""To what definitions that change make a difference."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from admitter.engine.policy import Queue
from admitter.engine.quota.ledger import Ledger
from admitter.engine.quota.tree import Node, Tree


def without_effect_on_others(
    tree: Tree, ledger: Ledger, queues: Iterable[Queue], gone: Iterable[str]
) -> set[str]:
    """Which of some queues make no difference to others by what they are to be: before they are defined.

    If only the limits of one change, it takes and gives what it did. Or no workload holds quota in it, so
    that none can be evicted from it; it has nothing of its own that others could have; and it takes
    from none without having that, which would make a difference to others. Those that are `gone` are to be
    removed.
    """
    after: dict[str, Queue | None] = {**{queue.name: queue for queue in queues}, **dict.fromkeys(gone)}
    found = set()
    for name, queue in after.items():
        before = tree.queues.get(name)
        if before is not None and queue is not None and replace(before, limits=queue.limits) == queue:
            found.add(name)
        elif not ledger.reservations(name) and name not in ledger.queues_with_pending:
            found.update([name] if all(each is None or each.is_plain for each in (before, queue)) else ())
    return found


def roots_of(tree: Tree, queues: Iterable[str], cohorts: Iterable[str] = ()) -> set[Node]:
    """The roots of the trees of some queues and cohorts.

    What is below a cohort of a cycle has another root, once one of that cycle names another parent.
    """
    linked = {each for name in cohorts for each in (name, *tree.cycle(name))}
    return {tree.path(("cohort", name))[-1] for name in linked} | {tree.root(name) for name in queues}


def concerned(
    tree: Tree, names: Mapping[str, object], queues: AbstractSet[str], roots: AbstractSet[Node] = frozenset()
) -> list[str]:
    """The queues among `names` that are in `queues`, or in a tree with a root in `roots`."""
    if not roots:
        return [name for name in queues if name in names]
    return [name for name in names if name in queues or tree.root(name) in roots]
