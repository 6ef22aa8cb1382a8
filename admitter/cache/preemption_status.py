"""Preemption in the status of a Workload: its preemptor, and its own pending reservation."""

from dataclasses import dataclass

from admitter.client.store import Key
from admitter.engine.model import Admission


@dataclass(frozen=True, slots=True)
class PreemptionStatus:
    """The preemptor for which a Workload was evicted, or will be.

    Attributes:
        admission: what the preemptor will get.
        generation: of the preemptor's pending reservation; 0 if that was not written.
        evict_at: until when the victim may run, in seconds since the epoch; None: it was evicted at once.
        why: the rule, in a sentence; empty if that was not written.
    """

    key: Key
    uid: str
    admission: Admission
    generation: int = 0
    evict_at: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class ReservationStatus:
    """The number of a Workload's last pending reservation, and what it gets; None once used or given up."""

    generation: int = 0
    admission: Admission | None = None
