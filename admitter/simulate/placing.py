"""The queues of Jobs that name none, in a simulation: what policies and the controller do in a cluster."""

from dataclasses import dataclass
from typing import Any, Final

from admitter.api.conditions import ConditionType, PlacementReason
from admitter.cache.views import JobView, ObjectView
from admitter.cache.world import World
from admitter.names import ELASTIC_QUOTA_QUEUE, QUEUE_ALIAS_LABEL
from admitter.policy.catalog import Catalog
from admitter.policy.gate import Waiting
from admitter.policy.plans import generated, surroundings
from admitter.quotas.placement import PlacementError, place

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

        Args:
            job: the Job.
            new: whether it comes at this moment: only then does another system's label count.
            waits: whether it waits for a queue already.
        """
        assert job.submission is not None, "it names no queue"
        alias = job.submission.labels.get(QUEUE_ALIAS_LABEL)
        if new and alias and self._world.local_queues.get((job.namespace, alias)) is not None:
            return Found(alias)
        if self._catalog.elastic.manages(job):
            return Found(ELASTIC_QUOTA_QUEUE)
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
