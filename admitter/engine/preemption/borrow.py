"""Preempting in order to borrow (design §3, *Preemption*: `borrowWithinCohort`)."""

from admitter.engine.model import Workload
from admitter.engine.policy import BorrowWithin, Preemption


def allows(policy: Preemption, preemptor: Workload, victim: Workload) -> bool:
    """Whether a workload whose queue borrows may preempt one of another queue that borrows too."""
    match policy.borrow:
        case BorrowWithin.NEVER:
            return False
        case BorrowWithin.LOWER_PRIORITY:
            tolerable = policy.threshold is None or victim.priority <= policy.threshold
            return tolerable and victim.priority < preemptor.priority
