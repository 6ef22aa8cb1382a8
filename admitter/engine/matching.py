"""Which flavors suit a pod set by taints and labels (003, *ResourceFlavor labels* and *taints*)."""

from collections.abc import Iterable, Mapping

from admitter.engine.explain import FlavorRefusal, Rule
from admitter.engine.model import Flavor, PodSet
from admitter.engine.policy import Group


def label_keys(group: Group, flavors: Mapping[str, Flavor]) -> frozenset[str]:
    """The label keys that tell the group's flavors apart; no other key of a pod set matters here."""
    return frozenset(key for name in group.flavors for key, _ in flavors[name].labels)


def mismatch(pod_set: PodSet, flavor: Flavor, keys: frozenset[str]) -> FlavorRefusal | None:
    """Why a pod set's pods could not run on a flavor's nodes; None if they could."""
    tolerations = (*pod_set.tolerations, *flavor.tolerations)
    for taint in flavor.taints:
        if taint.repels and not any(toleration.tolerates(taint) for toleration in tolerations):
            return FlavorRefusal(flavor.name, Rule.TAINT, detail=str(taint))
    labels = dict(flavor.labels)
    for key, value in pod_set.node_selector:
        if key in keys and labels.get(key) != value:
            return FlavorRefusal(flavor.name, Rule.LABELS, detail=f"{key}={value}")
    if pod_set.terms and not any(
        all(
            requirement.matches(labels)
            for requirement in term
            if requirement.key in keys or requirement.impossible
        )
        for term in pod_set.terms
    ):
        return FlavorRefusal(flavor.name, Rule.LABELS, detail="required node affinity")
    return None


def conflict(flavor: Flavor, others: Iterable[Flavor]) -> FlavorRefusal | None:
    """Why no node can be of a flavor and of others at a time; None if one can."""
    labels = dict(flavor.labels)
    for other in others:
        for key, value in other.labels:
            if labels.get(key, value) != value:
                return FlavorRefusal(flavor.name, Rule.LABELS, detail=f"{key}={value} of {other.name}")
    return None
