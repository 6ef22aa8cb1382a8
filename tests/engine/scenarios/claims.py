"""What an owner that waits keeps others from borrowing, by arithmetic of its own.

While the next candidate of a queue cannot start only because others hold what its subtree owns, nothing
outside that subtree newly borrows from that part. The part is what the candidate asks for, and no more.
"""

from collections.abc import Iterable, Iterator, Mapping

from admitter.engine.flavors.partial_admission import largest_that_fits
from admitter.engine.model import FlavorResource, Workload
from admitter.engine.policy import Strategy
from tests.engine.scenarios.arithmetic import Node, Quotas, Use, added, ways
from tests.engine.scenarios.driver import Play

Usage = Mapping[FlavorResource, int]


def within(play: Play, top: Node) -> Quotas:
    """The quotas of one subtree, as if nothing were above it."""
    quotas, world = play.world.quotas(), play.world
    inside = {node for node in quotas.parent if top in quotas.path(node)}
    return Quotas(
        {name: queue for name, queue in world.queues.items() if ("queue", name) in inside},
        {name: cohort for name, cohort in world.cohorts.items() if ("cohort", name) in inside},
        top,
    )


def owned(play: Play, workload: Workload, top: Node, use: Use) -> list[Usage]:
    """All that a workload could use if its subtree had back what others hold of it."""
    alone, flavors = within(play, top), {flavor.name: flavor for flavor in play.scenario.flavors}
    return [
        usage
        for usage in ways(workload, play.world.queues[workload.queue], flavors)
        if not alone.too_much(workload.queue, usage, use)
    ]


def owned_with_fewer(play: Play, workload: Workload, top: Node, use: Use) -> list[Usage]:
    """As `owned`; of what can do with fewer pods, for as many as that gives anything for."""
    found = owned(play, workload, top, use)
    fewer = None if found else largest_that_fits(workload, lambda less: owned(play, less, top, use) or None)
    return found or fewer or []


def claimants(play: Play, use: Use) -> Iterator[tuple[Workload, Node, list[Usage]]]:
    """The next candidate of each queue, with each subtree below the top that owns all it asks for."""
    quotas, world = play.world.quotas(), play.world
    for name, queue in world.queues.items():
        line = sorted((w for w in world.waiting.values() if w.queue == name), key=lambda w: w.rank)
        if not queue.admits:
            continue
        for workload in line:
            found = [
                (workload, top, usages)
                for top in quotas.path(("queue", name))
                if quotas.parent[top] is not None and (usages := owned_with_fewer(play, workload, top, use))
            ]
            yield from found
            head_only = queue.strategy is Strategy.STRICT_FIFO or bool(found)
            if head_only and not queue.by_namespace:
                break  # where namespaces take turns, the next one is a matter of shares


def withheld(play: Play, workload: Workload, usage: Usage, use: Use) -> bool:
    """Whether what a workload would use is free only because its owners, which wait for it, cannot start."""
    quotas = play.world.quotas()
    borrowed = quotas.borrows(workload.queue, usage, use)
    after = added(use, workload.queue, usage)
    claimed: dict[FlavorResource, dict[str, tuple[str, int]]] = {}
    for claimant, top, usages in claimants(play, use):
        mine, theirs = set(quotas.path(("queue", workload.queue))), set(quotas.path(top))
        if claimant.uid == workload.uid or top in mine:
            continue
        for key, amount in usage.items():
            if not amount or not any((node, *key) in borrowed for node in mine - theirs):
                continue
            asked = [wanted[key] for wanted in usages if wanted.get(key, 0)]
            if any(quotas.too_much(claimant.queue, {key: more}, after) for more in asked):
                return True
            if len(asked) == len(usages):
                claimed.setdefault(key, {})[claimant.uid] = (claimant.queue, min(asked))
    return any(
        _all_fit(quotas, key, each.values(), use) and not _all_fit(quotas, key, each.values(), after)
        for key, each in claimed.items()
    )


def _all_fit(quotas: Quotas, key: FlavorResource, claims: Iterable[tuple[str, int]], use: Use) -> bool:
    """Whether there is room for what several queues claim, one after the other."""
    for queue, amount in claims:
        if quotas.too_much(queue, {key: amount}, use):
            return False
        use = added(use, queue, {key: amount})
    return True
