"""Gives idle quota to workloads that can use more pods, and takes it back (docs/design/growing.md).

Both go by one order: the workload with the fewest extra pods in proportion to its admission is the next to
get some. To take back is to give out anew what runs, beside what is planned; what is left over ends.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from heapq import heapify, heappop, heappush

from admitter.engine.commands import SetExtra
from admitter.engine.queue import events
from admitter.engine.quota.book import Book
from admitter.engine.quota.extras import Extra, Part, Shape
from admitter.engine.quota.tree import Node
from admitter.engine.state import EngineState


@dataclass(frozen=True, slots=True)
class Resizing:
    """A workload gets more extra pods, or some of its extra pods are to end."""

    holder: str  # its UID
    extra: Extra  # as it is from now on
    part: str = ""  # the pod set that grows or shrinks; empty of one that does so as a whole


@dataclass(slots=True)
class _Class:
    """Workloads of one shape that share in what is free, by how many extra pods they have for each other."""

    shape: Shape
    most: dict[Part, int]  # how many each may get
    base: dict[Part, int]
    pods: dict[Part, int]  # how many each has
    heap: list[tuple[Fraction, Part]] = field(default_factory=list)

    def line_up(self) -> None:
        self.heap = [self._turn(part) for part in self.most if self.pods[part] < self.most[part]]
        heapify(self.heap)

    def give(self, part: Part, pods: int) -> None:
        """Give some to the first of them."""
        heappop(self.heap)
        self.pods[part] += pods
        if self.pods[part] < self.most[part]:
            heappush(self.heap, self._turn(part))

    def _turn(self, part: Part) -> tuple[Fraction, Part]:
        return (Fraction(self.pods[part], self.base[part]), part)


class Growth:
    """Resizes workloads in one tree, once all that waits in it is decided."""

    def __init__(self, state: EngineState, root: Node, now: float) -> None:
        """It is `now`, in seconds since the epoch."""
        self._state = state
        self._ledger = state.ledger
        self._extras = state.ledger.extras
        self._members = state.tree.members(root)
        self._now = now

    def run(self, *, doubtful: bool) -> list[Resizing]:
        """What is resized; with `doubtful` extra pods may be too many though nothing waits for them."""
        waited_for = any(name in self._ledger.queues_with_pending for name in self._members)
        resized = self._shrink() if waited_for or doubtful else []
        if not waited_for:
            resized += self._grow()
        for each in resized:
            part = (each.holder, each.part)
            queue = self._extras.queue_of(part)
            self._extras.put(part, queue, each.extra)
            self._state.capacity.forget(each.holder)
            self._ledger.revisions[queue] += 1
        return resized

    def _shrink(self) -> list[Resizing]:
        """End as few extra pods as stand in the way of what is planned, or are beyond a limit."""
        if self._fit(self._extras.kept(self._members)):
            return []  # as nearly always: none of them is looked at
        classes: dict[Shape, dict[Part, Extra]] = {}
        for part in self._extras.granted(self._members):
            extra = self._extras.get(*part)
            if extra is not None and extra.kept and not self._ledger.evicting(part[0]):
                shape = (self._extras.queue_of(part), extra.each)
                classes.setdefault(shape, {})[part] = extra
        sums = ((shape, sum(each.kept for each in members.values())) for shape, members in classes.items())
        if self._fit(sums):
            return []
        shared = [_class(shape, members, lambda extra: (0, extra.kept)) for shape, members in classes.items()]
        _share_out(self._ledger.planned, shared)
        return [
            Resizing(part[0], replace(extra, kept=each.pods[part], since=self._now), part[1])
            for each in shared
            for part, extra in classes[each.shape].items()
            if each.pods[part] < extra.kept
        ]

    def _fit(self, kept: Iterable[tuple[Shape, int]]) -> bool:
        """Whether so many pods that go on have room beside what is planned."""
        book, taken = self._ledger.planned, []
        try:
            for (queue, each), pods in kept:
                if _room(book, (queue, each), pods) < pods:
                    return False
                taken.append((queue, tuple((key, amount * pods) for key, amount in each)))
                book.add(*taken[-1])
        finally:
            for queue, usage in taken:
                book.add(queue, usage, -1)
        return True

    def _grow(self) -> list[Resizing]:
        """Give out what is idle."""
        book, grown = self._ledger.real, list[Resizing]()
        shared, members = [], dict[Part, Extra]()
        for shape, parts in self._extras.wanting(self._members):
            queue = self._state.tree.queues.get(shape[0])
            if queue is None or not queue.admits or not _room(book, shape, 1):
                continue
            found = {part: extra for part in parts if (extra := self._may_grow(part)) is not None}
            members |= found
            shared.append(_class(shape, found, lambda extra: (extra.granted, extra.most)))
        _share_out(book, shared)
        for each in shared:
            for part, pods in each.pods.items():
                if pods > members[part].granted:
                    extra = replace(members[part], granted=pods, kept=pods, since=self._now)
                    grown.append(Resizing(part[0], extra, part[1]))
        return grown

    def _may_grow(self, part: Part) -> Extra | None:
        """The extra pods of a workload that stays."""
        return None if self._ledger.evicting(part[0]) else self._extras.get(*part)


def _class(shape: Shape, members: dict[Part, Extra], bounds: Callable[[Extra], tuple[int, int]]) -> _Class:
    """Workloads that have so many, and may get so many."""
    pods = {part: bounds(extra)[0] for part, extra in members.items()}
    most = {part: bounds(extra)[1] for part, extra in members.items()}
    made = _Class(shape, most, {part: max(1, extra.base) for part, extra in members.items()}, pods)
    made.line_up()
    return made


def _share_out(book: Book, classes: Iterable[_Class]) -> None:
    """Give out what a book has room for; the book is in the end as it was.

    The next is the one with the fewest extra pods in proportion, then the smaller UID. It gets half of its
    share of what fits, at least one pod. A class for which one more has no room gets none any more.
    """
    left, taken = [each for each in classes if each.heap], []
    weight = sum(each.base[part] for each in left for _, part in each.heap)
    while left:
        first = min(left, key=lambda each: each.heap[0])
        _, part = first.heap[0]
        missing = first.most[part] - first.pods[part]
        room = _room(book, first.shape, missing * max(1, 2 * weight))
        if not room:
            left.remove(first)
            weight -= sum(first.base[each] for _, each in first.heap)
            continue
        pods = min(missing, max(1, room * first.base[part] // (2 * weight)))
        first.give(part, pods)
        taken.append((first.shape[0], tuple((key, amount * pods) for key, amount in first.shape[1])))
        book.add(*taken[-1])
        if first.pods[part] == first.most[part]:
            weight -= first.base[part]
            if not first.heap:
                left.remove(first)
    for queue, usage in taken:
        book.add(queue, usage, -1)


def _room(book: Book, shape: Shape, most: int) -> int:
    """How many more pods of a shape there is room for, at most so many; whatever others claim."""
    queue, each = shape
    rooms = (max(0, book.cell(queue, key).room()) // amount for key, amount in each if amount)
    return min([most, *rooms])


def set_extra(state: EngineState, command: SetExtra) -> bool:
    """Take in what a workload may run beyond its admission; returns whether that is another thing."""
    extras, held = state.ledger.extras, state.ledger.held(command.holder)
    if held is None or extras.get(command.holder, command.part) == command.extra:
        return False
    state.reorder(held.queue)
    state.capacity.forget(command.holder)
    state.ledger.revisions[held.queue] += 1
    part = (command.holder, command.part)
    extras.drop(part)
    if command.extra is not None:
        extras.put(part, held.queue, command.extra)
    state.requeue(events.UsageShrank(held.queue, ()))  # pending reservations may fit now
    extras.doubtful.add(held.queue)
    return True


def resize(
    state: EngineState, roots: Iterable[Node], asked: Callable[[Node], bool], now: float
) -> list[Resizing]:
    """Resize workloads in some trees, and in those of which more or less may be idle than before.

    What is in a tree for which `asked` says no waits until another process, or a later call, decides there.
    """
    extras, root_of = state.ledger.extras, state.tree.root
    if not extras:
        return []
    doubtful = {root_of(name) for name in extras.doubtful}
    touched, resized = extras.touched | extras.doubtful, list[Resizing]()
    extras.touched.clear()
    extras.doubtful.clear()
    for root in sorted({*roots, *map(root_of, touched)}):
        if asked(root):
            resized += Growth(state, root, now).run(doubtful=root in doubtful)
        else:
            state.put_off |= {name for name in touched if root_of(name) == root}
    return resized
