"""Which flavor each resource of each pod set gets (design §3, *Flavors*; 003, *Resources*).

Flavors of a group are tried in the listed order; the first whose taints are tolerated, whose labels
suit and whose quota is free for all of the group's requested resources wins. Pod sets of one workload
are assigned one after the other, each on top of what those before it got.
"""

from collections import defaultdict
from collections.abc import Mapping

from admitter.engine.explain import FlavorRefusal, Reason, Refusal, Rule, reason_of
from admitter.engine.model import (
    Admission,
    Assignment,
    Flavor,
    FlavorResource,
    Group,
    PodSet,
    Queue,
    Workload,
)


def assign(
    workload: Workload, queue: Queue, flavors: Mapping[str, Flavor], used: Mapping[FlavorResource, int]
) -> Admission | Refusal:
    """Find flavors for all pod sets of a workload, or say why there are none.

    Args:
        workload: what asks.
        queue: the queue it asks.
        flavors: every flavor that the queue names, by name.
        used: the queue's use.
    """
    refusal = _uncovered(workload, queue)
    if refusal is not None:
        return refusal
    planned: defaultdict[FlavorResource, int] = defaultdict(int, used)
    assignments = []
    for pod_set in workload.pod_sets:
        chosen: dict[str, str] = {}
        asked = {resource: amount * pod_set.count for resource, amount in pod_set.requests}
        for group in queue.groups:
            wanted = {resource: asked[resource] for resource in group.resources if asked.get(resource)}
            if not wanted:
                continue
            tried: list[FlavorRefusal] = []
            for flavor in (flavors[name] for name in group.flavors):
                refused = _mismatch(pod_set, flavor, _keys(group, flavors)) or _shortage(
                    wanted, flavor, queue, planned, used
                )
                if refused is None:
                    break
                tried.append(refused)
            else:
                return Refusal(
                    reason_of(tuple(tried)),
                    queue.name,
                    asked=tuple(wanted.items()),
                    pod_set=pod_set.name if len(workload.pod_sets) > 1 else "",
                    flavors=tuple(tried),
                )
            for resource, amount in wanted.items():
                chosen[resource] = flavor.name
                planned[flavor.name, resource] += amount
        assignments.append(
            Assignment(
                pod_set.name,
                pod_set.count,
                tuple(chosen.items()),
                tuple((resource, asked[resource]) for resource in chosen),
            )
        )
    return Admission(queue.name, tuple(assignments))


def _uncovered(workload: Workload, queue: Queue) -> Refusal | None:
    """Refuse what a queue does not count at all; a request of zero is no request."""
    covered = set(queue.covered())
    asked = {
        resource
        for pod_set in workload.pod_sets
        for resource, amount in pod_set.requests
        if amount and pod_set.count
    }
    missing = sorted(asked - covered)
    if missing:
        return Refusal(Reason.RESOURCE_NOT_COVERED, queue.name, resources=tuple(missing))
    if not asked and any(pod_set.count for pod_set in workload.pod_sets):
        return Refusal(Reason.NOTHING_REQUESTED, queue.name, resources=queue.covered())
    return None


def _keys(group: Group, flavors: Mapping[str, Flavor]) -> frozenset[str]:
    """The label keys that tell the group's flavors apart; no other key of a pod set matters here."""
    return frozenset(key for name in group.flavors for key, _ in flavors[name].labels)


def _mismatch(pod_set: PodSet, flavor: Flavor, keys: frozenset[str]) -> FlavorRefusal | None:
    tolerations = (*pod_set.tolerations, *flavor.tolerations)
    for taint in flavor.taints:
        if taint.repels and not any(toleration.tolerates(taint) for toleration in tolerations):
            return FlavorRefusal(flavor.name, Rule.TAINT, detail=str(taint))
    labels = dict(flavor.labels)
    for key, value in pod_set.node_selector:
        if key in keys and labels.get(key) != value:
            return FlavorRefusal(flavor.name, Rule.LABELS, detail=f"{key}={value}")
    if pod_set.terms and not any(
        all(requirement.matches(labels) for requirement in term if requirement.key in keys)
        for term in pod_set.terms
    ):
        return FlavorRefusal(flavor.name, Rule.LABELS, detail="required node affinity")
    return None


def _shortage(
    wanted: Mapping[str, int],
    flavor: Flavor,
    queue: Queue,
    planned: Mapping[FlavorResource, int],
    used: Mapping[FlavorResource, int],
) -> FlavorRefusal | None:
    """The first resource of which the flavor has too little, counting what this decision planned already."""
    shortage = None
    for resource, amount in wanted.items():
        key = (flavor.name, resource)
        quota, in_use = queue.quotas[key], used.get(key, 0)
        asked = planned.get(key, 0) - in_use + amount
        if asked > quota:  # not even an empty queue has it: the stronger reason
            return FlavorRefusal(flavor.name, Rule.LIMIT, resource, quota)
        if in_use + asked > quota and shortage is None:
            shortage = FlavorRefusal(flavor.name, Rule.BUSY, resource, quota)
    return shortage
