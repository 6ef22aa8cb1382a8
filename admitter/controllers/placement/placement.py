"""Finds the queue of each Job that names none: takes a Job's key, reads the world, converges.

Previous step: a Job came without a queue where a PlacementPolicy selects its namespace, or something changed
that its rules look at, or the queue is gone that they had found. Next step: the Job has the label of a queue,
and its Workload is made (`admitter.controllers.workload.jobs`).
"""

from dataclasses import dataclass
from typing import Final

import structlog

from admitter.api.conditions import PlacementReason
from admitter.cache.views import JobView, WorkloadView
from admitter.cache.world import OWN, World
from admitter.client.access import Access, User
from admitter.client.errors import ConflictError, InvalidError
from admitter.client.store import Key
from admitter.client.transport import Transport
from admitter.client.workqueue import WorkQueue
from admitter.controllers.placement.generator import GeneratedObjectWriter
from admitter.controllers.placement.guards import kueue, marking
from admitter.controllers.telemetry.events import Events, subject_of
from admitter.controllers.workload.writes import hold, release, settle
from admitter.policy.catalog import Catalog
from admitter.policy.generated import store_of
from admitter.policy.placement_policies import PlacementClaim, ReadPolicy, awaits_queue
from admitter.policy.plans import generated, surroundings
from admitter.policy.status import Clock
from admitter.quotas.placement import Placed, PlacementError, place

