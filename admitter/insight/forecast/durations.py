"""How long Workloads run: the stated runtimes of their Jobs, else the runtimes of similar finished ones.

In this order:

1. the annotation `admitter.dev/expected-runtime` of the Job, up to its deadline, times the ratio of actual to
   stated runtime in its namespace and LocalQueue, if three or more of similar length have ended;
2. finished Workloads of the same namespace, LocalQueue and requests, else of the same requests anywhere, if
   there are three or more, none longer than the Job's `activeDeadlineSeconds`;
3. `activeDeadlineSeconds`, after which Kubernetes ends the Job;
4. finished Workloads of the same user, if that is known, of the same namespace, of the same ClusterQueue,
   or of any: the first of these groups with three or more;
5. the maximum run time of its queue or its annotation, if it is not requeued then. A simulation ends all at
   theirs, whatever is expected of them.

Requests tell more than origin: where few large Jobs and many small ones have ended in a namespace, the small
ones say nothing of the next large one. Running workloads count as longer than their time so far: short ones
end first.

A stated runtime without earlier ones to confirm it is unproven: it may be false. So it comes with the
runtimes of other workloads, and a range can include both.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final

import orjson

from admitter.cache.run_time_status import run_time_of
from admitter.cache.timestamps import seconds
from admitter.cache.views import JobView, WorkloadView
from admitter.client.store import Key
from admitter.insight.forecast.runtime_words import (
    LONGEST,
    bears_out,
    deadline_of,
    magnitude,
    most,
    truth,
    word_of,
)
from admitter.policy.snapshot import Facts, Snapshot, jobs_in

ENOUGH: Final = 3
"""The fewest finished Workloads that tell something of the next."""
POINTS: Final = 40
"""The number of equally likely runtimes in an estimate with workloads that still run."""
LONGER: Final = 1.1
"""The runtime of workloads that outlast all finished ones, in multiples of the longest so far."""


class RuntimeSource(StrEnum):
    """Where a duration comes from."""

    SAID = "its annotation"
    SHAPE = "finished Jobs like it"
    REQUESTS = "finished Jobs that ask for the same"
    DEADLINE = "its activeDeadlineSeconds"
    MAKER = "finished Jobs of the same maker"
    NAMESPACE = "finished Jobs of its namespace"
    QUEUE = "finished Jobs of its queue"
    ANY = "finished Jobs of the cluster"
    MAXIMUM = "its maximum run time"


@dataclass(frozen=True, slots=True)
class Runtimes:
    """What is known of a Workload's runtime."""

    source: RuntimeSource
    seconds: tuple[float, ...]  # possible runtimes, equally likely, from short to long
    unproven: bool = False  # whether it is an unproven stated runtime
    # `seconds` without the unproven stated runtime; empty: nothing else is known
    otherwise: tuple[float, ...] = ()

    def draw(self, random: Random, ran: float, *, believed: bool = True) -> float:
        """One that is longer than the seconds it `ran`; if it ran longer than all of them, it ends soon.

        An unproven stated runtime counts if it is `believed`.
        """
        known = self.seconds if believed else self.otherwise or self.seconds
        left = known[bisect_right(known, ran) :]
        return left[random.randrange(len(left))] if left else ran * (1 + 0.1 * random.random()) + 1

    def middle(self, ran: float) -> float:
        """The median of those that `draw` draws from."""
        left = self.seconds[bisect_right(self.seconds, ran) :]
        return left[len(left) // 2] if left else ran * 1.05 + 1


Alike = tuple[RuntimeSource, Hashable]


class Durations:
    """The runtimes of finished Workloads, and those so far of running ones."""

    def __init__(self, snapshot: Snapshot, whole: Facts | None = None) -> None:
        """Count all that has finished, and all that runs: in `whole`, if the snapshot is a part of it."""
        self._snapshot = snapshot
        self._jobs = None if whole is None else _by_workload(whole)
        there = snapshot.world.workloads if whole is None else whole.views.get("workloads", {}).values()
        taken: defaultdict[Alike, list[float]] = defaultdict(list)
        running: defaultdict[Alike, list[float]] = defaultdict(list)
        for workload in there:
            took = _took(workload)
            if took is not None:
                self._count(workload, took, taken)
            elif workload.admission is not None and not workload.finished:
                self._count(workload, snapshot.now - workload.since, running)
        self._known = {
            kind: likely(sorted(found), running.get(kind, ()))
            for kind, found in taken.items()
            if len(found) >= ENOUGH
        }
        self._within: dict[tuple[Alike, float], tuple[float, ...]] = {}

    def of(self, workload: WorkloadView) -> Runtimes | None:
        """What is known of a Workload's runtime, from its last or next admission on; None: nothing."""
        return self._told(workload) or self._at_most(workload)

    def _at_most(self, workload: WorkloadView) -> Runtimes | None:
        """How long it may run at the most; None if it may for ever, or is requeued then."""
        if workload.admission is not None:
            began, status = workload.since, run_time_of(workload.status)
        else:
            began, queue = self._snapshot.now, self._snapshot.queue_of(workload) or ""
            status = self._snapshot.gate.run_time(workload, self._job_of(workload), queue, began)
        if status.deadline is None or status.requeues:
            return None
        return Runtimes(RuntimeSource.MAXIMUM, (max(0.0, status.deadline - began),))

    def _told(self, workload: WorkloadView) -> Runtimes | None:
        job = self._job_of(workload)
        word = word_of(job)
        if word is None:
            return self._from_others(workload, deadline_of(job))
        borne_out = self._known.get((RuntimeSource.SAID, (*_owner(workload), magnitude(word))))
        if borne_out is not None:
            longest = most(job)
            return Runtimes(RuntimeSource.SAID, tuple(min(word * ratio, longest) for ratio in borne_out))
        others = self._from_others(workload, deadline_of(job))
        return Runtimes(RuntimeSource.SAID, (word,), True, others.seconds if others is not None else ())

    def _count(self, workload: WorkloadView, ran: float, by_kind: defaultdict[Alike, list[float]]) -> None:
        """Count its runtime, or that so far: in seconds, and as a multiple of its stated runtime."""
        ran = min(max(0.0, ran), LONGEST)
        for kind in self._kinds(workload):
            by_kind[kind].append(ran)
        word = word_of(self._job_of(workload))
        if word is not None:
            for order in bears_out(word):
                by_kind[RuntimeSource.SAID, (*_owner(workload), order)].append(truth(word, ran))

    def _from_others(self, workload: WorkloadView, deadline: float | None) -> Runtimes | None:
        """What is known of a Workload's runtime without its stated runtime."""
        for source, key in self._kinds(workload):
            known = self._known_of((source, key), deadline)
            if len(known) >= ENOUGH:
                return Runtimes(source, known)
            if source is RuntimeSource.REQUESTS and deadline is not None:
                return Runtimes(RuntimeSource.DEADLINE, (deadline,))
        return None

    def _job_of(self, workload: WorkloadView) -> JobView | None:
        return (
            self._snapshot.world.job_of(workload.key) if self._jobs is None else self._jobs.get(workload.key)
        )

    def _known_of(self, kind: Alike, deadline: float | None) -> tuple[float, ...]:
        known = self._known.get(kind, ())
        if deadline is None or not known or known[-1] <= deadline:
            return known
        if (kind, deadline) not in self._within:
            self._within[kind, deadline] = tuple(each for each in known if each <= deadline)
        return self._within[kind, deadline]

    def _kinds(self, workload: WorkloadView) -> Iterator[Alike]:
        """The groups of similar Workloads that it belongs to, the most telling first."""
        asked = orjson.dumps(workload.spec["podSets"], option=orjson.OPT_SORT_KEYS)
        yield RuntimeSource.SHAPE, (workload.namespace, workload.queue, asked)
        yield RuntimeSource.REQUESTS, asked
        job = self._job_of(workload)
        maker = job.submission.maker if job is not None and job.submission is not None else None
        if maker is not None:
            yield RuntimeSource.MAKER, maker
        yield RuntimeSource.NAMESPACE, workload.namespace
        yield RuntimeSource.QUEUE, self._snapshot.queue_of(workload)
        yield RuntimeSource.ANY, None


def likely(taken: Sequence[float], running: Iterable[float]) -> tuple[float, ...]:
    """Runtimes, each as likely, from short to long: the product-limit estimate (Kaplan and Meier, 1958).

    `taken` has those of finished workloads, from short to long, at least one; `running` has the runtimes so
    far of running ones. One that is shorter than all finished ones tells nothing.
    """
    telling = sorted(each for each in running if each > taken[0])
    if not telling:
        return tuple(taken)
    outlast = 1.0  # the part that runs longer
    ended: list[float] = []  # the part that has ended after each of `taken`
    for place, each in enumerate(taken):
        at_risk = len(taken) - place + len(telling) - bisect_left(telling, each)
        outlast -= outlast / at_risk
        ended.append(1 - outlast)
    longest = LONGER * max(taken[-1], telling[-1])
    places = (bisect_left(ended, (point + 0.5) / POINTS) for point in range(POINTS))
    return tuple(taken[place] if place < len(taken) else longest for place in places)


def _by_workload(whole: Facts) -> dict[Key, JobView]:
    return {(job.namespace, job.workload): job for job in jobs_in(whole).values()}


def _took(workload: WorkloadView) -> float | None:
    """How long a finished Workload held its quota; None if it has not finished, or never started."""
    ended = workload.condition("Finished").get("lastTransitionTime") if workload.finished else None
    if not ended or not workload.status.get("admission"):
        return None
    return seconds(ended) - workload.since


def _owner(workload: WorkloadView) -> tuple[str, str]:
    """The owner of a stated runtime: all users of one LocalQueue."""
    return workload.namespace, workload.queue
