"""The pods of a Workload: how many are in which state, on which node, and what their trouble is."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from admitter.cache.pod_readiness import Cause
from admitter.cache.pod_views import PodView
from admitter.cache.queued_pods import QueuedPod
from admitter.cache.views import JobView, WorkloadView
from admitter.cache.world import World
from admitter.policy.pod_readiness import in_words, readiness_of, troubles

READY: Final = "Ready"
SUCCEEDED: Final = "Succeeded"
GATED: Final = "Gated"
"""It waits for its admission."""
_STATES: Final = {
    Cause.NO_NODE: "Unschedulable",
    Cause.IMAGE: "NoImage",
    Cause.CONFIGURATION: "NotSetUp",
    Cause.CRASHES: "Crashes",
    Cause.FAILED: "Failed",
    Cause.NOT_READY: "NotReady",
    Cause.STARTING: "Starting",
    Cause.UNANSWERED: "NoScheduler",
    Cause.LEAVING: "Ending",
    Cause.MISSING: "Missing",
}
STATES: Final = (*_STATES.values(), GATED, READY, SUCCEEDED)
"""All states of pods, those with trouble first."""


@dataclass(frozen=True, slots=True)
class PodState:
    """One pod."""

    name: str
    state: str
    detail: str  # what its trouble is, in the words of the scheduler or the kubelet; empty if it has none
    node: str  # empty: it has none
    created: float  # seconds since the epoch
    live: bool = True  # whether it has not ended


@dataclass(frozen=True, slots=True)
class Pods:
    """All pods of a Workload that are there."""

    wanted: int  # how many should be ready now
    ready: int
    words: str  # why not all of those are ready; empty if they are
    counts: tuple[tuple[str, int], ...]  # how many pods are in each state, those with trouble first
    pods: tuple[PodState, ...]  # those with trouble first, then by name


def pods_of(world: World, workload: WorkloadView) -> Pods:
    """The pods that the admission of a Workload has made, or those that wait for it."""
    job, views = world.job_of(workload.key), world.pods_of(workload)
    found = [_state(view) for view in views]
    known = {each.name for each in found}
    found += [each for each in _gated(world, job) if each.name not in known]
    order = {state: place for place, state in enumerate(STATES)}
    found.sort(key=lambda each: (order[each.state], each.name))
    counted = Counter(each.state for each in found)
    counts = tuple((state, counted[state]) for state in STATES if counted[state])
    wanted, ready, words = _readiness(world, workload, job, views)
    return Pods(wanted, ready, words, counts, tuple(found))


def _readiness(
    world: World, workload: WorkloadView, job: JobView | None, views: list[PodView]
) -> tuple[int, int, str]:
    """How many pods should be ready, how many are, and what the others lack."""
    if workload.admission is None or workload.evicting or job is None:
        return 0, sum(view.live and view.trouble is None for view in views), ""
    known = readiness_of(world, job, workload)
    words = "" if known.all_ready else in_words(troubles(views, known.wanted), known.wanted)
    return known.wanted, known.ready, words


def _state(view: PodView) -> PodState:
    trouble = view.trouble
    state = _STATES[trouble.cause] if trouble is not None else READY if view.live else SUCCEEDED
    detail = trouble.detail if trouble is not None else ""
    return PodState(view.name, state, detail, view.node, view.created, view.live)


def _gated(world: World, job: JobView | None) -> Iterator[PodState]:
    """Pods that wait for their admission: of a group, or one by itself."""
    members: list[QueuedPod] = world.members_of(job) if job is not None and job.resource.is_pods else []
    for pod in members:
        if pod.gated:
            yield PodState(pod.name, GATED, "", "", pod.created)
