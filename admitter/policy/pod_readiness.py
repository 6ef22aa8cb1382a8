"""How many of the pods that a Workload was admitted with are ready, and what the others lack, in words.

- A Job says itself how many of its pods are ready (`status.ready`): its pods are not counted.
- A group of pods, and a single one: as many pods as places are left of the admission.
- Objects of other kinds: all pods that are there, and at least one. Their operators may make some pods only
  when others are ready or have ended, as for JobSets with `dependsOn`: what is not there yet is not missed.
- A group that serves, and a Workload without a Job, have no limit.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from admitter.cache.job_resources import JOB
from admitter.cache.pod_readiness import Cause, Trouble
from admitter.cache.pod_views import PodView
from admitter.cache.views import JobView, WorkloadView
from admitter.cache.world import World
from admitter.policy.pod_groups import places


@dataclass(frozen=True, slots=True)
class PodReadiness:
    """The pods of an admitted Workload."""

    wanted: int
    ready: int

    @property
    def all_ready(self) -> bool:
        return self.ready >= self.wanted


def has_limit(world: World, job: JobView | None) -> bool:
    """Whether it can be told of a Workload with this job object that its pods are ready."""
    if job is None:
        return False
    group = world.pod_groups.get(job.uid) if job.resource.is_pods else None
    return group is None or not group.serving


def has_default_limit(job: JobView) -> bool:
    """Whether there is a limit for it where no queue says anything.

    A suspended Job loses nothing but pods that have not worked. Of other kinds an eviction may delete what
    no controller makes again, or stop what was meant to be slow.
    """
    return job.resource is JOB


def readiness_of(world: World, job: JobView, workload: WorkloadView) -> PodReadiness:
    """How many pods are wanted now, and how many of them are ready; what has succeeded is not wanted."""
    assert workload.admission is not None
    places_left = sum(each.count for each in workload.admission.pod_sets)
    if job.resource is JOB:
        return PodReadiness(min(places_left, job.count()), int(job.status.get("ready", 0)))
    pods = world.pods_of(workload)
    ready = sum(_is_ready(pod) for pod in pods)
    if job.resource.is_pods:
        group = world.pod_groups.get(job.uid)
        if group is not None:
            return PodReadiness(places(workload, group).total(), ready)
        return PodReadiness(0 if job.finished else 1, ready)
    waiting = sum(pod.live and pod.trouble is not None for pod in pods)
    return PodReadiness(ready + waiting if pods else 1, ready)


def _is_ready(pod: PodView) -> bool:
    return pod.live and pod.trouble is None


def troubles(pods: Iterable[PodView], wanted: int) -> list[tuple[Trouble, int]]:
    """What keeps pods from being ready, and how many pods each; what is its own doing first.

    Pods that have failed count if no others have come in their place.
    """
    there = list(pods)
    alive = [pod for pod in there if pod.live]
    found = Counter(pod.trouble for pod in alive if pod.trouble is not None)
    lacking = max(0, wanted - len(alive))
    failed = [pod.trouble for pod in there if not pod.live and pod.trouble is not None][:lacking]
    found.update(failed)
    if lacking > len(failed):
        found[Trouble(Cause.MISSING)] += lacking - len(failed)
    return sorted(found.items(), key=lambda each: (not each[0].cause.to_blame, -each[1], each[0].detail))


def in_words(found: Iterable[tuple[Trouble, int]], wanted: int, most: int = 5) -> str:
    """Why not all of so many pods are ready, such as `2 of 8 pods unschedulable: 0/6 nodes are available`."""
    by_cause: dict[Cause, tuple[int, str]] = {}
    for trouble, pods in found:
        count, detail = by_cause.get(trouble.cause, (0, ""))
        by_cause[trouble.cause] = (count + pods, detail or trouble.detail)
    told = [
        _said(cause, pods, wanted) + (f": {detail}" if detail else "")
        for cause, (pods, detail) in list(by_cause.items())[:most]
    ]
    return "; ".join(told)


_ONE = {
    Cause.IMAGE: "can't pull its image",
    Cause.CRASHES: "crashes",
    Cause.FAILED: "has failed",
    Cause.NOT_READY: "runs and is not ready",
    Cause.STARTING: "has a node and has not started",
    Cause.UNANSWERED: "waits for a scheduler",
    Cause.LEAVING: "is being deleted",
    Cause.MISSING: "has not been made",
}


def _said(cause: Cause, pods: int, wanted: int) -> str:
    verb = _ONE.get(cause, cause.value) if pods == 1 else cause.value
    return f"{pods} of {max(pods, wanted)} pods {verb}"
