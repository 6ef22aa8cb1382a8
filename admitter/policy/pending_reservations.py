"""Pending reservations that an earlier leader made, read from the statuses of Workloads.

The status of the preemptor has its pending reservation, with a generation: how many it has had. The statuses
of the victims name the same generation. Once the reservation was used or given up, or a later one was made,
that generation is void in every status (docs/design/preemption.md).
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass

from admitter.cache.preemption_status import PreemptionStatus, ReservationStatus
from admitter.cache.views import WorkloadView
from admitter.cache.world import World
from admitter.client.store import Key
from admitter.engine.commands import Displace, Evict, GainReservation, SetBackOff, UseReservation
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, Workload
from admitter.engine.quota.ledger import PendingReservation
from admitter.policy.gate import Gate
from admitter.policy.intake import NO_WORKLOAD


@dataclass(frozen=True, slots=True)
class ReportedReservation:
    """A pending reservation that statuses report, of a preemptor that will get the admission.

    The generation is how many pending reservations the preemptor has had, this one included.
    """

    key: Key
    uid: str
    generation: int
    admission: Admission


def keep_reservations(
    world: World, engine: Engine, gate: Gate, known: Container[str] = ()
) -> list[ReportedReservation]:
    """Restore the pending reservations in trees that this process decides about.

    1. A reservation is kept if its preemptor is pending, and the reservation suits its present requests.
    2. Victims that name this generation are evicted for it. Other pending evictions are cancelled.
    3. Victims with an eviction started or over are displaced while the preemptor has that place.
    4. Back-offs that Workloads wait for go on.

    The next cycle gives up reservations for which there is no room, as always.

    Of Workloads with a known UID this process knows newer reservations than their statuses have. Returns all
    that statuses report in these trees, those included that are not kept.
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
            engine.apply(Evict(NO_WORKLOAD, competing, each.admission))
            kept[each.uid, each.generation] = engine.ledger.pending_reservations[each.uid]
    for victim in world.workloads:
        wanted, pending = victim.preemption, victim.evict_at is not None and not victim.evicting
        reservation = kept.get((wanted.uid, wanted.generation)) if wanted is not None else None
        if reservation is not None and (victim.evicting or pending):
            engine.apply(Evict(victim.uid, reservation.workload, reservation.admission, pending=pending))
        waits = victim.admission is None and not victim.finished
        if wanted is not None and (waits or victim.evicting) and _still_displaces(world, wanted):
            engine.apply(Displace(victim.uid, wanted.uid))
            if engine.ledger.held(wanted.uid) is not None or wanted.uid in engine.ledger.pending_reservations:
                engine.apply(GainReservation(wanted.uid))
    _take_up(world, engine, gate)
    return found


def _still_displaces(world: World, wanted: PreemptionStatus) -> bool:
    """Whether a victim was evicted for the last pending reservation of its preemptor.

    A preemptor that was evicted since has begun another generation. Until it is admitted again, the workload
    that displaces it also displaces its victims.
    """
    preemptor = world.workloads.get(wanted.key)
    if preemptor is None or preemptor.uid != wanted.uid or preemptor.finished:
        return False
    evicted = preemptor.admission is None and preemptor.preemption is not None
    return wanted.generation in {preemptor.reservation.generation, preemptor.reservation.generation - evicted}


def _promised(world: World) -> Iterator[ReportedReservation]:
    """The pending reservations that are not void.

    A victim may name a later generation than the status of its preemptor. Then the preemptor's status is
    behind: the reservation is not written there yet, or the write is not known here yet.
    """
    reservations: dict[Key, ReservationStatus] = {}
    for workload in world.workloads:
        if workload.status.get("place"):
            reservations[workload.key] = workload.reservation
    for victim in world.workloads:
        wanted = victim.preemption
        named = world.workloads.get(wanted.key) if wanted is not None and not victim.finished else None
        if wanted is None or named is None or named.uid != wanted.uid:
            continue
        if wanted.generation > reservations.get(wanted.key, ReservationStatus()).generation:
            reservations[wanted.key] = ReservationStatus(wanted.generation, wanted.admission)
    for key, pending in reservations.items():
        owner = world.workloads.get(key)
        if owner is not None and pending.admission is not None:
            yield ReportedReservation(key, owner.uid, pending.generation, pending.admission)


def _competing(world: World, gate: Gate, reported: ReportedReservation) -> Workload | None:
    """The preemptor, as the engine sees it; None if it could not use the reservation."""
    workload, admission = world.workloads.get(reported.key), reported.admission
    if workload is None or workload.admission is not None or workload.finished:
        return None
    job = world.job_of(reported.key)
    if gate.check(workload, job) != admission.queue:
        return None
    competing = gate.countable(workload, job, admission.queue)
    return competing if competing is not None and gate.suits(admission, competing) else None


def _take_up(world: World, engine: Engine, gate: Gate) -> None:
    """Take in used places and back-offs from statuses, after the pending reservations are restored."""
    gained = engine.returned.gained
    for workload in world.workloads:
        if workload.uid in gained and _has_run(world, workload):
            engine.apply(UseReservation(workload.uid))
        back_off = workload.back_off
        if back_off is None or workload.admission is not None or workload.finished:
            continue
        queue = gate.check(workload, world.job_of(workload.key))
        if isinstance(queue, str) and world.shards.epoch_of(queue) is not None:
            engine.apply(SetBackOff(queue, workload.namespace, back_off))


def _has_run(world: World, workload: WorkloadView) -> bool:
    """Whether a pod of a Workload has run, as far as its pods and Job show."""
    job = world.job_of(workload.key)
    worked = job is not None and job.is_started_by(workload) and bool(job.status["succeeded"])
    return worked or any(pod.has_run for pod in world.pods_of(workload))
