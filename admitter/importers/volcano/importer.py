"""Volcano: its queues, weights of namespaces, scheduler configuration, and Jobs (docs/design/import.md).

Fields: the API `scheduling.volcano.sh/v1beta1`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from admitter.importers.dispatch import Handler, copied, dispatch, embedded, metadata, with_name
from admitter.importers.jobs import JobImporter
from admitter.importers.naming import Names
from admitter.importers.queue_tree import FOR_EVER, LocalQueues, QueueNode, cut, manifests, quantities
from admitter.importers.reading import Collection, Document
from admitter.importers.translation import Fidelity, Json, ManifestSource, Translation, below
from admitter.importers.volcano.jobs import DOMAINS, QueueFinder
from admitter.names import NAMESPACE_WEIGHT_RESOURCES
from admitter.quantities.amounts import parse_quantity

CONFIG_MAP: Final = "volcano-scheduler-configmap"
GROUP: Final = "scheduling.volcano.sh"
COHORT: Final = "volcano"
"""The Cohort above all queues."""

COLLECTIONS: Final = (
    Collection((f"/api/v1/namespaces/volcano-system/configmaps/{CONFIG_MAP}",)),
    Collection((f"/apis/{GROUP}/v1beta1/queues",)),
    Collection((f"/apis/{GROUP}/v1beta1/podgroups",)),
    Collection(("/apis/batch.volcano.sh/v1alpha1/jobs",)),
    Collection(("/apis/scheduling.k8s.io/v1/priorityclasses",)),
    Collection(("/api/v1/resourcequotas",)),
)
"""What is read from a cluster."""

_ORDER: Final = ("ConfigMap", "Queue", "PodGroup")
_ROOT: Final = "root"
_STRATEGIES: Final = {"fifo": "StrictFIFO", "traverse": "BestEffortFIFO"}
_REFUSED: Final = {
    "priority": "queues have no priority of their own: use PriorityClasses, or weights",
    "type": "queues are of one type",
    "extendClusters": "there is one cluster",
    "affinity": "nodes of a kind are a ResourceFlavor with nodeLabels, which the queue's resources name",
    "dra": "devices are counted as resources of nodes, not by class",
}
"""Fields of a queue that nothing here means, and why."""

_ACTIONS: Final = ("enqueue", "allocate", "backfill", "preempt", "reclaim")
_ORDERS_NAMESPACES: Final = "enableNamespaceOrder"
_PLUGINS: Final = {
    "priority": (Fidelity.TRANSLATED, "priority decides within a queue"),
    "gang": (Fidelity.TRANSLATED, "the pods of a Job are admitted together"),
    "conformance": (Fidelity.TRANSLATED, "pods that no queue has admitted are never evicted"),
    "proportion": (Fidelity.TRANSLATED, "fairSharing by weight"),
    "capacity": (Fidelity.APPROXIMATED, "min and max of queues; what is beyond min goes by priority and age"),
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


def translate(documents: Sequence[Document], into: Translation) -> None:
    """Translate the scheduler's ConfigMap, Queues, PodGroups, ResourceQuotas, PriorityClasses, Jobs, Pods."""
    importer = _VolcanoImporter(documents, into)
    for _, ranked in groupby(sorted(documents, key=_rank), key=_rank):
        dispatch(ranked, into, importer.handlers())
    importer.finish()


def _rank(document: Document) -> int:
    """The order of reading: the configuration before queues, and queues before what waits in them."""
    return _ORDER.index(document.kind) if document.kind in _ORDER else len(_ORDER)


@dataclass(frozen=True, slots=True)
class _Queue:
    """A queue that was read: what it becomes, what it was read from, and the name of the one above it."""

    node: QueueNode
    source: ManifestSource
    above: str


