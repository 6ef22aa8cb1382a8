"""Probable mistakes in a configuration. Each rule checks one thing; docs/lint.md says why."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from admitter.api.conditions import ActiveReason, ConditionType
from admitter.cache.declared_kinds import described_by
from admitter.cache.views import ObjectView
from admitter.engine.model import Flavor, FlavorResource
from admitter.engine.policy import Group, Queue, Quota, Reclaim
from admitter.insight import lint_limits, lint_pods
from admitter.insight.controller_status import ControllerStatus
from admitter.names import ANY_NODE, DEFAULT_QUEUE_LABEL, ELASTIC_QUOTA_QUEUE, NAMESPACE
from admitter.policy.defects import HARMLESS, Defect
from admitter.policy.local_queue_rules import conflicts, told
from admitter.policy.snapshot import QUEUED_PODS, Snapshot
from admitter.quantities.amounts import display
from admitter.quotas.namespaces import NAME_LABEL
from admitter.quotas.nodes import has_labels, is_open, totals

KINDS: Final = frozenset(
    {
        *("resourceflavors", "cohorts", "clusterqueues", "localqueues", "placementpolicies"),
        *("jobkinds", "workloadpriorityclasses", QUEUED_PODS),
        *("elasticquotas", "compositeelasticquotas", "namespaces", "nodes"),
    }
)
"""Plurals of the kinds that the rules check. No rule reads a Job; some read queued pods."""

_WORKS: Final = HARMLESS | {ActiveReason.EXCEEDS_PARENT}
"""Reasons of defects with which an object still works."""


class Severity(StrEnum):
    """How bad it is."""

    ERROR = "error"  # it does not work
    WARNING = "warning"  # it works, but probably not as intended
    NOTE = "note"  # it works; a reader may misunderstand it


@dataclass(frozen=True, slots=True)
class Finding:
    """A probable mistake."""

    rule: str  # its name, and that of its paragraph in docs/lint.md
    severity: Severity
    object: str  # kind and name
    message: str  # the mistake, in a sentence


Found = tuple[str, str]
"""What a rule finds: kind and name of an object, and the mistake in a sentence."""
Rule = Callable[["LintedConfiguration"], Iterator[Found]]


class LintedConfiguration:
    """What the rules check: definitions, and the engine that applies them."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.world = snapshot.world
        self.catalog = snapshot.catalog
        self.tree = snapshot.engine.tree
        self.book = snapshot.engine.ledger.real
        self.flavors: dict[str, Flavor] = {
            view.name: flavor
            for view in self.world.flavors
            if (flavor := self.catalog.flavor(view.name)) is not None
        }
        self.gpus = self.catalog.gpus
        self.nodes = [view.node for view in self.world.nodes]

    def queues(self) -> Iterator[tuple[ObjectView, Queue]]:
        """ClusterQueues that work, by name."""
        for view in sorted(self.world.cluster_queues, key=lambda view: view.name):
            queue = self.tree.queues.get(view.name)
            if queue is not None and self.catalog.queue(view.name).problem is None:
                yield view, queue

    def local_queues(self, cluster_queue: str) -> list[ObjectView]:
        """The LocalQueues that lead to a ClusterQueue."""
        keys = self.world.local_queues_by_cluster_queue.get(cluster_queue)
        return [view for key in keys if (view := self.world.local_queues.get(key)) is not None]

    def relatives(self, queue: Queue, key: FlavorResource) -> list[str]:
        """Other queues of the tree that count a resource in a flavor."""
        members = self.tree.members(self.tree.root(queue.name))
        counting = {name for name in members if key in set(self.tree.queues[name].keys())}
        return sorted(counting - {queue.name})


def lint(snapshot: Snapshot, controllers: ControllerStatus | None = None) -> list[Finding]:
    """All findings, the worst first; `controllers` says whether one decides in the cluster, if it is one."""
    configuration = LintedConfiguration(snapshot)
    found = [*_without_controller(controllers), *_defects(configuration), *job_kinds(configuration)]
    found += (
        Finding(name, severity, *each) for name, severity, rule in RULES for each in rule(configuration)
    )
    order = list(Severity)
    return sorted(found, key=lambda each: (order.index(each.severity), each.object, each.rule, each.message))


