"""Which flavor each resource of each pod set gets (design §3, *Flavors*; 003, *Resources*).

Flavors of a group are tried in the listed order; the first that suits and fits wins, unless the
queue's fungibility passes it over. Pod sets of one workload are assigned one after the other, each on
top of what those before it got. Nothing is changed here: the outcome is a proposal.
"""

from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from admitter.engine.explain import FlavorRefusal, Reason, Refusal, Rule, reason_of
from admitter.engine.matching import conflict, label_keys, mismatch
from admitter.engine.model import Admission, Assignment, Flavor, FlavorResource, PodSet, Workload
from admitter.engine.policy import Group, Queue
from admitter.engine.quota import Book

Passed = tuple[int, int, str]
"""A flavor not to be taken: the places of pod set and group, and the flavor's name."""


@dataclass(slots=True)
class Proposal:
    """Flavors for all pod sets of a workload.

    Attributes:
        admission: what it would get.
        usage: the same as sums by flavor and resource.
        borrowing: whether it takes more than its queue's own quota.
        preempting: choices that fit only if something else is evicted; empty if all of it fits now.
    """

    admission: Admission
    usage: dict[FlavorResource, int]
    borrowing: bool = False
    preempting: list[Passed] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Choice:
    """A flavor for one group of one pod set; `place` orders choices from good to bad."""

    flavor: str
    fits: bool
    borrows: bool

    @property
    def place(self) -> tuple[bool, bool]:
        return (not self.fits, self.borrows)


