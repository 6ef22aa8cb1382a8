"""Places that were promised before this process decided, as the statuses of Workloads tell them.

A place stands in the status of the Workload that waits for it, with a generation: how many places have been
promised to that Workload. The Workloads that make room for it name the same generation. Once the place has
been taken or given up, or a later one was promised, that generation is void, in whatever status it stands.
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass

from admitter.cache.preemption_status import PreemptionStatus, ReservationStatus
from admitter.cache.world import World
from admitter.client.store import Key
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, Workload
from admitter.engine.quota.ledger import PendingReservation
from admitter.policy.gate import Gate
from admitter.policy.intake import NO_WORKLOAD
from admitter.policy.returns import take_up


@dataclass(frozen=True, slots=True)
class ReportedReservation:
    """A place that statuses promise.

    Attributes:
        key: namespace and name of the Workload that is to get it.
        uid: of the same.
        generation: how many places have been promised to it, this one included.
        admission: what it will get.
    """

    key: Key
    uid: str
    generation: int
    admission: Admission


def keep_places(
    world: World, engine: Engine, gate: Gate, known: Container[str] = ()
) -> list[ReportedReservation]:
    """Take in the places that are promised in trees that this process decides about.

    1. A place is kept if its Workload waits, and could be given it as what it asks for now.
    2. The Workloads that make room for this very place go for it. Others that were told to go stay.
    3. What has gone for it, or goes, is displaced as long as the place is kept or held.
    4. Back-offs that Workloads wait for go on.

    The next cycle gives up places for which there is no room, as always.

    Args:
        world: all objects.
        engine: knows which Workloads hold quota and which wait.
        gate: knows which Workloads may compete.
        known: the UIDs of the Workloads of whose places this process knows more than the statuses say.

    Returns:
        All that statuses promise in these trees, those included that are not kept.
    """
    found = [
        each
        for each in _promised(world)
        if each.uid not in known and world.shards.epoch_of(each.admission.queue) is not None
    ]
    kept: dict[tuple[str, int], PendingReservation] = {}
    for each in found:
        competing = _competing(world, gate, each)
        if competing is not None:
            engine.evict(NO_WORKLOAD, competing, each.admission)
            kept[each.uid, each.generation] = engine.ledger.pending_reservations[each.uid]
    for victim in world.workloads:
        wanted, told = victim.preemption, victim.evict_at is not None
        hold = kept.get((wanted.uid, wanted.generation)) if wanted is not None else None
        if hold is not None and (victim.evicting or told):
            engine.evict(victim.uid, hold.workload, hold.admission, told=told and not victim.evicting)
        waits = victim.admission is None and not victim.finished
        if wanted is not None and (waits or victim.evicting) and _still_displaces(world, wanted):
            engine.displaced(victim.uid, wanted.uid)
            if engine.ledger.held(wanted.uid) is not None or wanted.uid in engine.ledger.pending_reservations:
                engine.gain(wanted.uid)
    take_up(world, engine, gate)
    return found


def _still_displaces(world: World, wanted: PreemptionStatus) -> bool:
    """Whether the place that a Workload made room for is the last one that was promised to its preemptor.

    One that was evicted since has begun another generation; until it is admitted again, what displaces it
    displaces what it displaced.
    """
    preemptor = world.workloads.get(wanted.key)
    if preemptor is None or preemptor.uid != wanted.uid or preemptor.finished:
        return False
    evicted = preemptor.admission is None and preemptor.preemption is not None
    return wanted.generation in {preemptor.reservation.generation, preemptor.reservation.generation - evicted}


def _promised(world: World) -> Iterator[ReportedReservation]:
    """The places that are promised and not void.

    A Workload that makes room may name a later generation than the status of the Workload that is to get the
    place. Then the latter is behind: the place is not written there yet, or the write is not known here yet.
    """
    places: dict[Key, ReservationStatus] = {}
    for workload in world.workloads:
        if workload.status.get("place"):
            places[workload.key] = workload.reservation
    for victim in world.workloads:
        wanted = victim.preemption
        named = world.workloads.get(wanted.key) if wanted is not None and not victim.finished else None
        if wanted is None or named is None or named.uid != wanted.uid:
            continue
        if wanted.generation > places.get(wanted.key, ReservationStatus()).generation:
            places[wanted.key] = ReservationStatus(wanted.generation, wanted.admission)
    for key, place in places.items():
        owner = world.workloads.get(key)
        if owner is not None and place.admission is not None:
            yield ReportedReservation(key, owner.uid, place.generation, place.admission)


def _competing(world: World, gate: Gate, promised: ReportedReservation) -> Workload | None:
    """The Workload that is to get a place, as the engine sees it; None if it could not take that place."""
    workload, admission = world.workloads.get(promised.key), promised.admission
    if workload is None or workload.admission is not None or workload.finished:
        return None
    job = world.job_of(promised.key)
    if gate.check(workload, job) != admission.queue:
        return None
    competing = gate.countable(workload, job, admission.queue)
    return competing if competing is not None and gate.suits(admission, competing) else None
