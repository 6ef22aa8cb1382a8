"""What a group of queued pods and its Workload come to: how many pods it lacks, and what it still holds.

The pods that are there and the status of the Workload tell all of it, so a new process knows what the last
one knew. Pods that have succeeded are in the status once they may be gone.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from admitter.api.conditions import WaitingReason
from admitter.cache.pod_groups import PodGroup
from admitter.cache.queued_pods import QueuedPod
from admitter.cache.views import Json, WorkloadView
from admitter.engine.model import Admission, Assignment
from admitter.policy.held import reduced

REMADE_SECONDS: Final = 300.0
"""For so long pods are awaited that are made anew: those of an evicted group, which is over after that, and
those that take places of others that have failed or are gone, which are given back after that."""


def succeeded(workload: WorkloadView | None, group: PodGroup | None) -> dict[str, set[str]]:
    """The pods of each pod set that have succeeded, by what they are remembered by."""
    found = _remembered(workload, "pods", "earlier")
    if group is None:
        return found
    for shape, ended in group.succeeded.items():
        if ended:
            found[shape].update(ended)
    if workload is not None:
        _add_own(found, group.gone, workload)
    return found


def _add_own(
    found: defaultdict[str, set[str]], ended: Mapping[str, Mapping[str, str]], workload: WorkloadView
) -> None:
    """Add those pods that were started for a Workload."""
    for shape, pods in ended.items():
        own = [pod for pod, uid in pods.items() if uid == workload.uid]
        if own:
            found[shape].update(own)


def _remembered(workload: WorkloadView | None, *parts: str) -> defaultdict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for each in workload.status.get("succeededPods") or () if workload is not None else ():
        for part in parts:
            found[each["name"]].update(each.get(part) or ())
    return found


def ended_json(workload: WorkloadView, group: PodGroup | None, *, earlier: bool) -> list[Json]:
    """The pods that have succeeded as a status remembers them; `earlier` once the admission is taken back."""
    before = _remembered(workload, "earlier")
    return [
        {"name": name, "pods": [], "earlier": sorted(ended)}
        if earlier
        else {"name": name, "pods": sorted(ended - before[name]), "earlier": sorted(before[name])}
        for name, ended in sorted(succeeded(workload, group).items())
    ]


def with_lapsed(ended: list[Json], lapsed: Counter[str]) -> list[Json]:
    """The same with how many places of each pod set are given back that no pod has taken."""
    found = {each["name"]: each for each in ended}
    return [
        {**found.get(name, {"name": name, "pods": []}), **({"lapsed": lapsed[name]} if lapsed[name] else {})}
        for name in sorted(found.keys() | lapsed.keys())
    ]


def lapsed_of(workload: WorkloadView) -> Counter[str]:
    """How many places of each pod set have been given back that no pod took for a while."""
    listed = workload.status.get("succeededPods") or ()
    return Counter({each["name"]: each["lapsed"] for each in listed if each.get("lapsed")})


def idle(workload: WorkloadView, group: PodGroup) -> Counter[str]:
    """How many places of each pod set no pod runs in or waits for.

    In a group that serves, or that was admitted before its pods were there, pods may come late.
    """
    if group.serving or group.fast:
        return Counter()
    return places(workload, group) - group.running - group.waiting


def succeeded_count(workload: WorkloadView | None, group: PodGroup) -> int:
    return sum(map(len, succeeded(workload, group).values()))


def left_of(admission: Admission, workload: WorkloadView, group: PodGroup | None) -> Admission:
    """What an admission still holds: all but what the status of its Workload says is given back.

    A pod that has succeeded may be deleted before the status says so, and a new process would not know of it:
    until then it holds its place. Pods that run hold theirs, whatever the status says.
    """
    ended, lapsed = _remembered(workload, "pods"), lapsed_of(workload)
    running = group.running if group is not None else Counter[str]()
    pod_sets = tuple(
        _without(each, len(ended[each.name]) + lapsed[each.name], running[each.name])
        for each in admission.pod_sets
    )
    return replace(admission, pod_sets=pod_sets) if pod_sets != admission.pod_sets else admission


def _without(assignment: Assignment, ended: int, running: int) -> Assignment:
    left = min(assignment.count, max(assignment.count - ended, running))
    return reduced(assignment, left)


def places(workload: WorkloadView, group: PodGroup) -> Counter[str]:
    """How many pods of each pod set may run on what was admitted: never more than it holds.

    Pods that have succeeded leave no place to others, unless their group serves.
    """
    assert workload.admission is not None
    ended, earlier = _remembered(workload, "pods"), _remembered(workload, "earlier")
    lapsed = lapsed_of(workload)
    if not group.serving:
        _add_own(ended, group.succeeded, workload)
        _add_own(ended, group.gone, workload)
    return Counter(
        {
            each.name: max(0, each.count - len(ended[each.name] - earlier[each.name]) - lapsed[each.name])
            for each in workload.admission.pod_sets
        }
    )


def beyond(workload: WorkloadView, group: PodGroup, rest: Iterable[QueuedPod]) -> list[QueuedPod]:
    """Those of the pods without a place that get none when others of their group have ended."""
    assert workload.admission is not None
    known = {each.name for each in workload.admission.pod_sets}
    return [pod for pod in rest if pod.shape not in known or not group.leaving]


def lowered(admission: Admission, group: PodGroup) -> Admission:
    """What of an admission a group that serves has a use for: places for its size, and for all pods there."""
    excess = sum(each.count for each in admission.pod_sets) - max(group.size, group.alive.total(), 1)
    left: list[Assignment] = []
    for each in admission.pod_sets:
        unused = max(0, min(excess, each.count - group.alive[each.name]))
        left.append(_without(each, unused, group.running[each.name]))
        excess -= unused
    return replace(admission, pod_sets=tuple(left)) if tuple(left) != admission.pod_sets else admission


def wanted(workload: WorkloadView | None, group: PodGroup) -> int:
    """How many pods of it are to be there beside those that have succeeded."""
    return max(0, group.size - (0 if group.serving else succeeded_count(workload, group)))


def complaint(workload: WorkloadView | None, group: PodGroup) -> tuple[WaitingReason, str] | None:
    """Why a group without quota can't be admitted as it is, until pods come or go; None if it can."""
    sizes, there = group.sizes, group.waiting.total()
    if not there:
        return WaitingReason.POD_GROUP_INCOMPLETE, f"none of its {wanted(workload, group)} pods waits"
    if 0 in sizes and not group.serving:
        return WaitingReason.POD_GROUP_SIZES_DIFFER, "a pod of it does not say how many there are"
    if len(sizes) > 1:
        words = " pods, and ".join(map(str, sizes))
        return WaitingReason.POD_GROUP_SIZES_DIFFER, f"its pods say that the group has {words}"
    due = wanted(workload, group)
    if there < due and not group.fast:
        return (
            WaitingReason.POD_GROUP_INCOMPLETE,
            f"{there} of its {due} pods {'is' if there == 1 else 'are'} there",
        )
    if there > due and not group.serving:
        return (
            WaitingReason.POD_GROUP_INCOMPLETE,
            f"{there} pods are there, and {due} are admitted: others are deleted",
        )
    return None
