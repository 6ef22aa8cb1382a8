"""Places that an earlier leader has promised: whoever others were evicted for keeps what he waits for.

They are in the status of the victims, so nothing else has to remember them.
"""

from admitter.controllers.gate import Gate
from admitter.controllers.world import World
from admitter.engine.cycle import Engine


def keep_places(world: World, engine: Engine, gate: Gate) -> None:
    """Take in the places promised in trees that this process decides about, if they are still good."""
    for victim in world.workloads:
        wanted = victim.preemption
        if (
            wanted is None
            or victim.finished
            or engine.ledger.preemptor(victim.uid) == wanted.uid
            or world.shards.epoch_of(wanted.admission.queue) is None
            or (preemptor := world.workloads.get(wanted.key)) is None
        ):
            continue
        job = world.job_of(wanted.key)
        waits = preemptor.uid == wanted.uid and preemptor.admission is None and not preemptor.finished
        if not waits or gate.check(preemptor, job) != wanted.admission.queue:
            continue
        competing = gate.countable(preemptor, job, wanted.admission.queue)
        if competing is not None and gate.suits(wanted.admission, competing):
            told = victim.evict_at is not None and not victim.evicting
            engine.evict(victim.uid, competing, wanted.admission, told=told)
