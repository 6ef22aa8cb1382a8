"""The configuration of Volcano's scheduler: which of its actions and plugins say something about queues."""

from dataclasses import dataclass
from typing import Final

from admitter.importers.dispatch import embedded
from admitter.importers.translation import Fidelity, Json, ManifestSource, below

CONFIG_MAP: Final = "volcano-scheduler-configmap"

_ACTIONS: Final = ("enqueue", "allocate", "backfill", "preempt", "reclaim")
_ORDERS_NAMESPACES: Final = "enableNamespaceOrder"
_PLUGINS: Final = {
    "priority": (Fidelity.TRANSLATED, "priority decides within a queue"),
    "gang": (Fidelity.TRANSLATED, "the pods of a Job are admitted together"),
    "conformance": (Fidelity.TRANSLATED, "pods that no queue has admitted are never evicted"),
    "proportion": (Fidelity.TRANSLATED, "fairSharing by weight"),
    "capacity": (
        Fidelity.APPROXIMATED,
        "min and max of queues; what is beyond min goes by priority and age",
    ),
    "drf": (Fidelity.REFUSED, "Jobs go by priority and age, not by each one's share"),
    "predicates": (Fidelity.TRANSLATED, "nodes are chosen by the cluster's own scheduler"),
    "nodeorder": (Fidelity.APPROXIMATED, "nodes are chosen as the cluster's own scheduler is told"),
    "binpack": (Fidelity.APPROXIMATED, "nodes are chosen as the cluster's own scheduler is told"),
}
"""What becomes of plugins; any other is refused."""
_ORDERED_BY_NAMESPACE: Final = (
    Fidelity.APPROXIMATED,
    "namespaceOrdering: WeightedShare; within a namespace by priority and age, not by Jobs' shares",
)
"""What becomes of the plugin drf where it orders namespaces."""


@dataclass(frozen=True, slots=True)
class SchedulerConfiguration:
    """What the configuration says of queues.

    Whether they take back what they deserve, higher priority takes from lower in a queue, they share by their
    weights, and namespaces share a queue by theirs.
    """

    reclaims: bool = True
    preempts: bool = False
    by_weight: bool = True
    by_namespace: bool = True

    def queue_spec(self) -> Json:
        """What every queue has of it in its spec."""
        spec: Json = {"namespaceOrdering": "WeightedShare"} if self.by_namespace else {}
        preemption = {"withinClusterQueue": "LowerPriority"} if self.preempts else {}
        if self.reclaims:
            preemption["reclaimWithinCohort"] = "Any"
        return {**spec, "preemption": preemption} if preemption else spec


def read_config_map(source: ManifestSource) -> SchedulerConfiguration:
    """The configuration in the scheduler's ConfigMap; the default one if it can't be read."""
    source.translated("metadata", "nothing is left of the ConfigMap itself")
    found = SchedulerConfiguration()
    for key in source.mapping("data"):
        must_be = "must be one map of actions and tiers, in a key that ends with .conf"
        inner = embedded(source, below("data", key), must_be, fits=key.endswith(".conf"))
        if inner is not None:
            found = _read(inner)
            inner.close()
    return found


def _read(source: ManifestSource) -> SchedulerConfiguration:
    actions = [action.strip() for action in source.text("actions").split(",") if action.strip()]
    plugins: dict[str, str] = {}
    for tier in source.items("tiers"):
        for place in source.items(f"{tier}.plugins"):
            plugins[source.text(f"{place}.name")] = place
    configuration = SchedulerConfiguration(
        reclaims="reclaim" in actions,
        preempts="preempt" in actions,
        by_weight="proportion" in plugins,
        by_namespace="drf" in plugins and source.value(f"{plugins['drf']}.{_ORDERS_NAMESPACES}") is not False,
    )
    _account_for_actions(source, actions, configuration)
    for name, place in plugins.items():
        _account_for_plugin(source, name, place, configuration)
    return configuration


def _account_for_actions(
    source: ManifestSource, actions: list[str], configuration: SchedulerConfiguration
) -> None:
    unknown = [action for action in actions if action not in _ACTIONS]
    words = []
    if configuration.preempts:
        words.append("preempt is withinClusterQueue: LowerPriority")
    if configuration.reclaims:
        words.append("reclaim is reclaimWithinCohort: Any")
    if unknown:
        source.refused("actions", "; ".join([f"nothing here does {', '.join(unknown)}", *words]))
    elif words:
        source.approximated("actions", f"{'; '.join(words)}; whole Jobs are evicted, not pods")
    elif actions:
        source.translated("actions", "Jobs are admitted, and none is evicted")


def _account_for_plugin(
    source: ManifestSource, name: str, place: str, configuration: SchedulerConfiguration
) -> None:
    """A plugin's name; other fields of it, such as arguments, are refused when the object is closed."""
    outcome, words = _PLUGINS.get(name, (Fidelity.REFUSED, "nothing here does what it does"))
    if name == "drf" and configuration.by_namespace:
        outcome, words = _ORDERED_BY_NAMESPACE
    source.find(f"{place}.name", outcome, words)
    if name == "drf":
        words = f"namespaceOrdering: {'WeightedShare' if configuration.by_namespace else 'None'}"
        source.account(Fidelity.TRANSLATED, {_ORDERS_NAMESPACES: words}, place)
