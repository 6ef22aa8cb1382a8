"""PlacementPolicies as they come and go: which one governs a namespace, and which Jobs are its.

The rules themselves are in `admitter.quotas.placement`; the objects are read here, by the controller and by
the simulator.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from admitter.api.conditions import ConditionType
from admitter.api.placement_policy import PlacementPolicy, PlacementRule
from admitter.cache.timestamps import seconds
from admitter.cache.views import JobView, ObjectView, at, timestamp
from admitter.cache.world import World
from admitter.convert import definitions
from admitter.engine.model import Requirement
from admitter.names import QUEUE_ALIAS_LABEL
from admitter.policy.defects import Defect, parsed

NOTICE_SECONDS: Final = 60.0  # by then after a change of a policy the API server acts on it


class PlacementClaim(Enum):
    """Whether a Job that names no queue is a policy's to place."""

    YES = auto()
    NO = auto()
    # the API server let it pass without a mark, if it had the policy for that when the Job was made
    UNLESS_PASSED = auto()
    UNLESS_KUEUES = auto()  # the Job names a queue of Kueue


@dataclass(frozen=True, slots=True)
class ReadPolicy:
    """A PlacementPolicy as it is followed.

    `namespaces` is what a namespace's labels must satisfy; None selects none.
    """

    name: str
    uid: str
    rules: tuple[PlacementRule, ...]
    namespaces: tuple[Requirement, ...] | None

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether the Jobs of a namespace with these labels are placed."""
        return self.namespaces is not None and all(r.matches(labels) for r in self.namespaces)


def awaits_queue(job: JobView) -> bool:
    """Whether a policy has suspended a Job, or has had it and no user has resumed it since."""
    submission = job.submission
    if submission is None:
        return False
    return bool(submission.policy) or (submission.placed is not None and job.suspended)


class PlacementPolicies:
    """Says which policy governs a namespace."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._policies: dict[str, ReadPolicy] = {}
        self._problems: dict[str, Defect] = {}

    def changed(self, name: str) -> None:
        """A policy was made, changed or removed; one that is invalid stays what it was."""
        view = self._world.placement_policies.get(("", name))
        self._problems.pop(name, None)
        if view is None:
            self._policies.pop(name, None)
            return
        made, wrong = parsed(PlacementPolicy, view)
        if wrong is not None:
            self._problems[name] = wrong
        elif made is not None:
            selector = definitions.requirements(made.spec.namespace_selector)
            self._policies[name] = ReadPolicy(name, view.uid, tuple(made.spec.rules), selector)

    def problem(self, name: str) -> Defect | None:
        return self._problems.get(name)

    @property
    def readable(self) -> bool:
        """Whether it is known of every policy which namespaces it selects."""
        return self._problems.keys() <= self._policies.keys()

    def governing(self, namespace: str) -> ReadPolicy | None:
        """The policy by which Jobs of a namespace are placed: the first by name that selects it."""
        labels = self._world.labels_of(namespace)
        return next((p for _, p in sorted(self._policies.items()) if p.selects(labels)), None)

    def since(self, view: ObjectView) -> str | None:
        """Since when a policy is what it is, a new one since it was made; None: that is yet to be written."""
        conditions = view.status.get("conditions") or ()
        active = next((c for c in conditions if c["type"] == ConditionType.ACTIVE), None)
        if active is None:
            return timestamp(at(view.created))
        return view.status.get("since") if active.get("observedGeneration") == view.generation else None

    def claim(self, policy: ReadPolicy, job: JobView, labelled: float) -> PlacementClaim:
        """Whether a Job that names no queue is the policy's; those that were there before are not.

        The API server marks those that are, and without a mark it counts when the Job was made: in the moment
        before the API server has taken notice of a policy it marks none, nor when it can't read policies.
        The controller notes the Jobs that a policy has had and that no user has resumed since.

        The policy governs the Job's namespace, which has the labels that it has, or has been seen with them,
        since `labelled`, in seconds since the epoch.
        """
        if job.submission is None:
            return PlacementClaim.NO
        if awaits_queue(job):
            return PlacementClaim.YES
        since = self.came(policy)
        if job.created < since:
            return PlacementClaim.NO
        if QUEUE_ALIAS_LABEL in job.submission.labels:
            return PlacementClaim.UNLESS_KUEUES
        unnoticed = job.created <= since + NOTICE_SECONDS
        missed = job.created > max(since, labelled) + NOTICE_SECONDS
        return PlacementClaim.YES if unnoticed or missed else PlacementClaim.UNLESS_PASSED

    def came(self, policy: ReadPolicy) -> float:
        """Since when it is what it is, in seconds since the epoch; infinite if that is yet to be written."""
        view = self._world.placement_policies.get(("", policy.name))
        since = self.since(view) if view is not None else None
        return seconds(since) if since is not None else math.inf
