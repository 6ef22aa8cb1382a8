"""Maximum run times in a simulation, by the same arithmetic as in the cluster (`policy.run_time`)."""

import heapq
from collections.abc import Iterator
from dataclasses import replace

from admitter.cache.run_time_status import RunTimeStatus, run_time_of
from admitter.cache.views import WorkloadView
from admitter.policy import run_time
from admitter.policy.gate import Gate
from admitter.simulate.items import Item


class RunTimes:
    """What workloads have used up, kept in their statuses, and the deadlines of those that run."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._heap: list[tuple[float, str]] = []  # deadlines, with UIDs

    @property
    def due(self) -> float | None:
        """When the next deadline is, in seconds since the epoch; it may be out of date."""
        return self._heap[0][0] if self._heap else None

    @staticmethod
    def created(item: Item) -> float:
        """What the age of a workload counts from: it goes behind others at the end of its time."""
        requeued = run_time_of(item.view.status).requeued
        return max(item.created, requeued) if requeued is not None else item.created

    def begin(self, item: Item, queue: str, now: float) -> None:
        """A workload is admitted."""
        begun = self._gate.run_time(item.view, item.job, queue, now)
        item.view = _with(item.view, begun)
        if begun.deadline is not None:
            heapq.heappush(self._heap, (begun.deadline, item.view.uid))

    def follow(self, item: Item) -> None:
        """A workload runs already, by a status that says until when."""
        deadline = run_time_of(item.view.status).deadline
        if deadline is not None:
            heapq.heappush(self._heap, (deadline, item.view.uid))

    def over(self, now: float) -> Iterator[str]:
        """The UIDs of workloads that had a deadline by now, of the present admission or of an earlier one."""
        while self._heap and self._heap[0][0] <= now:
            yield heapq.heappop(self._heap)[1]

    @staticmethod
    def is_due(item: Item, now: float) -> bool:
        """Whether a workload that runs has come to the deadline of its present admission."""
        return run_time.is_over(run_time_of(item.view.status), now)

    @staticmethod
    def is_last(item: Item) -> bool:
        """Whether a workload that was stopped now is over, instead of waiting again."""
        return _stopped(item)[1]

    @staticmethod
    def stopped(item: Item) -> bool:
        """A workload that was stopped has no pods any more: its time adds up; whether it is used up."""
        after, over = _stopped(item)
        item.view = _with(item.view, after)
        return over


def left(item: Item, now: float) -> tuple[int, float | None]:
    """What a workload has used up before, and in how many seconds it has to end; None: never."""
    status = run_time_of(item.view.status)
    return status.used, status.deadline - now if status.deadline is not None else None


def kept(before: WorkloadView, now: WorkloadView) -> WorkloadView:
    """A workload as it is now, with what it had used up before, unless its status says that itself."""
    if before is now or "runTime" in now.status or "runTime" not in before.status:
        return now
    return replace(now, status={**now.status, "runTime": before.status["runTime"]})


def _stopped(item: Item) -> tuple[RunTimeStatus, bool]:
    run, before = item.runs[-1], run_time_of(item.view.status)
    ended = run.end if run.end is not None else run.start
    return run_time.stopped(before, run.start, ended, ended)


def _with(view: WorkloadView, now: RunTimeStatus) -> WorkloadView:
    written = run_time.run_time_json(run_time_of(view.status), now)
    return replace(view, status={**view.status, **written}) if written else view
