"""Which flavor each resource of each pod set gets (docs/design/engine.md).

Flavors of a group are tried in the listed order; the first that suits and fits wins, unless the
queue's fungibility passes it over. Pod sets of one workload are assigned one after the other, each on
top of what those before it got; if these left nothing for one, they have to make do with others.
Nothing is changed here: the outcome is a proposal.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

from admitter.engine.flavors.attempt import Attempt, AttemptContext, Choice, Combination, InVain, Passed, Slot
from admitter.engine.flavors.matching import conflict, mismatch, oversize
from admitter.engine.model import Admission, Assignment, Flavor, FlavorResource, PodSet, Usage, Workload
from admitter.engine.policy import Group, Queue
from admitter.engine.quota.book import Book
from admitter.engine.quota.cells import Cell
from admitter.engine.refusal import FlavorRefusal, Reason, Refusal
from admitter.names import GPU_MEMORY, PODS

Giving = Callable[[Queue, Workload, FlavorResource], int]
"""What victims in a workload's own queue would free of a resource in a flavor."""


@dataclass
class Proposal:
    """Flavors for all pod sets of a workload."""

    admitted: Callable[[], Admission]  # makes the admission that it would get: most proposals come to nothing
    usage: dict[FlavorResource, int]  # that as sums by flavor and resource
    # whether it takes more than its queue's own quota; if something must be evicted for it, only once
    # `borrows` was asked, which may be dear
    borrowing: bool = False
    # choices that fit only if something else is evicted, and what they ask for; empty if all of it fits now
    preempting: dict[Passed, Usage] = field(default_factory=dict)
    # whether no other flavor was passed over for what is in use: whenever it fits, it is made again
    first: bool = False
    # whether it takes more than its queue's own quota once all possible victims of that are gone
    borrows: Callable[[], bool] = bool

    @cached_property
    def admission(self) -> Admission:
        return self.admitted()


class Assigner:
    """Assigns flavors in one state of use."""

    def __init__(self, book: Book, flavors: Mapping[str, Flavor], giving: Giving) -> None:
        """Find flavors by what is in use; every flavor that a queue names is among `flavors`."""
        self._giving = giving
        self._ground = AttemptContext(book, flavors)

    def interests(self, workload: Workload, queue: Queue) -> dict[FlavorResource, int]:
        """All that a decision on a workload may depend on, and how much a pod set needs of it at least."""
        found: dict[FlavorResource, int] = {}
        for group in queue.groups:
            for pod_set in workload.pod_sets:
                wanted = [resource for resource in group.resources if pod_set.asks_for(resource)]
                for name in group.flavors if wanted else ():
                    if self.mismatch(pod_set, name) is None:
                        for resource in wanted:
                            key = queue.key(name, resource)
                            needed = pod_set.request(resource, self._ground.flavors[name]) * pod_set.count
                            found[key] = min(found.get(key, needed), needed)
        return found

    def assign(
        self,
        workload: Workload,
        queue: Queue,
        passed: AbstractSet[Combination] = frozenset(),
        *,
        room: Callable[[Cell, int], bool] | None = None,
    ) -> Proposal | Refusal:
        """Find flavors for all pod sets of a workload, or say why there are none.

        No victims make room for the choices in `passed`, alone or together. With `room` nothing is evicted;
        it says whether a queue's cell has room for so much: without it, if so much is available.
        """
        refusal = _uncovered(workload, queue)
        if refusal is not None:
            return refusal
        slots = _slots(workload, queue, self._ground.flavors)
        preempts = queue.preemption.allowed and room is None
        giving = partial(self._giving, queue, workload) if preempts else None
        ground = self._ground if room is None else replace(self._ground, room=room)
        attempt = Attempt(ground, queue, slots, passed, giving)
        if not attempt.fill():
            assert attempt.refusal is not None, "what can't be filled says why"
            return attempt.refusal
        return _proposal(workload, queue, attempt)

    def alone(self, workload: Workload, queue: Queue, in_vain: InVain) -> Iterator[Proposal | Refusal] | None:
        """The ways to place a workload that needs flavors only once, and at last why there is no other.

        None: it needs several, so what was chosen for one may matter for the next.
        """
        slots = _slots(workload, queue, self._ground.flavors)
        if len(slots) != 1 or _uncovered(workload, queue) is not None:
            return None
        giving = partial(self._giving, queue, workload) if queue.preemption.allowed else None
        attempt = Attempt(self._ground, queue, slots, (), giving)

        def ways() -> Iterator[Proposal | Refusal]:
            for _ in attempt.alone(in_vain):
                yield _proposal(workload, queue, attempt)
            assert attempt.refusal is not None, "what can't be filled says why"
            yield attempt.refusal

        return ways()

    def again(self, proposal: Proposal, queue: Queue) -> Proposal | None:
        """What a workload of the same shape would get now, if it is the same; None if that may have changed.

        The proposal is what the last one could get, since when neither queues nor flavors have changed; it
        says whether it borrows as of now.
        """
        usage, book = proposal.usage.items(), self._ground.book
        if not proposal.first or not book.fits(queue.name, usage):
            return None
        borrowing = any(book.cell(queue.name, key).borrows(amount) for key, amount in usage)
        if borrowing and not queue.fungibility.borrow:
            return None
        proposal.borrowing = borrowing
        return proposal

    def suits(self, workload: Workload, admission: Admission, queue: Queue) -> bool:
        """Whether a queue still has all flavors of an admission, and a workload's pods could run on them.

        Nodes that are gone make no difference: others may come, and the quota is reserved.
        """
        pod_sets = {pod_set.name: pod_set for pod_set in workload.pod_sets}
        offered = {(flavor, r) for g in queue.groups for flavor in g.flavors for r in g.resources}
        for assignment in admission.pod_sets:
            asking = pod_sets.get(assignment.name)
            counted = {resource for resource, _ in assignment.flavors}
            if asking is None or any(asking.asks_for(r) and r not in counted for r in queue.covered()):
                return False
            taken: dict[str, Flavor] = {}
            usage = dict(assignment.usage)
            for resource, name in assignment.flavors:
                if (name, resource) not in offered or mismatch(
                    asking, self._ground.flavors[name]
                ) is not None:
                    return False
                if usage[resource] != asking.request(resource, self._ground.flavors[name]) * assignment.count:
                    return False
                if conflict(asking, self._ground.flavors[name], taken.values()) is not None:
                    return False
                taken[name] = self._ground.flavors[name]
        return True

    def mismatch(self, pod_set: PodSet, name: str) -> FlavorRefusal | None:
        """Why a pod set's pods could not run on a flavor; None if they could."""
        flavor = self._ground.flavors[name]
        return mismatch(pod_set, flavor) or oversize(pod_set, flavor)


