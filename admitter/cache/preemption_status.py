"""Preemption in the status of a Workload: its preemptor, and its own pending reservation."""

from dataclasses import dataclass

from admitter.client.store import Key
from admitter.engine.model import Admission


@dataclass(frozen=True, slots=True)
class PreemptionStatus:
    """The preemptor for which a Workload was evicted, or will be."""

    key: Key
    uid: str
    admission: Admission  # what the preemptor will get
    generation: int = 0  # of the preemptor's pending reservation; 0 if that was not written
    # until when the victim may run, in seconds since the epoch; None: it was evicted at once
    evict_at: float | None = None
    why: str = ""  # the rule, in a sentence; empty if that was not written


@dataclass(frozen=True, slots=True)
class ReservationStatus:
    """The number of a Workload's last pending reservation, and what it gets; None once used or given up."""

    generation: int = 0
    admission: Admission | None = None
