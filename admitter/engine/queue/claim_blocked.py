"""What waits although there is room for it, since others claim that (see `claims`).

It evicts nothing as long as that is so. Once others have taken the room, it may: then it is to be tried
again, though nothing was freed. With fair sharing the same holds for what has room for a part of what it
asks.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from admitter.engine.model import FlavorResource, Usage
from admitter.engine.preemption.context import PreemptionContext
from admitter.engine.preemption.glance import Glance
from admitter.engine.queue.equivalence import EquivalenceClass
from admitter.engine.quota.tree import Node

_Seen = tuple[frozenset[str], tuple[tuple[FlavorResource, int, int], ...]]
"""Pending evictions, and how much room there is of each flavor and resource, and how much beside claims."""


class ClaimBlocked:
    """Inadmissible classes by their trees, and what each has room for but for claims."""

    def __init__(self, scene: PreemptionContext) -> None:
        self._scene = scene
        self._tree = scene.tree
        self._ledger = scene.ledger
        self._book = scene.ledger.planned
        self._tracked: defaultdict[Node, dict[EquivalenceClass, Usage]] = defaultdict(dict)
        self._bound: defaultdict[Node, dict[EquivalenceClass, _Seen]] = defaultdict(dict)
        self._kept: defaultdict[Node, dict[EquivalenceClass, int]] = defaultdict(dict)  # with their tickets

    def track(self, members: EquivalenceClass, wanted: Usage, bound: Iterable[FlavorResource] = ()) -> None:
        """A class was marked inadmissible.

        It has room for all that is `wanted`, each for itself, whatever others claim. It may ask for what is
        `bound`, if others could be evicted for it but for claims, or for pending evictions.
        """
        root = self._tree.root(members.queue)
        self._bound[root].pop(members, None)
        if bound:
            self._bound[root][members] = self._seen(members.queue, bound)
        if not self._bound[root]:
            del self._bound[root]
        if wanted:
            self.track_room(members, wanted)
        elif root in self._tracked:
            self._tracked[root].pop(members, None)

    def track_room(self, members: EquivalenceClass, wanted: Usage) -> None:
        """An inadmissible class has room for what is wanted, each for itself, but for claims."""
        self._tracked[self._tree.root(members.queue)][members] = wanted

    def keep(self, members: EquivalenceClass) -> None:
        """An inadmissible class may fit as soon as others claim less."""
        self._kept[self._tree.root(members.queue)][members] = members.ticket

    def __contains__(self, root: Node) -> bool:
        """Whether anything in a tree waits for others to claim less, or to use more."""
        if not (self._tracked or self._bound or self._kept):
            return False
        return root in self._tracked or root in self._bound or (root in self._kept and self._keeps(root))

    def _keeps(self, root: Node) -> bool:
        kept = self._kept[root]
        while kept:
            members, ticket = next(iter(kept.items()))
            if members.inadmissible is not None and members.ticket == ticket:
                return True
            del kept[members]
        del self._kept[root]
        return False

    def is_kept(self, queue: str, needs: Mapping[FlavorResource, int], *, each: bool) -> bool:
        """Whether less claims could let something of a queue in that did not fit, and needs so much at least.

        With `each` it fits as soon as any of its needs does; else anything may help.
        """
        cells = ((self._book.cell(queue, key), amount) for key, amount in needs.items())
        if each:
            return any(cell.fits_but_for_claims(amount) for cell, amount in cells)
        return any((vacant := cell.vacant()) > 0 and cell.in_flavor() < vacant for cell, _ in cells)

    def requeue(self, root: Node) -> set[str]:
        """Requeue the classes in a tree that have that room no longer; returns their queues."""
        names: set[str] = set()
        if not (self._tracked or self._bound) or (root not in self._tracked and root not in self._bound):
            return names
        for members, wanted in list(self._tracked.get(root, {}).items()):
            stays = members.inadmissible is not None and self._tree.root(members.queue) == root
            if stays and all(self._has_room(members.queue, *each) for each in wanted):
                continue
            del self._tracked[root][members]
            if stays and self.may_evict(members, wanted):
                members.requeue()
                names.add(members.queue)
        if not self._tracked.get(root):
            self._tracked.pop(root, None)
        return names | self._requeue_bound(root)

    def _requeue_bound(self, root: Node) -> set[str]:
        """Requeue what claims or pending evictions kept from evicting, where these or the room changed."""
        names = set()
        for members, seen in list(self._bound.get(root, {}).items()):
            stays = members.inadmissible is not None and self._tree.root(members.queue) == root
            if stays and self._seen(members.queue, [key for key, _, _ in seen[1]]) == seen:
                continue
            del self._bound[root][members]
            if stays:
                members.requeue()
                names.add(members.queue)
        if not self._bound.get(root):
            self._bound.pop(root, None)
        return names

    def lost_by(self, members: EquivalenceClass) -> Iterator[tuple[FlavorResource, int]]:
        """What an inadmissible class has no room for any more; with fewer pods it may lack something else."""
        wanted = self._tracked.get(self._tree.root(members.queue), {}).get(members, ())
        return (each for each in wanted if not self._has_room(members.queue, *each))

    def may_evict(self, members: EquivalenceClass, wanted: Iterable[tuple[FlavorResource, int]]) -> bool:
        """Whether an inadmissible class may evict something for any of what it asks for; at a glance."""
        head = members.head()
        if head is None or not members.needs:
            return True
        glance = Glance(self._scene, self._tree.queues[members.queue], head)
        seen = (glance.at([each]) for each in wanted)
        return not all(in_vain is not None and in_vain.barred for in_vain in seen)

    def _seen(self, queue: str, keys: Iterable[FlavorResource]) -> _Seen:
        cells = ((key, self._book.cell(queue, key)) for key in keys)
        room = tuple((key, cell.vacant(), cell.in_flavor()) for key, cell in cells)
        return self._ledger.pending_evictions_in(self._tree.root(queue)), room

    def _has_room(self, queue: str, key: FlavorResource, amount: int) -> bool:
        return amount <= self._book.cell(queue, key).vacant()
