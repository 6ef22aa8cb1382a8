"""What the engine is told between cycles: each command is a value, and `Engine.apply` takes it in.

A journal writes the fields of a command in their order (`admitter.journal.calls`): to add one, append it.
"""

from dataclasses import dataclass

from admitter.engine.model import Admission, Flavor, Workload
from admitter.engine.policy import Cohort, Queue
from admitter.engine.quota.back_off import BackOff
from admitter.engine.quota.extras import Extra
from admitter.engine.quota.ledger import Pod


@dataclass(frozen=True, slots=True)
class Command:
    """What all commands have in common: they are values."""


@dataclass(frozen=True, slots=True)
class SetFlavor(Command):
    """Define a flavor, or change it."""

    flavor: Flavor


@dataclass(frozen=True, slots=True)
class RemoveFlavor(Command):
    """Remove a flavor. Queues that name it must be removed before."""

    name: str


@dataclass(frozen=True, slots=True)
class Define(Command):
    """Define queues and cohorts, change or remove them: in one step, since each may requeue whole trees.

    It costs as much as is changed, and as there is waiting where that makes a difference.
    """

    queues: tuple[Queue, ...] = ()  # as they are to be; all of their flavors must be defined
    cohorts: tuple[Cohort, ...] = ()  # as they are to be
    # queues to remove: what waits in them stays, and what is reserved stays counted where it was, in its
    # cohort, until it is released
    gone: tuple[str, ...] = ()
    # Cohort objects to remove; queues that name one still share what they have
    gone_cohorts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SetWeight(Command):
    """Set how much of shared queues a namespace may use in proportion to others; 1 if never set."""

    namespace: str
    weight: int


@dataclass(frozen=True, slots=True)
class Submit(Command):
    """Let a workload wait, or change one that waits; a preemptor keeps its pending reservation."""

    workload: Workload


@dataclass(frozen=True, slots=True)
class Withdraw(Command):
    """A workload waits no longer; one that does not wait is no error."""

    uid: str


@dataclass(frozen=True, slots=True)
class Reserve(Command):
    """Set what a holder uses, decided here or elsewhere; it counts even beyond the quota."""

    holder: str  # the UID of a workload, or of a pod that outlived its workload's admission
    admission: Admission  # what it uses
    workload: Workload | None = None  # the holder as a workload, if it may be evicted
    since: float = 0.0  # when it was admitted, in seconds since the epoch
    namespace: str = ""  # that counts the use in its share of the queue, if the holder is no workload
    # when the holder says that it has last saved its work, in seconds since the epoch; 0: it says nothing
    checkpoint: float = 0.0


@dataclass(frozen=True, slots=True)
class SetPods(Command):
    """Set which pods of a holder there are, as they come and go: by their age some are over quota."""

    holder: str  # the UID of their workload
    # when each was created, in seconds since the epoch, and its name; the oldest first
    alive: tuple[Pod, ...]
    left_over: int = 0  # how many of its places no pod will take any more


@dataclass(frozen=True, slots=True)
class SetExtra(Command):
    """Set what a workload that holds quota may run beyond its admission; a release takes that too."""

    holder: str  # its UID; of one that holds nothing nothing is set
    extra: Extra | None  # None: nothing, and it can't use more
    part: str = ""  # the pod set that this is about; empty of one that grows as a whole


@dataclass(frozen=True, slots=True)
class Release(Command):
    """Free what a holder uses; one that holds nothing is no error."""

    holder: str


@dataclass(frozen=True, slots=True)
class Evict(Command):
    """Take up an eviction that was decided before this engine lived, with the pending reservation."""

    holder: str  # the UID of the victim
    preemptor: Workload  # the workload that gets the quota
    admission: Admission  # what the preemptor will get
    pending: bool = False  # whether the eviction is pending, and not started yet


@dataclass(frozen=True, slots=True)
class Displace(Command):
    """Take up that a workload was evicted for another one before this engine lived; it may be gone since."""

    uid: str  # of the victim; whether it waits already makes no difference
    preemptor: str  # UID of the other one


@dataclass(frozen=True, slots=True)
class StartEviction(Command):
    """Start a pending eviction: it is not cancelled any more, whatever becomes of the preemptor."""

    holder: str


@dataclass(frozen=True, slots=True)
class CancelEviction(Command):
    """The API server refused an eviction: the holder counts again, and its preemptor competes anew."""

    holder: str


@dataclass(frozen=True, slots=True)
class ReturnReservation(Command):
    """A workload is about to lose its place by an act of its user; one that has none is no error.

    If evictions have made that place, and it has not been used, it counts (docs/design/preemption.md).
    """

    uid: str


@dataclass(frozen=True, slots=True)
class UseReservation(Command):
    """A workload uses its place: to give it back counts no longer."""

    uid: str


@dataclass(frozen=True, slots=True)
class GainReservation(Command):
    """Take up that the place of a workload was made by evictions, and is not used."""

    uid: str


@dataclass(frozen=True, slots=True)
class SetBackOff(Command):
    """Take up a back-off that began before this engine lived; of several the last one counts."""

    queue: str
    namespace: str
    back_off: BackOff


@dataclass(frozen=True, slots=True)
class SetEvictions(Command):
    """Set what the record of a queue says of evictions for others; limits count these."""

    queue: str
    # when each began at the latest, in seconds since the epoch, and the workload's UID; the oldest first
    evictions: tuple[tuple[float, str], ...]
