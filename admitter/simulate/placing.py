"""What controllers do about queues in a cluster, in a simulation.

They find one for each Job that names none, and make those of namespaces that bring their own quota.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from admitter.api.conditions import ConditionType, PlacementReason
from admitter.cache.views import JobView, ObjectView
from admitter.cache.world import World
from admitter.client.store import Key
from admitter.names import DEFAULT_QUEUE_LABEL, ELASTIC_QUOTA_QUEUE, GENERATED_LABEL, QUEUE_ALIAS_LABEL
from admitter.policy import local_queue_rules
from admitter.policy.catalog import Catalog
from admitter.policy.defects import Defect
from admitter.policy.gate import Waiting
from admitter.policy.generated import KINDS
from admitter.policy.local_queue_rules import LocalQueueRule
from admitter.policy.plans import NamespacePlan, generated, plan, surroundings
from admitter.quotas.placement import PlacementError, place
from admitter.simulate.manifests import Invalid

Json = dict[str, Any]

ENDED: Final = "no PlacementPolicy selects its namespace any more"


@dataclass(frozen=True, slots=True)
class Found:
    """The queue of a Job, and manifests of the objects to create for it."""

    queue: str
    manifests: tuple[Json, ...] = ()


class Placing:
    """Finds queues; it creates none itself."""

    def __init__(self, world: World, catalog: Catalog) -> None:
        self._world = world
        self._catalog = catalog

    def find(self, job: JobView, *, new: bool, waits: bool) -> Found | Waiting | None:
        """The queue of a Job that names none, or why it waits for one; None: no rule applies to it.

        Only of a Job that comes at this moment (`new`) another system's label counts, and the default queue
        of its namespace.
        """
        assert job.submission is not None, "it names no queue"
        alias = job.submission.labels.get(QUEUE_ALIAS_LABEL)
        if new and alias and self._world.local_queues.get((job.namespace, alias)) is not None:
            return Found(alias)
        default = self._world.labels_of(job.namespace).get(DEFAULT_QUEUE_LABEL, "") if new else ""
        if named := ELASTIC_QUOTA_QUEUE if self._catalog.elastic.manages(job) else default:
            return Found(named)
        policies = self._catalog.placement
        policy = policies.governing(job.namespace)
        if policy is None:
            return Waiting(PlacementReason.PLACEMENT_ENDED, ENDED) if waits else None
        if not waits and job.created < policies.came(policy):
            return None
        around = surroundings(self._world, self._catalog, job.namespace)
        try:
            placed = place(policy.rules, job.submission, around)
        except PlacementError as error:
            words = f"PlacementPolicy {policy.name} finds no queue for it: {error}"
            return Waiting(PlacementReason.NOT_PLACED, words)
        wanted = generated(self._world, policy, job.namespace, placed)
        return Found(placed.queue, tuple(each.manifest() for each in wanted))


def since_now(before: ObjectView, spec: Json, now: str) -> Json:
    """The status of a PlacementPolicy that is written again: since when it has its spec."""
    if before.spec == spec:
        return before.status
    active = {"type": ConditionType.ACTIVE, "observedGeneration": before.generation}
    return {"conditions": [active], "since": now}


class SimulatedGenerator:
    """Says which objects to create and delete for namespaces; the simulation does so at once."""

    def __init__(self, world: World, rules: Mapping[str, LocalQueueRule]) -> None:
        """Defects that the world has already are not reported.

        `rules` are those of ClusterQueues, by name, as they are written now.
        """
        self._world = world
        self._rules = rules
        self._defects = self._wrong()

    def due(self) -> Iterator[tuple[Json, bool]]:
        """Manifests to apply, each with whether its object is deleted."""
        for _, made in self._plans():
            for wanted in made.put:
                yield wanted.manifest(), False
            for plural, view in made.delete:
                metadata = {"namespace": view.namespace, "name": view.name}
                yield {"kind": KINDS[plural], "metadata": metadata}, True

    def by_rules(self, is_empty: Callable[[Key], bool]) -> Iterator[tuple[Json, bool]]:
        """The same of the LocalQueues that ClusterQueues ask for; those in which something is stay."""
        for namespace in list(self._world.namespaces) if self._rules else ():
            made = local_queue_rules.plan(self._world, self._rules, namespace.name, is_empty)
            for wanted in made.put:
                yield wanted.manifest(), False
            for view in made.delete:
                metadata = {"namespace": view.namespace, "name": view.name}
                yield {"kind": KINDS[local_queue_rules.PLURAL], "metadata": metadata}, True

    def defects(self) -> Iterator[Invalid]:
        """New defects of the annotations of namespaces."""
        before, self._defects = self._defects, self._wrong()
        for namespace, defect in self._defects.items():
            if before.get(namespace) != defect:
                yield Invalid(f"Namespace {namespace}", defect[1])

    def _wrong(self) -> dict[str, Defect]:
        return {name: made.defect for name, made in self._plans() if made.defect is not None}

    def _plans(self) -> list[tuple[str, NamespacePlan]]:
        asking = {view.name for view in self._world.namespaces if view.annotations}
        made = {view.labels.get(GENERATED_LABEL) for view in self._world.cluster_queues}
        return [(name, plan(self._world, name)) for name in sorted(asking.union(filter(None, made)))]