class Assigner:
    """Assigns flavors in one state of use."""

    def __init__(self, book: Book, flavors: Mapping[str, Flavor]) -> None:
        """Prepare.

        Args:
            book: what is in use.
            flavors: every flavor that a queue names, by name.
        """
        self._book = book
        self._flavors = flavors
        self._keys: dict[Group, frozenset[str]] = {}

    def forget(self) -> None:
        """Forget what was worked out about flavors: one, or a queue, has changed."""
        self._keys.clear()

    def interests(self, workload: Workload, queue: Queue) -> list[FlavorResource]:
        """All that a decision on a workload may depend on."""
        return [
            (name, resource)
            for group in queue.groups
            for name in group.flavors
            for resource in group.resources
            if any(
                amount and pod_set.count and self.mismatch(pod_set, group, name) is None
                for pod_set in workload.pod_sets
                for wanted, amount in pod_set.requests
                if wanted == resource
            )
        ]

    def assign(
        self, workload: Workload, queue: Queue, passed: AbstractSet[Passed] = frozenset()
    ) -> Proposal | Refusal:
        """Find flavors for all pod sets of a workload, or say why there are none.

        Args:
            workload: what asks.
            queue: the queue it asks.
            passed: flavors not to be taken, since nothing could be preempted for them.
        """
        refusal = _uncovered(workload, queue)
        if refusal is not None:
            return refusal
        proposal = Proposal(Admission(queue.name, ()), {})
        assignments = []
        for number, pod_set in enumerate(workload.pod_sets):
            chosen: dict[str, str] = {}
            asked = {resource: amount * pod_set.count for resource, amount in pod_set.requests}
            for place, group in enumerate(queue.groups):
                wanted = {resource: asked[resource] for resource in group.resources if asked.get(resource)}
                if not wanted:
                    continue
                barred = {flavor for p, g, flavor in passed if (p, g) == (number, place)} if passed else ()
                others = {name: self._flavors[name] for name in chosen.values()} if chosen else {}
                suiting = self._suiting(pod_set, group, others)
                choice = self._choose(queue, group, wanted, proposal.usage, suiting, barred)
                if not isinstance(choice, _Choice):
                    name = pod_set.name if len(workload.pod_sets) > 1 else ""
                    return Refusal(
                        reason_of(choice),
                        queue.name,
                        asked=tuple(wanted.items()),
                        pod_set=name,
                        flavors=choice,
                    )
                if not choice.fits:
                    proposal.preempting.append((number, place, choice.flavor))
                proposal.borrowing |= choice.borrows
                for resource, amount in wanted.items():
                    chosen[resource] = choice.flavor
                    key = (choice.flavor, resource)
                    proposal.usage[key] = proposal.usage.get(key, 0) + amount
            usage = tuple((resource, asked[resource]) for resource in chosen)
            assignments.append(Assignment(pod_set.name, pod_set.count, tuple(chosen.items()), usage))
        proposal.admission = Admission(queue.name, tuple(assignments))
        return proposal

    def _suiting(
        self, pod_set: PodSet, group: Group, others: Mapping[str, Flavor]
    ) -> dict[str, FlavorRefusal | None]:
        """Each flavor of a group, and why a pod set's pods could not run on it beside those they have."""
        return {
            name: self.mismatch(pod_set, group, name) or conflict(self._flavors[name], others.values())
            for name in group.flavors
        }

    def _choose(
        self,
        queue: Queue,
        group: Group,
        wanted: Mapping[str, int],
        taken: Mapping[FlavorResource, int],
        suiting: Mapping[str, FlavorRefusal | None],
        barred: Collection[str],
    ) -> _Choice | tuple[FlavorRefusal, ...]:
        """The flavor of one group for one pod set, or why each is refused."""
        refusals: list[FlavorRefusal] = []
        best: _Choice | None = None
        for name in group.flavors:
            refused = suiting[name]
            choice: _Choice | FlavorRefusal
            choice = refused if refused is not None else self._fit(queue, name, wanted, taken)
            if isinstance(choice, _Choice) and not choice.fits and name in barred:
                choice = self._busy(queue, name, wanted, taken)
            if not isinstance(choice, _Choice):
                refusals.append(choice)
                continue
            if best is None or choice.place < best.place:
                best = choice
            passed_over = (choice.borrows and not queue.fungibility.borrow) or (
                not choice.fits and not queue.fungibility.preempt
            )
            if not passed_over:
                return choice
        return best if best is not None else tuple(refusals)

    def mismatch(self, pod_set: PodSet, group: Group, name: str) -> FlavorRefusal | None:
        """Why a pod set's pods could not run on a flavor of a group; None if they could."""
        keys = self._keys.get(group)
        if keys is None:
            keys = self._keys[group] = label_keys(group, self._flavors)
        return mismatch(pod_set, self._flavors[name], keys)

    def _fit(
        self, queue: Queue, flavor: str, wanted: Mapping[str, int], taken: Mapping[FlavorResource, int]
    ) -> _Choice | FlavorRefusal:
        """How a flavor that suits could be had."""
        fits, borrows = True, False
        for resource, amount in wanted.items():
            key = (flavor, resource)
            cell = self._book.cell(queue.name, key)
            needed = taken.get(key, 0) + amount
            if needed > cell.available():
                fits = False
                if needed > cell.ceiling():  # not even an empty tree has it: the stronger reason
                    return FlavorRefusal(flavor, Rule.LIMIT, resource, cell.ceiling(), cell.own)
            borrows |= cell.borrows(needed)
        if not fits and not queue.preemption.allowed:
            return self._busy(queue, flavor, wanted, taken)
        return _Choice(flavor, fits, borrows)

    def _busy(
        self, queue: Queue, flavor: str, wanted: Mapping[str, int], taken: Mapping[FlavorResource, int]
    ) -> FlavorRefusal:
        """The first resource of which too little is free."""
        for resource, amount in wanted.items():
            cell = self._book.cell(queue.name, (flavor, resource))
            if taken.get((flavor, resource), 0) + amount > cell.available():
                return FlavorRefusal(flavor, Rule.BUSY, resource, cell.ceiling(), cell.own)
        raise AssertionError("a flavor is called busy that is free")


def _uncovered(workload: Workload, queue: Queue) -> Refusal | None:
    """Refuse what a queue does not count at all; a request of zero is no request."""
    covered = queue.covered()
    missing, asked = [], False
    for pod_set in workload.pod_sets:
        for resource, amount in pod_set.requests:
            if amount and pod_set.count:
                asked = True
                if resource not in covered:
                    missing.append(resource)
    if missing:
        return Refusal(Reason.RESOURCE_NOT_COVERED, queue.name, resources=tuple(sorted(set(missing))))
    if not asked and any(pod_set.count for pod_set in workload.pod_sets):
        return Refusal(Reason.NOTHING_REQUESTED, queue.name, resources=covered)
    return None
