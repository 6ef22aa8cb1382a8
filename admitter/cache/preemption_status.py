"""What the status of a Workload says of places: whose it makes room for, and which was promised to it."""

from dataclasses import dataclass

from admitter.client.store import Key
from admitter.engine.model import Admission


@dataclass(frozen=True, slots=True)
class PreemptionStatus:
    """For whom a Workload was evicted, or will be, and what that one will get.

    Attributes:
        key: namespace and name of that one.
        uid: of the same.
        admission: what it will get.
        generation: which of the places that were promised to it that is; 0 if that was not written.
        evict_at: until when the Workload may go on, in seconds since the epoch; None: it was evicted at once.
        why: by which rule, in a sentence; empty if that was not written.
    """

    key: Key
    uid: str
    admission: Admission
    generation: int = 0
    evict_at: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class ReservationStatus:
    """A place that was promised to a Workload.

    Attributes:
        generation: how many have been promised to it, this one included.
        admission: what it will get; None once it has been taken or given up.
    """

    generation: int = 0
    admission: Admission | None = None