class Ways:
    """All ways to place a workload, best first, as each in turn comes to nothing."""

    def __init__(self, assigner: Assigner, workload: Workload, queue: Queue, in_vain: InVain) -> None:
        """Of what is `in_vain` it is known at a glance that no evictions make room."""
        self._assigner = assigner
        self._workload = workload
        self._queue = queue
        self._passed: set[Combination] = set()
        self._alone = assigner.alone(workload, queue, in_vain)

    def best(self) -> Proposal | Refusal:
        """The best of those that are left; why there is none."""
        if self._alone is not None:
            return next(self._alone)
        return self._assigner.assign(self._workload, self._queue, self._passed)

    def rule_out(self, hopeless: Combination) -> None:
        """Nothing can be evicted for some choices, alone or together: they are part of the best way."""
        self._passed.add(hopeless)


def _slots(workload: Workload, queue: Queue, flavors: Mapping[str, Flavor]) -> list[Slot]:
    """All that has to be filled, in order: pod set by pod set, group by group."""
    slots = []
    for number, pod_set in enumerate(workload.pod_sets):
        asked = {resource: amount * pod_set.count for resource, amount in pod_set.requests}
        asked[PODS] = pod_set.count
        for place, group in enumerate(queue.groups):
            fixed = {resource: asked[resource] for resource in group.resources if asked.get(resource)}
            wanted: Mapping[str, Mapping[str, int]] = dict.fromkeys(group.flavors, fixed)
            if GPU_MEMORY in group.resources and pod_set.asks_for(GPU_MEMORY):
                wanted = {
                    name: fixed | {GPU_MEMORY: pod_set.request(GPU_MEMORY, flavors[name]) * pod_set.count}
                    for name in group.flavors
                }
            if wanted[group.flavors[0]]:
                slots.append(Slot(number, pod_set, place, _in_turn(group, workload), wanted))
    return slots


def _in_turn(group: Group, workload: Workload) -> Group:
    """A group with its flavors in the order in which a workload tries them."""
    last = [name for name in group.flavors if name in workload.tried_last]
    if not last:
        return group
    return replace(group, flavors=(*(name for name in group.flavors if name not in last), *last))


def _proposal(workload: Workload, queue: Queue, attempt: Attempt) -> Proposal:
    preempting = {
        passed: tuple((queue.key(passed[2], r), n) for r, n in slot.wanted[passed[2]].items())
        for passed, slot in attempt.preempting().items()
    }
    total = {key: amount for key, amount in attempt.usage.items() if amount}
    picks = tuple(attempt.picks)
    admitted = partial(_admission, workload, queue, attempt.slots, picks)

    def borrows() -> bool:
        return any(choice.borrows for choice in picks)

    first = attempt.first and not preempting
    return Proposal(admitted, total, not preempting and borrows(), preempting, first, borrows)


def _admission(workload: Workload, queue: Queue, slots: Iterable[Slot], picks: Iterable[Choice]) -> Admission:
    flavors: list[list[tuple[str, str]]] = [[] for _ in workload.pod_sets]
    usage: list[list[tuple[str, int]]] = [[] for _ in workload.pod_sets]
    for slot, choice in zip(slots, picks, strict=True):
        wanted = slot.wanted[choice.flavor]
        flavors[slot.number] += [(resource, choice.flavor) for resource in wanted]
        usage[slot.number] += wanted.items()
    pod_sets = tuple(
        Assignment(pod_set.name, pod_set.count, tuple(flavors[number]), tuple(usage[number]))
        for number, pod_set in enumerate(workload.pod_sets)
    )
    return Admission(queue.name, pod_sets, queue.pool)


def _uncovered(workload: Workload, queue: Queue) -> Refusal | None:
    """Refuse what a queue does not count at all; a request of zero is no request.

    Where memory of GPUs is counted, the GPUs that it belongs to are. A lenient queue counts what it lists and
    lets the rest pass; but what requests nothing at all would pass uncounted whatever it uses. Not where pods
    are counted: each is one.
    """
    covered = queue.covered()
    by_memory = GPU_MEMORY in covered
    missing, asked = [], PODS in covered
    for pod_set in workload.pod_sets:
        for resource, amount in pod_set.requests:
            if amount and pod_set.count:
                asked = True
                if queue.lenient or resource in covered:
                    continue
                if not (by_memory and resource in pod_set.gpus.resources):
                    missing.append(resource)
    if missing:
        return Refusal(Reason.RESOURCE_NOT_COVERED, queue.name, resources=tuple(sorted(set(missing))))
    if (covered or not queue.lenient) and not asked and any(pod_set.count for pod_set in workload.pod_sets):
        return Refusal(Reason.NOTHING_REQUESTED, queue.name, resources=covered)
    return None
