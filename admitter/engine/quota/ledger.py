"""Reservations, in two books: real use and planned use (docs/design/engine.md).

*Real use* is every reservation until it is released: what may be running. *Planned use* is use as it
will be when all evictions are over and all pending reservations are admissions. Decisions are made on
planned use; a nominated workload is admitted as soon as it fits real use too. So neither ever exceeds
a limit, and the quota that an eviction frees goes to its preemptor.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from admitter.engine.model import Admission, FlavorResource, Usage, Workload
from admitter.engine.quota.book import Book
from admitter.engine.quota.displaced import Displacements
from admitter.engine.quota.evictions import EvictionHistory
from admitter.engine.quota.extras import Extras
from admitter.engine.quota.lines import CandidateLines, Place
from admitter.engine.quota.namespace_shares import Sharing
from admitter.engine.quota.tree import Node, Tree

Pod = tuple[float, str]  # when a pod was created, in seconds since the epoch, and its name


class _QuotaShare:
    """Quota of a queue that a workload has, or is going to have."""

    __slots__ = ()
    admission: Admission

    @property
    def usage(self) -> Usage:
        return self.admission.usage

    @property
    def queue(self) -> str:
        return self.admission.queue


@dataclass(frozen=True, slots=True)
class Reservation(_QuotaShare):
    """Quota that is set aside."""

    holder: str  # the UID of a workload, or of a pod that outlived its workload's admission
    admission: Admission  # what it holds
    workload: Workload | None = None  # the holder; None for one that can't be evicted
    since: float = 0.0  # when it was admitted, in seconds since the epoch
    namespace: str = ""  # that counts it in its share of the queue; of a workload its own
    checkpoint: float = 0.0  # when it has last saved its work, in seconds since the epoch; 0: it never said

    @property
    def unsaved_since(self) -> float:
        """From when on an eviction loses its work, in seconds since the epoch."""
        return max(self.since, self.checkpoint)

    def __post_init__(self) -> None:
        if self.workload is not None:
            object.__setattr__(self, "namespace", self.workload.namespace)


@dataclass(frozen=True, slots=True)
class Pods:
    """The pods of a holder."""

    alive: tuple[Pod, ...] = ()  # those that are there
    left_over: int = 0  # how many of its places no pod will take any more: those that had them have ended


NO_PODS: Final = Pods()


@dataclass(frozen=True, slots=True)
class PendingReservation(_QuotaShare):
    """The quota that a workload gets once what it waits for is gone."""

    workload: Workload  # the preemptor
    admission: Admission  # what it will get

    @property
    def namespace(self) -> str:
        return self.workload.namespace


def place_of(reservation: Reservation, workload: Workload) -> Place:
    """The place of a workload's reservation among those of its queue: the smallest is evicted first.

    Lowest priority, least work lost: newest admission, or checkpoint if that is later; of those with the same
    time the one that was created last comes first, then the UID.
    """
    return (workload.priority, -reservation.unsaved_since, -workload.created, reservation.holder)


class Ledger:
    """Reservations and pending reservations."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self.real = Book(tree)  # real use
        self.planned = Book(tree)  # planned use
        self.extras = Extras(self.real)  # what runs on idle quota
        self.pending_reservations: dict[str, PendingReservation] = {}  # by the UID of the preemptor
        # for which workload another one was evicted, also once that one is gone
        self.displacements = Displacements()
        self.evictions = EvictionHistory(tree)  # those that limits of queues and Cohorts count
        self._reservations: dict[str, Reservation] = {}
        self._in_queue: defaultdict[str, dict[str, Reservation]] = defaultdict(dict)
        self._in_namespace: defaultdict[tuple[str, str], dict[str, Reservation]] = defaultdict(dict)
        self._evicting: dict[str, str] = {}
        self._pending_in: defaultdict[str, dict[str, PendingReservation]] = defaultdict(dict)
        self._lines: CandidateLines[Reservation] | None = None
        self._pods: dict[str, Pods] = {}
        self._pending_evictions: set[str] = set()
        self._rooms: dict[str, Usage] | None = None
        # a number for each queue that changes with what is reserved in it
        self.revisions: Counter[str] = Counter()
        # queues of which more or less is planned than before; what looks at that takes them out
        self.moved: set[str] = set()
        self.sharing: dict[str, Sharing] = {}  # the queues that namespaces share, by name
        self.weights: dict[str, int] = {}  # of namespaces; 1 if nothing is said

    def share_out(self, queue: str, *, shared: bool) -> None:
        """Count what each namespace uses of a queue, or do so no longer."""
        self.sharing.pop(queue, None)
        for pair in [pair for pair in self._in_namespace if pair[0] == queue]:
            del self._in_namespace[pair]
        if shared:
            sharing = self.sharing[queue] = Sharing(queue, self._tree, self.planned, self.weights)
            for reservation in self.reservations(queue):
                self._keep(reservation)
                if reservation.holder not in self._evicting:
                    sharing.add(reservation.namespace, reservation.usage, 1)
            for pending in self.pending_in(queue):
                sharing.add(pending.namespace, pending.usage, 1)

    def _plan(self, share: Reservation | PendingReservation, sign: int = 1) -> list[FlavorResource]:
        """Add a reservation to planned use, or with sign -1 take it out; returns what `Book.add` does."""
        sharing = self.sharing.get(share.queue)
        if sharing is not None:
            sharing.add(share.namespace, share.usage, sign)
        self.moved.add(share.queue)
        return self.planned.add(share.queue, share.usage, sign)

    def pods(self, holder: str) -> Pods:
        """The pods of a holder, as far as they are known."""
        return self._pods.get(holder, NO_PODS)

    def set_pods(self, holder: str, pods: Pods) -> bool:
        """Set which pods of a holder there are; returns whether others were known."""
        known = self.pods(holder)
        if pods is known or pods == known:
            return False
        self._pods[holder] = pods
        if pods == NO_PODS:
            del self._pods[holder]
        if (reservation := self._reservations.get(holder)) is not None:
            self.revisions[reservation.queue] += 1
        return True

    def held(self, holder: str) -> Reservation | None:
        """What a holder has reserved."""
        return self._reservations.get(holder)

    def used(self, queue: str) -> Mapping[FlavorResource, int]:
        """What of a queue is really in use."""
        return self.real.used(queue)

    def evicting(self, holder: str) -> bool:
        """Whether a holder is a victim: its eviction is pending or has started."""
        return holder in self._evicting

    def preemptor(self, holder: str) -> str | None:
        """The UID of a victim's preemptor."""
        return self._evicting.get(holder)

    def candidates(self, queue: str, namespace: str | None = None) -> Iterable[Reservation]:
        """What could be evicted from a queue; if namespaces share it, only what one of them has in it."""
        among = self._in_queue.get(queue) if namespace is None else self._in_namespace.get((queue, namespace))
        for reservation in (among or {}).values():
            if reservation.workload is not None and reservation.holder not in self._evicting:
                yield reservation

    @property
    def lines(self) -> CandidateLines[Reservation]:
        """What could be evicted, in order; kept up once it has been asked for."""
        if self._lines is None:
            self._lines = CandidateLines()
            for queue in self._in_queue:
                self._lines.fill(
                    queue,
                    (
                        (place_of(each, each.workload), each.usage, each.workload, each)
                        for each in self.candidates(queue)
                        if each.workload is not None
                    ),
                )
        return self._lines

    def _line_up(self, reservation: Reservation, sign: int = 1) -> None:
        """A reservation could be evicted from now on, or with sign -1 no longer."""
        workload = reservation.workload
        if self._lines is None or workload is None:
            return
        place = place_of(reservation, workload)
        if sign > 0:
            self._lines.add(reservation.queue, reservation.usage, place, workload, reservation)
        else:
            self._lines.remove(reservation.queue, reservation.usage, place)

    def reservations(self, queue: str) -> list[Reservation]:
        return list(self._in_queue.get(queue, {}).values())

    @property
    def holding(self) -> list[str]:
        """The queues in which anything is reserved, also those that are not defined."""
        return sorted(self._in_queue)

    @property
    def queues_with_pending(self) -> Mapping[str, object]:
        return self._pending_in

    def pending_in(self, queue: str) -> list[PendingReservation]:
        return list(self._pending_in[queue].values()) if queue in self._pending_in else []

    def reserve(self, reservation: Reservation) -> list[FlavorResource]:
        """Set what a holder has reserved; returns in what a subtree borrows more than before, by the plan."""
        self.release(reservation.holder)
        if self.displacements:
            self._end_promise(reservation.holder)
        self.revisions[reservation.queue] += 1
        self._reservations[reservation.holder] = reservation
        self._keep(reservation)
        self._line_up(reservation)
        self.real.add(reservation.queue, reservation.usage)
        return self._plan(reservation)

    def resize(self, made: Reservation, freed: Usage, added: Usage) -> list[FlavorResource]:
        """Set how much a holder has reserved where it is, by what it frees and what it adds; as `reserve`."""
        queue = made.queue
        waits = self.pending_reservations.get(self.displacements.preemptor(made.holder) or "")
        if waits is not None:
            self._free_room(waits)
        self.amend(made)
        self.real.add(queue, freed, -1)
        self.real.add(queue, added)
        borrowed: list[FlavorResource] = []
        if made.holder not in self._evicting:
            self.moved.add(queue)
            self.planned.add(queue, freed, -1)
            borrowed = self.planned.add(queue, added)
        if waits is not None:
            self._keep_room(waits)
        return borrowed

    def _end_promise(self, victim: str) -> None:
        """A victim is admitted again, perhaps elsewhere: no room is kept for its preemptor any more."""
        waits = self.pending_reservations.get(self.displacements.preemptor(victim) or "")
        self.displacements.end(victim)
        if waits is not None:
            self._free_room(waits)
            self._keep_room(waits)

    def amend(self, reservation: Reservation) -> None:
        """Set what is known of a holder; use itself is added up by others."""
        before, sharing = self._reservations[reservation.holder], self.sharing.get(reservation.queue)
        self._in_namespace.get((before.queue, before.namespace), {}).pop(reservation.holder, None)
        if sharing is not None and reservation.holder not in self._evicting:
            sharing.add(before.namespace, before.usage, -1)
            sharing.add(reservation.namespace, reservation.usage, 1)
        self.revisions[reservation.queue] += 1
        if reservation.holder not in self._evicting:
            self._line_up(before, -1)
            self._line_up(reservation)
        self._reservations[reservation.holder] = reservation
        self._keep(reservation)

    def _keep(self, reservation: Reservation) -> None:
        """Let a reservation be found by its queue, and where namespaces share that, by its namespace."""
        self._in_queue[reservation.queue][reservation.holder] = reservation
        if reservation.queue in self.sharing:
            self._in_namespace[reservation.queue, reservation.namespace][reservation.holder] = reservation

    def release(self, holder: str) -> Reservation | None:
        """Free what a holder has reserved; returns it."""
        reservation = self._reservations.pop(holder, None)
        if reservation is not None:
            self.revisions[reservation.queue] += 1
            self._in_namespace.get((reservation.queue, reservation.namespace), {}).pop(holder, None)
            in_queue = self._in_queue[reservation.queue]
            del in_queue[holder]
            if not in_queue:
                del self._in_queue[reservation.queue]
            self.real.add(reservation.queue, reservation.usage, -1)
            self.extras.drop_all(holder)
            if self._evicting.pop(holder, None) is None:
                self._line_up(reservation, -1)
                self._plan(reservation, -1)
            else:
                self.mark_eviction_started(holder)
        return reservation

    def evict(self, holder: str, preemptor: str) -> None:
        """Take a victim out of planned use; its reservation is real until it is released."""
        if holder in self._evicting:
            self.reassign(holder, preemptor)
        else:
            self.evict_all([self._reservations[holder]], preemptor)

    def mark_eviction_pending(self, holder: str) -> None:
        """The victim runs on for a while; if the preemptor's reservation is given up, the victim stays."""
        self._pending_evictions.add(holder)

    def is_eviction_pending(self, holder: str) -> bool:
        return holder in self._pending_evictions

    def mark_eviction_started(self, holder: str) -> None:
        """The eviction of a holder can't be cancelled any more."""
        self._pending_evictions.discard(holder)
        self.evictions.settle(holder)

    def pending_evictions_for(self, preemptor: str) -> list[Reservation]:
        """The victims with a pending eviction for a workload, the least important first."""
        victims = [
            self._reservations[h]
            for h in self.displacements.victims(preemptor)
            if h in self._pending_evictions
        ]
        return sorted(victims, key=lambda r: (r.workload.priority if r.workload else 0, -r.since, r.holder))

    def pending_evictions_in(self, root: Node) -> frozenset[str]:
        """The holders in a tree with a pending eviction."""
        queues = ((holder, self._reservations[holder].queue) for holder in self._pending_evictions)
        return frozenset(holder for holder, queue in queues if self._tree.root(queue) == root)

    def rooms_of_pending_evictions(
        self, root: Node, besides: AbstractSet[str] = frozenset()
    ) -> list[tuple[str, Usage]]:
        """What counts as in use in a tree, beside planned use, where nothing is to be evicted in vain.

        A pending eviction makes room for its own preemptor alone: it is cancelled if that fits without, or is
        gone. So the larger one counts: the preemptor's reservation, or its victims where they are.
        Amounts are how much more, or less, than planned use, by queue. Preemptors `besides` are left out.
        """
        rooms: list[tuple[str, Usage]] = []
        for preemptor in sorted({self._evicting[each] for each in self.pending_evictions_in(root)} - besides):
            pending = self.pending_reservations.get(preemptor)
            left = dict(pending.usage) if pending is not None else {}
            for victim in self.pending_evictions_for(preemptor):
                rooms.append((victim.queue, victim.usage))
                shared = tuple((key, -min(amount, left.get(key, 0))) for key, amount in victim.usage)
                for key, amount in shared:
                    left[key] = left.get(key, 0) + amount
                if pending is not None:
                    rooms.append((pending.queue, shared))
        return rooms

    def cancel_pending_evictions(self, preemptor: str) -> set[str]:
        """Cancel the pending evictions for a workload; returns the queues of its victims."""
        victims = self.pending_evictions_for(preemptor)
        for reservation in victims:
            self.cancel_eviction(reservation.holder)
        return {reservation.queue for reservation in victims}

    def reassign(self, victim: str, preemptor: str) -> None:
        """A victim of another preemptor, gone or not, is this one's victim now."""
        if victim in self._evicting:
            self._evicting[victim] = preemptor
        self.displacements.make(victim, preemptor)

    def is_displaced(self, uid: str) -> bool:
        """Whether a workload was evicted, and its preemptor has a reservation or a pending one.

        Or the preemptor of that one, if it was evicted in turn, and so on.
        """
        preemptor = self.displacements.preemptor(uid) if self.displacements else None
        if preemptor is None:
            return False
        seen = {uid}
        while preemptor is not None and preemptor not in seen:
            stays = preemptor in self._reservations and preemptor not in self._evicting
            if stays or preemptor in self.pending_reservations:
                return True
            seen.add(preemptor)
            preemptor = self.displacements.preemptor(preemptor)
        return False

    def evict_all(self, victims: Sequence[Reservation], preemptor: str) -> dict[str, Usage]:
        """Take some new victims out of planned use; returns what that frees, by queue."""
        sums: defaultdict[str, Counter[FlavorResource]] = defaultdict(Counter)
        for victim in reversed(victims):  # the last first: so the front of a line moves once
            self._line_up(victim, -1)
        for victim in victims:
            self.revisions[victim.queue] += 1
            freed = sums[victim.queue]
            if victim.queue in self.sharing:
                self.sharing[victim.queue].add(victim.namespace, victim.usage, -1)
            for key, amount in victim.usage:
                freed[key] += amount
            self._evicting[victim.holder] = preemptor
            self.evictions.decide(victim.holder, victim.queue)
            self.displacements.make(victim.holder, preemptor)
        found = {queue: tuple(freed.items()) for queue, freed in sums.items()}
        for queue, usage in found.items():
            self.moved.add(queue)
            self.planned.add(queue, usage, -1)
        return found

    def cancel_eviction(self, holder: str) -> None:
        """Count a holder in planned use again."""
        self.mark_eviction_started(holder)
        if self._evicting.pop(holder, None) is not None:
            self.displacements.end(holder)
            reservation = self._reservations[holder]
            self._line_up(reservation)
            self._plan(reservation)
            self.revisions[reservation.queue] += 1

    def add_pending(self, workload: Workload, admission: Admission) -> list[FlavorResource]:
        """Make a pending reservation for a workload; returns what `reserve` does."""
        made = PendingReservation(workload, admission)
        self.pending_reservations[workload.uid] = self._pending_in[admission.queue][workload.uid] = made
        self._keep_room(made)
        return self._plan(made)

    def drop_pending(self, uid: str) -> PendingReservation | None:
        """Drop the pending reservation of a workload; returns it."""
        dropped = self.pending_reservations.pop(uid, None)
        if dropped is not None:
            queue = dropped.admission.queue
            del self._pending_in[queue][uid]
            if not self._pending_in[queue]:
                del self._pending_in[queue]
            self._free_room(dropped)
            self._plan(dropped, -1)
        return dropped

    def turn(self, pending: PendingReservation) -> tuple[bool, bool, tuple[int, float, str]]:
        """The turn of a pending reservation among all: the smallest comes first.

        First those with victims that are all gone, then those that need no borrowing, then by rank.
        """
        victims = self.displacements.victims(pending.workload.uid)
        waits = not victims or any(victim in self._evicting for victim in victims)
        borrows = any(
            self.planned.cell(pending.queue, key).borrows() for key, amount in pending.usage if amount
        )
        return (waits, borrows, pending.workload.rank)

    def keep_rooms(self, reservations: Iterable[PendingReservation]) -> None:
        """Count the rooms of pending reservations as in use, also of those made until `free_rooms`."""
        self.free_rooms()
        self._rooms = {}
        for pending in reservations:
            self._keep_room(pending)

    def free_rooms(self) -> None:
        """Count only what is in use again."""
        for uid in list(self._rooms or ()):
            self._free_room(self.pending_reservations[uid])
        self._rooms = None

    def _keep_room(self, pending: PendingReservation) -> None:
        if self._rooms is not None:
            room = self._rooms[pending.workload.uid] = self._room_of(pending)
            self.real.add(pending.queue, room)

    def _free_room(self, pending: PendingReservation) -> None:
        if self._rooms is not None:
            self.real.add(pending.queue, self._rooms.pop(pending.workload.uid, ()), -1)

    def _room_of(self, pending: PendingReservation) -> Usage:
        """The room of a pending reservation: what its victims that are gone have left for it.

        A reservation without victims has no room of its own: it waits for what others leave. Where extra pods
        run it may wait for these, and has what is free now.
        """
        victims = self.displacements.victims(pending.workload.uid)
        if not victims:
            return self._free_beside_extras(pending) if self.extras else ()
        coming: dict[FlavorResource, int] = {}
        for victim in victims:
            if victim in self._evicting:
                for key, amount in self._reservations[victim].usage:
                    coming[key] = coming.get(key, 0) + amount
        return tuple((key, max(0, amount - coming.get(key, 0))) for key, amount in pending.usage)

    def _free_beside_extras(self, pending: PendingReservation) -> Usage:
        members = self._tree.members(self._tree.root(pending.queue))
        if not self.extras.any_in(members):
            return ()
        cells = ((key, amount, self.real.cell(pending.queue, key)) for key, amount in pending.usage)
        return tuple((key, max(0, min(amount, cell.room()))) for key, amount, cell in cells)

    def redeems(self, pending: PendingReservation) -> bool:
        """Whether the workload can be admitted now: it fits real use, beside the rooms of others."""
        self._free_room(pending)
        found = self.real.fits(pending.queue, pending.usage)
        self._keep_room(pending)
        return found