def _without_controller(controllers: ControllerStatus | None) -> Iterator[Finding]:
    """There is something about which no controller decides."""
    if controllers is not None and controllers.lacks_decisions:
        lease = next(each for each in controllers.shards if not each.alive)
        yield Finding(
            "NoController", Severity.ERROR, f"Lease {NAMESPACE}/{lease.name}", controllers.sentence()
        )


def _defects(given: LintedConfiguration) -> Iterator[Finding]:
    """An object that does not work, or not as declared: what its condition Active would say."""
    for title, problem in _problems(given):
        if problem is not None:
            severity = Severity.WARNING if problem[0] in _WORKS else Severity.ERROR
            yield Finding(problem[0], severity, title, problem[1])


def _problems(given: LintedConfiguration) -> Iterator[tuple[str, Defect | None]]:
    """Kind and name of every checked object, and its defect."""
    world, catalog = given.world, given.catalog
    for view in world.flavors:
        yield f"ResourceFlavor {view.name}", catalog.flavor_problem(view.name)
    taken = conflicts(world, catalog.local_queue_rules)
    for view in world.cluster_queues:
        entry = catalog.queue(view.name)
        yield f"ClusterQueue {view.name}", entry.problem or entry.flaw or told(taken.get(view.name, ()))
    for view in world.cohorts:
        yield f"Cohort {view.name}", catalog.cohort_problem(view.name)
    for view in world.placement_policies:
        yield f"PlacementPolicy {view.name}", catalog.placement.problem(view.name)
    quotas = {"ElasticQuota": world.elastic_quotas, "CompositeElasticQuota": world.composite_elastic_quotas}
    namespaces_known = any(True for _ in world.namespaces)  # files often leave them out
    for kind, store in quotas.items():
        for view in store:
            problem = catalog.elastic.problem(kind, view.key)
            if problem is None or namespaces_known or problem[0] is not ActiveReason.NAMESPACE_NOT_FOUND:
                yield f"{kind} {view.namespace}/{view.name}", problem


def job_kinds(given: LintedConfiguration) -> Iterator[Finding]:
    """A JobKind of which the controller says that it does not work, or has no policies, or no operator."""
    for view in given.world.job_kinds:
        title = f"JobKind {view.name}"
        for each in view.status.get("conditions") or ():
            if each["type"] == ConditionType.ACTIVE and each["reason"] != ActiveReason.READY:
                severity = Severity.ERROR if each["status"] == "False" else Severity.WARNING
                yield Finding(each["reason"], severity, title, each["message"])
        if not view.spec.get("operators") and described_by(view) != ("batch", "Job"):
            words = (
                "has no operators: no account may make pods of what is admitted; name them in spec.operators"
            )
            yield Finding("NoOperator", Severity.WARNING, title, words)


def leads_nowhere(given: LintedConfiguration) -> Iterator[Found]:
    """A LocalQueue names a ClusterQueue that does not exist."""
    for view in given.world.local_queues:
        name = str(view.spec["clusterQueue"])
        if given.world.cluster_queues.get(("", name)) is None:
            title = f"LocalQueue {view.namespace}/{view.name}"
            yield title, f"leads to ClusterQueue {name}, which does not exist"


def not_selected(given: LintedConfiguration) -> Iterator[Found]:
    """A LocalQueue names a ClusterQueue that does not select its namespace."""
    for view in given.world.local_queues:
        name = str(view.spec["clusterQueue"])
        known = given.world.cluster_queues.get(("", name)) is not None
        if known and not _selects(given, name, view.namespace):
            title = f"LocalQueue {view.namespace}/{view.name}"
            yield title, f"ClusterQueue {name} does not select namespace {view.namespace} by its labels"


def _selects(given: LintedConfiguration, cluster_queue: str, namespace: str) -> bool:
    """Whether a ClusterQueue selects a namespace; of one that the files leave out only the name is known."""
    if given.world.namespaces.get(("", namespace)) is not None:
        return given.catalog.selects(cluster_queue, given.world.labels_of(namespace))
    asked, labels = given.catalog.queue(cluster_queue).namespaces, {NAME_LABEL: namespace}
    return asked is not None and all(each.matches(labels) for each in asked if each.key == NAME_LABEL)


def nobody_may_use(given: LintedConfiguration) -> Iterator[Found]:
    """A queue that no LocalQueue leads to, or that selects no namespace."""
    for view, _ in given.queues():
        title = f"ClusterQueue {view.name}"
        if given.catalog.queue(view.name).namespaces is None:
            words = "has no namespaceSelector, so no namespace may use it; {} selects all namespaces"
            yield title, words
        elif not given.local_queues(view.name) and view.name not in given.catalog.local_queue_rules:
            yield title, "no LocalQueue leads to it"


