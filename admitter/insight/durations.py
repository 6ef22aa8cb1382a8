"""For how long Workloads run: what their Jobs say, else what finished ones of the same kind took.

In this order:

1. the annotation `admitter.dev/expected-runtime` of the Job;
2. finished Workloads of the same namespace, LocalQueue and requests, else of the same requests wherever they
   were, if there are three or more, none longer than the Job's `activeDeadlineSeconds`;
3. `activeDeadlineSeconds`, after which Kubernetes ends the Job;
4. finished Workloads of the same maker, if that is known, of the same namespace, of the same ClusterQueue,
   or of any: the first of these of which there are three or more.

What a Job asks for tells more than where it comes from: in a namespace where few large Jobs have ended among
many small ones, the small ones say nothing of the next large one. Those that still run count as what takes
longer than so far: the first to end are the short ones.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final

import orjson

from admitter.api.durations import InvalidDurationError, parse_duration
from admitter.cluster.store import Key
from admitter.controllers.views import JobView, WorkloadView, seconds
from admitter.simulate.picture import Facts, Picture

ENOUGH: Final = 3
"""So many finished Workloads tell something of the next."""
POINTS: Final = 40
"""So many runtimes, each as likely, stand for what is known where some still run."""
LONGER: Final = 1.1
"""Who outlasts all that have finished takes so many times as long as the longest has so far."""


class Source(StrEnum):
    """Where a duration comes from."""

    SAID = "its annotation"
    SHAPE = "finished Jobs like it"
    REQUESTS = "finished Jobs that ask for the same"
    DEADLINE = "its activeDeadlineSeconds"
    MAKER = "finished Jobs of the same maker"
    NAMESPACE = "finished Jobs of its namespace"
    QUEUE = "finished Jobs of its queue"
    ANY = "finished Jobs of the cluster"


@dataclass(frozen=True, slots=True)
class Runtimes:
    """What is known of a Workload's runtime.

    Attributes:
        source: how.
        seconds: what it may be, from short to long, each as likely as any other.
    """

    source: Source
    seconds: tuple[float, ...]

    def draw(self, random: Random, ran: float) -> float:
        """One of them, if it has run for some seconds already; longer than all is: it ends soon."""
        left = self.seconds[bisect_right(self.seconds, ran) :]
        return left[random.randrange(len(left))] if left else ran * (1 + 0.1 * random.random()) + 1

    def middle(self, ran: float) -> float:
        """The median of what is left of them, as `draw`."""
        left = self.seconds[bisect_right(self.seconds, ran) :]
        return left[len(left) // 2] if left else ran * 1.05 + 1


Alike = tuple[Source, Hashable]


class Durations:
    """Remembers what finished Workloads took, and for how long others have run."""

    def __init__(self, picture: Picture, whole: Facts | None = None) -> None:
        """Look at all that has finished, and all that runs.

        Args:
            picture: of the moment.
            whole: where that is told, if the picture shows only a part of it.
        """
        self._picture = picture
        self._jobs = None if whole is None else _by_workload(whole)
        there = picture.world.workloads if whole is None else whole.views.get("workloads", {}).values()
        taken: defaultdict[Alike, list[float]] = defaultdict(list)
        running: defaultdict[Alike, list[float]] = defaultdict(list)
        for workload in there:
            took = _took(workload)
            if took is not None:
                for kind in self._kinds(workload):
                    taken[kind].append(took)
            elif workload.admission is not None and not workload.finished:
                for kind in self._kinds(workload):
                    running[kind].append(picture.now - workload.since)
        self._known = {
            kind: likely(sorted(found), running.get(kind, ()))
            for kind, found in taken.items()
            if len(found) >= ENOUGH
        }
        self._within: dict[tuple[Alike, float], tuple[float, ...]] = {}

    def of(self, workload: WorkloadView) -> Runtimes | None:
        """What is known of a Workload's runtime; None: nothing."""
        job = self._job_of(workload)
        said, deadline = _said(job), _deadline(job)
        if said is not None:
            return Runtimes(Source.SAID, (said,))
        for source, key in self._kinds(workload):
            known = self._known_of((source, key), deadline)
            if len(known) >= ENOUGH:
                return Runtimes(source, known)
            if source is Source.REQUESTS and deadline is not None:
                return Runtimes(Source.DEADLINE, (deadline,))
        return None

    def _job_of(self, workload: WorkloadView) -> JobView | None:
        return (
            self._picture.world.job_of(workload.key) if self._jobs is None else self._jobs.get(workload.key)
        )

    def _known_of(self, kind: Alike, deadline: float | None) -> tuple[float, ...]:
        known = self._known.get(kind, ())
        if deadline is None or not known or known[-1] <= deadline:
            return known
        if (kind, deadline) not in self._within:
            self._within[kind, deadline] = tuple(each for each in known if each <= deadline)
        return self._within[kind, deadline]

    def _kinds(self, workload: WorkloadView) -> Iterator[Alike]:
        """What a Workload has in common with others, the most telling first."""
        asked = orjson.dumps(workload.spec["podSets"], option=orjson.OPT_SORT_KEYS)
        yield Source.SHAPE, (workload.namespace, workload.queue, asked)
        yield Source.REQUESTS, asked
        job = self._job_of(workload)
        maker = job.submission.maker if job is not None and job.submission is not None else None
        if maker is not None:
            yield Source.MAKER, maker
        yield Source.NAMESPACE, workload.namespace
        yield Source.QUEUE, self._picture.queue_of(workload)
        yield Source.ANY, None


def likely(taken: Sequence[float], running: Iterable[float]) -> tuple[float, ...]:
    """Runtimes, each as likely, from short to long: the product-limit estimate (Kaplan and Meier, 1958).

    Args:
        taken: what those took that have finished, from short to long; at least one.
        running: for how long others have run so far. Who has run for less than all that have finished tells
            nothing.
    """
    telling = sorted(each for each in running if each > taken[0])
    if not telling:
        return tuple(taken)
    outlast = 1.0  # the part that takes longer
    ended: list[float] = []  # the part that has ended, after each of those taken
    for place, each in enumerate(taken):
        at_risk = len(taken) - place + len(telling) - bisect_left(telling, each)
        outlast -= outlast / at_risk
        ended.append(1 - outlast)
    longest = LONGER * max(taken[-1], telling[-1])
    places = (bisect_left(ended, (point + 0.5) / POINTS) for point in range(POINTS))
    return tuple(taken[place] if place < len(taken) else longest for place in places)


def _by_workload(whole: Facts) -> dict[Key, JobView]:
    return {(job.namespace, job.workload): job for job in whole.views.get("jobs", {}).values()}


def _took(workload: WorkloadView) -> float | None:
    """For how long a finished Workload held its quota; None if it has not finished, or never began."""
    ended = workload.condition("Finished").get("lastTransitionTime") if workload.finished else None
    if not ended or not workload.status.get("admission"):
        return None
    return max(0.0, seconds(ended) - workload.since)


def _said(job: JobView | None) -> float | None:
    """What a Job's annotation says; one that is no duration says nothing."""
    try:
        return parse_duration(job.spec["expected"]) if job is not None and "expected" in job.spec else None
    except InvalidDurationError:
        return None


def _deadline(job: JobView | None) -> float | None:
    found = job.spec.get("activeDeadlineSeconds") if job is not None else None
    return float(found) if found is not None else None
