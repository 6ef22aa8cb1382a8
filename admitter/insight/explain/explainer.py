"""Why a Job waits, and what would admit it: all that `admitter explain` says, as data.

The engine explains (`engine.explain.explanation`) in the state of the controller; this module adds the names.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cached_property

from admitter.cache.run_time_status import run_time_of
from admitter.cache.views import JobView, WorkloadView
from admitter.engine.explain.explanation import Amounts, Explanation
from admitter.engine.model import Workload
from admitter.engine.refusal import HOPELESS, Refusal
from admitter.insight.explain.not_evicted import reason_not_evicted
from admitter.insight.explain.readiness import readiness_lines
from admitter.insight.explain.status_summary import without_workload
from admitter.insight.forecast.durations import Durations, Runtimes
from admitter.insight.forecast.runtime_words import complaint
from admitter.insight.listing import job_name, lines, stops_others
from admitter.policy.gate import Waiting
from admitter.policy.snapshot import Snapshot

Key = tuple[str, str]


class UnknownError(Exception):
    """There is no such Job or Workload."""

    def __init__(self, words: str, elsewhere: tuple[str, ...] = (), near: str = "") -> None:
        """`elsewhere` are namespaces with one of that name; `near` asks whether a similar name is meant."""
        self._parts = words, elsewhere, near
        there = f"there is one in {', '.join(elsewhere[:3])}" if elsewhere else near
        super().__init__(f"{words}; {there}" if there else words)

    def seen_by(self, may_see: Callable[[str], bool]) -> "UnknownError":
        """The same without names of namespaces that a user may not see."""
        words, elsewhere, near = self._parts
        return UnknownError(words, tuple(filter(may_see, elsewhere)), near)

    @property
    def elsewhere(self) -> tuple[str, ...]:
        return self._parts[1]


def no_such(namespace: str, name: str) -> str:
    """Says that there is neither a Job nor a Workload of a name."""
    return f"there is no Job and no Workload {name} in namespace {namespace}"


@dataclass(frozen=True, slots=True)
class Other:
    """Another Workload that the answer names."""

    key: Key  # namespace, and name of its Job or its own
    priority: int
    ends: float | None = None  # when it is expected to end, in seconds since the epoch; None: unknown
    not_evicted: str = ""  # why it is not evicted for this one; empty if it could be
    unproven: bool = False  # whether its end is known from its unproven stated runtime only
    # how many of its extra pods, or replicas of a pod set, have to end, while it goes on; 0: all of it has to
    extra: int = 0
    pod_set: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """All that is known of one Job or Workload."""

    key: Key  # namespace, and name of its Job or its own
    workload: WorkloadView | None  # None for a Job that Admitter has nothing to do with
    # the engine's name of its ClusterQueue or elastic quota; None if its LocalQueue leads nowhere
    queue: str | None = None
    waiting: Waiting | None = None  # why it waits, in one word and a sentence; None if it does not
    explanation: Explanation | None = None  # what the engine says of it; None if it does not compete
    # its place in line, from 1, as lists show it; None if it does not wait in a queue
    position: int | None = None
    ahead: tuple[Other, ...] = ()  # the workloads before it in line, in order
    blocking: tuple[Other, ...] = ()
    sought: bool = True  # whether the search for blocking workloads ended; if not, `blocking` is empty
    hints: tuple[str, ...] = ()  # possible mistakes, and what to do about them
    ends: float | None = None  # when it is expected to end, if it runs; in seconds since the epoch
    # namespace and name of each workload with a claim on quota that this one needs, by UID
    owners: Mapping[str, Key] = field(default_factory=dict)


class Explainer:
    """Explains the workloads of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        """Run one cycle, as the controller is about to. Positions are those before it, as in lists."""
        self._lines = lines(snapshot)
        plan = snapshot.engine.cycle(snapshot.now)
        self._admitted = {workload.uid for workload, _ in plan.admissions}
        self._refusals = plan.refusals
        self._snapshot = snapshot
        self._world = snapshot.world
        self._durations = Durations(snapshot)
        self._by_uid = {workload.uid: workload for workload in self._world.workloads}

    @cached_property
    def reasons(self) -> dict[str, Waiting]:
        """Why Workloads wait, by UID, that the engine has refused."""
        return dict(self._snapshot.gate.all_wait(self._refusals))

    def explain(self, namespace: str, name: str, enough: Callable[[], bool] = lambda: False) -> Answer:
        """Explain a Job or a Workload.

        The search for blocking workloads may take long, and all else is known without it: `enough` is asked
        between attempts whether to end it.

        Raises:
            UnknownError: there is none; with the nearest names.
        """
        workload = self._snapshot.find(namespace, name)
        job = self._world.job_titled(namespace, name)
        if workload is None and job is None:
            raise self._unknown(namespace, name)
        if workload is None:
            return Answer((namespace, name), None, hints=tuple(self._unmanaged(job)))
        key = _shown(workload)
        if workload.finished:
            return Answer(key, workload, self._snapshot.queue_of(workload))
        if workload.admission is not None:
            ends = self._end(workload, self._durations.of(workload))
            found = Answer(key, workload, workload.admission.queue, ends=ends)
        else:
            found = self._waits(key, workload, enough)
        words = complaint(self._world.job_of(workload.key))
        more = (*readiness_lines(workload, self._snapshot.now), *filter(None, (words,)))
        return replace(found, hints=(*found.hints, *more)) if more else found

    def _waits(self, key: Key, workload: WorkloadView, enough: Callable[[], bool]) -> Answer:
        queue, held_back = self._snapshot.queue_of(workload), self._snapshot.waiting.get(workload.uid)
        if held_back is not None:
            return Answer(
                key, workload, queue, held_back, hints=tuple(filter(None, self._mistakes(workload)))
            )
        line = self._lines.get(queue or "", [])
        position = line.index(workload.uid) + 1 if workload.uid in line else None
        if workload.uid in self._admitted:
            return Answer(key, workload, queue, position=position)
        explained = self._snapshot.engine.explain(workload.uid, enough)
        if explained is None:
            words = "its queue admits nothing now"
            return Answer(key, workload, queue, Waiting("ClusterQueueInactive", words), position=position)
        competing = explained.workload
        if is_hopeless(explained.refusal) and not stops_others(self._snapshot, competing.queue):
            position = None
        return Answer(
            key,
            workload,
            competing.queue,
            self._snapshot.gate.waits(explained.refusal) if explained.refusal is not None else None,
            explained,
            position,
            tuple(self._other(uid) for uid in line[: (position or 1) - 1]),
            tuple(self._others(explained, competing)),
            explained.sought,
            owners=self._owners(explained),
        )

    def _owners(self, explained: Explanation) -> dict[str, Key]:
        """The workloads with claims on quota that it needs, as users know them."""
        claims = (
            claim for amounts in explained.amounts.values() for each in amounts for claim in each.claims
        )
        views = ((uid, self._by_uid.get(uid)) for uid, _, _ in claims)
        return {uid: _shown(view) for uid, view in views if view is not None}

    def _unknown(self, namespace: str, name: str) -> UnknownError:
        here = {job.name for job in self._world.jobs if job.namespace == namespace}
        here |= {workload.name for workload in self._world.workloads if workload.namespace == namespace}
        words = no_such(namespace, name)
        elsewhere = sorted(job.namespace for job in self._world.jobs if job.name == name)
        return UnknownError(words, tuple(elsewhere), _nearest(name, here))

    def _unmanaged(self, job: JobView | None) -> Iterator[str]:
        """Why a Job has no Workload."""
        if job is not None:
            yield without_workload(job) or "its requests can't be counted: its events say why"

    def _mistakes(self, workload: WorkloadView) -> Iterator[str]:
        """Names that are probably mistyped; an empty text says nothing."""
        namespace, name = workload.namespace, workload.queue
        local = self._world.local_queues.get((namespace, name))
        if local is None:
            here = {queue.name for queue in self._world.local_queues if queue.namespace == namespace}
            yield f"namespace {namespace} has " + (_listed(here) if here else "no LocalQueue")
            yield _nearest(name, here)
            return
        target = str(local.spec["clusterQueue"])
        if self._world.cluster_queues.get(("", target)) is None:
            known = {queue.name for queue in self._world.cluster_queues}
            yield _nearest(target, known)

    def _others(self, explained: Explanation, competing: Workload) -> Iterator[Other]:
        """The workloads of which extra pods have to end, then the blocking ones, by expected end."""
        for (uid, pod_set), count in explained.shrinking:
            yield replace(self._other(uid), ends=None, extra=count, pod_set=pod_set)
        kept = (uid for uid in explained.blocking if uid not in explained.evictable)
        why = {uid: reason_not_evicted(uid, competing, self._snapshot.engine) for uid in kept}
        found = (self._other(uid, why.get(uid, "")) for uid in explained.blocking)
        yield from sorted(found, key=lambda each: (each.ends is None, each.ends or 0.0, each.key))

    def _other(self, uid: str, not_evicted: str = "") -> Other:
        view = self._by_uid.get(uid)
        if view is None:  # a pod that outlived its Workload
            pod = next((pod for pod in self._world.pods if pod.uid == uid), None)
            key = (pod.namespace, f"pod {pod.name}") if pod is not None else ("", uid)
            return Other(key, 0, None, "it is what is left of a deleted Workload")
        runtimes = self._durations.of(view)
        ends, unproven = self._end(view, runtimes), runtimes is not None and runtimes.unproven
        return Other(_shown(view), int(view.spec.get("priority", 0)), ends, not_evicted, unproven)

    def _end(self, workload: WorkloadView, runtimes: Runtimes | None) -> float | None:
        """When a running Workload is expected to end, by what is known of its runtime."""
        if workload.admission is None:
            return None
        deadline = run_time_of(workload.status).deadline
        if runtimes is None:
            return deadline
        end = workload.since + runtimes.middle(max(0.0, self._snapshot.now - workload.since))
        return end if deadline is None else min(end, max(deadline, self._snapshot.now))


