"""One Job and its Workload, brought together: take the Workload's key, read the world, converge.

Previous step: a Job or Workload changed, or an admission was written (`workload.admission`).
A Job that may start is unsuspended here; `workload.eviction` stops a Job that must stop.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final

import structlog

from admitter.api.conditions import EventReason, EvictedReason, FinishedReason, WaitingReason
from admitter.api.job_kind import Injection
from admitter.cache.job_resources import titled
from admitter.cache.pod_set_infos import NotSaidError, PlaceError
from admitter.cache.views import LONGEST_RECORD, JobView, WorkloadView, at, timestamp
from admitter.cache.world import OWN, World, workload_path
from admitter.client.errors import ApiError, InvalidError, NotFoundError
from admitter.client.store import Key
from admitter.client.transport import Json, Transport
from admitter.client.workqueue import Urgency, WorkQueue
from admitter.controllers.telemetry.events import Events, subject_of
from admitter.controllers.workload.eviction import Evictions
from admitter.controllers.workload.held_status import HeldPods
from admitter.controllers.workload.marks import Marks
from admitter.controllers.workload.pod_jobs import GroupJobs, evicted_end, has_had_its_time, is_group
from admitter.controllers.workload.pod_writes import stop
from admitter.controllers.workload.refused_starts import TRIED_AGAIN_SECONDS, is_for_good
from admitter.controllers.workload.resizes import Resizes
from admitter.controllers.workload.writes import adopt, delete_workload, hold, whole
from admitter.engine.model import Flavor
from admitter.names import (
    API_VERSION,
    ELASTIC_QUOTA_QUEUE,
    EVICTION_TIME_ANNOTATION,
    INJECTED_ANNOTATION,
    QUEUE_LABEL,
)
from admitter.policy import status
from admitter.policy.catalog import Catalog
from admitter.policy.derive import (
    covers,
    covers_made,
    is_up_to_date,
    lacks,
    metadata_for,
    workload_spec,
)
from admitter.policy.fewer_pods import is_lowered
from admitter.policy.growing import shrinks
from admitter.policy.held import missing
from admitter.policy.injection import start_patch
from admitter.policy.pod_groups import lapsed_of
from admitter.policy.priorities import CLASS_FIELD, priority_of, value_now
from admitter.quantities.amounts import InvalidQuantityError

WORKERS: Final = 32
GIVES_BACK, STARTS, NEW, OTHER = range(4)
NOT_YET: Final = "suspended until it is admitted: it was set running without admission"
MADE_OTHERWISE: Final = "its operator has made other pods than were admitted"
NO_MORE: Final = "suspended again: it has held quota for as long as it may, and its Workload is finished"

log = structlog.get_logger(__name__)


@dataclass(eq=False)
class Jobs:
    """Keeps Jobs and Workloads in step."""

    world: World
    catalog: Catalog
    events: Events
    marks: Marks
    eviction: Evictions
    held: HeldPods
    resizes: Resizes
    transport: Transport

    def __post_init__(self) -> None:
        self.queue: WorkQueue[Key] = WorkQueue(self.converge, WORKERS, self._urgency, self._refused)

    @property
    def groups(self) -> GroupJobs:
        return self.eviction.groups

    def _urgency(self, key: Key) -> Urgency | None:
        """Workloads that give quota back come first, then admitted ones to be started, then new Jobs."""
        if not self.world.owners.owns(key):
            return None
        workload, job = self.world.workloads.get(key), self.world.job_of(key)
        if workload is None:
            return (NEW, -priority_of(job, self.world)) if job is not None and not job.finished else None
        if job is None or job.uid != (workload.job or ("", ""))[1]:
            return (OTHER,)
        if workload.finished:
            return (OTHER,) if is_group(workload) or _is_unfinished(job, workload) else None
        if job.finished or workload.evicting or shrinks(workload):
            return (GIVES_BACK,)
        return (STARTS,) if workload.admission is not None and job.suspended else (OTHER,)

    async def converge(self, key: Key) -> None:
        """Do the next thing that brings a Job and the Workload of this key in step."""
        if not self.world.owners.owns(key):
            return  # it has come to another process while it waited here
        workload, job = self.world.workloads.get(key), self.world.job_of(key)
        if self._unknown(key, workload, job):
            return  # what can't be read is neither started nor stopped, and an event says so
        if job is None and workload is not None:
            await self._without_job(workload)
        elif job is not None and workload is None:
            await self._without_workload(job)
        elif job is not None and workload is not None:
            if workload.job is None or workload.job[1] != job.uid:
                self._tell(job, WaitingReason.WORKLOAD_TAKEN, f"Workload {workload.name} is not its own")
            else:
                await self._both(job, workload)

    def _unknown(self, key: Key, workload: WorkloadView | None, job: JobView | None) -> bool:
        """Whether it is not known what the Job or the Workload of a key is now."""
        owner = job.name if job is not None else (workload.job or ("", ""))[0] if workload is not None else ""
        return key in self.world.workloads.unreadable or (key[0], owner) in self.world.jobs.unreadable

    async def _without_job(self, workload: WorkloadView) -> None:
        if is_group(workload):
            await self.groups.without_pods(workload)
        elif workload.job is not None:
            if self.world.unknown_kind(workload.job[0], workload.group):
                return  # its object may be there, and run
            gone = await self._newest(workload) is None
            if gone and not self.world.unknown_kind(workload.job[0], workload.group):  # as above, by now
                self.held.forget(workload.uid)
                self.resizes.forget(workload.uid)
                await delete_workload(workload, self.transport)
        elif not workload.finished:
            await self.eviction.converge(await self._valued(workload), None)

    async def _newest(self, workload: WorkloadView) -> JobView | None:
        """A Workload's Job as it is now: the store of Jobs may be behind that of Workloads."""
        name, uid = workload.job or ("", "")
        if not name or not self.world.reads(name):
            return None
        try:
            raw = await self.transport.get(self.world.job_path((workload.namespace, name)))
        except NotFoundError:
            return None
        return self.world.take_titled(name, raw) if raw["metadata"]["uid"] == uid else None

    async def _without_workload(self, job: JobView) -> None:
        """A queued Job without a Workload: it must not run, and it gets a Workload."""
        if self._is_unlabelled(job):
            if await self._is_child(job):
                return
            job = await adopt(job, ELASTIC_QUOTA_QUEUE, self.world, self.transport)
        idle = job.queue is None or job.finished or job.deleting
        if idle or self._is_going(job.namespace) or await self._is_child(job):
            return
        if not job.suspended:
            if job.started_by == job.workload and not job.resumed:
                return  # the Job controller has yet to act on the start: only then can it prove the stop
            job = await self._suspend(job)
        if job.suspended and is_lowered(job):
            job = await self._suspend(job)
        if job.suspended:  # pods that run are there until they are gone
            await self._make_workload(job)

    async def _make_workload(self, job: JobView) -> None:
        if not job.queue:
            self._tell(job, WaitingReason.QUEUE_NOT_FOUND, f"its label {QUEUE_LABEL} is empty")
            return
        spec = self._spec(job)
        if spec is None or self.groups.is_early(job):
            return
        metadata = metadata_for(job, self.world)
        body = {"apiVersion": API_VERSION, "kind": "Workload", "metadata": metadata, "spec": spec}
        try:
            raw = await self.transport.create(f"{OWN}/namespaces/{job.namespace}/workloads", body)
        except InvalidError as error:
            self._invalid(job, "no Workload can be made for it", error)
            return
        self.world.read_workloads.take(raw)

    def _spec(self, job: JobView) -> Json | None:
        """What the Workload of a Job asks for; None if that can't be counted, and the Job's user is told."""
        try:
            return workload_spec(job, self.world)
        except InvalidQuantityError as error:
            self._tell(job, WaitingReason.INVALID_REQUESTS, f"its requests can't be counted: {error}")
            return None

    def _is_unlabelled(self, job: JobView) -> bool:
        """Whether a Job names no queue, though an elastic quota manages all Jobs of its namespace."""
        manages = not job.queue and self.catalog.elastic.manages(job)
        return manages and not job.finished and not job.deleting

    async def _is_child(self, job: JobView) -> bool:
        """Whether a Job is counted with an object, by the operator of which it was made."""
        named = self.world.parent_of(job)
        if named is None:
            return False
        if self.world.unknown_kind(named[0], job.owner.group if job.owner is not None else ""):
            return True  # it may be there; when that is known, we are here again
        key = (job.namespace, named[0])
        if self.world.reads(named[0]) and self.world.jobs.get(key) is None:
            with suppress(NotFoundError):  # the store of its kind may be behind that of Jobs
                self.world.take_titled(named[0], await self.transport.get(self.world.job_path(key)))
        return self.world.is_child(job, self._counts)

    def _counts(self, job: JobView) -> bool:
        """Whether a Job is counted by itself, or will be once its elastic quota has taken it."""
        return bool(job.queue) or self.catalog.elastic.manages(job)

    def _is_going(self, namespace: str) -> bool:
        """Whether a namespace is being deleted: nothing can be created in it, and its Jobs go too."""
        view = self.world.namespaces.get(("", namespace))
        return view is not None and view.terminating

    async def _both(self, job: JobView, workload: WorkloadView) -> None:
        if workload.finished:
            if is_group(workload):
                await self.groups.over(job)
            elif _is_unfinished(job, workload):
                await self._suspend(job, NO_MORE)
            return
        over = self.groups.end_of(job, workload) if is_group(workload) else end_of(job, workload)
        if over is not None:
            if not is_group(workload) or await self.groups.without_waiting(job):
                await self._finish(job, workload, *over)
        elif workload.admission is None:
            await self._waiting(job, workload)
        elif workload.evicting or self.eviction.wanted(workload) is not None:
            self.resizes.forget(workload.uid)
            await self.eviction.converge(workload, job)
        elif not await self.eviction.ready.note(workload):
            await self._admitted(job, workload)

    async def _waiting(self, job: JobView, workload: WorkloadView) -> None:
        """Nothing of the Job may run, and its Workload asks for what the Job asks now."""
        if not job.queue:
            await delete_workload(workload, self.transport)
            return
        if not job.suspended or is_lowered(job):
            await self._suspend(job)
            return
        if not await self.groups.waiting(job, workload):
            return
        if workload.parked:
            return  # what it asks for is not known; when it is, that brings us here again
        spec = self._spec(job)
        if spec is None:
            return
        changes = {name: value for name, value in spec.items() if workload.spec.get(name) != value}
        changes |= dict.fromkeys(({"priorityClassName", CLASS_FIELD} & workload.spec.keys()) - spec.keys())
        if changes:
            body = {"metadata": {"resourceVersion": str(workload.version)}, "spec": changes}
            try:
                raw = await self.transport.patch(workload_path(workload.key), body)
            except InvalidError as error:
                self._invalid(job, "its Workload can't ask for that", error)
                return
            self.world.read_workloads.take(raw)

    async def _admitted(self, job: JobView, workload: WorkloadView) -> None:
        """The Job runs on what was admitted, and on nothing else."""
        workload = await self._valued(workload)
        if is_group(workload):
            await self._group_admitted(job, workload)
            return
        words = ""
        if job.queue != workload.queue:
            words = f"its {job.resource.kind} names another queue than the one that it was admitted from"
        elif not self._covers(job, workload):
            words = f"its {job.resource.kind} asks for more, or for something else, than was admitted"
            words = missing(workload, job) or words
        elif self._has_shrunk(job, workload):
            words = (
                f"its {job.resource.kind} has fewer pods than were admitted: what describes it has changed"
            )
        if words:
            now = await self._newest(workload)
            if now is not None and now.version == job.version:  # otherwise its change brings us here again
                if self._is_made_otherwise(now, workload):
                    await self._give_up_start(now, workload, MADE_OTHERWISE)
                else:
                    await self.eviction.begin(workload, EvictedReason.JOB_CHANGED, words)
        elif job.suspended and not job.deleting:
            await self._start(job, workload)
        else:
            await self._tell_when(job, workload)
            await self.resizes.converge(job, workload)
            await self.held.converge(job, workload)

    async def _group_admitted(self, job: JobView, workload: WorkloadView) -> None:
        if await self._flavors(workload) is None:
            return
        if not await self.groups.admitted(job, workload, partial(self._start, workload=workload)):
            words = "its pods ask for something else than was admitted"
            if lapsed_of(workload):
                words += ", or came when their places had been given back"
            await self.eviction.begin(workload, EvictedReason.JOB_CHANGED, words)

    async def _valued(self, workload: WorkloadView) -> WorkloadView:
        """Let a Workload say the priority that its WorkloadPriorityClass has now; returns what it says then.

        Decisions go by that already. It keeps the class that it was admitted with until it waits again.
        """
        value = value_now(workload.spec, self.world)
        if value == workload.spec.get("priority", 0):
            return workload
        body = {"metadata": {"resourceVersion": str(workload.version)}, "spec": {"priority": value}}
        return self.world.read_workloads.take(await self.transport.patch(workload_path(workload.key), body))

    def _covers(self, job: JobView, workload: WorkloadView) -> bool:
        """Whether what was admitted is enough for a Job.

        If its templates are in another object, the Jobs that were made for it tell what runs: a user may
        change that object between the admission and the start, and what changes later comes into no pods.
        """
        if job.suspended or job.resource.injection is not Injection.RUNTIME_PATCH:
            return covers(workload, job, self.world, self.catalog)
        made = self.eviction.made_for(job)
        running = [each for each in made if not (each.suspended or each.finished or each.deleting)]
        return covers_made(workload, running, self.catalog)

    def _is_made_otherwise(self, job: JobView, workload: WorkloadView) -> bool:
        """Whether an operator has made something else than its object asks for: it would do so again."""
        if job.suspended or job.resource.injection is not Injection.RUNTIME_PATCH:
            return False
        try:
            return is_up_to_date(workload, job, self.world)
        except InvalidQuantityError:
            return False

    def _has_shrunk(self, job: JobView, workload: WorkloadView) -> bool:
        """Whether pods were admitted that never come: their templates went from the object that had them.

        That object was changed between the admission and the start; what changes later comes into no pods.
        So what was made tells, and what is there now has to agree: else the next admission would be the same.
        """
        if job.suspended or job.resource.injection is not Injection.RUNTIME_PATCH:
            return False
        if not lacks(workload, [job]) or any(
            self.world.unknown_kind(titled(*each, ""), each[0]) for each in job.resource.children
        ):
            return False
        made = [each for each in self.eviction.made_by(job) if each.is_started_by(workload)]
        if any(each.finished or not each.suspended for each in made):
            return lacks(workload, made) and not any(each.finished for each in made)
        return self.eviction.is_idle(workload, job)

    async def _tell_when(self, job: JobView, workload: WorkloadView) -> None:
        """The Job says when it will be evicted, if it will."""
        until = timestamp(at(workload.evict_at)) if workload.evict_at is not None else ""
        if job.eviction_time != until and not job.resource.is_pods:  # pods are told with those of other kinds
            body = {"metadata": {"annotations": {EVICTION_TIME_ANNOTATION: until or None}}}
            self.world.take_job(job, await self.transport.patch(job.path, body))

    async def _flavors(self, workload: WorkloadView) -> dict[str, Flavor] | None:
        """The flavors that were admitted; None, and the Workload is evicted, if one is gone."""
        assert workload.admission is not None
        names = {flavor for pod_set in workload.admission.pod_sets for _, flavor in pod_set.flavors}
        flavors = {name: flavor for name in names if (flavor := self.catalog.flavor(name)) is not None}
        if len(flavors) == len(names):
            return flavors
        gone = ", ".join(sorted(names - set(flavors)))
        await self.eviction.begin(workload, EvictedReason.FLAVOR_NOT_FOUND, f"flavor {gone} is gone")
        return None

    async def _start(self, job: JobView, workload: WorkloadView) -> None:
        assert workload.admission is not None
        flavors = await self._flavors(workload)
        if flavors is None:
            return
        if job.status["startTime"] is not None:
            job = await self.eviction.forget_start(job)
        capacity = self.marks.of_next_pod(workload)
        raw = await whole(job, self.world, self.transport)
        try:
            body = _start_body(job, workload, flavors, capacity, raw)
            raw = await self.transport.patch(job.path, body)
        except ApiError as error:
            if not is_for_good(error):
                raise
            words = f"its {job.resource.kind} can't be started: {error}"
            await self._give_up_start(self.world.job_of(workload.key) or job, workload, words)
            return
        except NotSaidError:
            return  # the next change of its status brings us here again
        self.eviction.started(self.world.take_job(job, raw))

    async def _give_up_start(self, job: JobView, workload: WorkloadView, words: str) -> None:
        """Evict a Workload of which the Job can't be started as it is, and remember that it can't."""
        await self.eviction.begin(workload, EvictedReason.NOT_STARTED, words)
        self.eviction.refused.note(job, words)

    async def _finish(
        self, job: JobView, workload: WorkloadView, reason: FinishedReason, message: str
    ) -> None:
        self.held.forget(workload.uid)
        self.resizes.forget(workload.uid)
        if not job.resource.proves:
            await self.eviction.count_pods(workload)
        body = status.finished(workload, reason, message, self.eviction.grace.clock())
        raw = await self.transport.patch(f"{workload_path(workload.key)}/status", body)
        self.world.read_workloads.take(raw)

    async def _suspend(self, job: JobView, why: str = NOT_YET) -> JobView:
        """Stop a queued Job that runs without admission; one that has stopped gets its parallelism back."""
        if job.suspended:
            return await hold(job, self.world, self.transport)
        if job.resource.is_pods:
            words = "deleted: it ran without admission, since its Workload is gone"
            await stop(job, words, self.eviction.grace.clock, self.world, self.transport)
            self._tell(job, EventReason.STOPPED, words)
            return job
        suspended = await hold(job, self.world, self.transport)
        self._tell(job, EventReason.SUSPENDED, why)
        log.info("suspended", namespace=job.namespace, workload=job.workload, job=job.name)
        return suspended

    def _refused(self, key: Key, error: Exception) -> None:
        """For some seconds the API server has refused a write that a Job needs."""
        self.events.refused(self.world.job_of(key), error)

    def _invalid(self, job: JobView, words: str, error: InvalidError) -> None:
        """What a Job asks for can't be written; what refuses it may be gone after a while."""
        place = {"namespace": job.namespace, "job": job.name}
        log.warning("write refused", **place, workload=job.workload, error=str(error))
        self._tell(job, WaitingReason.INVALID_REQUESTS, f"{words}: {error}")
        self.queue.add_at_latest((job.namespace, job.workload), TRIED_AGAIN_SECONDS)

    def _tell(self, job: JobView, reason: str, message: str) -> None:
        self.events.record(subject_of(job), reason, message)


