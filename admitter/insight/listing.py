"""Workloads in their order: what `kubectl get workloads` shows, and the position, which is not stored."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from admitter.api.conditions import WorkloadState
from admitter.cache.job_resources import is_meant
from admitter.cache.views import WorkloadView
from admitter.documents import ManifestError
from admitter.engine.policy import Strategy
from admitter.engine.refusal import HOPELESS
from admitter.policy.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Row:
    """A Workload in a list."""

    workload: WorkloadView
    job: str  # the name of its Job, or its own
    queue: str  # the engine's name of its queue; empty if its LocalQueue leads nowhere
    position: int | None  # its place in that queue, from 1; None if it does not wait there
    state: str  # in one word
    reason: str  # why it waits, or was evicted, in one word; empty if it does neither


def lines(snapshot: Snapshot) -> dict[str, list[str]]:
    """The UIDs of the Workloads that wait in each queue of the engine, in the order of their turn.

    Every position that is shown is a place in these lists. What can never run by its status is in none,
    unless it stops those behind it.
    """
    never = {view.uid for view in snapshot.world.workloads if view.status.get("reason") in HOPELESS}
    return {
        queue: [
            uid for uid in snapshot.engine.line(queue) if uid not in never or stops_others(snapshot, queue)
        ]
        for queue in snapshot.engine.tree.queues
    }


def stops_others(snapshot: Snapshot, queue: str) -> bool:
    """Whether what waits first in a queue stops those behind it."""
    return snapshot.engine.tree.queues[queue].strategy is Strategy.STRICT_FIFO


def job_name(view: WorkloadView) -> str:
    """The name by which its user knows a Workload: that of its Job, or its own if it has none."""
    return (view.job[0] if view.job is not None else "") or view.name


def meant(titles: Iterable[str], kind: str | None, name: str) -> str | None:
    """Which of some job objects, by title, a user means by a name and perhaps a kind; None: none of them.

    Raises:
        ManifestError: it may be any of several.
    """
    found = sorted({title for title in titles if is_meant(title, kind, name)})
    if len(found) > 1:
        forms = ", ".join(title if "/" in title else f"job/{title}" for title in found)
        raise ManifestError(f"{name} may be any of {forms}: name its kind too")
    return found[0] if found else None


def rows(snapshot: Snapshot, namespace: str | None) -> Iterator[Row]:
    """Unfinished Workloads of one namespace or of all: those with quota, then those that wait, in order."""
    positions: dict[str, int] = {}
    for line in lines(snapshot).values():
        positions.update({uid: place for place, uid in enumerate(line, start=1)})
    found = [
        _row(view, snapshot, positions.get(view.uid))
        for view in snapshot.world.workloads
        if not view.finished and namespace in {None, view.namespace}
    ]
    yield from in_order(found)


def in_order(found: Iterable[Row]) -> list[Row]:
    """Those with quota, then those that wait, by queue and position."""
    return sorted(found, key=_order)


def _row(view: WorkloadView, snapshot: Snapshot, position: int | None) -> Row:
    held_back = snapshot.waiting.get(view.uid)
    queue = view.admission.queue if view.admission is not None else snapshot.queue_of(view)
    state = view.status.get("state") or WorkloadState.PENDING
    reason = held_back.reason if held_back is not None else view.status.get("reason") or ""
    return Row(view, job_name(view), queue or "", position, str(state), reason)


def _order(row: Row) -> tuple[bool, str, bool, int, str, str]:
    waits = row.workload.admission is None
    return (waits, row.queue, row.position is None, row.position or 0, row.workload.namespace, row.job)
