"""Promises at risk: quota that a Workload is to get and does not get in time (docs/web.md#promises-at-risk).

A pending reservation promises a preemptor the quota of its victims; `min` promises a queue its own quota.
Others have to end for both, and here they do not, or not in time.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from admitter.api.conditions import ConditionType, WaitingReason
from admitter.cache.timestamps import seconds
from admitter.cache.views import WorkloadView
from admitter.insight.listing import Row, job_name
from admitter.insight.overview import OverviewLine, OverviewUse
from admitter.names import GPU_MEMORY
from admitter.policy.snapshot import Snapshot
from admitter.web.admissions import waiting_since
from admitter.web.scene import WebScene

LATE_SECONDS: Final = 120.0
"""By default pods have 30 s to end; those with a longer terminationGracePeriodSeconds may be late by that."""
OVERDUE_SECONDS: Final = 60.0
"""A controller that leads evicts within seconds."""
LENT_SECONDS: Final = 600.0
_FOR_QUOTA: Final = frozenset(
    {
        "",
        WaitingReason.INSUFFICIENT_QUOTA,
        WaitingReason.EVICTIONS_LIMITED,
        WaitingReason.PREEMPTION_BACKED_OFF,
    }
)
"""Reasons with which a Workload waits for quota that its queue has, though not free."""


class Risk(StrEnum):
    """What endangers a promise."""

    LATE = "late"
    """A Workload had to stop more than two minutes ago, and its pods still hold its quota."""
    OVERDUE = "overdue"
    """A grace period ended more than a minute ago, and the Workload has not been evicted."""
    LENT = "lent"
    """The first in line has waited for more than ten minutes, and others use quota that its queue owns."""


@dataclass(frozen=True, slots=True)
class AtRisk:
    """A promise at risk."""

    risk: Risk
    since: float  # when what is late had to happen, or since when the Workload waits; seconds since the epoch
    queue: str  # the engine's name of the queue: of the Workload
    namespace: str  # of the Workload that is to end, or that waits for quota that is lent
    name: str  # of its Job, or its own if it has none
    for_namespace: str = ""  # of the preemptor that waits for it; empty if there is none
    for_name: str = ""
    flavor: str = ""  # of what is lent
    resource: str = ""
    amount: int = 0  # so much of the queue's own quota others use, in the engine's unit


def at_risk(scene: WebScene) -> list[AtRisk]:
    """All promises at risk, the longest first within each kind."""
    found = [*_held(scene.snapshot), *_lent(scene)]
    order = list(Risk)
    return sorted(found, key=lambda each: (order.index(each.risk), each.since, each.namespace, each.name))


def _held(snapshot: Snapshot) -> Iterator[AtRisk]:
    """What holds quota although it had to stop, or had to be evicted."""
    for view in snapshot.world.workloads:
        if view.admission is None:
            continue
        if view.evicting:
            since, risk, grace = _evicted(view), Risk.LATE, LATE_SECONDS
        elif view.evict_at is not None:
            since, risk, grace = view.evict_at, Risk.OVERDUE, OVERDUE_SECONDS
        else:
            continue
        if snapshot.now - since > grace:
            preemptor = _preemptor(snapshot, view)
            yield AtRisk(risk, since, view.admission.queue, view.namespace, job_name(view), *preemptor)


def _evicted(view: WorkloadView) -> float:
    return seconds(view.condition(ConditionType.EVICTED)["lastTransitionTime"])


def _preemptor(snapshot: Snapshot, victim: WorkloadView) -> tuple[str, str]:
    """The namespace and the name of the Workload for which one has to stop; empty if there is none."""
    if victim.preemption is None:
        return "", ""
    namespace, name = victim.preemption.key
    found = snapshot.world.workloads.get(victim.preemption.key)
    return namespace, job_name(found) if found is not None else name


def _lent(scene: WebScene) -> Iterator[AtRisk]:
    """What is first in line, and has waited for long, while others use the quota of its queue."""
    first = {row.queue: row for row in scene.rows if row.position == 1 and row.workload.admission is None}
    for line in scene.lines:
        row = first.get(line.node[1]) if line.node[0] == "queue" else None
        if row is None or row.reason not in _FOR_QUOTA or row.workload.reservation.admission is not None:
            continue
        since = waiting_since(row.workload)
        use = _largest_loan(line, row) if scene.known.taken - since > LENT_SECONDS else None
        if use is not None:
            yield AtRisk(
                Risk.LENT,
                since,
                row.queue,
                row.workload.namespace,
                row.job,
                flavor=use.flavor,
                resource=use.resource,
                amount=use.lent,
            )


def _largest_loan(line: OverviewLine, row: Row) -> OverviewUse | None:
    """What others use the largest part of that is the queue's own, of what a Workload asks for."""
    asked = {
        resource for pod_set in row.workload.spec["podSets"] for resource in pod_set.get("requests") or ()
    }
    lent = [
        use
        for use in line.uses
        if use.lent > 0 and use.used < use.minimum and (use.resource in asked or use.resource == GPU_MEMORY)
    ]
    return max(lent, key=lambda use: (use.lent / use.minimum, use.resource, use.flavor), default=None)