class _VolcanoImporter:
    """One run."""

    def __init__(self, documents: Sequence[Document], into: Translation) -> None:
        self._into = into
        self._names = Names()
        self._names.keep_all(documents, {"Queue": "ClusterQueue"})
        self._names.of("Cohort", f"/{COHORT}", COHORT)
        self._configuration = SchedulerConfiguration()
        self._queues: dict[str, _Queue] = {}
        self._finder = QueueFinder(self._names, LocalQueues(into))
        self._jobs = JobImporter(self._names, DOMAINS, self._finder.queue)
        self._jobs.keep_names(documents)

    def handlers(self) -> Mapping[tuple[str, str], Handler]:
        return {
            **{kind: with_name(handler) for kind, handler in self._jobs.handlers().items()},
            ("", "ConfigMap"): self._config_map,
            ("", "ResourceQuota"): with_name(_weight),
            (GROUP, "Queue"): self._queue,
            (GROUP, "PodGroup"): self._finder.group,
            ("batch.volcano.sh", "Job"): with_name(self._finder.job),
        }

    def finish(self) -> None:
        for name in sorted(self._finder.wanted - self._queues.keys()):
            source = ManifestSource({}, f"Queue {name}", self._into)
            source.approximated("", "is not among the manifests: a queue of weight 1 without limits")
            self._queues[name] = _Queue(QueueNode(name, spec=self._configuration.queue_spec()), source, _ROOT)
        if not self._queues:
            return
        top = QueueNode(COHORT, inner=True)
        if self._configuration.by_weight:
            top.spec["fairSharing"] = {"enabled": True}
        parents = {queue.above for queue in self._queues.values()}
        for name, queue in self._queues.items():
            queue.node.inner = name in parents
            if name != _ROOT:
                self._above(name, queue, top).below.append(queue.node)
        for node in top.all():
            if node is not top and node.inner:  # what only a ClusterQueue has
                for key in ("namespaceOrdering", "preemption", "queueingStrategy", "stopPolicy"):
                    node.spec.pop(key, None)
                node.reserved = {}
                node.name = self._names.of("Cohort", node.name)
        origin = next(iter(self._queues.values())).source.title
        for manifest in manifests(top, self._finder.local_queues.requested):
            self._into.add(manifest, origin)

    def _above(self, name: str, queue: _Queue, top: QueueNode) -> QueueNode:
        """The queue above another; the top if there is none, or none that leads to the top."""
        seen, at = {name}, queue.above
        while at != _ROOT and at in self._queues and at not in seen:
            seen.add(at)
            at = self._queues[at].above
        if at != _ROOT:
            why = "is its own ancestor" if at in seen else "is not among the manifests"
            queue.source.refused("spec.parent", f"{at} {why}: the queue is at the top")
        return top if at != _ROOT or queue.above == _ROOT else self._queues[queue.above].node

    def _config_map(self, source: ManifestSource) -> None:
        if source.text("metadata.name") == CONFIG_MAP:
            self._configuration = read_config_map(source)
        else:
            source.refused("", "is no configuration of Volcano's scheduler")

    def _queue(self, source: ManifestSource) -> None:
        old = source.text("metadata.name")
        name = self._names.take(source, "metadata.name", "ClusterQueue")
        if not name:
            return
        node = QueueNode(
            name, spec=self._configuration.queue_spec(), metadata=metadata(source, name, DOMAINS)
        )
        above = source.text("spec.parent") or _ROOT
        if source.value("spec.parent"):
            source.translated("spec.parent", f"below Cohort {COHORT if above == _ROOT else above}")
        self._queues[old] = _Queue(node, source, above)
        if old == _ROOT:
            source.approximated("spec", f"Cohort {COHORT}, which has what the nodes have")
            return
        self._quota(source, node)
        self._weight_of(source, node)
        self._reclaiming(source, node)
        self._state(source, node)
        for key, why in _REFUSED.items():
            if source.value(f"spec.{key}"):
                source.refused(f"spec.{key}", why)
            elif source.value(f"spec.{key}") is not None:
                source.translated(f"spec.{key}", "as without it")

    def _quota(self, source: ManifestSource, node: QueueNode) -> None:
        node.most = quantities(source, "spec.capability")
        reserved = quantities(source, "spec.guarantee.resource")
        deserved = quantities(source, "spec.deserved")
        cut(source, "spec.guarantee.resource", reserved, node.most)
        cut(source, "spec.deserved", deserved, node.most)
        node.reserved = reserved
        node.guaranteed = {
            name: max((each[name] for each in (reserved, deserved) if name in each), key=parse_quantity)
            for name in (*reserved, *(name for name in deserved if name not in reserved))
        }
        if node.most:
            source.translated("spec.capability", "max")
        if reserved:
            source.translated("spec.guarantee", "min, of which lendingLimit leaves nothing to others")
        if deserved and self._configuration.reclaims:
            source.approximated("spec.deserved", "min; taken back by reclaimWithinCohort: Any")
        elif deserved:
            source.approximated("spec.deserved", "min; no Job is evicted for it")

    def _weight_of(self, source: ManifestSource, node: QueueNode) -> None:
        if source.value("spec.weight") is None:
            return
        node.spec["fairSharing"] = {"weight": source.number("spec.weight", 1)}
        idle = ", which counts as little as without proportion there"
        source.translated("spec.weight", f"fairSharing.weight{'' if self._configuration.by_weight else idle}")

    def _reclaiming(self, source: ManifestSource, node: QueueNode) -> None:
        """Whether others may take from it, which is up to them here."""
        reclaimable = source.value("spec.reclaimable")
        if reclaimable is False:
            node.spec.setdefault("preemption", {})["minRuntime"] = FOR_EVER
            words = "minRuntime without end: what runs in it is never evicted, also not for its own Jobs"
            source.approximated("spec.reclaimable", words)
        elif reclaimable is True and self._configuration.reclaims:
            source.approximated("spec.reclaimable", "reclaimWithinCohort: Any of the other queues")
        elif reclaimable is True:
            source.approximated("spec.reclaimable", "no Job is evicted, since there is no action reclaim")

    @staticmethod
    def _state(source: ManifestSource, node: QueueNode) -> None:
        strategy = source.text("spec.dequeueStrategy")
        if strategy in _STRATEGIES:
            node.spec["queueingStrategy"] = _STRATEGIES[strategy]
            source.translated("spec.dequeueStrategy", f"queueingStrategy: {_STRATEGIES[strategy]}")
        if source.value("status.state") in ("Closed", "Closing"):
            node.spec["stopPolicy"] = "Hold"
            source.approximated("status.state", "stopPolicy: Hold: new Jobs wait, where Volcano refuses them")


def _weight(source: ManifestSource) -> None:
    """A ResourceQuota stays as it is; the weight in it gets our name."""
    hard, (ours, theirs) = source.mapping("spec.hard"), NAMESPACE_WEIGHT_RESOURCES
    weighs = theirs in hard
    if weighs:
        weight, place = str(hard[theirs]).strip(), below("spec.hard", theirs)
        if weight.isdecimal() and int(weight):
            source.translated(place, ours)
        else:
            source.approximated(place, f"{ours}: 1, as {weight!r} is no positive whole number")
            weight = "1"
        del hard[theirs]
        hard[ours] = weight
    copied(source, but="the weight" if weighs else "")


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