def class_for_no_queue(given: LintedConfiguration) -> Iterator[Found]:
    """A WorkloadPriorityClass for no queue, or for one that does not exist."""
    for view in given.world.workload_classes:
        title, listed = f"WorkloadPriorityClass {view.name}", view.spec.get("clusterQueues")
        if listed is not None and not listed:
            yield title, "lists no ClusterQueue in clusterQueues, so nothing of this class is ever admitted"
        for name in listed or ():
            if given.world.cluster_queues.get(("", name)) is None:
                yield title, f"is for ClusterQueue {name}, which does not exist"


def no_default_queue(given: LintedConfiguration) -> Iterator[Found]:
    """The label of a Namespace names a default queue that is not there, and that no rule makes."""
    for view in given.world.namespaces:
        name = view.labels.get(DEFAULT_QUEUE_LABEL, "")
        rules = given.catalog.local_queue_rules.values()
        by_rule = any(rule.name == name and rule.selects(view.labels) for rule in rules)
        if not name or by_rule or given.world.local_queues.get((view.name, name)) is not None:
            continue
        if name != ELASTIC_QUOTA_QUEUE or given.catalog.elastic.governing(view.name) is None:
            words = f"its default queue {name} does not exist: Jobs that name no queue wait for it"
            yield f"Namespace {view.name}", words


def more_than_nodes(given: LintedConfiguration) -> Iterator[Found]:
    """The `min` of all queues and Cohorts exceed what the nodes of the flavor offer."""
    minimums: Counter[FlavorResource] = Counter()
    for queue in given.tree.queues.values():
        minimums.update({key: quota.minimum for key, quota in _own(queue) if not queue.pool})
    for cohort in given.tree.cohorts.values():
        minimums.update({key: quota.minimum for key, quota in cohort.quotas.items()})
    there = totals(given.nodes, given.flavors.values(), given.gpus)
    with_nodes = {flavor for flavor, _ in there}
    for (flavor, resource), amount in sorted(minimums.items()):
        has = there.get((flavor, resource), 0)
        if flavor in with_nodes and amount > has:
            words = (
                f"quota totals {display(resource, amount)} {resource}; "
                f"its nodes offer {display(resource, has)}"
            )
            yield f"ResourceFlavor {flavor}", words


def _own(queue: Queue) -> Iterator[tuple[FlavorResource, Quota]]:
    """The quotas of a queue, in order; one that only repeats a limit promises nothing."""
    for (flavor, resource), quota in sorted(queue.quotas.items()):
        limit = queue.limits.get(resource)
        if limit is None or quota != Quota(limit, limit, 0):
            yield (flavor, resource), quota


def elastic_more_than_nodes(given: LintedConfiguration) -> Iterator[Found]:
    """The `min` of all elastic quotas exceed what the nodes offer that they may use."""
    quotas = [queue for queue in given.tree.queues.values() if queue.pool]
    minimums: Counter[str] = Counter()
    for queue in quotas:
        minimums.update({resource: quota.minimum for (_, resource), quota in queue.quotas.items()})
    used = {flavor for queue in quotas for group in queue.groups for flavor in group.flavors}
    known = {ANY_NODE: given.catalog.elastic.any_node, **given.flavors}
    # Pods with a toleration of their own may run on a tainted node, whatever the flavor says.
    nodes = [replace(node, taints=()) for node in given.nodes]
    has: Counter[str] = Counter()
    for (_, resource), amount in totals(
        nodes, [known[name] for name in used & known.keys()], given.gpus
    ).items():
        has[resource] += amount
    for resource, amount in sorted(minimums.items()) if nodes else ():
        if amount > has[resource]:
            words = (
                f"elastic quotas total {display(resource, amount)} {resource}; "
                f"their nodes offer {display(resource, has[resource])}"
            )
            yield f"Cohort {ELASTIC_QUOTA_QUEUE}", words


def no_nodes(given: LintedConfiguration) -> Iterator[Found]:
    """No node has the labels of a flavor."""
    for name, flavor in sorted(given.flavors.items()) if given.nodes else ():
        if not any(has_labels(node, flavor) for node in given.nodes):
            labels = ", ".join(f"{key}={value}" for key, value in flavor.labels)
            words = f"no node has its labels {labels}"
            yield f"ResourceFlavor {name}", words


