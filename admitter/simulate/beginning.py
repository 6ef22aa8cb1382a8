"""The start of a simulation from a snapshot of a cluster."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from admitter.cache.views import JobView, WorkloadView
from admitter.policy.lifecycle import Phase, phase_of
from admitter.policy.snapshot import Snapshot
from admitter.simulate.items import End, Item

Lasts = Callable[[WorkloadView, float], float | None]
"""The whole runtime of a Workload in seconds, given its runtime so far; None: for ever."""


@dataclass(slots=True)
class Beginning:
    """The state at the start.

    Attributes:
        items: all Workloads, by UID.
        ends: of running workloads.
        pending_evictions: when they start, by UID of the victim, in seconds since the epoch.
        leaving: UIDs of workloads with a started eviction.
    """

    items: dict[str, Item] = field(default_factory=dict)
    ends: list[End] = field(default_factory=list)
    pending_evictions: dict[str, float] = field(default_factory=dict)
    leaving: list[str] = field(default_factory=list)


def beginning(snapshot: Snapshot, lasts: Lasts) -> Beginning:
    """The state of a snapshot, as a simulation keeps it."""
    made = Beginning()
    for order, view in enumerate(_in_order(snapshot), start=1):
        elapsed = max(0.0, snapshot.now - view.since) if view.admission is not None else 0.0
        runtime = lasts(view, elapsed)
        job = snapshot.world.job_of(view.key)
        item = Item(view, _stopped(job) if job is not None else None, runtime)
        made.items[view.uid] = item
        item.waiting = snapshot.waiting.get(view.uid)
        item.queue = snapshot.queue_of(view)
        item.preempted = view.preempted
        item.phase = _phase(snapshot, view)
        if view.admission is not None:
            item.admission, item.queue = view.admission, view.admission.queue
            item.starts, item.order = 1, order
            if item.phase is Phase.EVICTED:
                made.leaving.append(view.uid)
            elif runtime is not None:
                made.ends.append(End(snapshot.now + max(0.0, runtime - elapsed), view.uid, 1))
            if item.phase is Phase.EVICTION_PENDING and view.evict_at is not None:
                made.pending_evictions[view.uid] = view.evict_at
    made.ends.sort()
    return made


def _in_order(snapshot: Snapshot) -> list[WorkloadView]:
    return sorted(snapshot.world.workloads, key=lambda view: (view.since, view.uid))


def _phase(snapshot: Snapshot, view: WorkloadView) -> Phase:
    """The phase of a Workload; an eviction is only pending if its preemptor has a pending reservation."""
    phase, ledger = phase_of(view), snapshot.engine.ledger
    void = ledger.preemptor(view.uid) not in ledger.pending_reservations
    return Phase.ADMITTED if phase is Phase.EVICTION_PENDING and void else phase


def _stopped(job: JobView) -> JobView:
    """A Job after its eviction, which takes no time in a simulation."""
    return replace(
        job,
        spec={**job.spec, "suspend": True},
        status={**job.status, "active": 0, "terminating": 0},
    )
