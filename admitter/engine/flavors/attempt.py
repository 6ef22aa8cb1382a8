"""One attempt to find flavors for all pods of a workload: first choices, and others if those collide."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from admitter.engine.flavors.matching import conflict, mismatch, oversize
from admitter.engine.model import Flavor, FlavorResource, PodSet
from admitter.engine.policy import Group, Queue
from admitter.engine.quota.book import Book
from admitter.engine.quota.cells import Cell
from admitter.engine.refusal import FlavorRefusal, Reason, Refusal, Rule, reason_of

Passed = tuple[int, int, str]  # a choice: the places of pod set and group, and the flavor's name
Combination = frozenset[Passed]  # choices that were made together
Wanted = Sequence[tuple[FlavorResource, int]]  # how much is asked of what, each once
# What victims in the workload's own queue would free of a resource in a flavor.
Giving = Callable[[FlavorResource], int]
# Whether something would be borrowed; the second argument says whether it fits.
Borrowing = Callable[[Wanted, bool], bool]
InVain = Callable[[Wanted], bool]  # whether it is known at a glance that no evictions make room

MOST_DEAD_ENDS: Final = 200
"""After so many combinations that came to nothing no others are tried: their number could be huge."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What one group of a queue's resources has to provide for one pod set."""

    number: int  # the place of the pod set in its workload
    pod_set: PodSet
    place: int  # the place of the group in its queue
    group: Group  # resources that get one flavor together
    wanted: Mapping[str, Mapping[str, int]]  # by flavor, what all of the pods ask of them; nothing is 0


@dataclass(slots=True, eq=False)
class Choice:
    """A flavor for a slot; `rank` orders choices from good to bad."""

    flavor: str
    wanted: Wanted  # what all slots ask of it up to this one, by what this one asks of it
    borrowing: Borrowing  # asked once if at all, as it may be dear
    fits: bool  # whether enough of it is free
    _borrows: bool | None = None

    @property
    def borrows(self) -> bool:
        if self._borrows is None:
            self._borrows = self.borrowing(self.wanted, self.fits)
        return self._borrows

    @property
    def rank(self) -> tuple[bool, bool]:
        """Rather borrow than preempt (docs/design/engine.md)."""
        return (not self.fits, self.borrows)


@dataclass(frozen=True, slots=True)
class AttemptContext:
    """What attempts are made on.

    `room` says whether a queue's cell has room for so much: never more than if nothing were in use.
    """

    book: Book
    flavors: Mapping[str, Flavor]
    room: Callable[[Cell, int], bool] = Cell.fits


