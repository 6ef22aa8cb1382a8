"""A holder comes to use more or less while it stays where it is: its pods end, or are made again.

It is no new admission. A victim stays one, of the same preemptor; what it displaced stays displaced; and its
place among what could be evicted stays, since that goes by priority and time.
"""

from admitter.engine.model import Admission, Usage
from admitter.engine.queue import events
from admitter.engine.quota.ledger import Reservation
from admitter.engine.state import EngineState


def only_resized(before: Reservation, made: Reservation) -> bool:
    """Whether both are one admission, of which more or less is in use."""
    return before.since == made.since and _shape(before.admission) == _shape(made.admission)


def resize(state: EngineState, before: Reservation, made: Reservation) -> bool:
    """Set what a holder uses, and try again what may fit after that; returns that something has changed."""
    queue, ledger = made.queue, state.ledger
    freed, added = _beyond(before.usage, made.usage), _beyond(made.usage, before.usage)
    state.reorder(queue)
    borrowed = ledger.resize(made, freed, added)
    if added or made.workload != before.workload or made.unsaved_since != before.unsaved_since:
        state.requeue(events.UsageGrew(queue, borrowed or [key for key, _ in made.usage]))
    if freed:
        state.requeue(events.UsageShrank(queue, freed))
    if made.workload != before.workload or made.unsaved_since != before.unsaved_since:
        state.requeue(events.TermsChanged(queue))
    if added and ledger.pending_reservations:
        state.doubtful.add(queue)  # they may have lost their room
    # Less may be claimed now, another namespace may be first, and a preemptor may fit beside the rest.
    state.requeue(events.NextMayDiffer(queue))
    waits = ledger.pending_reservations.get(ledger.displacements.preemptor(made.holder) or "")
    if waits is not None:
        state.requeue(events.NextMayDiffer(waits.queue))
    return True


def _shape(admission: Admission) -> object:
    return (admission.queue, admission.pool, [(each.name, each.flavors) for each in admission.pod_sets])


def _beyond(usage: Usage, other: Usage) -> Usage:
    """How much more of each flavor and resource is in the one than in the other."""
    less = dict(other)
    found = ((key, amount - less.get(key, 0)) for key, amount in usage)
    return tuple((key, amount) for key, amount in found if amount > 0)
