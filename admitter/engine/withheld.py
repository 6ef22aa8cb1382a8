"""What waits although there is room for it, since others claim that (see `claims`).

It evicts nothing as long as that is so. Once others have taken the room, it may: then it is to be tried
again, though nothing was freed.
"""

from collections import defaultdict
from collections.abc import Iterable

from admitter.engine.classes import Class
from admitter.engine.model import FlavorResource, Usage
from admitter.engine.quota import Book, Node, Tree

_Seen = tuple[tuple[FlavorResource, int, int], ...]
"""How much room there is of each flavor and resource, and how much beside claims."""


class Withheld:
    """Parked classes by their trees, and what each has room for but for claims."""

    def __init__(self, tree: Tree, book: Book) -> None:
        self._tree = tree
        self._book = book
        self._parked: defaultdict[Node, dict[Class, Usage]] = defaultdict(dict)
        self._bound: defaultdict[Node, dict[Class, _Seen]] = defaultdict(dict)

    def park(self, members: Class, wanted: Usage, bound: Iterable[FlavorResource] = ()) -> None:
        """A class was parked.

        Args:
            members: the class.
            wanted: what it has room for, each for itself, but for claims.
            bound: if others could be evicted for it, and claims are in the way: what it may ask for.
        """
        root = self._tree.root(members.queue)
        self._bound[root].pop(members, None)
        if bound:
            self._bound[root][members] = self._seen(members.queue, bound)
        if wanted:
            self._parked[root][members] = wanted
        elif root in self._parked:
            self._parked[root].pop(members, None)
        if not self._bound[root]:
            del self._bound[root]

    def __contains__(self, root: Node) -> bool:
        """Whether there are any in a tree."""
        return root in self._parked or root in self._bound

    def wake(self, root: Node) -> set[str]:
        """Try again what has that room no longer in some tree; returns the queues of that."""
        names = set()
        for members, wanted in list(self._parked.get(root, {}).items()):
            stays = members.parked is not None and self._tree.root(members.queue) == root
            if stays and all(self._has_room(members.queue, *each) for each in wanted):
                continue
            del self._parked[root][members]
            if stays:
                members.wake()
                names.add(members.queue)
        if not self._parked.get(root):
            self._parked.pop(root, None)
        return names | self._wake_bound(root)

    def _wake_bound(self, root: Node) -> set[str]:
        """Try again what claims kept from evicting, where the room or what is claimed has changed."""
        names = set()
        for members, seen in list(self._bound.get(root, {}).items()):
            stays = members.parked is not None and self._tree.root(members.queue) == root
            if stays and self._seen(members.queue, [key for key, _, _ in seen]) == seen:
                continue
            del self._bound[root][members]
            if stays:
                members.wake()
                names.add(members.queue)
        if not self._bound.get(root):
            self._bound.pop(root, None)
        return names

    def _seen(self, queue: str, keys: Iterable[FlavorResource]) -> "_Seen":
        cells = ((key, self._book.cell(queue, key)) for key in keys)
        return tuple((key, cell.vacant(), cell.in_flavor()) for key, cell in cells)

    def _has_room(self, queue: str, key: FlavorResource, amount: int) -> bool:
        return amount <= self._book.cell(queue, key).vacant()