def no_node_for_all(given: LintedConfiguration) -> Iterator[Found]:
    """A pod gets a flavor for each group of resources that it requests, and no node is of all of these."""
    for _, queue in given.queues():
        for group in queue.groups:
            others = [other for other in queue.groups if other is not group]
            for name in group.flavors:
                for apart in _groups_apart(given, name, others):
                    asked = " and ".join(resource for each in (group, *apart) for resource in each.resources)
                    also = ", and of ".join(" or ".join(each.flavors) for each in apart)
                    words = (
                        f"a pod that requests {asked} never gets {name}: no node of that is also of {also}"
                    )
                    yield f"ClusterQueue {queue.name}", words


def _groups_apart(given: LintedConfiguration, name: str, others: list[Group]) -> Iterator[list[Group]]:
    """Sets of groups of which no node of a flavor has a flavor each; none where not all its nodes are known.

    First each group by itself, then one set of as few groups as can be of those that do have nodes in common
    with it. Per node the groups are looked at, not the combinations of their flavors, which may be millions.
    """
    flavor = given.flavors.get(name)
    labels = {shape.labels for shape in flavor.shapes} if flavor is not None else set()
    if not labels:
        return
    nodes = {frozenset(group for group in others if _is_of(given, group, {*each})) for each in labels}
    left = [group for group in others if any(group in groups for groups in nodes)]
    yield from ([group] for group in others if group not in left)
    if not any(groups.issuperset(left) for groups in nodes):
        for group in tuple(left):
            fewer = [each for each in left if each is not group]
            if not any(groups.issuperset(fewer) for groups in nodes):
                left = fewer
        yield left


def _is_of(given: LintedConfiguration, group: Group, labels: set[tuple[str, str]]) -> bool:
    """Whether a node with these labels is of a flavor of a group, or one that is not known may be."""
    flavors = [given.flavors.get(name) for name in group.flavors]
    return any(each is None or not each.shapes or labels >= {*each.labels} for each in flavors)


def closed_nodes(given: LintedConfiguration) -> Iterator[Found]:
    """No node of a flavor accepts the pods admitted to it: each is cordoned, not ready, or tainted.

    Pods may hold other flavors of the same node too, such as one for its CPUs beside one for its GPUs.
    """
    flavors = given.flavors.values()
    for name, flavor in sorted(given.flavors.items()):
        own = [node for node in given.nodes if has_labels(node, flavor)]
        if own and not any(
            is_open(node, *(each for each in flavors if has_labels(node, each))) for node in own
        ):
            unusable = sum(not node.schedulable for node in own)
            words = (
                f"none of its nodes accepts the pods admitted to it: {unusable} cordoned or not ready, "
                f"{len(own) - unusable} with taints that no flavor of theirs names or tolerates"
            )
            yield f"ResourceFlavor {name}", words


def unused_flavor(given: LintedConfiguration) -> Iterator[Found]:
    """No queue names a flavor."""
    used = {name for queue in given.tree.queues.values() for group in queue.groups for name in group.flavors}
    used |= {flavor for cohort in given.tree.cohorts.values() for flavor, _ in cohort.quotas}
    for name in sorted(given.flavors.keys() - used):
        if not given.catalog.elastic.uses(name):
            yield f"ResourceFlavor {name}", "no queue and no Cohort names it"


def same_nodes(given: LintedConfiguration) -> Iterator[Found]:
    """Two flavors describe the same nodes: quota of one is used on the nodes of the other."""
    alike: defaultdict[object, list[str]] = defaultdict(list)
    for name, flavor in sorted(given.flavors.items()):
        if name != ANY_NODE:
            alike[flavor.labels, flavor.taints].append(name)
    for first, *others in alike.values():
        for name in others:
            words = f"has the labels and taints of {first}: both describe the same nodes, each with a quota"
            yield f"ResourceFlavor {name}", words


def weight_of_zero(given: LintedConfiguration) -> Iterator[Found]:
    """A weight of zero where weights divide borrowed quota."""
    for _, queue in given.queues():
        if not queue.weight and given.tree.fair(given.tree.root(queue.name)):
            words = (
                "fairSharing.weight is 0: it borrows only what no other queue wants, and gives it back first"
            )
            yield f"ClusterQueue {queue.name}", words


