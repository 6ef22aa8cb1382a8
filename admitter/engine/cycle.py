"""State to plan: which waiting workloads are admitted, which are evicted for them, and why others wait.

The caller applies a command for every change, calls `cycle`, and writes what the plan says. What a plan
admits is reserved at once, and its victims are left out of the plans that follow; a write that fails is
rolled back by `Release` and `CancelEviction`.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from math import inf
from typing import Any, ClassVar

from admitter.engine import commands
from admitter.engine.explain.explanation import Explanation, RefusalExplainer
from admitter.engine.growth import resize as resize_by_extra_pods
from admitter.engine.growth import set_extra
from admitter.engine.model import FlavorResource
from admitter.engine.observer import AskedRoots, Observer
from admitter.engine.policy import Strategy, left_behind
from admitter.engine.preemption.overflow import Overflow
from admitter.engine.queue import events
from admitter.engine.quota.cells import Cell
from admitter.engine.quota.ledger import NO_PODS, PendingReservation, Pods, Reservation
from admitter.engine.quota.tree import Node
from admitter.engine.redefining import without_effect_on_others
from admitter.engine.refusal import Reason, Refusal
from admitter.engine.resizing import only_resized, resize
from admitter.engine.state import EngineState
from admitter.engine.tree_cycle import Plan, TreeCycle


class Engine:
    """Takes commands in, gives plans out."""

    def __init__(
        self,
        failed: Callable[[Node, Exception], None] | None = None,
        observer: Observer | None = None,
    ) -> None:
        """Begin with nothing. Without `failed`, the error of a tree that can't be decided is raised."""
        self._failed = failed
        self._observer = observer
        self._state = EngineState()
        self.tree = self._state.tree
        self.ledger = self._state.ledger
        self.capacity = self._state.capacity  # which workloads are over quota
        # workloads with places made by evictions, and the queues and namespaces that evict nothing now
        self.returned = self._state.returned
        self._requeue = self._state.requeue

    @property
    def changed(self) -> bool:
        """Whether a cycle could decide anything, before the time of `due`."""
        state = self._state
        extras = state.ledger.extras
        noted = extras.touched or extras.doubtful or state.ledger.evictions.differ
        return bool(state.changed or state.reordered or state.doubtful or state.returned.changed or noted)

    @property
    def due(self) -> float | None:
        """When a cycle could decide something though nothing else changes, in seconds since the epoch."""
        checkpoints = self._state.checkpoints.due
        ends = [*self._state.timers.values(), *self._state.returned.ends]
        ends += [] if self.ledger.extras.due is None else [self.ledger.extras.due]
        return min(ends if checkpoints == inf else [*ends, checkpoints], default=None)

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

    def refused_by(self, queue: str, reason: Reason) -> int:
        """How many workloads of a queue are inadmissible for a reason."""
        pending = self._state.pending.get(queue)
        return pending.refused_by(reason) if pending is not None else 0

    def line(self, queue: str) -> list[str]:
        """UIDs of the workloads that wait in a queue, in order: first those with a pending reservation.

        What is known never to fit is left out, unless it stops those behind it.
        """
        first = sorted((each.workload for each in self.ledger.pending_in(queue)), key=lambda w: w.rank)
        pending, definition = self._state.pending.get(queue), self.tree.queues.get(queue)
        if pending is None:
            return [workload.uid for workload in first]
        stops = definition is not None and definition.strategy is Strategy.STRICT_FIFO
        others = (each for each in pending.in_order() if stops or not pending.never_fits(each))
        return [workload.uid for workload in (*first, *others)]

    def refusals(self, queue: str) -> dict[str, Refusal]:
        """Why workloads wait in a queue, by UID, as far as that is known now."""
        pending, definition = self._state.pending.get(queue), self.tree.queues.get(queue)
        if pending is None or definition is None or not definition.admits:
            return {}
        return dict(pending.refusals(definition, awaited=queue in self.ledger.queues_with_pending))

    def apply(self, command: commands.Command) -> None:
        """Take a command in; the observer sees it if it makes a difference."""
        handler, differs = self._handlers[type(command)], True
        try:
            differs = handler(self, command)
        finally:  # one that fails may have done half of its work
            if differs and self._observer is not None:
                self._observer.applied(command)

    # Each of these returns whether the command makes a difference to what is decided.

    def _set_flavor(self, command: commands.SetFlavor) -> bool:
        flavor = command.flavor
        if self._state.flavors.get(flavor.name) == flavor:
            return False
        self._state.flavors[flavor.name] = flavor
        self.tree.version += 1
        queues = self.tree.queues.values()
        names = {q.name for q in queues if any(flavor.name in g.flavors for g in q.groups)}
        self._reshaped(names)
        return True

    def _remove_flavor(self, command: commands.RemoveFlavor) -> bool:
        return self._state.flavors.pop(command.name, None) is not None

    def _define(self, command: commands.Define) -> bool:
        tree = self.tree
        queues = [queue for queue in command.queues if tree.queues.get(queue.name) != queue]
        cohorts = [cohort for cohort in command.cohorts if tree.cohorts.get(cohort.name) != cohort]
        gone = [name for name in command.gone if name in tree.queues]
        gone_cohorts = [name for name in command.gone_cohorts if name in tree.cohorts]
        names = {*(queue.name for queue in queues), *gone}
        cohort_names = {*(cohort.name for cohort in cohorts), *gone_cohorts}
        if not names and not cohort_names:
            return False
        felt = names - without_effect_on_others(self.ledger, tree, queues, gone)
        before = tree.roots(felt, cohort_names)
        self._state.claims.drop(names, before)
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
        self._reshaped(names, before | tree.roots(felt, cohort_names))
        return True

    def _set_weight(self, command: commands.SetWeight) -> bool:
        if self.ledger.weights.get(command.namespace, 1) == command.weight:
            return False
        self._state.reweigh(command.namespace, command.weight)
        return True

    def _submit(self, command: commands.Submit) -> bool:
        workload = command.workload
        pending = self.ledger.pending_reservations.get(workload.uid)
        known = pending.workload if pending is not None else self._state.waiting(workload.uid)
        if known == workload:
            return False
        if known is not None:
            # its age and its priority may be for others to say
            if replace(known, created=workload.created, priority=workload.priority) != workload:
                self.returned.note(workload.uid)
            self._stop_waiting(workload.uid)
        self._state.enqueue(workload)
        return True

    def _return_reservation(self, command: commands.ReturnReservation) -> bool:
        gained = command.uid in self.returned.gained
        self.returned.note(command.uid)
        return gained

    def _use_reservation(self, command: commands.UseReservation) -> bool:
        return self.returned.use(command.uid)

    def _gain_reservation(self, command: commands.GainReservation) -> bool:
        known = command.uid in self.returned.gained
        self.returned.gained.add(command.uid)
        return not known

    def _set_back_off(self, command: commands.SetBackOff) -> bool:
        self.returned.take_up(command.queue, command.namespace, command.back_off)
        return True

    def _displace(self, command: commands.Displace) -> bool:
        uid, preemptor = command.uid, command.preemptor
        ends = self.ledger.evicting(uid)
        if ends:
            self.ledger.reassign(uid, preemptor)
        if ends or (self.ledger.held(uid) is None and self.ledger.displacements.preemptor(uid) != preemptor):
            self._state.take_up(uid, preemptor)
            return True
        return False

    def _withdraw(self, command: commands.Withdraw) -> bool:
        return self._stop_waiting(command.uid)

    def _stop_waiting(self, uid: str) -> bool:
        """A workload waits no longer; returns whether it did."""
        pending = self.ledger.drop_pending(uid)
        if pending is not None:
            self._requeue(events.UsageShrank(pending.queue, pending.usage))
            self._lost_reservation(uid)
        queue = self._state.dequeue(uid)
        if queue is not None:
            self._requeue(events.NextMayDiffer(queue))  # behind a strict head, it may fit
        return pending is not None or queue is not None

    def _reserve(self, command: commands.Reserve) -> bool:
        holder, admission = command.holder, command.admission
        if admission.pool and admission.queue not in self.tree.queues:
            self._define(commands.Define((left_behind(admission.queue, admission.pool),)))
        checkpoint = self._state.checkpoints.counted(holder, command.checkpoint, self._state.preemption.now)
        made = Reservation(holder, admission, command.workload, command.since, command.namespace, checkpoint)
        before = self.ledger.held(holder)
        if before is not None and before.admission == admission:
            return self._state.amend(before, made) or checkpoint != command.checkpoint
        if self.ledger.extras:
            self.ledger.extras.doubtful.add(admission.queue)
        if before is not None and only_resized(before, made):
            return resize(self._state, before, made)
        self._stop_waiting(holder)
        evicted_for = self.ledger.preemptor(holder)
        waits = self.ledger.pending_reservations.get(self.ledger.displacements.preemptor(holder) or "")
        if waits is not None:
            self._requeue(events.NextMayDiffer(waits.queue))  # others may have the room that was kept for it
        self._requeue(events.UsageGrew(admission.queue, self.ledger.reserve(made)))
        self._state.settled(holder)
        if self.tree.root(admission.queue) in self._state.claim_blocked:
            self._requeue(events.NextMayDiffer(admission.queue))  # less may be claimed now, or have room
        if evicted_for is not None:
            self.ledger.evict(holder, evicted_for)
        if before is not None:
            self._requeue(events.UsageShrank(before.queue, before.usage))
        self._doubt(admission.queue)
        if admission.queue in self.ledger.sharing:
            self._requeue(events.NextMayDiffer(admission.queue))  # another namespace may be first
        return True

    def _set_pods(self, command: commands.SetPods) -> bool:
        holder, pods = command.holder, Pods(command.alive, command.left_over)
        if pods == self.ledger.pods(holder):
            return False
        reservation = self.ledger.held(holder)
        if reservation is not None:
            self._state.reorder(reservation.queue)
        self.ledger.set_pods(holder, pods)
        return True

    def _set_extra(self, command: commands.SetExtra) -> bool:
        return set_extra(self._state, command)

    def _release(self, command: commands.Release) -> bool:
        holder = command.holder
        if self.ledger.held(holder) is None:
            return self.ledger.set_pods(holder, NO_PODS)
        promised = self.ledger.displacements.preemptor(holder)
        reservation = self.ledger.release(holder)
        assert reservation is not None, "it is held"
        self.ledger.set_pods(holder, NO_PODS)
        self.capacity.forget(holder)
        self._state.checkpoints.forget(holder)
        self.returned.use(holder)
        if promised is None and self.ledger.displacements:
            self._state.left(holder)
            self._state.restore(self.tree.relatives(reservation.queue))
        self._requeue(events.UsageShrank(reservation.queue, reservation.usage))
        queue = self.tree.queues.get(reservation.queue)
        if queue is not None and not queue.groups and not queue.admits:
            self._define(commands.Define(gone=(queue.name,)))  # it was only kept for what was reserved
        return True

    def _evict(self, command: commands.Evict) -> bool:
        holder, preemptor, admission = command.holder, command.preemptor, command.admission
        held = self.ledger.held(holder) is not None
        if held:
            self.ledger.evict(holder, preemptor.uid)
            self.returned.gained.add(preemptor.uid)
            if command.pending:
                self.ledger.mark_eviction_pending(holder)
        if self.ledger.held(preemptor.uid) is None and preemptor.uid not in self.ledger.pending_reservations:
            self._stop_waiting(preemptor.uid)
            self.ledger.add_pending(preemptor, admission)
            self._state.settled(preemptor.uid)
            self._requeue(events.NextMayDiffer(preemptor.queue))
            self._doubt(admission.queue)
            return True
        return held

    def _start_eviction(self, command: commands.StartEviction) -> bool:
        self.ledger.mark_eviction_started(command.holder)
        reservation = self.ledger.held(command.holder)
        if reservation is not None:
            self._requeue(events.NextMayDiffer(reservation.queue))  # others may rely on its quota now
        return reservation is not None

    def _set_evictions(self, command: commands.SetEvictions) -> bool:
        return self.ledger.evictions.set(command.queue, command.evictions)

    def _cancel_eviction(self, command: commands.CancelEviction) -> bool:
        preemptor = self.ledger.preemptor(command.holder)
        reservation = self.ledger.held(command.holder)
        self.ledger.cancel_eviction(command.holder)
        pending = self.ledger.drop_pending(preemptor) if preemptor is not None else None
        if pending is not None:
            self._state.enqueue(pending.workload)
            self._lost_reservation(pending.workload.uid)
        if reservation is not None:
            self._doubt(reservation.queue)
            self._requeue(events.EvictionCancelled(reservation.queue))
        return preemptor is not None

    def claimed(self, queue: str) -> Mapping[FlavorResource, int]:
        """What a queue's next candidate asks for and owns, perhaps by a cohort: others may not borrow it."""
        self._state.renew_claims(self.tree.root(queue))
        return self._state.claims.amounts(queue)

    def overflow(self, cohort: str, leaving: AbstractSet[str] = frozenset()) -> list[str]:
        """UIDs of the victims without which a tree uses no more than the Cohort at its top allows.

        Workloads that are `leaving` are on their way out for another reason than preemption.
        """
        search = Overflow(self.tree, self.ledger, ("cohort", cohort))
        return [reservation.holder for reservation in search.victims(leaving)]

    def explain(self, uid: str, enough: Callable[[], bool] = lambda: False) -> Explanation | None:
        """Why a workload waits, as of now; None if it does not wait in a queue that admits.

        `enough` is asked between attempts whether the search for blocking workloads is to end. `changed` may
        become true since claims are made anew; the cycle that is due then decides nothing.
        """
        pending = self.ledger.pending_reservations.get(uid)
        workload = pending.workload if pending is not None else self._state.waiting(uid)
        queue = self.tree.queues.get(workload.queue) if workload is not None else None
        if workload is None or queue is None or not queue.admits:
            return None
        explainer = RefusalExplainer(self._state)
        if pending is not None:
            return explainer.explain_pending_reservation(workload)
        return explainer.explain(workload, enough)

    def cycle(self, now: float = 0.0, decides: Callable[[Node], bool] | None = None) -> Plan:
        """Decide all that can be decided now, in seconds since the epoch.

        1. Pending reservations are given up for which others have left no room.
        2. Only trees in which something changed are looked at, by name: the heads of their queues compete.
           Those with a root for which `decides` is false wait until `resume`.
        3. Idle quota goes to workloads that can use more pods, or is taken back from them.
        4. New reasons are reported.
        """
        plan, asked = Plan(), AskedRoots(decides)
        state = self._state
        state.preemption.now = now
        state.check_taken_up()
        state.requeue_due(now)
        state.compare()
        while state.doubtful:  # a cancelled eviction may leave too little for another reservation
            doubtful, state.doubtful = state.doubtful, set()
            self._reexamine(self.tree.roots(name for name in doubtful if name in self.tree.queues))
        changed = {*state.changed}
        state.changed.clear()
        trees: defaultdict[Node, set[str]] = defaultdict(set)
        for name in changed:
            trees[self.tree.root(name)].add(name)
        for root in [root for root in trees if not asked(root)]:
            state.put_off |= trees[root]
            changed -= trees.pop(root)
        state.claims.sort_in()
        for root in sorted(trees):
            self._decide(root, trees[root], now, plan)
        plan.resized = resize_by_extra_pods(state, trees, asked, now)
        for name in sorted(changed | state.changed):
            queue, pending = self.tree.queues.get(name), state.pending.get(name)
            if queue is not None and pending is not None and queue.admits:
                plan.refusals.update(
                    pending.unreported_refusals(queue, awaited=name in self.ledger.queues_with_pending)
                )
        for uid, admission in plan.planned.items():
            plan.refusals[uid] = Refusal(Reason.PREEMPTING, admission.queue)
        state.changed.clear()
        plan.restored, state.restored = sorted(state.restored), []
        if self._observer is not None:
            self._observer.decided(now, asked, plan, state)
        return plan

    def _decide(self, root: Node, queues: set[str], now: float, plan: Plan) -> None:
        try:
            TreeCycle(self._state, root, now, plan).run(queues)
        except Exception as error:  # a defect that one tree brings out must not stop the others
            if self._failed is None:
                raise
            self._failed(root, error)

    def resume(self, decides: Callable[[Node], bool]) -> None:
        """Trees with a root for which `decides` is true are looked at from now on; new ones begin afresh."""
        state, asked = self._state, AskedRoots(decides)
        state.ledger.extras.redefined()
        state.changed |= state.put_off
        state.put_off.clear()
        for name, pending in state.pending.items():
            if asked(self.tree.root(name)):
                pending.tell_anew()
                state.requeue(events.TermsChanged(name))
        if self._observer is not None:
            self._observer.resumed(asked, state)

    def abandon_trees(self, decides: Callable[[Node], bool]) -> None:
        """Give up all pending reservations in some trees: another process decides there."""
        asked = AskedRoots(decides)
        for name in [name for name in self.ledger.queues_with_pending if not asked(self.tree.root(name))]:
            for pending in self.ledger.pending_in(name):
                self.ledger.drop_pending(pending.workload.uid)
                self._give_up(pending)
        if self._observer is not None:
            self._observer.abandoned(asked)

    def _give_up(self, pending: PendingReservation) -> None:
        """A preemptor that has lost its pending reservation competes again."""
        self._state.enqueue(pending.workload)
        self._requeue(events.UsageShrank(pending.queue, pending.usage))
        self._lost_reservation(pending.workload.uid)

    def _lost_reservation(self, preemptor: str) -> None:
        """A workload has no pending reservation any more: evictions that are pending for it are cancelled."""
        self.returned.use(preemptor)
        for queue in self.ledger.cancel_pending_evictions(preemptor):
            self._doubt(queue)
            self._requeue(events.EvictionCancelled(queue))
        self._state.left(preemptor)

    def _reshaped(self, queues: AbstractSet[str], roots: AbstractSet[Node] = frozenset()) -> None:
        """Definitions changed: try all again in the queues and trees for which that makes a difference."""
        self._state.restore(self.tree.concerned(self._state.pending, queues, roots))
        # Requeue before reservations are examined: the old refusals no longer hold.
        self._requeue(events.Redefined(queues, roots))
        self._reexamine(roots, queues)

    def _doubt(self, queue: str) -> None:
        """Another process has changed planned use: pending reservations may have lost their room."""
        if self.ledger.pending_reservations:
            self._state.doubtful.add(queue)

    def _reexamine(self, roots: AbstractSet[Node], queues: AbstractSet[str] = frozenset()) -> None:
        """Keep only those pending reservations in some trees and queues that are still good."""
        names = self.tree.concerned(self.ledger.queues_with_pending, queues, roots)
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

    _handlers: ClassVar[Mapping[type[commands.Command], Callable[["Engine", Any], bool]]] = {
        commands.SetFlavor: _set_flavor,
        commands.RemoveFlavor: _remove_flavor,
        commands.Define: _define,
        commands.SetWeight: _set_weight,
        commands.Submit: _submit,
        commands.Withdraw: _withdraw,
        commands.Reserve: _reserve,
        commands.SetPods: _set_pods,
        commands.SetExtra: _set_extra,
        commands.Release: _release,
        commands.Evict: _evict,
        commands.Displace: _displace,
        commands.StartEviction: _start_eviction,
        commands.CancelEviction: _cancel_eviction,
        commands.SetEvictions: _set_evictions,
        commands.ReturnReservation: _return_reservation,
        commands.UseReservation: _use_reservation,
        commands.GainReservation: _gain_reservation,
        commands.SetBackOff: _set_back_off,
    }
