"""What must hold before a Workload may compete for quota at all.

Previous step: a Workload appears or anything it depends on changes. Next step: the engine
(`admitter.engine.cycle`), which decides among those that pass.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from admitter.api.conditions import ConditionType, WaitingReason
from admitter.cache.job_resources import GROUP_SORT, JOB, POD_GROUP, sort_of
from admitter.cache.run_time_status import RunTimeStatus, run_time_of
from admitter.cache.views import JobView, ObjectView, WorkloadView
from admitter.cache.world import World
from admitter.convert import workloads
from admitter.convert.pod_sets import claims
from admitter.convert.workloads import RequeueBy
from admitter.engine.model import Admission, Workload
from admitter.engine.quota.back_off import BackOff
from admitter.engine.refusal import Refusal, Rule
from admitter.names import ELASTIC_QUOTA_QUEUE
from admitter.policy.catalog import Catalog
from admitter.policy.defects import HARMLESS
from admitter.policy.derive import is_up_to_date
from admitter.policy.gate_readiness import Limit, at_admission, gave_up
from admitter.policy.messages import queue_title, waiting_message
from admitter.policy.plans import defect_of
from admitter.policy.pod_groups import REMADE_SECONDS, complaint
from admitter.policy.priorities import CLASS_FIELD, not_for, valued
from admitter.policy.run_time import begun, left_of, maximum, used_up_message
from admitter.policy.run_time import complaint as run_time_complaint
from admitter.quantities.amounts import InvalidQuantityError
from admitter.quotas.elastic import Declared

SYSTEM_CLASSES: Final = "system-"  # how names of PriorityClasses begin that Kubernetes reserves for its own


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a workload waits: one CamelCase word, and a sentence.

    `refusal` is that of the engine, if it is the engine's.
    """

    reason: str
    message: str
    refusal: Refusal | None = None

    @property
    def back_off(self) -> BackOff | None:
        """For how long nothing is evicted for it, if it waits for the end of that."""
        return self.refusal.back_off if self.refusal is not None else None


def _paused(workload: WorkloadView) -> Waiting:
    words = gave_up(workload)
    if words:
        return Waiting(WaitingReason.GAVE_UP, words)
    return Waiting(WaitingReason.INACTIVE, "paused: its spec.active is false")


