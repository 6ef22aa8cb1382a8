"""Workloads as they are to go: what `kubectl get workloads` shows, and the position that nobody stores."""

from collections.abc import Iterator
from dataclasses import dataclass

from admitter.api.conditions import WorkloadState
from admitter.cache.views import WorkloadView
from admitter.policy.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Row:
    """A Workload in a list.

    Attributes:
        workload: it.
        job: the name of its Job, or its own.
        queue: the engine's name of its queue; empty if its LocalQueue leads nowhere.
        position: its place in that queue, from 1; None if it does not wait there.
        state: its life in one word.
        reason: why it waits, or was evicted, in one word; empty if it does neither.
    """

    workload: WorkloadView
    job: str
    queue: str
    position: int | None
    state: str
    reason: str


def lines(picture: Snapshot) -> dict[str, list[str]]:
    """The UIDs of the Workloads that wait in each queue of the engine, as they are to go.

    The position of a Workload, wherever it is shown, is its place in this.
    """
    return {queue: picture.engine.line(queue) for queue in picture.engine.tree.queues}


def rows(picture: Snapshot, namespace: str | None) -> Iterator[Row]:
    """All that have not finished, of one namespace or of all: who holds quota, then who waits, in order."""
    positions: dict[str, int] = {}
    for line in lines(picture).values():
        positions.update({uid: place for place, uid in enumerate(line, start=1)})
    found = [
        _row(view, picture, positions.get(view.uid))
        for view in picture.world.workloads
        if not view.finished and namespace in {None, view.namespace}
    ]
    yield from sorted(found, key=_order)


def _row(view: WorkloadView, picture: Snapshot, position: int | None) -> Row:
    held_back = picture.waiting.get(view.uid)
    name = (view.job[0] if view.job is not None else "") or view.name
    queue = view.admission.queue if view.admission is not None else picture.queue_of(view)
    state = view.status.get("state") or WorkloadState.PENDING
    reason = held_back.reason if held_back is not None else view.status.get("reason") or ""
    return Row(view, name, queue or "", position, str(state), reason)


def _order(row: Row) -> tuple[bool, str, bool, int, str, str]:
    waits = row.workload.admission is None
    return (waits, row.queue, row.position is None, row.position or 0, row.workload.namespace, row.job)