WORKERS: Final = 8
REMEMBERED_SECONDS: Final = 10.0
"""For so long an answer counts: many Jobs of one user come at once."""
ASKED_AGAIN_SECONDS: Final = 60.0
"""Roles are not watched: a user that was refused may have got one since."""

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class Placement:
    """Places Jobs by the rules of policies, and makes the queues that the rules say."""

    world: World
    catalog: Catalog
    events: Events
    transport: Transport
    clock: Clock

    def __post_init__(self) -> None:
        self._policies = self.catalog.placement
        self._started = self.clock().timestamp()
        self._labelled: dict[str, float] = {}
        self._access = Access(self.transport, lambda: self.clock().timestamp(), REMEMBERED_SECONDS)
        self._marking = marking(self.transport, self.clock)
        self._kueue = kueue(self.transport, self.clock)
        self._generator = GeneratedObjectWriter(self.world, self.transport)
        self._said: dict[Key, tuple[str, str, str]] = {}
        self.queue: WorkQueue[Key] = WorkQueue(self.converge, WORKERS, refused=self._refused)

    def job_changed(self, old: JobView | None, new: JobView | None) -> None:
        if new is not None and new.submission is not None:
            self.queue.add(new.key)
        elif old is not None:
            self._said.pop(old.key, None)

    def namespace_changed(self, namespace: str) -> None:
        """What rules read of a namespace changed, or one of its LocalQueues."""
        for key in self.world.jobs_by_namespace.get(namespace):
            self.job_changed(None, self.world.jobs.get(key))

    def workload_changed(self, old: WorkloadView | None, new: WorkloadView | None) -> None:
        """A Job that gives its quota back waits again, perhaps for a queue that has gone meanwhile."""
        freed = old is not None and old.admission is not None and (new is None or new.admission is None)
        if old is not None and freed:
            self.job_changed(None, self.world.job_of(old.key))

    def cluster_queue_changed(self, name: str) -> None:
        """A ClusterQueue came, changed or went; Jobs that wait in one that is gone need another."""
        self.queues_changed()
        if self.world.cluster_queues.get(("", name)) is None:
            for namespace, _ in self.world.local_queues_by_cluster_queue.get(name):
                self.namespace_changed(namespace)

    def labels_changed(self, namespace: str) -> None:
        """A namespace has other labels, came or went: Jobs from before may have been no policy's."""
        self._labelled.pop(namespace, None)
        if self.world.namespaces.get(("", namespace)) is not None:
            self._labelled[namespace] = self.clock().timestamp()

    def queues_changed(self) -> None:
        """ClusterQueues or Cohorts changed: Jobs for which there was no queue are placed again."""
        for key in self._said:
            self.queue.add(key)

    def touch_all(self) -> None:
        """Any Job may have another policy now, or have been left without a queue."""
        for job in self.world.jobs:
            if job.submission is not None:
                self.queue.add(job.key)

    async def converge(self, key: Key) -> None:
        job = self.world.jobs.get(key)
        if job is None or not self._seeks(job):
            self._said.pop(key, None)
            return
        namespace = self.world.namespaces.get(("", job.namespace))
        if namespace is None or namespace.terminating:
            return
        if job.queue is None and self.catalog.elastic.manages(job):
            return
        policy = self._policies.governing(job.namespace)
        if policy is None:
            await self._release(job)
        elif await self._is_its(policy, job):
            await self._place(policy, job)

    def _seeks(self, job: JobView) -> bool:
        """Whether a Job needs a queue: it has none, or waits in one that rules found and that is gone."""
        if job.submission is None or job.finished or job.deleting or self.world.is_child(job):
            return False
        if job.queue is None:
            return True
        workload = self.world.workloads.get((job.namespace, job.workload))
        if not job.suspended or (workload is not None and workload.admission is not None):
            return False
        queue = self.world.local_queues.get((job.namespace, job.queue))
        return queue is None or self.world.cluster_queues.get(("", queue.spec["clusterQueue"])) is None

    async def _is_its(self, policy: ReadPolicy, job: JobView) -> bool:
        """Whether a policy is to place a Job; raises ClusterError if the API server does not answer."""
        labelled = self._labelled.get(job.namespace, self._started)
        match self._policies.claim(policy, job, labelled):
            case PlacementClaim.UNLESS_PASSED:
                return not await self._marking.at(job.created)
            case PlacementClaim.UNLESS_KUEUES:
                return not await self._kueue.at(job.created)
            case claim:
                return claim is PlacementClaim.YES

    async def _release(self, job: JobView) -> None:
        assert job.submission is not None
        if job.queue is not None or not awaits_queue(job) or not self._policies.readable:
            return
        # Told again after a restart: a leader that dies here has perhaps released the Job without a word.
        words = "no PlacementPolicy selects its namespace any more: resume it yourself, or give it a queue"
        self._tell(job, PlacementReason.PLACEMENT_ENDED, words)
        if job.submission.policy:
            await release(job, self.world, self.transport)

    async def _place(self, policy: ReadPolicy, job: JobView) -> None:
        assert job.submission is not None
        around = surroundings(self.world, self.catalog, job.namespace)
        try:
            placed = place(policy.rules, job.submission, around)
            if not await self._may_submit(policy, job, placed):
                return
            await self._make(policy, job, placed)
        except PlacementError as error:
            words = f"PlacementPolicy {policy.name} finds no queue for it: {error}"
            await self._leave(policy, job, PlacementReason.NOT_PLACED, words)
            return
        if placed.queue != job.queue:
            await settle(job, placed.queue, self.world, self.transport)
        log.info("placed", namespace=job.namespace, job=job.name, policy=policy.name, queue=placed.queue)

    async def _may_submit(self, policy: ReadPolicy, job: JobView, placed: Placed) -> bool:
        """Whether the Job's user may submit to the queue; True if only the Job itself names its user."""
        assert job.submission is not None
        maker = job.submission.maker
        if maker is None or not maker.known:
            return True
        if await self._access.may_submit(User(maker.user, maker.groups), job.namespace, placed.queue):
            return True
        words = f"user {maker.user} may not submit to queue {placed.queue} in namespace {job.namespace}"
        await self._leave(policy, job, PlacementReason.SUBMIT_DENIED, words)
        self.queue.add_later(job.key, ASKED_AGAIN_SECONDS)
        return False

    async def _make(self, policy: ReadPolicy, job: JobView, placed: Placed) -> None:
        """Make what is missing; PlacementError if the API server rejects it as invalid."""
        missing = list(generated(self.world, policy, job.namespace, placed))
        if missing and not await self._is_there(policy):
            raise ConflictError(409, "Conflict", f"PlacementPolicy {policy.name} is gone by now")
        for wanted in missing:
            if store_of(self.world, wanted.plural).get(wanted.key) is not None:
                raise ConflictError(409, "AlreadyExists", f"{wanted.plural} {wanted.key[1]} is there by now")
            try:
                await self._generator.put(wanted)
            except InvalidError as error:
                raise PlacementError(f"{wanted.plural} {wanted.key[1]} can't be made: {error}") from error

    async def _is_there(self, policy: ReadPolicy) -> bool:
        """Whether a policy is still there, by the API server.

        Its queues go with it, and that may be heard of first: none of them is to come back for a moment,
        without what an administrator had written into it.
        """
        named = {"fieldSelector": f"metadata.name={policy.name}"}
        found = (await self.transport.get(f"{OWN}/placementpolicies", named))["items"]
        return any(
            each["metadata"].get("uid") == policy.uid and "deletionTimestamp" not in each["metadata"]
            for each in found
        )

    async def _leave(self, policy: ReadPolicy, job: JobView, reason: PlacementReason, message: str) -> None:
        """Let a Job wait for a queue, also for one by other rules of the policy."""
        assert job.submission is not None
        self._tell(job, reason, message)
        if not job.suspended or not job.submission.policy:
            await hold(job, self.world, self.transport, policy.name)

    def _refused(self, key: Key, error: Exception) -> None:
        """For some seconds the API server has refused a write that places a Job."""
        self.events.refused(self.world.jobs.get(key), error)

    def _tell(self, job: JobView, reason: PlacementReason, message: str) -> None:
        """Say something about a Job, once."""
        said = (job.uid, str(reason), message)
        if self._said.get(job.key) != said:
            self._said[job.key] = said
            self.events.record(subject_of(job), reason, message, lasting=True)
