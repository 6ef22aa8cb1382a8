"""The lifecycle of a workload: its phases, the steps between them, and the steps of an eviction.

The time is an argument. The controllers take a step by writing a status (`policy.status`); a simulation takes
it at once (`simulate.lifecycles`). docs/design/lifecycle.md has the diagram.
"""

from collections.abc import Mapping
from enum import Enum, StrEnum, auto
from typing import Final

from admitter.api.conditions import ConditionType, WorkloadState
from admitter.cache.views import WorkloadView


class Phase(StrEnum):
    """Where a workload is in its life."""

    PENDING = WorkloadState.PENDING  # it waits for quota
    ADMITTED = WorkloadState.ADMITTED  # it holds its quota, and may run
    # as admitted, but only until a known time: a preemptor needs its quota then
    EVICTION_PENDING = ConditionType.EVICTION_PENDING
    EVICTED = WorkloadState.EVICTED  # it must stop, and holds its quota until its pods are gone
    FINISHED = WorkloadState.FINISHED  # its work is over

    @property
    def state(self) -> WorkloadState:
        """The phase in statuses, where a pending eviction is a condition of an admitted Workload."""
        return WorkloadState.ADMITTED if self is Phase.EVICTION_PENDING else WorkloadState(self)

    @property
    def runs(self) -> bool:
        return self is Phase.ADMITTED or self is Phase.EVICTION_PENDING


class Step(Enum):
    """What happens to a workload in its life."""

    ADMIT = auto()  # quota is reserved for it
    ANNOUNCE = auto()  # a preemptor needs its quota once its `gracePeriod` is over
    # its eviction, even one that is over, is for another preemptor; the time of a pending one stays
    REASSIGN = auto()
    CANCEL = auto()  # no preemptor needs its quota any more before its eviction has started
    EVICT = auto()  # it must stop: its time is up, or it had none
    RELEASE = auto()  # its pods are gone, its quota is free, and it waits again
    FINISH = auto()  # its work is over


TRANSITIONS: Final[Mapping[Step, Mapping[Phase, Phase]]] = {
    Step.ADMIT: {Phase.PENDING: Phase.ADMITTED},
    Step.ANNOUNCE: {Phase.ADMITTED: Phase.EVICTION_PENDING},
    Step.REASSIGN: {phase: phase for phase in (Phase.EVICTION_PENDING, Phase.EVICTED, Phase.PENDING)},
    Step.CANCEL: {Phase.EVICTION_PENDING: Phase.ADMITTED},
    Step.EVICT: {Phase.ADMITTED: Phase.EVICTED, Phase.EVICTION_PENDING: Phase.EVICTED},
    Step.RELEASE: {Phase.EVICTED: Phase.PENDING},
    Step.FINISH: {phase: Phase.FINISHED for phase in Phase if phase is not Phase.FINISHED},
}
"""The phase after each step, by the phase before it; there are no others."""


def after(phase: Phase, step: Step) -> Phase:
    """The phase after a step.

    Raises:
        KeyError: a workload in that phase can't take the step.
    """
    return TRANSITIONS[step][phase]


def phase_of(workload: WorkloadView) -> Phase:
    if workload.finished:
        return Phase.FINISHED
    if workload.admission is None:
        return Phase.PENDING
    if workload.evicting:
        return Phase.EVICTED
    return Phase.ADMITTED if workload.evict_at is None else Phase.EVICTION_PENDING


def planned_eviction(phase: Phase, grace: float) -> Step | None:
    """The step of a victim that a plan evicts with so much `gracePeriod`, in seconds.

    None if it holds nothing any more. If its eviction is pending already, for a preemptor that is gone, the
    new one grants no more time, but may grant none.
    """
    match phase:
        case Phase.ADMITTED:
            return Step.ANNOUNCE if grace else Step.EVICT
        case Phase.EVICTION_PENDING:
            return Step.REASSIGN if grace else Step.EVICT
        case Phase.EVICTED:
            return Step.REASSIGN
    return None


def due_step(evict_at: float, now: float, *, needed: bool) -> Step | None:
    """The step of a victim with a pending eviction; None if it runs on.

    It may run until `evict_at`, in seconds since the epoch, as long as a preemptor still needs its quota.
    """
    if not needed:
        return Step.CANCEL
    return Step.EVICT if evict_at <= now else None