@dataclass(eq=False)
class Attempt:
    """Fills the slots of a workload one after the other, each on top of what those before it got."""

    ground: AttemptContext
    queue: Queue
    slots: list[Slot]
    passed: Collection[Combination]  # choices that are not to be preempted for together
    giving: Giving | None  # None: nothing counts that fits only if something else is evicted
    picks: list[Choice] = field(default_factory=list)  # a choice for each slot that is filled
    usage: dict[FlavorResource, int] = field(default_factory=dict)  # what they use together
    refusal: Refusal | None = None  # why no combination was found
    first: bool = True  # whether no flavor was passed over so far for what is in use
    _left: int = MOST_DEAD_ENDS

    def fill(self) -> bool:
        """Fill all slots that are left; False, with nothing changed, if no combination does."""
        if len(self.picks) == len(self.slots):
            return not self.passed or self._allowed()
        slot = self.slots[len(self.picks)]
        for choice in self._choices(slot):
            self.picks.append(choice)
            self._use(slot, choice, 1)
            if self.fill():
                return True
            self._use(slot, self.picks.pop(), -1)
            if not self._left:
                return False
        return False

    def alone(self, in_vain: InVain) -> Iterator[None]:
        """Fill the only slot in one way after the other; after the last, `refusal` says why there is no more.

        They come as `fill` would find them if each were passed once it has come to nothing: first those that
        the queue's rules do not pass over, then the others from good to bad. Choices that are `in_vain` are
        left out.
        """
        (slot,) = self.slots
        refusals: dict[str, FlavorRefusal] = {}
        others: list[Choice] = []
        for name in slot.group.flavors:
            judged = self._judge(slot, name, {})
            if isinstance(judged, FlavorRefusal):
                refusals[name] = judged
                self.first &= judged.rule is not Rule.BUSY
                continue
            if self._passed_over(judged):
                others.append(judged)
            elif judged.fits or not in_vain(judged.wanted):
                yield from self._filled(slot, judged)
            self.first = False
        yield from self._in_order(slot, [choice for choice in others if choice.fits], in_vain)
        yield from self._in_order(slot, [choice for choice in others if not choice.fits], in_vain)
        names = slot.group.flavors
        self._dead_end(slot, tuple(refusals.get(name) or self._busy(slot, name) for name in names), {})

    def _in_order(self, slot: Slot, choices: Sequence[Choice], in_vain: InVain) -> Iterator[None]:
        """Rather what is not borrowed; each is looked at when those before it have come to nothing."""
        borrowed = []
        for choice in choices:
            if not choice.fits and in_vain(choice.wanted):
                continue
            if len(choices) > 1 and choice.borrows:
                borrowed.append(choice)
            else:
                yield from self._filled(slot, choice)
        for choice in borrowed:
            yield from self._filled(slot, choice)

    def _filled(self, slot: Slot, choice: Choice) -> Iterator[None]:
        self.picks.append(choice)
        self._use(slot, choice, 1)
        yield
        self._use(slot, self.picks.pop(), -1)

    def preempting(self) -> dict[Passed, Slot]:
        """The choices that fit only if something else is evicted, and for what they were made."""
        if all(pick.fits for pick in self.picks):
            return {}
        return {
            (slot.number, slot.place, pick.flavor): slot
            for slot, pick in zip(self.slots, self.picks, strict=True)
            if not pick.fits
        }

    def _allowed(self) -> bool:
        """Whether what was chosen is not known to be hopeless; if it is, this is a dead end."""
        chosen = self.preempting()
        if not any(combination <= chosen.keys() for combination in self.passed):
            return True
        *_, slot = chosen.values()
        busy = [judged for name in slot.group.flavors if (judged := self._without(slot, name)) is not None]
        self._dead_end(slot, tuple(busy), self._others(slot))
        return False

    def _without(self, slot: Slot, name: str) -> FlavorRefusal | None:
        """Why a flavor can't be had for a slot unless something is evicted."""
        self._use(slot, picked := self.picks[self.slots.index(slot)], -1)
        judged = self._judge(slot, name, {})
        refusal = judged if isinstance(judged, FlavorRefusal) else None
        if refusal is None and isinstance(judged, Choice) and not judged.fits:
            refusal = self._busy(slot, name)
        self._use(slot, picked, 1)
        return refusal

    def _use(self, slot: Slot, choice: Choice, sign: int) -> None:
        for resource, amount in slot.wanted[choice.flavor].items():
            key = self.queue.key(choice.flavor, resource)
            self.usage[key] = self.usage.get(key, 0) + sign * amount

    def _choices(self, slot: Slot) -> Iterator[Choice]:
        """The flavor that the queue's rules take first, then the others from good to bad."""
        others = self._others(slot)
        refusals: list[FlavorRefusal] = []
        found: list[Choice] = []
        names = iter(slot.group.flavors)
        for name in names:
            judged = self._judge(slot, name, others)
            if isinstance(judged, FlavorRefusal):
                refusals.append(judged)
                self.first &= judged.rule is not Rule.BUSY
                continue
            found.append(judged)
            if not self._passed_over(judged):
                yield judged
                found.remove(judged)
                break
            self.first = False
        self.first = False  # of what was taken first, something can't be had together
        if not found and len(refusals) == len(slot.group.flavors):
            self._dead_end(slot, tuple(refusals), others)
            return
        for name in names:
            judged = self._judge(slot, name, others)
            if isinstance(judged, Choice):
                found.append(judged)
        yield from sorted(found, key=lambda choice: choice.rank)

    def _passed_over(self, choice: Choice) -> bool:
        fungibility = self.queue.fungibility
        return (not choice.fits and not fungibility.preempt) or (not fungibility.borrow and choice.borrows)

    def _others(self, slot: Slot) -> dict[str, Flavor]:
        """Flavors that the slot's pods have already for other resources."""
        if not self.picks:
            return {}
        return {
            pick.flavor: self.ground.flavors[pick.flavor]
            for other, pick in zip(self.slots, self.picks, strict=False)
            if other.number == slot.number
        }

    def _dead_end(
        self, slot: Slot, refusals: tuple[FlavorRefusal, ...], others: Mapping[str, Flavor]
    ) -> None:
        """Note why a slot can't be filled, and whether other choices for those before it could help."""
        reason = reason_of(refusals)
        if self.refusal is None or (
            reason is Reason.INSUFFICIENT_QUOTA and self.refusal.reason is not reason
        ):
            several = len({each.number for each in self.slots}) > 1
            wanted = slot.wanted[slot.group.flavors[0]]
            self.refusal = Refusal(
                reason,
                self.queue.name,
                asked=tuple(wanted.items()),
                pod_set=slot.pod_set.name if several else "",
                flavors=refusals,
                preempts=reason is Reason.INSUFFICIENT_QUOTA and self.queue.preemption.allowed,
            )
        others_may_help = others or len(self.picks) == len(self.slots)
        shared = any(self.usage.get(self.queue.key(f, r)) for f in slot.group.flavors for r in slot.wanted[f])
        self._left = self._left - 1 if shared or others_may_help else 0

    def _judge(self, slot: Slot, name: str, others: Mapping[str, Flavor]) -> Choice | FlavorRefusal:
        flavor = self.ground.flavors[name]
        refused = mismatch(slot.pod_set, flavor)
        if refused is None and others:
            refused = conflict(slot.pod_set, flavor, others.values())
        if refused is None and flavor.shapes:
            refused = oversize(slot.pod_set, flavor, others.values())
        if refused is not None:
            return refused
        fits, wanted = True, []
        for resource, amount in slot.wanted[name].items():
            key = self.queue.key(name, resource)
            lacks = self._lacks(key, amount)
            if lacks is Rule.LIMIT:  # not even an empty tree has it: the stronger reason
                return self._short(slot, name, Rule.LIMIT, resource)
            fits &= lacks is None
            wanted.append((key, self.usage.get(key, 0) + amount))
        alone = (slot.number, slot.place, name)
        if not fits and (self.giving is None or frozenset({alone}) in self.passed):
            return self._busy(slot, name)
        return Choice(name, wanted, self._borrows, fits=fits)

    def _borrows(self, wanted: Wanted, fits: bool) -> bool:
        """Whether something would be borrowed; if others must go for it, once all of its own queue have."""
        giving = self.giving
        for key, more in wanted:
            cell = self.ground.book.cell(self.queue.name, key)
            if cell.borrows(more) and (fits or giving is None or cell.borrows(more - giving(key))):
                return True
        return False

    def _busy(self, slot: Slot, name: str) -> FlavorRefusal:
        """The first resource of which too little is free."""
        for resource, amount in slot.wanted[name].items():
            if self._lacks(self.queue.key(name, resource), amount) is not None:
                return self._short(slot, name, Rule.BUSY, resource)
        raise AssertionError("a flavor is called busy that is free")

    def _lacks(self, key: FlavorResource, amount: int) -> Rule | None:
        """Whether so much more of a resource is too much now, or would always be; None if it fits."""
        cell = self.ground.book.cell(self.queue.name, key)
        needed, together = self.usage.get(key, 0) + amount, cell.together
        if together is None:
            if self.ground.room(cell, needed):
                return None
            return Rule.LIMIT if needed > cell.potential_available() else Rule.BUSY
        in_all = amount + self._beside(cell, key)
        if needed > cell.potential_available() or in_all > together.limit:
            return Rule.LIMIT
        if not self.ground.room(cell, needed) or in_all > together.limit - together.used:
            return Rule.BUSY
        return None

    def _short(self, slot: Slot, name: str, rule: Rule, resource: str) -> FlavorRefusal:
        """A resource is short in a flavor; if another flavor would need another amount, that is said too."""
        key = self.queue.key(name, resource)
        cell = self.ground.book.cell(self.queue.name, key)
        asked = slot.wanted[name][resource]
        needed = asked if asked != slot.wanted[slot.group.flavors[0]][resource] else 0
        most, own, beside = cell.potential_available(), cell.subtree_quota, self._beside(cell, key)
        return FlavorRefusal(name, rule, resource, most, own, needed=needed, beside=beside)

    def _beside(self, cell: Cell, key: FlavorResource) -> int:
        """What is chosen already of what a cell has: in all flavors, if these have a limit together."""
        if cell.together is None:
            return self.usage.get(key, 0)
        return sum(amount for (_, resource), amount in self.usage.items() if resource == key[1])
