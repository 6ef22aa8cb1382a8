"""What is said of readiness: how often a Workload was not ready in time, and until when it has to be."""

from collections.abc import Iterator

from admitter.cache.readiness_status import ReadinessStatus
from admitter.cache.views import WorkloadView
from admitter.insight.stamps import spell


def readiness_lines(workload: WorkloadView, now: float) -> Iterator[str]:
    """One line on a Workload that waits or runs, if there is anything to say; `now` is since the epoch."""
    known = workload.readiness
    if workload.finished or known == ReadinessStatus():
        return
    row = _row(known)
    if workload.admission is None:
        if known.next_try is not None and known.next_try > now:
            yield f"{row}, next try in {spell(known.next_try - now)}"
        elif row:
            yield row
        return
    if known.recover_by is not None:
        left = max(0.0, known.recover_by - now)
        yield f"it lacks a ready pod, and is evicted unless all are ready within {spell(left)}"
    elif known.deadline is not None and known.ready_at is None and known.deadline > now:
        yield f"its pods have to be ready within {spell(known.deadline - now)}" + (f"; {row}" if row else "")


def _row(known: ReadinessStatus) -> str:
    if not known.attempts:
        return ""
    times = "once" if known.attempts == 1 else f"{known.attempts} times"
    return f"evicted {times} for readiness" + (", and given up" if known.gave_up else "")