def useless_lending(given: LintedConfiguration) -> Iterator[Found]:
    """A `lendingLimit` where no other queue can borrow."""
    for _, queue in given.queues():
        for key, quota in _own(queue):
            if quota.lending_limit is not None and not given.relatives(queue, key):
                words = (
                    f"lendingLimit of {key[1]} in {key[0]} has no effect: no other queue in its cohort "
                    "counts it"
                )
                yield f"ClusterQueue {queue.name}", words


def lends_for_good(given: LintedConfiguration) -> Iterator[Found]:
    """A queue lends, and may not reclaim."""
    for _, queue in given.queues():
        if queue.preemption.reclaim is not Reclaim.NEVER or queue.pool:
            continue
        lent = [
            f"{resource} in {flavor}"
            for (flavor, resource), quota in sorted(queue.quotas.items())
            if quota.minimum and quota.lending_limit != 0 and given.relatives(queue, (flavor, resource))
        ]
        if lent:
            words = f"lends {', '.join(lent)}, and gets it back only as borrowers end"
            words += ": reclaimWithinCohort is Never"
            yield f"ClusterQueue {queue.name}", words


def min_is_no_cap(given: LintedConfiguration) -> Iterator[Found]:
    """A queue of a cohort may use more than its `min`."""
    for _, queue in given.queues():
        for key, quota in sorted(queue.quotas.items()) if not queue.pool else ():
            most = given.book.cell(queue.name, key).potential_available()
            if quota.maximum is None and most > quota.minimum > 0:
                words = (
                    f"min of {key[1]} in {key[0]} is {display(key[1], quota.minimum)}, which is no cap: "
                    f"it may borrow, and use {display(key[1], most)}; max caps it"
                )
                yield f"ClusterQueue {queue.name}", words


def nothing_to_give(given: LintedConfiguration) -> Iterator[Found]:
    """A queue that can never admit anything: no quota of its own, and none to borrow."""
    for _, queue in given.queues():
        keys = queue.keys()
        if keys and not any(given.book.cell(queue.name, key).potential_available() > 0 for key in keys):
            words = "can never admit anything: it has no quota of its own, and there is none to borrow"
            yield f"ClusterQueue {queue.name}", words


RULES: Final[tuple[tuple[str, Severity, Rule], ...]] = (
    ("LeadsNowhere", Severity.ERROR, leads_nowhere),
    ("NoSuchQueue", Severity.ERROR, lint_pods.no_such_queue),
    ("NoSuchClass", Severity.ERROR, lint_pods.no_such_class),
    ("UnreadableMaximum", Severity.ERROR, lint_pods.unreadable_maximum),
    ("MoreThanMaximum", Severity.WARNING, lint_pods.more_than_maximum),
    ("ClassForNoQueue", Severity.WARNING, class_for_no_queue),
    ("GroupWithoutSize", Severity.ERROR, lint_pods.group_without_size),
    ("GroupSizesDiffer", Severity.WARNING, lint_pods.group_sizes_differ),
    ("TooManyShapes", Severity.ERROR, lint_pods.too_many_shapes),
    ("NoDefaultQueue", Severity.ERROR, no_default_queue),
    ("NotSelected", Severity.ERROR, not_selected),
    ("NobodyMayUse", Severity.WARNING, nobody_may_use),
    ("MoreThanNodes", Severity.WARNING, more_than_nodes),
    ("MoreThanNodes", Severity.WARNING, elastic_more_than_nodes),
    ("NoNodes", Severity.WARNING, no_nodes),
    ("NoNodeForAll", Severity.WARNING, no_node_for_all),
    ("ClosedNodes", Severity.WARNING, closed_nodes),
    ("UnusedFlavor", Severity.NOTE, unused_flavor),
    ("SameNodes", Severity.WARNING, same_nodes),
    ("WeightOfZero", Severity.NOTE, weight_of_zero),
    ("UselessLending", Severity.WARNING, useless_lending),
    ("LendsForGood", Severity.NOTE, lends_for_good),
    ("KeepsWhatItBorrows", Severity.WARNING, lint_limits.keeps_what_it_borrows),
    ("MinIsNoCap", Severity.NOTE, min_is_no_cap),
    ("NothingToGive", Severity.WARNING, nothing_to_give),
)
"""By their names in docs/lint.md."""
