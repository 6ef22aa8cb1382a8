"""What waits although there is room for it, since others claim that (see `claims`).

It evicts nothing as long as that is so. Once others have taken the room, it may: then it is to be tried
again, though nothing was freed.
"""

from collections import defaultdict

from admitter.engine.classes import Class
from admitter.engine.model import FlavorResource, Usage
from admitter.engine.quota import Book, Node, Tree


class Withheld:
    """Parked classes by their trees, and what each has room for but for claims."""

    def __init__(self, tree: Tree, book: Book) -> None:
        self._tree = tree
        self._book = book
        self._parked: defaultdict[Node, dict[Class, Usage]] = defaultdict(dict)

    def park(self, members: Class, wanted: Usage) -> None:
        """A class was parked, and has room for so much, each for itself, but for claims."""
        root = self._tree.root(members.queue)
        if wanted:
            self._parked[root][members] = wanted
        elif root in self._parked:
            self._parked[root].pop(members, None)

    def __contains__(self, root: Node) -> bool:
        """Whether there are any in a tree."""
        return root in self._parked

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
        return names

    def _has_room(self, queue: str, key: FlavorResource, amount: int) -> bool:
        return amount <= self._book.cell(queue, key).vacant()
