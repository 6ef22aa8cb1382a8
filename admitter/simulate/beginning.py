"""The start of a simulation from a snapshot of a cluster."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from admitter.cache.views import JobView, WorkloadView
from admitter.policy.snapshot import Snapshot
from admitter.simulate.items import End, Item, PendingEviction

Lasts = Callable[[WorkloadView, float], float | None]
"""The whole runtime of a Workload in seconds, given its runtime so far; None: for ever."""


@dataclass(slots=True)
class Beginning:
    """The state at the start.

    Attributes:
        items: all Workloads, by UID.
        ends: of running workloads.
        pending_evictions: by UID of the victim.
        leaving: UIDs of workloads with a started eviction.
    """

    items: dict[str, Item] = field(default_factory=dict)
    ends: list[End] = field(default_factory=list)
    pending_evictions: dict[str, PendingEviction] = field(default_factory=dict)
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
        if view.finished:
            item.state = "Finished"
        elif view.admission is not None:
            item.admission, item.queue = view.admission, view.admission.queue
            item.state, item.starts, item.order = "Admitted", 1, order
            if view.evicting:
                item.state = "Preempted"
                made.leaving.append(view.uid)
            elif runtime is not None:
                made.ends.append(End(snapshot.now + max(0.0, runtime - elapsed), view.uid, 1))
            made.pending_evictions.update(_pending_eviction(snapshot, view))
    made.ends.sort()
    return made


def _in_order(snapshot: Snapshot) -> list[WorkloadView]:
    return sorted(snapshot.world.workloads, key=lambda view: (view.since, view.uid))


def _pending_eviction(snapshot: Snapshot, view: WorkloadView) -> Iterator[tuple[str, PendingEviction]]:
    """The pending eviction of a workload, if there is one."""
    ledger = snapshot.engine.ledger
    reservation = ledger.pending_reservations.get(ledger.preemptor(view.uid) or "")
    if view.evict_at is not None and not view.evicting and reservation is not None:
        yield view.uid, PendingEviction(view.evict_at, 1, reservation.workload)


def _stopped(job: JobView) -> JobView:
    """A Job after its eviction, which takes no time in a simulation."""
    return replace(
        job,
        spec={**job.spec, "suspend": True},
        status={**job.status, "active": 0, "terminating": 0},
    )
