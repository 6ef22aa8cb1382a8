"""What administrators define, checked and handed to the engine: flavors and ClusterQueues.

A queue that can't work (a rule broken that the API server did not check, a flavor that is missing)
admits nothing and shows the reason as its condition `Active`; what it lends and uses still counts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from admitter.api.base import problems
from admitter.api.cluster_queue import ClusterQueue, StopPolicy
from admitter.api.cohort import Cohort
from admitter.api.conditions import ActiveReason
from admitter.api.resource_flavor import ResourceFlavor
from admitter.controllers.defects import Defect, raw, sentence
from admitter.controllers.elastic_quotas import ElasticQuotas, QuotasChanged
from admitter.controllers.placement_policies import PlacementPolicies
from admitter.controllers.views import ObjectView
from admitter.controllers.world import World
from admitter.convert import definitions
from admitter.convert.gpus import GpuSettings
from admitter.engine.cycle import Engine
from admitter.engine.model import Flavor, Requirement
from admitter.engine.policy import Cohort as CohortRules
from admitter.names import ELASTIC_QUOTA_QUEUE
from admitter.quotas.elastic import ANY_NODE


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A ClusterQueue as the controllers use it.

    Attributes:
        problem: why it admits nothing; None if it works.
        policy: whether it is stopped, and whether what runs must stop too.
        namespaces: what a namespace's labels must satisfy; None selects none.
        flavors: the names it uses.
    """

    problem: Defect | None
    policy: StopPolicy = StopPolicy.NONE
    namespaces: tuple[Requirement, ...] | None = None
    flavors: frozenset[str] = frozenset()

    @property
    def stopped(self) -> bool:
        """Whether nothing new is admitted."""
        return self.policy is not StopPolicy.NONE

    @property
    def drains(self) -> bool:
        """Whether what runs is evicted."""
        return self.policy is StopPolicy.HOLD_AND_DRAIN

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether a namespace with these labels may use the queue."""
        return self.namespaces is not None and all(r.matches(labels) for r in self.namespaces)


_MISSING = QueueEntry((ActiveReason.CLUSTER_QUEUE_NOT_FOUND, "it does not exist"))


class Catalog:
    """Checks flavors and queues as they come and go, and keeps the engine's definitions equal to them.

    Attributes:
        gpus: what counts as a GPU.
        elastic: the elastic quotas.
        placement: the rules for Jobs that name no queue.
    """

    def __init__(
        self,
        world: World,
        engine: Engine,
        gpus: GpuSettings,
        changed: Callable[[str], None] = lambda _: None,
        quotas_changed: QuotasChanged = lambda *_: None,
    ) -> None:
        """Prepare; `flavor_changed` and `queue_changed` are to be called for every object.

        Args:
            world: where definitions are read.
            engine: where they go.
            gpus: what counts as a GPU.
            changed: called with the name of each ClusterQueue whose rules changed.
            quotas_changed: called with what changed of elastic quotas.
        """
        self.gpus = gpus
        self.elastic = ElasticQuotas(world, engine, self._flavor_defect, gpus.memory, quotas_changed)
        self.placement = PlacementPolicies(world)
        self._world = world
        self._engine = engine
        self._changed = changed
        self._flavors: dict[str, Flavor] = {ANY_NODE: self.elastic.any_node}
        self._flavor_problems: dict[str, Defect] = {}
        self._cohort_problems: dict[str, Defect] = {}
        self._queues: dict[str, QueueEntry] = {}

    def queue(self, name: str) -> QueueEntry:
        """A ClusterQueue's entry; one that does not exist has that problem."""
        return self._queues.get(name, _MISSING)

    def flavor(self, name: str) -> Flavor | None:
        """A flavor, if it exists and is valid."""
        return self._flavors.get(name)

    def flavor_problem(self, name: str) -> Defect | None:
        """Why a flavor can't be used."""
        return self._flavor_problems.get(name)

    def flavor_changed(self, name: str) -> None:
        """A flavor was made, changed or removed."""
        view = self._world.flavors.get(("", name))
        flavor = None
        self._flavor_problems.pop(name, None)
        if view is not None:
            found = problems(ResourceFlavor, raw(view))
            if found:
                self._flavor_problems[name] = (ActiveReason.INVALID_SPEC, sentence(found))
            else:
                flavor = definitions.flavor(ResourceFlavor.model_validate(raw(view)), self.gpus)
        if flavor == self._flavors.get(name):
            return
        if flavor is not None:
            self._flavors[name] = flavor
            self._engine.set_flavor(flavor)
        else:
            del self._flavors[name]
        for queue, entry in sorted(self._queues.items()):
            if name in entry.flavors:
                self.queue_changed(queue)
        if self.elastic.uses(name):
            self.elastic.refresh()
        if flavor is None:
            self._engine.remove_flavor(name)

    def queue_changed(self, name: str) -> None:
        """A ClusterQueue was made, changed or removed, or one of its flavors was."""
        view = self._world.cluster_queues.get(("", name))
        if view is None:
            self._queues.pop(name, None)
            self._engine.remove_queue(name)
        else:
            self._queues[name] = entry = self._entry(view)
            if entry.problem is not None and entry.problem[0] is ActiveReason.INVALID_SPEC:
                self._engine.stop_queue(name)
            else:
                made = definitions.queue(name, ClusterQueue.model_validate(raw(view)).spec)
                self._engine.set_queue(replace(made, admits=entry.problem is None))
        self._changed(name)

    def cohort_changed(self, name: str) -> None:
        """A Cohort was made, changed or removed."""
        view = self._world.cohorts.get(("", name))
        self._cohort_problems.pop(name, None)
        found = problems(Cohort, raw(view)) if view is not None else []
        if view is None:
            self._engine.remove_cohort(name)
        elif not found:  # an invalid one stays what it was
            made = definitions.cohort(name, Cohort.model_validate(raw(view)).spec)
            if name == ELASTIC_QUOTA_QUEUE:
                plain = CohortRules(name, patience=made.patience)
                if made != plain:
                    words = "this is the cohort of elastic quotas: of its spec only preemption counts"
                    self._cohort_problems[name] = (ActiveReason.INVALID_SPEC, words)
                made = plain
            self._engine.set_cohort(made)
        if found:
            self._cohort_problems[name] = (ActiveReason.INVALID_SPEC, sentence(found))

    def cohort_problem(self, name: str) -> Defect | None:
        """Why a Cohort does not share with what is above it."""
        for cycle in self._engine.tree.cycles():
            if name in cycle:
                place = cycle.index(name)
                way = " > ".join((*cycle[place:], *cycle[:place], name))
                return ActiveReason.COHORT_CYCLE, f"spec.parent makes it its own ancestor: {way}"
        return self._cohort_problems.get(name)

    def _entry(self, view: ObjectView) -> QueueEntry:
        found = problems(ClusterQueue, raw(view))
        if found:
            return QueueEntry((ActiveReason.INVALID_SPEC, sentence(found)))
        spec = ClusterQueue.model_validate(raw(view)).spec
        names = [(r, f.name) for r, resource in enumerate(spec.resources) for f in resource.flavors]
        problem = next((p for r, flavor in names if (p := self._flavor_of(r, flavor)) is not None), None)
        return QueueEntry(
            problem,
            spec.stop_policy,
            definitions.requirements(spec.namespace_selector),
            frozenset(flavor for _, flavor in names),
        )

    def _flavor_of(self, resource: int, flavor: str) -> Defect | None:
        return self._flavor_defect(f"spec.resources[{resource}].flavors names {flavor}", flavor)

    def _flavor_defect(self, field: str, flavor: str) -> Defect | None:
        if flavor in self._flavors:
            return None
        if flavor in self._flavor_problems:
            return ActiveReason.FLAVOR_INVALID, f"{field}: {self._flavor_problems[flavor][1]}"
        return ActiveReason.FLAVOR_NOT_FOUND, f"{field}: there is no such ResourceFlavor"
