"""How a simulation begins that goes on from a snapshot of a cluster, instead of from nothing."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from admitter.cache.views import JobView, WorkloadView
from admitter.policy.snapshot import Snapshot
from admitter.simulate.items import End, Item, PendingEviction

Lasts = Callable[[WorkloadView, float], float | None]
"""For how long a Workload runs in all, in seconds, having run for so long already; None: for ever."""


@dataclass(slots=True)
class Beginning:
    """What there is at the start.

    Attributes:
        items: all Workloads, by UID.
        ends: when those end that run.
        told: those who will be evicted later.
        leaving: UIDs of those who are being evicted.
    """

    items: dict[str, Item] = field(default_factory=dict)
    ends: list[End] = field(default_factory=list)
    told: dict[str, PendingEviction] = field(default_factory=dict)
    leaving: list[str] = field(default_factory=list)


def beginning(snapshot: Snapshot, lasts: Lasts) -> Beginning:
    """What a snapshot shows, as a simulation keeps it."""
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
            made.told.update(_told(snapshot, view))
    made.ends.sort()
    return made


def _in_order(snapshot: Snapshot) -> list[WorkloadView]:
    return sorted(snapshot.world.workloads, key=lambda view: (view.since, view.uid))


def _told(snapshot: Snapshot, view: WorkloadView) -> Iterator[tuple[str, PendingEviction]]:
    """Whoever goes on until a certain time, for somebody who waits for that."""
    ledger = snapshot.engine.ledger
    hold = ledger.pending_reservations.get(ledger.preemptor(view.uid) or "")
    if view.evict_at is not None and not view.evicting and hold is not None:
        yield view.uid, PendingEviction(view.evict_at, 1, hold.workload)


def _stopped(job: JobView) -> JobView:
    """A Job as it is once it has been evicted: in a simulation that takes no time."""
    return replace(
        job,
        spec={**job.spec, "suspend": True},
        status={**job.status, "active": 0, "terminating": 0},
    )
