"""The quota tree and its use: what `admitter top` and the web page show."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from admitter.engine.model import FlavorResource
from admitter.engine.quota.tree import Node
from admitter.insight.lending import lent, markets
from admitter.policy.messages import node_title
from admitter.policy.snapshot import Snapshot

RECENT_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class OverviewUse:
    """One resource in one flavor at one place of the tree. Amounts are in the engine's unit."""

    flavor: str  # its name, or that of the pool that counts all flavors
    resource: str
    used: int  # by the place and all below it
    minimum: int  # the `min` of the place and of all below it
    maximum: int | None  # the most that may be in use; None: no such limit
    borrowed: int  # the part of its use that is other queues' quota
    lent: int  # the part of its own quota that others use, as `lending` attributes it


@dataclass(frozen=True, slots=True)
class OverviewLine:
    """A ClusterQueue, an elastic quota or a Cohort."""

    node: Node  # `queue` or `cohort`, and its name in the engine
    title: str  # its name for people
    depth: int  # the number of Cohorts above it
    parent: Node | None  # the Cohort above it
    uses: tuple[OverviewUse, ...]  # by flavor and resource
    waiting: int  # how many workloads wait in it, those that may not compete included; of a Cohort, below it
    admitted: int  # how many workloads hold its quota
    recent: int  # how many of these were admitted in the last minute
    problem: str  # why it does not work; empty if it does


def overview(snapshot: Snapshot) -> list[OverviewLine]:
    """All places of the tree by name, each before those below it."""
    tree = snapshot.engine.tree
    parents = tree.parents()
    children: defaultdict[Node | None, list[Node]] = defaultdict(list)
    for node in sorted(parents):
        children[parents.get(node)].append(node)
    counts, minimums = _counts(snapshot, parents), _minimums(snapshot, parents)
    loaned = lent(tree, markets(tree, snapshot.engine.ledger.real))
    found: list[OverviewLine] = []
    left = [(node, 0) for node in reversed(children[None])]
    while left:
        node, depth = left.pop()
        parent = parents.get(node)
        uses = tuple(_uses(snapshot, node, loaned, minimums))
        waiting, admitted, recent = (counts[state][node] for state in ("waiting", "admitted", "recent"))
        title, problem = node_title(*node), _problem(snapshot, node)
        found.append(OverviewLine(node, title, depth, parent, uses, waiting, admitted, recent, problem))
        left += [(child, depth + 1) for child in reversed(children[node])]
    return found


def _problem(snapshot: Snapshot, node: Node) -> str:
    """Why a ClusterQueue does not work; other queues of the engine are made of elastic quotas."""
    kind, name = node
    if kind != "queue" or snapshot.world.cluster_queues.get(("", name)) is None:
        return ""
    problem = snapshot.catalog.queue(name).problem
    return problem[1] if problem is not None else ""


def _above(node: Node, parents: Mapping[Node, Node | None]) -> Iterator[Node]:
    """All Cohorts above a place."""
    place = parents.get(node)
    while place is not None:
        yield place
        place = parents.get(place)


def _minimums(
    snapshot: Snapshot, parents: Mapping[Node, Node | None]
) -> Counter[tuple[Node, FlavorResource]]:
    """The own quota of each place and all below it."""
    found: Counter[tuple[Node, FlavorResource]] = Counter()
    for node in parents:
        for key, quota in snapshot.engine.tree.quotas(node).items():
            for place in (node, *_above(node, parents)):
                found[place, key] += quota.minimum
    return found


def _uses(
    snapshot: Snapshot,
    node: Node,
    loaned: Counter[tuple[Node, FlavorResource]],
    minimums: Counter[tuple[Node, FlavorResource]],
) -> Iterator[OverviewUse]:
    book, tree = snapshot.engine.ledger.real, snapshot.engine.tree
    for key, cell in sorted(book.cells(node).items()):
        quota = tree.quotas(node).get(key)
        if quota is None and not cell.total and not cell.subtree_quota:
            continue
        borrowed = max(0, cell.used - cell.subtree_quota)
        yield OverviewUse(*key, cell.total, minimums[node, key], cell.limit, borrowed, loaned[node, key])


def _counts(snapshot: Snapshot, parents: Mapping[Node, Node | None]) -> dict[str, Counter[Node]]:
    """How many workloads wait and are admitted, at each place and all above it."""
    found: dict[str, Counter[Node]] = {"waiting": Counter(), "admitted": Counter(), "recent": Counter()}
    for view in snapshot.world.workloads:
        if view.finished:
            continue
        if view.admission is None:
            found["waiting"]["queue", snapshot.queue_of(view) or ""] += 1
        else:
            found["admitted"]["queue", view.admission.queue] += 1
            found["recent"]["queue", view.admission.queue] += snapshot.now - view.since < RECENT_SECONDS
    for counts in found.values():
        for node, count in list(counts.items()):
            for place in _above(node, parents):
                counts[place] += count
    return found
