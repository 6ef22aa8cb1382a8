"""Which flavors suit a pod set by taints, labels and the size of nodes (docs/design/engine.md).

A flavor says of its nodes which labels they have, and not which they lack: of a label that it does not name,
its nodes may have any value. So selector and affinity are compared with a flavor's own labels alone.
"""

from collections.abc import Iterable, Mapping

from admitter.engine.model import Flavor, PodSet
from admitter.engine.refusal import FlavorRefusal, Rule
from admitter.names import GPU_MEMORY, PODS

_AFFINITY = "required node affinity"


def mismatch(pod_set: PodSet, flavor: Flavor) -> FlavorRefusal | None:
    """Why a pod set's pods could not run on a flavor's nodes; None if they could."""
    tolerations = (*pod_set.tolerations, *flavor.tolerations)
    for taint in flavor.taints:
        if taint.repels and not any(toleration.tolerates(taint) for toleration in tolerations):
            return FlavorRefusal(flavor.name, Rule.TAINT, detail=str(taint))
    labels = dict(flavor.labels)
    for key, value in pod_set.node_selector:
        if labels.get(key, value) != value:
            return FlavorRefusal(flavor.name, Rule.LABELS, detail=f"{key}={value}")
    if not _has_a_term(pod_set, labels):
        return FlavorRefusal(flavor.name, Rule.LABELS, detail=_AFFINITY)
    return None


def conflict(pod_set: PodSet, flavor: Flavor, others: Iterable[Flavor]) -> FlavorRefusal | None:
    """Why no node for a pod set can be of a flavor and of others at a time; None if one can.

    Each of them suits the pod set, which has the others already, for other resources.
    """
    labels, names = dict(flavor.labels), []
    for other in others:
        for key, value in other.labels:
            if labels.setdefault(key, value) != value:
                return FlavorRefusal(flavor.name, Rule.LABELS, detail=f"{key}={value} of {other.name}")
        names.append(other.name)
    if not _has_a_term(pod_set, labels):
        return FlavorRefusal(flavor.name, Rule.LABELS, detail=f"{_AFFINITY} beside {', '.join(names)}")
    return None


def oversize(pod_set: PodSet, flavor: Flavor, others: Iterable[Flavor] = ()) -> FlavorRefusal | None:
    """Why no node of a flavor, and of others at a time, has room for one pod; None if one may have.

    A node counts as if no other pod were on it. Where the nodes of one of the flavors are not known, any may.
    """
    if not flavor.shapes:
        return None
    shapes = flavor.shapes
    for other in others:
        if not other.shapes:
            return None
        shapes = tuple(shape for shape in shapes if {*shape.labels} >= {*other.labels})
        if not shapes:
            return FlavorRefusal(flavor.name, Rule.NODES, detail=f"of {flavor.name} is of {other.name} too")
    asked = [(r, amount) for r, amount in pod_set.requests if amount and r not in {GPU_MEMORY, PODS}]
    found = [dict(shape.allocatable) for shape in shapes]
    if any(all(node.get(resource, 0) >= amount for resource, amount in asked) for node in found):
        return None
    for resource, amount in asked:
        most = max(node.get(resource, 0) for node in found)
        if most < amount:
            return FlavorRefusal(flavor.name, Rule.NODES, resource, most, needed=amount)
    return FlavorRefusal(flavor.name, Rule.NODES, detail=f"of {flavor.name} has all that a pod requests")


def _has_a_term(pod_set: PodSet, labels: Mapping[str, str]) -> bool:
    """Whether nodes with these labels, and perhaps others, can satisfy one of the affinity's terms."""
    return not pod_set.terms or any(
        all(each.matches(labels) for each in term if each.key in labels or each.impossible)
        for term in pod_set.terms
    )
