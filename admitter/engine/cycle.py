"""State to plan: which waiting workloads are admitted, which are evicted for them, and why others wait.

The caller feeds every change in, calls `cycle`, and writes what the plan says. What a plan admits is
reserved at once, and its victims are left out of the plans that follow; a write that fails is
rolled back by `release` and `cancel_eviction`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace

from admitter.engine.explain.explanation import Explanation, RefusalExplainer
from admitter.engine.model import Admission, Flavor, FlavorResource, Workload
from admitter.engine.policy import Cohort, Queue, left_behind
from admitter.engine.preemption.back_off import BackOff, ReturnedReservations
from admitter.engine.preemption.overflow import Overflow
from admitter.engine.quota.capacity import Capacity
from admitter.engine.quota.cells import Cell
from admitter.engine.quota.ledger import NO_PODS, PendingReservation, Pod, Pods, Reservation
from admitter.engine.quota.redefinition import felt_by_nobody, roots_of
from admitter.engine.quota.tree import Node
from admitter.engine.refusal import Reason, Refusal
from admitter.engine.state import EngineState
from admitter.engine.tree_cycle import Plan, decide_tree


class Engine:
    """Takes events in, gives plans out."""

    def __init__(self, failed: Callable[[Node, Exception], None] | None = None) -> None:
        """Begin with nothing; `failed` gets each tree that can't be decided (None: its error is raised)."""
        self._failed = failed
        self._state = EngineState()
        self.tree = self._state.tree
        self.ledger = self._state.ledger

    @property
    def changed(self) -> bool:
        """Whether a cycle could decide anything, before the time of `due`."""
        state = self._state
        return bool(state.changed or state.reordered or state.doubtful or state.returned.changed)

    @property
    def due(self) -> float | None:
        """When a cycle could decide something though nothing else changes, in seconds since the epoch."""
        return min([*self._state.timers.values(), *self._state.returned.ends], default=None)

    @property
    def capacity(self) -> Capacity:
        """Which workloads are over quota."""
        return self._state.capacity

    @property
    def returned(self) -> ReturnedReservations:
        """Workloads with places made by evictions, and the queues and namespaces that evict nothing now."""
        return self._state.returned

    @property
    def busy(self) -> bool:
        """Whether any workload waits."""
        return bool(self._state.pending or self.ledger.pending_reservations)

    def waits(self, uid: str) -> bool:
        """Whether a workload waits, or has a pending reservation."""
        return uid in self.ledger.pending_reservations or self._state.waiting(uid) is not None

    def waiting(self, queue: str) -> int:
        """How many workloads wait in a queue, preemptors with a pending reservation included."""
        pending = self._state.pending.get(queue)
        return len(self.ledger.pending_in(queue)) + (len(pending) if pending is not None else 0)

    def line(self, queue: str) -> list[str]:
        """UIDs of all workloads that wait in a queue, in order: first those with a pending reservation."""
        first = sorted((each.workload for each in self.ledger.pending_in(queue)), key=lambda w: w.rank)
        pending = self._state.pending.get(queue)
        return [workload.uid for workload in (*first, *(pending.in_order() if pending is not None else ()))]

    def set_flavor(self, flavor: Flavor) -> None:
        """Define a flavor, or change it."""
        if self._state.flavors.get(flavor.name) != flavor:
            self._state.flavors[flavor.name] = flavor
            self.tree.version += 1
            queues = self.tree.queues.values()
            names = {q.name for q in queues if any(flavor.name in g.flavors for g in q.groups)}
            self._reshaped(names)

    def remove_flavor(self, name: str) -> None:
        """Remove a flavor. Queues that name it must be removed before."""
        self._state.flavors.pop(name, None)

    def set_queue(self, queue: Queue) -> None:
        """Define a queue, or change it; all of its flavors must be defined."""
        self.set_queues([queue])

    def set_queues(self, queues: Iterable[Queue]) -> None:
        """Define queues, or change them."""
        self.define(queues)

    def define(
        self,
        queues: Iterable[Queue] = (),
        cohorts: Iterable[Cohort] = (),
        gone: Iterable[str] = (),
        gone_cohorts: Iterable[str] = (),
    ) -> None:
        """Define queues and cohorts, change or remove them: in one step, since each may requeue whole trees.

        It costs as much as is changed, and as there is waiting where that makes a difference.

        Args:
            queues: as they are to be; all of their flavors must be defined.
            cohorts: as they are to be.
            gone: queues to remove: what waits in them stays, and what is reserved stays counted where it
                was, in its cohort, until it is released.
            gone_cohorts: Cohort objects to remove; queues that name one still share what they have.
        """
        tree = self.tree
        queues = [queue for queue in queues if tree.queues.get(queue.name) != queue]
        cohorts = [cohort for cohort in cohorts if tree.cohorts.get(cohort.name) != cohort]
        gone = [name for name in gone if name in tree.queues]
        gone_cohorts = [name for name in gone_cohorts if name in tree.cohorts]
        names = {*(queue.name for queue in queues), *gone}
        cohort_names = {*(cohort.name for cohort in cohorts), *gone_cohorts}
        if not names and not cohort_names:
            return
        felt = names - felt_by_nobody(tree, self.ledger, queues, gone)
        before = roots_of(self.tree, felt, cohort_names)
        self._state.claims.drop(names)
        self._state.claims.drop_trees(before)
        for queue in queues:
            tree.set_queue(queue)
        for name in gone:
            if self.ledger.used(name):
                tree.set_queue(replace(tree.queues[name], groups=(), quotas={}, limits={}, admits=False))
            else:
                tree.remove_queue(name)
        for cohort in cohorts:
            tree.set_cohort(cohort)
        for name in gone_cohorts:
            tree.remove_cohort(name)
        for name in names:
            self._state.redefined(name)
        self._reshaped(names, before | roots_of(self.tree, felt, cohort_names))

    def remove_queue(self, name: str) -> None:
        """Remove a queue with its quota, as `define` does."""
        self.define(gone=[name])

    def set_cohort(self, cohort: Cohort) -> None:
        """Define a cohort, or change it."""
        self.define(cohorts=[cohort])

    def remove_cohort(self, name: str) -> None:
        """Remove a Cohort object, as `define` does."""
        self.define(gone_cohorts=[name])

    def set_weight(self, namespace: str, weight: int) -> None:
        """Set how much of shared queues a namespace may use in proportion to others; 1 if never set."""
        if self.ledger.weights.get(namespace, 1) != weight:
            self._state.reweigh(namespace, weight)

    def submit(self, workload: Workload) -> None:
        """Let a workload wait, or change one that waits; a preemptor keeps its pending reservation."""
        pending = self.ledger.pending_reservations.get(workload.uid)
        known = pending.workload if pending is not None else self._state.waiting(workload.uid)
        if known != workload:
            if known is not None and replace(known, created=workload.created) != workload:
                self.give_back(workload.uid)
            self.withdraw(workload.uid)
            self._state.enqueue(workload)

    def give_back(self, uid: str) -> None:
        """A workload is about to lose its place by an act of its user; one that has none is no error.

        If evictions have made that place, and it has not been used, it counts (docs/design/preemption.md).
        """
        self._state.returned.note(uid)

    def use(self, uid: str) -> None:
        """A workload uses its place: to give it back counts no longer."""
        self._state.returned.gained.discard(uid)

    def gain(self, uid: str) -> None:
        """Take up that the place of a workload was made by evictions, and is not used."""
        self._state.returned.gained.add(uid)

    def back_off(self, queue: str, namespace: str, back_off: BackOff) -> None:
        """Take up a back-off that began before this engine lived; of several the last one counts."""
        self._state.returned.take_up(queue, namespace, back_off)

    def displaced(self, uid: str, preemptor: str) -> None:
        """Take up that a workload was evicted for another one before this engine lived; it may be gone since.

        Args:
            uid: of the victim; whether it waits already makes no difference.
            preemptor: UID of the other one.
        """
        ends = self.ledger.evicting(uid)
        if ends:
            self.ledger.reassign(uid, preemptor)
        if ends or (self.ledger.held(uid) is None and self.ledger.displacements.preemptor(uid) != preemptor):
            self._state.take_up(uid, preemptor)

    def withdraw(self, uid: str) -> None:
        """A workload waits no longer; one that does not wait is no error."""
        pending = self.ledger.drop_pending(uid)
        if pending is not None:
            self.use(uid)
            self._state.usage_shrank(pending.admission.queue, pending.usage)
            self._cancel_pending_evictions(uid)
            self._state.left(uid)
        queue = self._state.dequeue(uid)
        if queue is not None:
            self._state.changed.add(queue)  # behind a strict head, the next one may fit

    def reserve(
        self,
        holder: str,
        admission: Admission,
        workload: Workload | None = None,
        since: float = 0.0,
        namespace: str = "",
    ) -> None:
        """Set what a holder uses, decided here or elsewhere; it counts even beyond the quota.

        Args:
            holder: the UID of a workload, or of a pod that outlived its workload's admission.
            admission: what it uses.
            workload: the holder as a workload, if it may be evicted.
            since: when it was admitted, in seconds since the epoch.
            namespace: that counts the use in its share of the queue, if the holder is no workload.
        """
        if admission.pool and admission.queue not in self.tree.queues:
            self.set_queue(left_behind(admission.queue, admission.pool))
        made = Reservation(holder, admission, workload, since, namespace)
        before = self.ledger.held(holder)
        if before is not None and before.admission == admission:
            self._amend(before, made)
            return
        self.withdraw(holder)
        evicted_for = self.ledger.preemptor(holder)
        waits = self.ledger.pending_reservations.get(self.ledger.displacements.preemptor(holder) or "")
        if waits is not None:
            self._state.changed.add(waits.queue)  # no room is kept for it any more: others may have it
        self._state.usage_grew(admission.queue, self.ledger.reserve(made))
        self._state.settled(holder)
        if self.tree.root(admission.queue) in self._state.claim_blocked:
            self._state.changed.add(admission.queue)  # less may be claimed now, or have room
        if evicted_for is not None:
            self.ledger.evict(holder, evicted_for)
        if before is not None:
            self._state.reservation_ended(before)
        self._doubt(admission.queue)
        if admission.queue in self.ledger.sharing:
            self._state.changed.add(admission.queue)  # another namespace may be first now

    def _amend(self, before: Reservation, made: Reservation) -> None:
        """Another workload, or another time, is known of what a holder has reserved."""
        if before.since != made.since:
            self._state.reorder(made.queue)
        self.ledger.amend(made)
        if made.queue in self.ledger.sharing:
            self._state.changed.add(made.queue)  # another namespace may be first now
        if made.workload != before.workload:
            self._state.usage_grew(made.queue, [key for key, _ in made.usage])
            self._state.requeue(made.queue)  # it may be evicted now for a workload that waits there

    def set_pods(self, holder: str, alive: tuple[Pod, ...], left_over: int = 0) -> None:
        """Set which pods of a holder there are, as they come and go: by their age some are over quota.

        Args:
            holder: the UID of their workload.
            alive: when each was created, in seconds since the epoch, and its name; the oldest first.
            left_over: how many of its places no pod will take any more.
        """
        pods = Pods(alive, left_over)
        reservation = self.ledger.held(holder)
        if reservation is None:
            self.ledger.set_pods(holder, pods)
            return
        if pods != self.ledger.pods(holder):
            self._state.reorder(reservation.queue)
            self.ledger.set_pods(holder, pods)

    def release(self, holder: str) -> None:
        """Free what a holder uses; one that holds nothing is no error."""
        promised = self.ledger.displacements.preemptor(holder)
        reservation = self.ledger.release(holder)
        self.ledger.set_pods(holder, NO_PODS)
        self.capacity.forget(holder)
        if reservation is not None:
            self.use(holder)
            if promised is None and self.ledger.displacements:
                self._state.left(holder)
                self._state.restore(self.tree.relatives(reservation.queue))
            self._state.reservation_ended(reservation)
            queue = self.tree.queues.get(reservation.queue)
            if queue is not None and not queue.groups and not queue.admits:
                self.remove_queue(queue.name)  # it was only kept for what was reserved

    def evict(self, holder: str, preemptor: Workload, admission: Admission, *, told: bool = False) -> None:
        """Take up an eviction that was decided before this engine lived, with the pending reservation.

        Args:
            holder: the UID of the victim.
            preemptor: the workload that gets the quota.
            admission: what the preemptor will get.
            told: whether the eviction is pending, and not started yet.
        """
        if self.ledger.held(holder) is not None:
            self.ledger.evict(holder, preemptor.uid)
            self.gain(preemptor.uid)
            if told:
                self.ledger.mark_eviction_pending(holder)
        if self.ledger.held(preemptor.uid) is None and preemptor.uid not in self.ledger.pending_reservations:
            self.withdraw(preemptor.uid)
            self.ledger.add_pending(preemptor, admission)
            self._state.settled(preemptor.uid)
            self._state.changed.add(preemptor.queue)
            self._doubt(admission.queue)

    def start_eviction(self, holder: str) -> None:
        """Start a pending eviction: it is not cancelled any more, whatever becomes of the preemptor."""
        self.ledger.mark_eviction_started(holder)
        reservation = self.ledger.held(holder)
        if reservation is not None:
            self._state.changed.add(reservation.queue)  # others may rely on its quota now

    def cancel_eviction(self, holder: str) -> None:
        """The API server refused an eviction: the holder counts again, and its preemptor competes anew."""
        preemptor = self.ledger.preemptor(holder)
        reservation = self.ledger.held(holder)
        self.ledger.cancel_eviction(holder)
        pending = self.ledger.drop_pending(preemptor) if preemptor is not None else None
        if pending is not None:
            self.use(pending.workload.uid)
            self._state.enqueue(pending.workload)
            self._cancel_pending_evictions(pending.workload.uid)
            self._state.left(pending.workload.uid)
        if reservation is not None:
            self._doubt(reservation.queue)
            self._requeue_tree(reservation.queue)

    def claimed(self, queue: str) -> Mapping[FlavorResource, int]:
        """What a queue's next candidate asks for and owns, perhaps by a cohort: others may not borrow it."""
        self._state.renew_claims(self.tree.root(queue))
        return self._state.claims.amounts(queue)

    def overflow(self, cohort: str, leaving: AbstractSet[str] = frozenset()) -> list[str]:
        """UIDs of the victims without which a tree uses no more than the Cohort at its top allows.

        Args:
            cohort: the one at the top.
            leaving: UIDs of workloads on their way out for another reason than preemption.
        """
        search = Overflow(self.tree, self.ledger, ("cohort", cohort))
        return [reservation.holder for reservation in search.victims(leaving)]

    def explain(self, uid: str, enough: Callable[[], bool] = lambda: False) -> Explanation | None:
        """Why a workload waits, as of now; None if it does not wait in a queue that admits.

        Args:
            uid: of the workload.
            enough: asked between attempts whether the search for blocking workloads is to end.
        """
        pending = self.ledger.pending_reservations.get(uid)
        workload = pending.workload if pending is not None else self._state.waiting(uid)
        queue = self.tree.queues.get(workload.queue) if workload is not None else None
        if workload is None or queue is None or not queue.admits:
            return None
        explainer = RefusalExplainer(self._state)
        return explainer.explain(workload, enough) if pending is None else explainer.explain_hold(workload)

    def cycle(self, now: float = 0.0, decides: Callable[[Node], bool] | None = None) -> Plan:
        """Decide all that can be decided now.

        1. Pending reservations are given up for which others have left no room.
        2. Only trees in which something changed are looked at, by name: the heads of their queues compete.
        3. New reasons are reported.

        Args:
            now: when it is, in seconds since the epoch.
            decides: says by its root whether a tree is looked at; None: all are. What has changed in others
                is kept until `resume`.
        """
        plan = Plan()
        state = self._state
        state.preemption.now = now
        state.check_taken_up()
        state.turn(now)
        state.requeue_due(now)
        state.compare()
        while state.doubtful:  # a cancelled eviction may leave too little for another reservation
            doubtful, state.doubtful = state.doubtful, set()
            self._reexamine(roots_of(self.tree, [name for name in doubtful if name in self.tree.queues]))
        changed, state.changed = state.changed, set()
        trees: defaultdict[Node, set[str]] = defaultdict(set)
        for name in changed:
            trees[self.tree.root(name)].add(name)
        for root in [root for root in trees if decides is not None and not decides(root)]:
            state.put_off |= trees[root]
            changed -= trees.pop(root)
        state.claims.sort_in()
        for root in sorted(trees):
            decide_tree(state, root, trees[root], now, plan, self._failed)
        for name in sorted(changed | state.changed):
            queue, pending = self.tree.queues.get(name), state.pending.get(name)
            if queue is not None and pending is not None and queue.admits:
                plan.refusals.update(pending.news(queue, awaited=name in self.ledger.queues_with_pending))
        for uid, admission in plan.planned.items():
            plan.refusals[uid] = Refusal(Reason.PREEMPTING, admission.queue)
        state.changed.clear()
        plan.restored, state.restored = sorted(state.restored), []
        return plan

    def resume(self, decides: Callable[[Node], bool]) -> None:
        """Other trees may be looked at from now on than before; new ones begin afresh.

        Args:
            decides: says by its root whether a tree is looked at.
        """
        state = self._state
        state.changed |= state.put_off
        state.put_off.clear()
        for name, pending in state.pending.items():
            if decides(self.tree.root(name)):
                pending.tell_anew()
                state.requeue(name)

    def abandon_trees(self, decides: Callable[[Node], bool]) -> None:
        """Give up all pending reservations in some trees: another process decides there."""
        for name in [name for name in self.ledger.queues_with_pending if not decides(self.tree.root(name))]:
            for pending in self.ledger.pending_in(name):
                self.ledger.drop_pending(pending.workload.uid)
                self._give_up(pending)

    def _give_up(self, pending: PendingReservation) -> None:
        """A preemptor that has lost its pending reservation competes again."""
        self.use(pending.workload.uid)
        self._state.enqueue(pending.workload)
        self._state.usage_shrank(pending.admission.queue, pending.usage)
        self._cancel_pending_evictions(pending.workload.uid)
        self._state.left(pending.workload.uid)

    def _cancel_pending_evictions(self, preemptor: str) -> None:
        """Cancel the pending evictions for a workload, which has given up its reservation."""
        for queue in self.ledger.cancel_pending_evictions(preemptor):
            self._doubt(queue)
            self._requeue_tree(queue)

    def _requeue_tree(self, queue: str) -> None:
        self._requeue({self.tree.root(queue)})

    def _requeue(self, roots: AbstractSet[Node], queues: AbstractSet[str] = frozenset()) -> None:
        """Requeue all that waits in some trees and queues, or has a pending reservation there."""
        for name in self._among(self._state.pending, roots, queues):
            self._state.requeue(name)
        self._state.changed.update(self._among(self.ledger.queues_with_pending, roots, queues))

    def _among(
        self, names: Mapping[str, object], roots: AbstractSet[Node], queues: AbstractSet[str]
    ) -> list[str]:
        """Those of some names that are of some queues, or of queues of some trees."""
        if not roots:
            return [name for name in queues if name in names]
        return [name for name in names if name in queues or self.tree.root(name) in roots]

    def _reshaped(self, queues: AbstractSet[str], roots: AbstractSet[Node] = frozenset()) -> None:
        """Definitions changed: try all again in the queues and trees for which that makes a difference."""
        self._state.restore(self._among(self._state.pending, roots, queues))
        self._requeue(roots, queues)  # first of all: what they were refused for may be there no more
        self._reexamine(roots, queues)

    def _doubt(self, queue: str) -> None:
        """Another process has changed planned use: pending reservations may have lost their room."""
        if self.ledger.pending_reservations:
            self._state.doubtful.add(queue)

    def _reexamine(self, roots: AbstractSet[Node], queues: AbstractSet[str] = frozenset()) -> None:
        """Keep only those pending reservations in some trees and queues that are still good."""
        names = self._among(self.ledger.queues_with_pending, roots, queues)
        reservations = [pending for name in names for pending in self.ledger.pending_in(name)]
        for pending in reservations:
            self.ledger.drop_pending(pending.workload.uid)
        for pending in sorted(reservations, key=self.ledger.turn):
            if self._still_good(pending):
                self.ledger.add_pending(pending.workload, pending.admission)
            else:
                self._give_up(pending)

    def _still_good(self, pending: PendingReservation) -> bool:
        """Whether it could be made now: the queue admits, its flavors suit, and planned use leaves room."""
        queue = self.tree.queues.get(pending.workload.queue)
        return (
            queue is not None
            and queue.admits
            and self._state.assigner.suits(pending.workload, pending.admission, queue)
            and self.ledger.planned.fits(queue.name, pending.usage, Cell.has_vacant)
        )
