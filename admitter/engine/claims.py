"""What the subtree of a waiting workload owns is not newly borrowed by others (003; docs/design/claims.md).

The next candidate of each queue claims what it asks for in the lowest subtree that owns it, whether or not
others hold it now. Nothing is remembered: what is claimed follows from what waits, is defined and is planned.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from admitter.engine.cells import Cell
from admitter.engine.classes import Class
from admitter.engine.flavors import Assigner, Proposal
from admitter.engine.model import FlavorResource, Workload
from admitter.engine.partial import largest_that_fits
from admitter.engine.pending import Pending
from admitter.engine.policy import Queue
from admitter.engine.quota import Book, Node, Tree


@dataclass(frozen=True, slots=True)
class Claim:
    """What others may not newly borrow, for the sake of one workload.

    Attributes:
        uid: of the workload.
        node: the subtree that owns what it asks for: its queue, or a cohort above it.
        amounts: how much of the subtree's quota the workload asks for.
    """

    uid: str
    node: Node
    amounts: tuple[tuple[FlavorResource, int], ...]


class Claims:
    """The claims in one book of use, one a queue at most."""

    def __init__(self, tree: Tree, book: Book, assigner: Assigner) -> None:
        self._tree = tree
        self._book = book
        self._assigner = assigner
        self._of: dict[str, Claim] = {}

    def of(self, queue: str) -> Claim | None:
        """The claim of a queue's next candidate."""
        return self._of.get(queue)

    def on(self, root: Node, key: FlavorResource) -> Iterator[tuple[str, Claim]]:
        """The claims in a tree that are on some flavor and resource, with their queues."""
        for queue, claim in sorted(self._of.items()):
            if any(each == key for each, _ in claim.amounts) and self._tree.root(queue) == root:
                yield queue, claim

    def refresh(self, queue: str, pending: Pending | None, *, awaited: bool) -> dict[FlavorResource, int]:
        """Let the next candidate of a queue claim what it owns, in the place of what was claimed before.

        Args:
            queue: its name.
            pending: what waits in it.
            awaited: whether nothing of it may start before another one that has a place.

        Returns:
            How much less is claimed than before, by flavor and resource.
        """
        before = self._of.get(queue)
        definition = self._tree.queues.get(queue)
        made = None
        if pending is not None and definition is not None and definition.admits and not awaited:
            made = self._made(definition, pending)
        if made == before:
            return {}
        self.drop([queue])
        if made is not None:
            self._of[queue] = made
            self._attach(made, 1)
        less = dict(before.amounts) if before is not None else {}
        for key, amount in made.amounts if made is not None else ():
            less[key] = less.get(key, 0) - amount
        return {key: amount for key, amount in less.items() if amount > 0}

    def drop(self, queues: Iterable[str]) -> None:
        """Claim nothing for some queues until they are refreshed: definitions are about to change."""
        for queue in queues:
            claim = self._of.pop(queue, None)
            if claim is not None:
                self._attach(claim, -1)

    def drop_trees(self, roots: AbstractSet[Node]) -> None:
        """As `drop`, for all queues of some trees."""
        if roots:
            self.drop([queue for queue in self._of if self._tree.root(queue) in roots])

    def _attach(self, claim: Claim, sign: int) -> None:
        for key, amount in claim.amounts:
            self._book.at(claim.node, key).attach(sign * amount)

    def _made(self, queue: Queue, pending: Pending) -> Claim | None:
        """The claim of the first candidate that a subtree below the root owns all of."""
        owners = self._owners(queue)
        if not owners:
            return None
        for members in pending.candidates(queue.strategy):
            workload = members.head()
            assert workload is not None, "a class has a first workload as long as it is one"
            for levels, free in owners:
                if self._may_own(queue, members, workload, free):
                    claim = self._claimed(queue, workload, levels)
                    if claim is not None:
                        return claim
        return None

    def _owners(self, queue: Queue) -> list[tuple[int, dict[FlavorResource, int]]]:
        """The subtrees around a queue, below the root, that have something of their own left, lowest first.

        Returns:
            How far each is above the queue, and how much is left in it by flavor and resource.
        """
        found, keys = [], queue.keys()
        for levels in range(len(self._tree.path(("queue", queue.name))) - 1):
            left = {key: self._book.cell(queue.name, key).alone(levels) for key in keys}
            free = {key: amount for key, amount in left.items() if amount > 0}
            if free:
                found.append((levels, free))
        return found

    def _may_own(
        self, queue: Queue, members: Class, workload: Workload, free: Mapping[FlavorResource, int]
    ) -> bool:
        """Whether of each resource that a workload asks for enough is left in one flavor: a cheap look."""
        if members.least is None or members.least[0] != self._tree.version:
            members.least = (self._tree.version, self._assigner.interests(workload, queue))
        needs = members.least[1]
        partial = any(pod_set.min_count is not None for pod_set in workload.pod_sets)
        enough = {key[1] for key, amount in needs.items() if free.get(key, 0) >= (1 if partial else amount)}
        return bool(needs) and all(key[1] in enough for key, amount in needs.items() if amount)

    def _claimed(self, queue: Queue, workload: Workload, levels: int) -> Claim | None:
        """What a workload claims of the subtree so far above its queue; None if it does not own all of it."""

        def alone(cell: Cell) -> int:
            return cell.alone(levels)

        def owned(form: Workload) -> Proposal | None:
            outcome = self._assigner.assign(form, queue, room=alone)
            return outcome if isinstance(outcome, Proposal) else None

        proposal = owned(workload) or largest_that_fits(workload, owned)
        if proposal is None:
            return None
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
