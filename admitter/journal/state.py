"""What an engine knows, as commands that make a new one know it too.

What it has found out by itself, such as which workloads can't fit before something is free, is not told: the
other one finds it out in its first cycle. After a cycle that one decides nothing, since nothing is left to be
decided.
"""

from collections.abc import Callable, Iterable, Iterator

from admitter.engine import commands
from admitter.engine.model import Admission, Workload
from admitter.engine.quota.ledger import Ledger, Reservation
from admitter.engine.quota.tree import Node
from admitter.engine.state import EngineState
from admitter.journal.calls import Cycle, Looks


def known(state: EngineState) -> Iterator[commands.Command]:
    """Commands that make a new engine know what one knows."""
    tree, ledger = state.tree, state.ledger
    for flavor in state.flavors.values():
        yield commands.SetFlavor(flavor)
    yield commands.Define(tuple(tree.queues.values()), tuple(tree.cohorts.values()))
    for namespace, weight in ledger.weights.items():
        yield commands.SetWeight(namespace, weight)
    yield from _held(state)
    for pending in state.pending.values():
        for workload in pending.in_order():
            yield commands.Submit(workload)
    for (queue, namespace), back_off in state.returned.known:
        yield commands.SetBackOff(queue, namespace, back_off)


def settled(state: EngineState, now: float, decides: Callable[[Node], bool]) -> Cycle:
    """A cycle that decides nothing, since it comes right after one, of that time and with those trees."""
    # A workload may wait in a queue that is not there any more.
    roots = sorted({state.tree.root(name) for name in (*state.tree.queues, *state.pending)})
    return Cycle(now, Looks(tuple((root, decides(root)) for root in roots)))


def _held(state: EngineState) -> Iterator[commands.Command]:
    """Reservations, evictions and pending reservations."""
    ledger = state.ledger
    reservations = [each for name in ledger.holding for each in ledger.reservations(name)]
    for each in reservations:
        checkpoint = state.checkpoints.said(each.holder, each.checkpoint)
        told = (each.admission, each.workload, each.since, each.namespace, checkpoint)
        yield commands.Reserve(each.holder, *told)
        pods = ledger.pods(each.holder)
        yield commands.SetPods(each.holder, pods.alive, pods.left_over)
    for (holder, part), extra in ledger.extras:
        yield commands.SetExtra(holder, extra, part)
    yield from _recorded(ledger, reservations)
    yield from _evicting(ledger, reservations)
    yield from _begun(ledger, reservations)
    for victim, preemptor in ledger.displacements:
        if ledger.held(victim) is None:
            yield commands.Displace(victim, preemptor)
    gained = state.returned.gained
    for uid in sorted({preemptor for _, preemptor in ledger.displacements} | gained):
        yield commands.GainReservation(uid) if uid in gained else commands.UseReservation(uid)


def _evicting(ledger: Ledger, reservations: Iterable[Reservation]) -> Iterator[commands.Command]:
    """Evictions, and pending reservations."""
    victims = [(each, uid) for each in reservations if (uid := ledger.preemptor(each.holder)) is not None]
    lost = {each.holder for each, _ in victims if ledger.displacements.preemptor(each.holder) is None}
    for each, uid in victims:
        if each.holder in lost:  # its preemptor lost that reservation; what it may have now is another one
            yield from _evicted_for_none(each, uid if ledger.held(uid) is None else "")
    for kept in ledger.pending_reservations.values():
        yield commands.Evict("", kept.workload, kept.admission, False)  # no workload has that name
    for each, uid in victims:
        if each.holder in lost:
            continue
        reserved = ledger.pending_reservations.get(uid)
        if reserved is not None:
            pending = ledger.is_eviction_pending(each.holder)
            yield commands.Evict(each.holder, reserved.workload, reserved.admission, pending)
        else:  # its preemptor has been admitted: the victim goes all the same
            yield from _evicted_for_none(each, uid)


def _evicted_for_none(victim: Reservation, uid: str) -> Iterator[commands.Command]:
    """Evict a victim for a workload that has no pending reservation."""
    gone = Workload(uid, victim.queue, 0, 0.0, ())
    yield commands.Evict(victim.holder, gone, Admission(victim.queue, ()), False)
    yield commands.Withdraw(uid)


def _recorded(ledger: Ledger, reservations: Iterable[Reservation]) -> Iterator[commands.Command]:
    """Records without what is in them and has not begun: that is new once its eviction is known."""
    evicting = {each.holder for each in reservations if ledger.evicting(each.holder)}
    written = evicting - ledger.evictions.in_flight
    for queue, record in ledger.evictions.records():
        yield commands.SetEvictions(queue, tuple(each for each in record if each[1] not in written))


def _begun(ledger: Ledger, reservations: Iterable[Reservation]) -> Iterator[commands.Command]:
    """Evictions that are in no record any more as those that are in flight."""
    yield from (commands.SetEvictions(queue, record) for queue, record in ledger.evictions.records())
    for each in reservations:
        flies = each.holder in ledger.evictions.in_flight or ledger.is_eviction_pending(each.holder)
        if ledger.evicting(each.holder) and not flies:
            yield commands.StartEviction(each.holder)
