"""What administrators define, checked and handed to the engine: flavors and ClusterQueues.

A queue that can't work (a rule broken that the API server did not check, a flavor that is missing)
admits nothing and shows the reason as its condition `Active`; what it lends and uses still counts.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime

from admitter.api.cluster_queue import ClusterQueue, StopPolicy, Visibility
from admitter.api.cohort import Cohort
from admitter.api.conditions import ActiveReason, EvictedReason
from admitter.api.lifecycle import Lifecycle
from admitter.api.resource_flavor import NodeProvisioning, ResourceFlavor
from admitter.cache.world import World
from admitter.client.signal import Signal
from admitter.client.store import Key
from admitter.convert import definitions
from admitter.convert.gpus import GpuSettings
from admitter.engine.commands import Define, RemoveFlavor, SetFlavor
from admitter.engine.cycle import Engine
from admitter.engine.model import Admission, Flavor, Requirement
from admitter.engine.policy import Cohort as CohortRules
from admitter.engine.policy import Queue
from admitter.names import ANY_NODE, ELASTIC_QUOTA_QUEUE
from admitter.policy.defects import Defect, parsed, unreadable
from admitter.policy.elastic_quotas import ElasticQuotas, QuotaKey
from admitter.policy.generated import is_lenient
from admitter.policy.lifecycle_rules import NO_RULES, LifecycleRules, lifecycle_rules
from admitter.policy.local_queue_rules import UNKNOWN, LocalQueueRule, rule_of
from admitter.policy.messages import Use
from admitter.policy.placement_policies import PlacementPolicies
from admitter.policy.roots import Roots
from admitter.quotas import hierarchy
from admitter.quotas.hierarchy import NO_LIFECYCLE, Branch, Hierarchy, Named
from admitter.quotas.nodes import largest


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A ClusterQueue as the controllers use it."""

    problem: Defect | None  # why it admits nothing; None if it works
    policy: StopPolicy = StopPolicy.NONE  # whether it is stopped, and whether what runs must stop too
    # what a namespace's labels must satisfy; None selects none
    namespaces: tuple[Requirement, ...] | None = None
    flavors: frozenset[str] = frozenset()  # the names it uses
    flaw: Defect | None = None  # what is wrong with it though it works
    hidden: bool = False  # whether namespaces may not know its use and its line
    lifecycle: LifecycleRules = NO_RULES  # what becomes of its Workloads after their admission

    @property
    def stopped(self) -> bool:
        """Whether nothing new is admitted."""
        return self.policy is not StopPolicy.NONE

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether a namespace with these labels may use the queue."""
        return self.namespaces is not None and all(r.matches(labels) for r in self.namespaces)


_MISSING = QueueEntry((ActiveReason.CLUSTER_QUEUE_NOT_FOUND, "it does not exist"))


@dataclass(frozen=True, slots=True)
class _ParsedQueue:
    """A ClusterQueue as it was read last, by itself.

    `written` is its last valid definition; None if it never was valid. An object of the same name with
    another UID is another one.
    """

    uid: str
    entry: QueueEntry
    written: Queue | None
    named: Named = ()
    lifecycle: Lifecycle = NO_LIFECYCLE


@dataclass(frozen=True, slots=True)
class CatalogNews:
    """What of changed definitions has come into force."""

    queue: Signal[[str]] = field(default_factory=Signal)  # the rules of the ClusterQueue with this name
    # the rules of the Cohorts with these names, their own or of others around them
    cohorts: Signal[[AbstractSet[str]]] = field(default_factory=Signal)
    # elastic quotas: the namespaces, and the quotas (`ElasticQuotas.changed`)
    quotas: Signal[[set[str], set[QuotaKey]]] = field(default_factory=Signal)


class Catalog:
    """Checks flavors and queues as they come and go, and keeps the engine's definitions equal to them.

    Changes of queues and Cohorts are noted, and come into force with `refresh`, all in one step: with each
    step the engine requeues all workloads in their trees. A changed flavor reaches the engine at once; the
    queues that use it follow with `refresh`.
    """

    def __init__(self, world: World, engine: Engine, gpus: GpuSettings) -> None:
        """Call `flavor_changed`, `queue_changed` and `cohort_changed` for every object."""
        self.gpus = gpus  # what counts as a GPU
        self.news = CatalogNews()  # what has come into force
        # the elastic quotas
        self.elastic = ElasticQuotas(world, engine, self._flavor_defect, gpus.memory, self.news.quotas)
        self.placement = PlacementPolicies(world)  # the rules for Jobs that name no queue
        self._world = world
        self._engine = engine
        self._flavors: dict[str, Flavor] = {ANY_NODE: self.elastic.any_node}
        self._flavor_problems: dict[str, Defect] = {}
        self._on_demand: set[str] = set()
        self._nodes_due = False
        self._cohort_problems: dict[str, Defect] = {}
        self.shrinking: dict[str, Branch] = {}  # Cohorts, as they are declared, that say `onShrink: Evict`
        self._roots = Roots(world, gpus)
        self._branches: dict[str, Branch] = {}
        self._hierarchy = Hierarchy()
        self._following: list[str] = []
        self._read: dict[str, _ParsedQueue] = {}
        self._in_cohort: defaultdict[str, set[str]] = defaultdict(set)
        self._queues: dict[str, QueueEntry] = {}
        self.local_queue_rules: dict[str, LocalQueueRule] = {}  # as they are written now, by ClusterQueue
        self._changed_queues: set[str] = set()
        self._changed_cohorts: set[str] = set()
        self._gone_flavors: set[str] = set()
        self._refresh_due = False

    @property
    def stale(self) -> bool:
        """Whether a change has not come into force in the engine yet."""
        return self._refresh_due or bool(self._changed_queues or self._changed_cohorts or self._gone_flavors)

    def queue(self, name: str) -> QueueEntry:
        """A ClusterQueue's entry; one that does not exist has that problem."""
        return self._queues.get(name, _MISSING)

    def lifecycle(self, queue: str) -> LifecycleRules:
        """What becomes of Workloads that a queue of the engine admits; of elastic quotas a Cohort says."""
        entry = self._queues.get(queue, _MISSING)
        if entry is _MISSING and self.elastic.of_queue(queue) is not None:
            return lifecycle_rules([*self._hierarchy.lifecycles(ELASTIC_QUOTA_QUEUE)])
        return entry.lifecycle

    def queue_of(self, local_queue: Key) -> str | None:
        """The engine's queue that a LocalQueue, or the name of an elastic quota, leads to; None: to none."""
        namespace, name = local_queue
        quota = self.elastic.governing(namespace) if name == ELASTIC_QUOTA_QUEUE else None
        if quota is not None:
            return quota.queue
        found = self._world.local_queues.get(local_queue)
        return str(found.spec["clusterQueue"]) if found is not None else None

    def use(self, queue: str, now: datetime) -> Use:
        """What is free in a queue of the engine now."""
        return Use(self._engine, queue, now)

    def drained(self, local_queue: Key, admission: Admission) -> tuple[EvictedReason, str] | None:
        """Why an admission must end because a queue of it is stopped and drained; None if none is.

        The LocalQueue from which it was admitted counts only if it leads to a ClusterQueue.
        """
        local = self._world.local_queues.get(local_queue)
        if local is not None and local.spec.get("stopPolicy") == "HoldAndDrain" and not admission.pool:
            return EvictedReason.LOCAL_QUEUE_STOPPED, f"LocalQueue {local.name} is stopped and drained"
        if self.queue(admission.queue).policy is StopPolicy.HOLD_AND_DRAIN:
            words = f"ClusterQueue {admission.queue} is stopped and drained"
            return EvictedReason.CLUSTER_QUEUE_STOPPED, words
        return None

    def is_coming(self, name: str) -> bool:
        """Whether a ClusterQueue has changed, and that is not in force yet."""
        return name in self._changed_queues

    def selects(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether a ClusterQueue is for a namespace with these labels, as it is written now."""
        read = self._read.get(name)
        return read is not None and read.entry.selects(labels)

    def lenient(self, name: str) -> bool:
        """Whether a ClusterQueue limits only what it lists."""
        read = self._read.get(name)
        return read is not None and read.written is not None and read.written.lenient

    def flavor(self, name: str) -> Flavor | None:
        """A flavor, if it exists and is valid."""
        return self._flavors.get(name)

    def flavor_problem(self, name: str) -> Defect | None:
        return self._flavor_problems.get(name)

    def flavor_changed(self, name: str) -> None:
        """A flavor was made, changed or removed."""
        view = self._world.flavors.get(("", name))
        flavor = None
        problem = self._flavor_problems.pop(name, None)
        before = self._flavors.pop(name, None)
        self._on_demand.discard(name)
        if view is not None:
            written, wrong = parsed(ResourceFlavor, view)
            wrong = unreadable(self._world.flavors, view.key) or wrong
            if wrong is not None:
                self._flavor_problems[name] = wrong
            elif written is not None:
                made = definitions.flavor(written, self.gpus)
                flavor = replace(made, shapes=before.shapes) if before is not None else made
                if written.spec.node_provisioning is NodeProvisioning.ON_DEMAND:
                    self._on_demand.add(name)
                self._nodes_due = self._refresh_due = True
        if flavor is not None:
            self._flavors[name] = flavor
            self._gone_flavors.discard(name)
            self._engine.apply(SetFlavor(flavor))
        elif before is not None:
            self._gone_flavors.add(name)
        if (flavor, self._flavor_problems.get(name)) == (before, problem):
            return
        self._refresh_due = True  # a Cohort with `capacityFrom: Nodes` may count other nodes now
        self._changed_queues.update(queue for queue, entry in self._queues.items() if name in entry.flavors)
        if self.elastic.uses(name):
            self.elastic.refresh()

    def queue_changed(self, name: str) -> None:
        """A ClusterQueue was made, changed or removed."""
        self._changed_queues.add(name)
        view = self._world.cluster_queues.get(("", name))
        before = self._read.pop(name, None)
        known = before.written if before is not None else None
        if known is not None:
            self._in_cohort[known.cohort].discard(name)
            if not self._in_cohort[known.cohort]:
                del self._in_cohort[known.cohort]
        self._roots.queue_written(name)
        self.local_queue_rules.pop(name, None)
        if view is None:
            return
        made, wrong = parsed(ClusterQueue, view)
        wrong = unreadable(self._world.cluster_queues, view.key) or wrong
        rule = rule_of(made) if made is not None and wrong is None else UNKNOWN
        if rule is not None:
            self.local_queue_rules[name] = rule
        if made is None or wrong is not None:  # it admits nothing, but lends and counts as before
            valid = known if before is not None and before.uid == view.uid else None
            read = _ParsedQueue(view.uid, QueueEntry(wrong), valid)
        else:
            spec = made.spec
            read = _ParsedQueue(
                view.uid,
                QueueEntry(
                    None,
                    spec.stop_policy,
                    definitions.requirements(spec.namespace_selector),
                    hidden=spec.visibility is Visibility.NAMESPACE,
                ),
                definitions.queue(name, spec, lenient=is_lenient(view)),
                hierarchy.named(spec.resources),
                spec.lifecycle or NO_LIFECYCLE,
            )
        self._read[name] = read
        if read.written is not None:
            self._in_cohort[read.written.cohort].add(name)
            self._roots.queue_written(name, read.written.cohort, (flavor for _, flavor in read.named))

    def cohort_changed(self, name: str) -> None:
        """A Cohort was made, changed or removed."""
        self._changed_cohorts.add(name)
        view = self._world.cohorts.get(("", name))
        self._cohort_problems.pop(name, None)
        if view is None:
            self._branches.pop(name, None)
            return
        written, wrong = parsed(Cohort, view)
        if wrong is not None:  # an invalid one stays what it was, but where it says: all agree on the trees
            self._cohort_problems[name] = wrong
            known = self._branches.get(name, Branch(CohortRules(name)))
            if name != ELASTIC_QUOTA_QUEUE:
                parent = str(view.spec.get("parent") or "")
                self._branches[name] = replace(known, rules=replace(known.rules, parent=parent))
        elif written is not None:
            made = hierarchy.branch(name, written.spec)
            self._branches[name] = self._elastic_cohort(made) if name == ELASTIC_QUOTA_QUEUE else made

    def nodes_changed(self) -> None:
        """Nodes came or went, or have more or less."""
        self._refresh_due = self._nodes_due = True
        self._roots.nodes_changed()

    def refresh(self) -> None:
        """Put all that has changed in force."""
        if not self.stale:
            return
        self._refresh_due = False
        if self._nodes_due:
            self._tell_shapes()
        queues, self._changed_queues = self._changed_queues, set()
        cohorts, self._changed_cohorts = self._changed_cohorts, set()
        gone_flavors, self._gone_flavors = self._gone_flavors, set()
        before, changed = self._hierarchy, self._reshape(cohorts)
        due = (queues & self._read.keys()) | self._below(changed, before)
        derived = {name: self._derived(self._read[name]) for name in sorted(due)}
        entries = {name: entry for name, (entry, _) in derived.items()}
        made = {name: queue for name, (_, queue) in derived.items() if queue is not None}
        gone = {name for name in queues if name not in self._read or self._read[name].written is None}
        news = queues | {name for name, entry in entries.items() if entry != self._queues.get(name)}
        news |= {name for name, queue in made.items() if self._counts_else(queue)}
        around = self._define(made, gone, cohorts, before)
        for name in gone_flavors:
            self._engine.apply(RemoveFlavor(name))
        for name in gone:
            self._queues.pop(name, None)
        self._queues.update(entries)
        # Where a Cohort has changed, any other may be in a cycle with it, or have more than it allows.
        self.news.cohorts({cohort.name for cohort in self._world.cohorts} if changed else around)
        for name in sorted(news):
            self.news.queue(name)

    def _tell_shapes(self) -> None:
        """Tell the engine what the largest nodes of each flavor are."""
        self._nodes_due = False
        found = largest((view.node for view in self._world.nodes), self._flavors.values())
        for name, flavor in list(self._flavors.items()):
            shapes = () if name in self._on_demand else found[name]
            if shapes != flavor.shapes:
                self._flavors[name] = replace(flavor, shapes=shapes)
                self._engine.apply(SetFlavor(self._flavors[name]))

    def _define(
        self, made: Mapping[str, Queue], gone: set[str], cohorts: set[str], before: Hierarchy
    ) -> set[str]:
        """Define queues and Cohorts in the engine; returns the Cohorts for which that makes a difference."""
        for name in {*made, *gone}:
            self._roots.queue_defined(name, made.get(name))
        branches = self._hierarchy.branches
        rules = [branches[n].rules for n in sorted(cohorts & branches.keys()) if not branches[n].from_nodes]
        rules += self._roots.changed(self._hierarchy)
        around = self._around({*made, *gone}, before) | {cohort.name for cohort in rules}
        self._engine.apply(
            Define(
                tuple(made.values()),
                tuple(rules),
                tuple(gone),
                tuple(name for name in cohorts if name not in branches),
            )
        )
        return around | self._around(made, self._hierarchy)

    def _reshape(self, cohorts: set[str]) -> set[str]:
        """Take the Cohorts as they are now, with what nodes give them; returns those that have changed."""
        if cohorts:
            self.shrinking = {n: b for n, b in self._branches.items() if b.evict_after is not None}
            self._following = [name for name, branch in self._branches.items() if branch.from_nodes]
        elif not self._following:
            return set()
        before, branches = self._hierarchy.branches, self._roots.branches(self._branches, self._flavors)
        changed = cohorts | {name for name, branch in branches.items() if before.get(name) != branch}
        if changed:
            self._hierarchy = Hierarchy(branches)
        return changed

    def _around(self, queues: Iterable[str], above: Hierarchy) -> set[str]:
        """The Cohorts above some queues, as the engine knows these now."""
        known = self._engine.tree.queues
        return {each for name in queues if name in known for each in above.above(known[name].cohort)}

    def _counts_else(self, queue: Queue) -> bool:
        """Whether a queue counts something else than the engine knows of it."""
        known = self._engine.tree.queues.get(queue.name)
        return known is None or known.keys() != queue.keys()

    def cohort_problem(self, name: str) -> Defect | None:
        """Why a Cohort does not share with what is above it, or is not what it says."""
        cycle = self._engine.tree.cycle(name)
        if cycle:
            place = cycle.index(name)
            way = " > ".join((*cycle[place:], *cycle[:place], name))
            return ActiveReason.COHORT_CYCLE, f"spec.parent makes it its own ancestor: {way}"
        if name in self._cohort_problems or name not in self._branches:
            return self._cohort_problems.get(name)
        rules = self._branches[name].rules
        excess = self._hierarchy.excess(f"Cohort {name}", rules.quotas, rules.parent)
        return (ActiveReason.EXCEEDS_PARENT, excess) if excess is not None else None

    def _elastic_cohort(self, made: Branch) -> Branch:
        rules = CohortRules(ELASTIC_QUOTA_QUEUE, victim_terms=made.rules.victim_terms)
        plain = Branch(rules, lifecycle=made.lifecycle)
        if made != plain:
            words = (
                "this is the cohort of elastic quotas: of its spec only lifecycle, and gracePeriod and"
                " minRuntime of preemption count"
            )
            self._cohort_problems[ELASTIC_QUOTA_QUEUE] = (ActiveReason.INVALID_SPEC, words)
        return plain

    def _below(self, cohorts: set[str], before: Hierarchy) -> set[str]:
        """The queues below some cohorts, or that were before these changed."""
        found: set[str] = set()
        for cohort, names in self._in_cohort.items() if cohorts else ():
            if not cohorts.isdisjoint((*before.above(cohort), *self._hierarchy.above(cohort))):
                found |= names
        return found

    def _derived(self, read: _ParsedQueue) -> tuple[QueueEntry, Queue | None]:
        """A queue as it is to be, and what the engine gets."""
        if read.written is None:
            return read.entry, None
        leaf = self._hierarchy.leaf(read.written)
        title, quotas = f"ClusterQueue {leaf.queue.name}", leaf.queue.quotas
        around = self._hierarchy.lifecycles(leaf.queue.cohort)
        entry = replace(
            read.entry,
            flavors=frozenset(f for g in leaf.queue.groups for f in g.flavors),
            lifecycle=lifecycle_rules([(title, read.lifecycle), *around]),
        )
        if entry.problem is None and leaf.problem:
            entry = replace(entry, problem=(ActiveReason.INVALID_SPEC, leaf.problem))
        missing = next(self._missing((*read.named, *leaf.named)), None)
        if entry.problem is None and missing is not None:
            entry = replace(entry, problem=missing)
        excess = self._hierarchy.excess(title, quotas, leaf.queue.cohort)
        excess = excess or self._hierarchy.excessive_limit(title, leaf.queue)
        if excess is not None:
            entry = replace(entry, flaw=(ActiveReason.EXCEEDS_PARENT, excess))
        return entry, replace(leaf.queue, admits=entry.problem is None)

    def _missing(self, named: Named) -> Iterator[Defect]:
        return (defect for field, flavor in named if (defect := self._flavor_defect(field, flavor)))

    def _flavor_defect(self, field: str, flavor: str) -> Defect | None:
        if flavor in self._flavors:
            return None
        if flavor in self._flavor_problems:
            return ActiveReason.FLAVOR_INVALID, f"{field}: {self._flavor_problems[flavor][1]}"
        return ActiveReason.FLAVOR_NOT_FOUND, f"{field}: there is no such ResourceFlavor"