class Gate:
    """Finds the ClusterQueue of a Workload, or the reason that it can't have one now."""

    def __init__(
        self,
        world: World,
        catalog: Catalog,
        requeue_by: RequeueBy = RequeueBy.CREATION,
        refused_start: Callable[[JobView], str | None] = lambda _: None,
        backs_off: Callable[[WorkloadView], str] = lambda _: "",
        *,
        writes: bool = True,
    ) -> None:
        """`refused_start` says why a Job can't be started as it is, if that was tried.

        `backs_off` says why a Workload that was not ready in time is not tried again yet, or is empty.
        `writes` is whether Workloads are kept in step with their Jobs here. Where they are not, they compete
        as what they say, unless the controller says that they are outdated, or their Jobs can't be counted.
        """
        self._refused_start = refused_start
        self._backs_off = backs_off
        self._writes = writes
        self._world = world
        self._catalog = catalog
        self._requeue_by = requeue_by

    def competitor(self, workload: WorkloadView, job: JobView | None, queue: str) -> Workload:
        """A Workload as the engine sees it; its Job's age counts, since it may have been made much later.

        Raises:
            InvalidQuantityError: its requests can't be counted.
        """
        age = self.age(workload, job)
        spec, gpus = valued(workload.spec, self._world), self._catalog.gpus
        made = workloads.workload(workload.uid, workload.namespace, queue, spec, age, gpus)
        if workload.evictions:
            made = replace(made, evictions=workload.evictions)
        raw = workload.status.get("readiness") if workload.admission is None else None
        last = tuple(raw.get("triedLast") or ()) if raw else ()
        return replace(made, tried_last=last) if last else made

    def age(self, workload: WorkloadView, job: JobView | None) -> float:
        """The time that decides a Workload's place: it goes behind others at the end of its run time."""
        created = job.created if job is not None else workload.created
        requeued = run_time_of(workload.status).requeued
        return self._requeue_by.age(max(created, requeued or created), workload.preempted)

    def countable(self, workload: WorkloadView, job: JobView | None, queue: str) -> Workload | None:
        """As `competitor`; None if its requests can't be counted, or what it is now can't be read.

        Nor can one be stopped of a kind that is not known now: nothing is evicted that would not stop.
        """
        if workload.key in self._world.workloads.unreadable:
            return None
        if job is None and workload.job is not None and self._unknown(workload.job[0], workload.group):
            return None
        try:
            return self.competitor(workload, job, queue)
        except InvalidQuantityError:
            return None

    def all_wait(self, refusals: Mapping[str, Refusal]) -> Iterator[tuple[str, Waiting]]:
        """Why Workloads wait, by UID, that the engine has refused: many of them for one reason."""
        spelled: dict[int, Waiting] = {}  # by identity: to compare them takes as long as to spell them
        for uid, refusal in refusals.items():
            waiting = spelled.get(id(refusal))
            if waiting is None:
                waiting = spelled[id(refusal)] = self.waits(refusal)
            yield uid, waiting

    def waits(self, refusal: Refusal) -> Waiting:
        """Why a Workload waits that the engine has refused."""
        return Waiting(refusal.reason, waiting_message(refusal, self._title(refusal)), refusal)

    def message_at(self, waiting: Waiting, now: datetime) -> str:
        """Why a Workload waits, with what is in use now, unless its namespace may not know that."""
        refusal = waiting.refusal
        if refusal is None or all(each.rule is not Rule.BUSY for each in refusal.flavors):
            return waiting.message
        if self._catalog.queue(refusal.queue).hidden:
            return waiting.message
        return waiting_message(refusal, self._title(refusal), self._catalog.use(refusal.queue, now))

    def _title(self, refusal: Refusal) -> str:
        return self._catalog.elastic.title(refusal.queue) or queue_title(refusal.queue)

    def queue_of(self, workload: WorkloadView) -> str | None:
        """The engine's queue that a Workload asks for; None if its LocalQueue leads nowhere."""
        return self._catalog.queue_of((workload.namespace, workload.queue))

    def suits(self, admission: Admission, competing: Workload) -> bool:
        """Whether the Workload could get the admission of its pending reservation with its present spec."""
        lenient = self._catalog.lenient(admission.queue)
        return workloads.suits(admission, competing, self._catalog.flavor, lenient=lenient)

    def check(self, workload: WorkloadView, job: JobView | None) -> str | Waiting:
        """The ClusterQueue to compete in, or why not, for a Workload without quota that is not finished.

        One that was made by hand has no Job.
        """
        if not workload.active:
            return _paused(workload)
        if workload.parked:
            words = (
                f"it asks in {workload.size} bytes, and as many such large Workloads of namespace "
                f"{workload.namespace} as may be are held: it competes when some of them have gone"
            )
            return Waiting(WaitingReason.PARKED, words)
        waiting = self._group(workload) or (self._job(job) if job is not None else self._by_hand(workload))
        if waiting is None and (words := self._backs_off(workload)):
            waiting = Waiting(WaitingReason.PODS_NOT_READY, words)
        if waiting is not None:
            return waiting
        found = self._queue(workload)
        if isinstance(found, Waiting):
            return found
        return self._used_up(workload, job, found) or self._outdated(workload, job) or found

    def run_time(self, workload: WorkloadView, job: JobView | None, queue: str, now: float) -> RunTimeStatus:
        """The run time of a Workload that a queue admits now, in seconds since the epoch."""
        most = maximum(job, self._catalog.lifecycle(queue).run_time)
        return begun(run_time_of(workload.status), most, now)

    def ready_limit(self, workload: WorkloadView, job: JobView | None, queue: str, now: float) -> Limit:
        """Until when the pods of a Workload that a queue admits now have to be ready."""
        return at_admission(self._world, self._catalog, workload, job, queue, now)

    def _used_up(self, workload: WorkloadView, job: JobView | None, queue: str) -> Waiting | None:
        """Why a Workload waits that has held quota for as long as it may in a queue."""
        before = run_time_of(workload.status)
        most = maximum(job, self._catalog.lifecycle(queue).run_time) if before.used else None
        if most is None or left_of(most, before):
            return None
        return Waiting(WaitingReason.MAX_RUNTIME_EXCEEDED, used_up_message(most, before))

    def _outdated(self, workload: WorkloadView, job: JobView | None) -> Waiting | None:
        """Why a Workload waits that asks for something else than its Job asks now, or what can't be counted.

        It would be evicted before its Job starts, and be admitted again and again.
        """
        if job is None:
            return None
        try:
            if is_up_to_date(workload, job, self._world):
                return None
        except InvalidQuantityError as error:
            return Waiting(WaitingReason.INVALID_REQUESTS, f"its requests can't be counted: {error}")
        if not self._writes and workload.status.get("reason") != WaitingReason.OUTDATED:
            return None
        changed = "pods have" if job.resource is POD_GROUP else f"{job.resource.kind} has"
        words = f"its {changed} changed, and its Workload does not ask for the same yet: if that lasts, "
        return Waiting(WaitingReason.OUTDATED, words + "an event says what is refused")

    def _group(self, workload: WorkloadView) -> Waiting | None:
        """Why a group of queued pods can't be admitted as it is."""
        if workload.job is None or sort_of(workload.job[0]) != GROUP_SORT:
            return None
        group = self._world.pod_groups.get(workload.job[1])
        if group is None:
            return self._awaited(workload)
        found = complaint(workload, group)
        return Waiting(*found) if found is not None else None

    def _awaited(self, workload: WorkloadView) -> Waiting | None:
        """Why a group waits of which no pod is there."""
        if not self._world.kinds[GROUP_SORT].read:
            return None
        words = "all of its pods are gone"
        if workload.is_true(ConditionType.EVICTED):
            words = f"its pods were evicted, and are awaited for {REMADE_SECONDS:.0f} s"
        return Waiting(WaitingReason.POD_GROUP_INCOMPLETE, words)

    def _job(self, job: JobView) -> Waiting | None:
        if job.selects_itself:
            words = (
                "its Job has spec.manualSelector, so pods could be taken from it and would not be counted: "
                "delete the Job, and make it again without"
            )
            return Waiting(WaitingReason.MANUAL_SELECTOR, words)
        if job.problem:
            return Waiting(WaitingReason.INVALID_REQUESTS, f"its requests can't be counted: {job.problem}")
        unread = run_time_complaint(job)
        if unread:
            return Waiting(WaitingReason.INVALID_ANNOTATION, unread)
        if claims(job.template):
            return Waiting(
                WaitingReason.RESOURCE_CLAIMS, "its pods use resource claims, which no quota counts"
            )
        name = job.template.get("priorityClassName")
        if name and self._world.priority_classes.get(("", name)) is None:
            return Waiting(WaitingReason.PRIORITY_CLASS_NOT_FOUND, f"its PriorityClass {name} does not exist")
        return self._unknown_class(job.priority_class) or self._startable(job)

    def _unknown_class(self, name: str) -> Waiting | None:
        """Why what names a WorkloadPriorityClass waits for it to be there; an empty name is none."""
        if not name or self._world.workload_classes.get(("", name)) is not None:
            return None
        words = f"its WorkloadPriorityClass {name} does not exist"
        return Waiting(WaitingReason.PRIORITY_CLASS_NOT_FOUND, words)

    def _startable(self, job: JobView) -> Waiting | None:
        if job.deleting:
            return Waiting(WaitingReason.INACTIVE, f"its {job.resource.kind} is being deleted")
        refused = self._refused_start(job)
        if refused is not None:
            return Waiting(WaitingReason.NOT_STARTED, refused)
        if not job.suspended or self._has_pods(job):
            words = f"pods of an earlier start of its {job.resource.kind} still run"
            return Waiting(WaitingReason.JOB_STILL_RUNNING, words)
        return None

    def _has_pods(self, job: JobView) -> bool:
        """Whether pods of an earlier start run.

        Those of an admission have its label, and tell their end a second before the Job controller counts it.
        """
        if job.idle:
            return False  # as of most
        workload = self._world.workloads.get((job.namespace, job.workload))
        if job.resource is JOB and job.at_rest and workload is not None and job.is_started_by(workload):
            return any(pod.live for pod in self._world.pods_of(workload))
        return True

    def _unknown(self, title: str, group: str) -> str | None:
        """Why nothing is known of objects of a kind; empty if it is; None where there may be other kinds."""
        kind = self._world.kinds.get(sort_of(title))
        known = kind.read if kind is not None else self._world.has_kinds
        return self._world.unknown_kind(title, group) if known else None

    def _by_hand(self, workload: WorkloadView) -> Waiting | None:
        """A Workload without a Job has the priority of its class: its user can't choose another.

        That of a WorkloadPriorityClass counts as it is, whatever the Workload says.
        """
        if workload.job is not None:
            words = self._unknown(workload.job[0], workload.group)
            if words is None:
                return None  # what is to be known of it, its Workload says
            reason = WaitingReason.KIND_INACTIVE if words else WaitingReason.INACTIVE
            return Waiting(reason, words or f"its {self._world.kind_of(workload.job[0])} is gone")
        name = workload.spec.get("priorityClassName")
        found = self._world.priority_classes.get(("", name)) if name else None
        if name and found is None:
            return Waiting(WaitingReason.PRIORITY_CLASS_NOT_FOUND, f"its PriorityClass {name} does not exist")
        if workload.spec.get(CLASS_FIELD):
            return self._unknown_class(workload.spec[CLASS_FIELD])
        value = found.body["value"] if found is not None else 0
        if workload.spec.get("priority", 0) != value:
            source = f"its PriorityClass {name}" if name else "a Workload without priorityClassName"
            words = (
                f"its spec.priority is {workload.spec.get('priority', 0)}, but that of {source} is {value}"
            )
            return Waiting(WaitingReason.PRIORITY_MISMATCH, words)
        return None

    def _queue(self, workload: WorkloadView) -> str | Waiting:
        name, namespace = workload.queue, workload.namespace
        quota = self._catalog.elastic.governing(namespace) if name == ELASTIC_QUOTA_QUEUE else None
        if quota is not None:
            refused = self._for_kubernetes(workload, str(quota), None) or self._of_its_class(workload, "")
            return refused or self._elastic(namespace, quota)
        local_queue = self._world.local_queues.get((namespace, name))
        if local_queue is None:
            return self._without_queue(namespace, name)
        if local_queue.spec.get("stopPolicy", "None") != "None":
            return Waiting(WaitingReason.QUEUE_STOPPED, f"LocalQueue {name} is stopped")
        found = self._cluster_queue(namespace, local_queue)
        return found if isinstance(found, Waiting) else self._of_its_classes(workload, local_queue, found)

    def _of_its_classes(self, workload: WorkloadView, local_queue: ObjectView, queue: str) -> str | Waiting:
        """The ClusterQueue, if it and the LocalQueue take the Workload's PriorityClass."""
        chosen = workload.spec.get("priorityClassName")
        cluster_queue = self._world.cluster_queues.get(("", queue))
        for title, view in (
            (f"LocalQueue {local_queue.name}", local_queue),
            (queue_title(queue), cluster_queue),
        ):
            classes = view.spec.get("priorityClasses") if view is not None else None
            if chosen and classes is not None and chosen not in classes:
                taken = f"only {', '.join(sorted(classes))}" if classes else "none"
                words = f"its PriorityClass is {chosen}, but {title} takes {taken}"
                return Waiting(WaitingReason.PRIORITY_CLASS_NOT_ALLOWED, words)
        listed = cluster_queue.spec.get("priorityClasses") if cluster_queue is not None else None
        refused = self._for_kubernetes(workload, queue_title(queue), listed or ())
        return refused or self._of_its_class(workload, queue) or queue

    def _of_its_class(self, workload: WorkloadView, queue: str) -> Waiting | None:
        """Why a Workload may not use its WorkloadPriorityClass in a ClusterQueue; "" is an elastic quota."""
        name, namespace = workload.spec.get(CLASS_FIELD), workload.namespace
        found = self._world.workload_classes.get(("", name)) if name else None
        if found is None:
            return None
        other = not_for(found, queue, self._world.labels_of(namespace), namespace)
        if not other:
            return None
        words = f"its WorkloadPriorityClass {name} is not for {other}"
        return Waiting(WaitingReason.PRIORITY_CLASS_NOT_ALLOWED, words)

    @staticmethod
    def _for_kubernetes(workload: WorkloadView, title: str, listed: Collection[str] | None) -> Waiting | None:
        """Refuse a class above all that users can make, unless it is listed: it would evict everything.

        What `title` names lists these classes; None: it can't list any.
        """
        chosen = str(workload.spec.get("priorityClassName") or "")
        if not chosen.startswith(SYSTEM_CLASSES) or chosen in (listed or ()):
            return None
        why = "does not list it" if listed is not None else "takes none of these"
        words = f"its PriorityClass {chosen} is for Kubernetes' own pods, and {title} {why}"
        return Waiting(WaitingReason.PRIORITY_CLASS_NOT_ALLOWED, words)

    def _without_queue(self, namespace: str, name: str) -> Waiting:
        if name != ELASTIC_QUOTA_QUEUE:
            words = f"there is no LocalQueue {name} in namespace {namespace}"
            return Waiting(WaitingReason.QUEUE_NOT_FOUND, words)
        problem = self._catalog.elastic.problem_in(namespace)
        if problem is not None:
            return Waiting(WaitingReason.QUOTA_INACTIVE, problem)
        words = f"no ElasticQuota or CompositeElasticQuota is for namespace {namespace}"
        return Waiting(WaitingReason.QUEUE_NOT_FOUND, words)

    def _elastic(self, namespace: str, quota: Declared) -> str | Waiting:
        problem = self._catalog.elastic.problem(quota.kind, (quota.namespace, quota.name))
        if problem is not None and problem[0] not in HARMLESS:
            return Waiting(WaitingReason.QUOTA_INACTIVE, f"{quota}: {problem[1]}")
        return self._going(namespace) or quota.queue

    def _going(self, namespace: str) -> Waiting | None:
        view = self._world.namespaces.get(("", namespace))
        if view is None or view.terminating:
            return Waiting(WaitingReason.NAMESPACE_TERMINATING, f"namespace {namespace} is being deleted")
        return None

    def _cluster_queue(self, namespace: str, local_queue: ObjectView) -> str | Waiting:
        name = str(local_queue.spec["clusterQueue"])
        cluster_queue = self._world.cluster_queues.get(("", name))
        if cluster_queue is None:
            words = f"LocalQueue {local_queue.name} names ClusterQueue {name}, which does not exist"
            return Waiting(WaitingReason.CLUSTER_QUEUE_NOT_FOUND, words)
        entry = self._catalog.queue(name)
        if entry.problem is not None:
            return Waiting(WaitingReason.CLUSTER_QUEUE_INACTIVE, f"ClusterQueue {name}: {entry.problem[1]}")
        if entry.stopped:
            defect = defect_of(self._world, cluster_queue)
            words = f"ClusterQueue {name} is stopped" + (f": {defect[1]}" if defect is not None else "")
            return Waiting(WaitingReason.CLUSTER_QUEUE_STOPPED, words)
        going = self._going(namespace)
        if going is not None:
            return going
        if not entry.selects(self._world.labels_of(namespace)):
            words = f"ClusterQueue {name} does not select namespace {namespace} by its labels"
            return Waiting(WaitingReason.NAMESPACE_NOT_SELECTED, words)
        return name
