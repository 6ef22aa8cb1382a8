"""What the subtree of a waiting workload owns is not newly borrowed by others (docs/design/claims.md).

The next candidate of each queue claims what it asks for in the lowest subtree that owns it, whether or not
others hold it now. Nothing is remembered: claims follow from pending workloads, definitions and planned use.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from admitter.engine.flavors.assigner import Assigner, Proposal
from admitter.engine.flavors.partial_admission import largest_that_fits
from admitter.engine.model import FlavorResource, Usage, Workload
from admitter.engine.policy import Queue
from admitter.engine.queue.equivalence import EquivalenceClass
from admitter.engine.queue.pending import PendingQueue
from admitter.engine.quota.cells import Cell
from admitter.engine.quota.ledger import Ledger
from admitter.engine.quota.tree import Node, Tree

Taken = Mapping[str, Usage]  # by the UIDs of workloads, what they have got

NOTHING_TAKEN: Final[Taken] = {}


@dataclass(frozen=True, slots=True)
class Claim:
    """What others may not newly borrow, for the sake of one workload."""

    uid: str
    node: Node  # the subtree that owns what it asks for: its queue, or a cohort above it
    amounts: tuple[tuple[FlavorResource, int], ...]  # how much of the subtree's quota the workload asks for


_Left = list[dict[FlavorResource, int]]
"""How much of its own is left by flavor and resource, in a queue and in each subtree above it in turn."""


@dataclass(frozen=True, slots=True)
class _LookedAt:
    """In what state something of a queue was looked for that owns what it asks for."""

    version: int
    pending: PendingQueue
    left: _Left  # in the subtrees around it
    together: dict[str, int]  # by resource, in all flavors together where that is limited

    def may_differ(self, before: "_LookedAt") -> bool:
        """Whether what did not own enough may do so now: something is defined anew, or more is left."""
        if self.version != before.version or self.pending is not before.pending:
            return True
        if any(amount > before.together[resource] for resource, amount in self.together.items()):
            return True
        return any(
            amount > known[key]
            for left, known in zip(self.left, before.left, strict=True)
            for key, amount in left.items()
        )


class Claims:
    """The claims in one book of use, one a queue at most."""

    def __init__(self, tree: Tree, ledger: Ledger, assigner: Assigner) -> None:
        self._tree = tree
        self._ledger = ledger
        self._book = ledger.planned
        self._assigner = assigner
        self._of: dict[str, Claim] = {}
        self._looked_at: dict[str, _LookedAt] = {}
        self._known: dict[str, tuple[int, list[tuple[FlavorResource, Cell]]]] = {}
        # The queues with claims to be made anew; by trees these, and those with relatives that are too.
        self._marked: set[str] = set()
        self._stale: defaultdict[Node, set[str]] = defaultdict(set)
        self._moved: defaultdict[Node, set[str]] = defaultdict(set)

    def on(self, root: Node, key: FlavorResource) -> Iterator[tuple[str, Claim]]:
        """The claims in a tree that are on some flavor and resource, with their queues."""
        for queue, claim in sorted(self._of.items()):
            if any(each == key for each, _ in claim.amounts) and self._tree.root(queue) == root:
                yield queue, claim

    def amounts(self, queue: str) -> Mapping[FlavorResource, int]:
        """What the next candidate of a queue claims."""
        claim = self._of.get(queue)
        return dict(claim.amounts) if claim is not None else {}

    def mark(self, queue: str) -> None:
        """What waits in a queue may claim something else: other workloads wait, or it is defined anew."""
        self._marked.add(queue)

    def sort_in(self) -> None:
        """Note of which trees those queues are that were marked, or of which other amounts are planned."""
        for name in self._marked:
            self._stale[self._tree.root(name)].add(name)
        self._marked.clear()
        for name in self._ledger.moved:
            self._moved[self._tree.root(name)].add(name)
        self._ledger.moved.clear()

    def stale(self, root: Node) -> list[str]:
        """The queues of a tree with claims to be made anew, each returned once."""
        self.sort_in()
        found = self._stale.pop(root, set())
        for name in self._moved.pop(root, ()):
            found.update(self._tree.relatives(name))
        return sorted(found)

    def refresh(
        self, queue: str, pending: PendingQueue | None, *, awaited: bool, taken: Taken = NOTHING_TAKEN
    ) -> dict[FlavorResource, int]:
        """Let the next candidate of a queue claim what it owns, in the place of what was claimed before.

        Nothing of it may start before a preemptor that is `awaited`: it has a pending reservation. Workloads
        have `taken` so much since the claim was made.

        Returns how much less others have to leave than before, by flavor and resource; what is taken now by
        what claimed it is none of that.
        """
        before = self._of.get(queue)
        definition = self._tree.queues.get(queue)
        made = None
        if pending is None:
            self._looked_at.pop(queue, None)
            self._known.pop(queue, None)
        elif definition is not None and definition.admits and not awaited:
            made = self._made(definition, pending)
        if made == before:
            return {}
        self.drop([queue])
        if made is not None:
            self._of[queue] = made
            self._attach(made, 1)
        less = dict(before.amounts) if before is not None else {}
        if before is not None and before.node == ("queue", queue):
            for key, amount in taken.get(before.uid, ()):
                less[key] = less.get(key, 0) - amount
        for key, amount in made.amounts if made is not None else ():
            less[key] = less.get(key, 0) - amount
        return {key: amount for key, amount in less.items() if amount > 0}

    def drop(self, queues: Iterable[str], roots: AbstractSet[Node] = frozenset()) -> None:
        """Claim nothing for some queues and trees until refreshed: definitions are about to change."""
        of_trees = [queue for queue in self._of if self._tree.root(queue) in roots] if roots else []
        for queue in (*queues, *of_trees):
            claim = self._of.pop(queue, None)
            if claim is not None:
                self._attach(claim, -1)

    def _attach(self, claim: Claim, sign: int) -> None:
        for key, amount in claim.amounts:
            self._book.at(claim.node, key).attach(sign * amount)

    def _made(self, queue: Queue, pending: PendingQueue) -> Claim | None:
        """The claim of the first candidate that a subtree below the root owns all of."""
        left = self._left(queue)
        owners = [(levels, free) for levels, free in enumerate(left) if max(free.values(), default=0) > 0]
        if not owners:
            return None
        made: dict[EquivalenceClass, Claim] = {}

        def counts(members: EquivalenceClass) -> bool:
            if members.back_off is not None:
                return False  # for its own doing it takes nothing back: others may borrow meanwhile
            workload = members.head()
            for levels, free in owners:
                if workload is not None and self._may_own(queue, members, workload, free):
                    claim = self._claimed(queue, members, workload, levels)
                    if claim is not None:
                        made[members] = claim
                        return True
            return False

        looked_at = _LookedAt(self._tree.version, pending, left, self._left_together(queue))
        before = self._looked_at.get(queue.name)
        self._looked_at[queue.name] = looked_at
        if before is None or looked_at.may_differ(before):
            pending.reconsider()
        first = pending.claimant(queue.strategy, counts)
        return made[first] if first is not None else None

    def _left(self, queue: Queue) -> _Left:
        """What is left in the subtrees around a queue, below the root, the lowest first."""
        cells = self._cells(queue)
        below_root = range(len(self._tree.path(("queue", queue.name))) - 1)
        return [{key: cell.alone(levels) for key, cell in cells} for levels in below_root]

    def _cells(self, queue: Queue) -> list[tuple[FlavorResource, Cell]]:
        """What a queue may use, looked up once for its definition."""
        known = self._known.get(queue.name)
        if known is None or known[0] != self._tree.version:
            keys = queue.keys()
            cells = [(key, self._book.cell(queue.name, key)) for key in keys]
            known = self._known[queue.name] = (self._tree.version, cells)
        return known[1]

    def _left_together(self, queue: Queue) -> dict[str, int]:
        """What is left of each resource that is limited in all flavors together."""
        if not queue.limits:
            return {}
        cells = ((key[1], cell.together) for key, cell in self._cells(queue))
        return {resource: limited.limit - limited.used for resource, limited in cells if limited is not None}

    def _may_own(
        self, queue: Queue, members: EquivalenceClass, workload: Workload, free: Mapping[FlavorResource, int]
    ) -> bool:
        """Whether of each resource that a workload asks for enough is left in one flavor: a cheap look."""
        if members.least is None or members.least[0] != self._tree.version:
            members.least = (self._tree.version, self._assigner.interests(workload, queue))
        needs = members.least[1]
        partial = any(pod_set.min_count is not None for pod_set in workload.pod_sets)
        enough = {key[1] for key, amount in needs.items() if free.get(key, 0) >= (1 if partial else amount)}
        return bool(needs) and all(key[1] in enough for key, amount in needs.items() if amount)

    def _claimed(
        self, queue: Queue, members: EquivalenceClass, workload: Workload, levels: int
    ) -> Claim | None:
        """What a workload claims of the subtree so far above its queue; None if it does not own all of it."""

        def alone(cell: Cell, amount: int) -> bool:
            return amount <= cell.alone(levels) and amount <= cell.potential_available()

        def owned(form: Workload) -> Proposal | None:
            outcome = self._assigner.assign(form, queue, room=alone)
            return outcome if isinstance(outcome, Proposal) else None

        known = members.owned
        if known is not None and known[:2] == (self._tree.version, levels):
            proposal = known[2] if self._book.fits(queue.name, known[2].usage.items(), alone) else None
        else:
            proposal = None
        if proposal is None:
            proposal = owned(workload) or largest_that_fits(workload, owned)
            if proposal is None:
                return None
            # The next of the class owns the same, as long as no flavor was passed over for what is in use.
            whole = proposal.first and all(pod_set.min_count is None for pod_set in workload.pod_sets)
            members.owned = (self._tree.version, levels, proposal) if whole else None
        amounts = []
        for key, asked in proposal.usage.items():
            cell, rising = self._book.cell(queue.name, key), asked
            for _ in range(levels):
                rising = cell.rising(rising)  # what lies below is not lent
                assert cell.parent is not None, "the subtree is below the root"
                cell = cell.parent
            if rising:
                amounts.append((key, rising))
        node = self._tree.path(("queue", queue.name))[levels]
        return Claim(workload.uid, node, tuple(amounts)) if amounts else None