def _is_unfinished(job: JobView, workload: WorkloadView) -> bool:
    """Whether a job object runs though its Workload has had its time: its user has resumed it."""
    return has_had_its_time(workload) and not (job.suspended or job.finished or job.deleting)


def end_of(job: JobView, workload: WorkloadView) -> tuple[FinishedReason, str] | None:
    """How a Job or a single pod has ended; None if it has not."""
    if job.finished is None:
        return None
    if job.finished == "Complete":
        return FinishedReason.JOB_SUCCEEDED, job.finish_message
    if workload.evicting and job.resource.is_pods:
        return evicted_end(workload)
    return FinishedReason.JOB_FAILED, job.finish_message


def _start_body(
    job: JobView,
    workload: WorkloadView,
    flavors: Mapping[str, Flavor],
    capacity: str | None,
    raw: Json | None,
) -> Json:
    """As `start_patch`.

    Raises:
        InvalidError: the object has no place for what its pods get, or would have to remember more for the
            next eviction than is read then.
        NotSaidError: its operator has not told its pods yet.
    """
    assert workload.admission is not None
    try:
        body = start_patch(job, workload, workload.admission, flavors, capacity, raw)
    except PlaceError as error:
        raise InvalidError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", str(error)) from error
    size = len(body["metadata"]["annotations"][INJECTED_ANNOTATION])
    if size > LONGEST_RECORD:
        words = (
            f"labels and tolerations of its flavors take {size} characters, at most {LONGEST_RECORD} are read"
        )
        raise InvalidError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", words)
    return body