def _shown(workload: WorkloadView) -> Key:
    return workload.namespace, job_name(workload)


def _nearest(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, sorted(known), n=1)
    return f"did you mean {near[0]}?" if near else ""


def _listed(names: Iterable[str], most: int = 5) -> str:
    given = sorted(names)
    more = f" and {len(given) - most} more" if len(given) > most else ""
    return ("LocalQueue " if len(given) == 1 else "LocalQueues ") + ", ".join(given[:most]) + more


def binding(explanation: Explanation) -> tuple[str, Amounts] | None:
    """The pod set, flavor and resource that stand in the way.

    Of each pod set the flavor counts that lacks least of those that could ever do, or of all if none could,
    and in it the resource that lacks most; of several pod sets the one that lacks most.
    """
    worst: list[tuple[float, str, Amounts]] = []
    for pod_set, amounts in explanation.amounts.items():
        by_flavor: dict[str, Amounts] = {}
        for each in amounts:
            known = by_flavor.get(each.flavor)
            if known is None or _missing(each) > _missing(known):
                by_flavor[each.flavor] = each
        never = {each.flavor for each in amounts if not each.possible}
        if by_flavor:
            nearest = min(by_flavor.values(), key=lambda each: (each.flavor in never, _missing(each)))
            worst.append((_missing(nearest), pod_set, nearest))
    if not worst:
        return None
    lacking, pod_set, found = max(worst, key=lambda each: each[0])
    return (pod_set, found) if lacking > 0 else None


def _missing(amounts: Amounts) -> float:
    """The missing part of the request."""
    return amounts.lacking / amounts.asked if amounts.asked else 0.0


def is_hopeless(refusal: Refusal | None) -> bool:
    """Whether no end of a workload would admit it: the limits or the hardware must change."""
    return refusal is not None and refusal.reason in HOPELESS
