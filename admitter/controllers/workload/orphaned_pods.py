"""Pods that outlive their Workload's admission still use quota until they are gone.

A Job may be deleted, or its Workload by hand, while its pods take their time to end, or are yet to be made.
The labels and the annotations injected at admission say what such a pod, or Job, uses, also after a restart.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from admitter.cache.job_resources import GROUP_SORT, sort_of
from admitter.cache.pod_views import PodView, loose_usage
from admitter.cache.views import JobView, WorkloadView
from admitter.cache.world import World, pods_path
from admitter.client.errors import NotFoundError
from admitter.client.store import Key, either
from admitter.client.transport import Transport
from admitter.client.workqueue import WorkQueue
from admitter.controllers.workload.pod_writes import bar as bar_pod
from admitter.controllers.workload.pod_writes import read_group, side_by_side
from admitter.controllers.workload.writes import bar
from admitter.engine.commands import Release, Reserve
from admitter.engine.cycle import Engine
from admitter.names import WORKLOAD_LABEL
from admitter.policy.held import left_of

WORKERS: Final = 16
"""A list of pods may wait a tenth of a second for the API server's cache to catch up."""

LATER_SECONDS: Final = 5.0
"""A follower can't bar starts: by then those that were on their way have arrived."""


class DeletedWorkload(NamedTuple):
    """A Workload that is gone, with what it held."""

    key: Key
    uid: str  # its own; empty if it is gone for longer than this process lives, and an older version wrote it
    holder: str  # the UID under which its quota counts: its own, or that of its Job
    job: str  # its Job's name; empty if that is gone too

    def counts(self, pod: PodView) -> bool:
        """Whether a pod is counted with it."""
        return pod.workload_uid in {"", self.uid}


@dataclass(eq=False)
class OrphanedPods:
    """Counts orphaned pods: labelled pods of a Workload that holds no quota.

    `freed` is called with each queue that has quota free again.
    """

    world: World
    engine: Engine
    transport: Transport
    freed: Callable[[str], None]

    def __post_init__(self) -> None:
        self.queue: WorkQueue[DeletedWorkload] = WorkQueue(self._settle, workers=WORKERS)
        # By namespace and name, and by holder: one of the same name may be gone before another is settled.
        self._unsettled: defaultdict[Key, dict[str, DeletedWorkload]] = defaultdict(dict)
        self._leads = False

    def lead(self) -> None:
        """No other process starts Jobs from now on."""
        self._leads = True
        for named in self._unsettled.values():
            for gone in named.values():
                self.queue.add(gone)
        for job in self.world.jobs:
            self._count_loose(job)

    def pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        pod = either(old, new)
        if any(gone.counts(pod) for gone in self._named((pod.namespace, pod.workload))):
            self.engine.apply(Release(pod.uid))  # it is counted with all that its Workload held
            return
        if new is not None and new.live and not self._covered(new):
            self.engine.apply(Reserve(new.uid, new.usage, since=new.created, namespace=new.namespace))
        elif old is not None:
            self.engine.apply(Release(old.uid))

    def workload_admitted(self, workload: WorkloadView) -> None:
        """A Workload holds quota now: pods of it that were heard of before are counted with it."""
        for pod in self.world.pods_of(workload):
            self.engine.apply(Release(pod.uid))

    def workload_finished(self, workload: WorkloadView) -> None:
        """The work of a Workload is over: pods that live still count by themselves."""
        for pod in self.world.pods_of(workload):
            self.pod_changed(None, pod)

    def workload_gone(self, workload: WorkloadView) -> None:
        """A Workload that held quota is deleted: all of it stays reserved until its pods are counted.

        Only Jobs make pods with the labels: one that was made by hand has none that we do not know.
        """
        assert workload.admission is not None
        job = workload.job[0] if workload.job is not None else ""
        gone = DeletedWorkload(workload.key, workload.uid, workload.uid, job)
        if workload.job is None:
            self._replace(gone)
            return
        since, namespace = workload.since, workload.namespace
        left = left_of(workload.admission, workload, self.world.job_of(workload.key))
        self.engine.apply(Reserve(workload.uid, left, since=since, namespace=namespace))
        self._count_together(gone)
        self._look_at(gone)

    def counts(self, key: Key, uid: str) -> bool:
        """Whether what a Workload held that is gone counts until it is settled."""
        return uid in self._unsettled.get(key, {})

    def _named(self, key: Key) -> list[DeletedWorkload]:
        """What is gone under some name, and not settled."""
        return list(self._unsettled[key].values()) if key in self._unsettled else []

    def job_changed(self, key: Key) -> None:
        """A Job changed: a Job without a Workload may have stopped."""
        for gone in self._named(key):
            self._look_at(gone)
        job = self.world.job_of(key)
        if job is not None and self._leads:
            self._count_loose(job)

    def _count_loose(self, job: JobView) -> None:
        """Count a Job that was started, and for which no Workload holds anything, though it may run.

        Its Workload was deleted by hand, and the process that saw that has ended. Jobs of other processes are
        left to them: they may have admitted one just now.
        """
        key = (job.namespace, job.workload)
        usage = loose_usage(job, self.world.workloads.get(key))
        if usage is None or not self.world.owners.owns(key):
            return
        if any(gone.job == job.name for gone in self._named(key)):
            return  # what it may run is counted already
        gone = DeletedWorkload(key, job.started_by_uid, job.uid, job.name)
        self.engine.apply(Reserve(job.uid, usage, since=job.created, namespace=job.namespace))
        self._count_together(gone)
        self.queue.add(gone)

    def _count_together(self, gone: DeletedWorkload) -> None:
        """Count pods with all that their Workload held, and not one by one, until that is settled."""
        self._unsettled[gone.key][gone.holder] = gone
        for pod in filter(gone.counts, self.world.pods_named(gone.key)):
            self.engine.apply(Release(pod.uid))

    def _look_at(self, gone: DeletedWorkload) -> None:
        if self._leads:
            self.queue.add(gone)
        else:
            self.queue.add_later(gone, LATER_SECONDS)

    async def _settle(self, gone: DeletedWorkload) -> None:
        """Replace what the Workload held by what its pods still use.

        A Job that is there still may be about to make pods: that is over when it has stopped. Job and pods
        are read from the API server, since the stores may not have the newest yet.
        """
        namespace, name = gone.key
        if gone not in self._named(gone.key):
            return
        if sort_of(gone.job) == GROUP_SORT:
            await self._bar_members(gone)
        job = await self._job(namespace, gone.job)
        if job is not None and job.workload == name and not job.finished:
            if not (job.suspended and (job.at_rest or job.unstarted)):
                return  # its next change brings us here again
            if self._leads:
                await bar(job, str(job.version), self.world, self.transport)
        query = {"labelSelector": f"{WORKLOAD_LABEL}={name}"}
        listed = await self.transport.get(pods_path(namespace), query)
        for raw in listed["items"]:
            self.world.read_pods.take(raw)
        self._unsettled[gone.key].pop(gone.holder, None)
        if not self._unsettled[gone.key]:
            del self._unsettled[gone.key]
        self._replace(gone)

    async def _bar_members(self, gone: DeletedWorkload) -> None:
        """Make sure that no start of a pod of a group is on its way: a group is no object with a version."""
        namespace, name = gone.key
        pods = await read_group(namespace, gone.job, self.world, self.transport)
        waiting = [pod for pod in pods if pod.workload == name and pod.gated and not pod.deleting]
        if self._leads:
            await side_by_side(bar_pod(pod, gone.uid, self.world, self.transport) for pod in waiting)

    async def _job(self, namespace: str, title: str) -> JobView | None:
        if not title or not self.world.reads(title) or sort_of(title) == GROUP_SORT:
            return None
        try:
            raw = await self.transport.get(self.world.job_path((namespace, title)))
        except NotFoundError:
            return None
        return self.world.take_titled(title, raw)

    def _replace(self, gone: DeletedWorkload) -> None:
        """Count the pods that there are instead of what their Workload held."""
        for pod in self.world.pods_named(gone.key):
            self.pod_changed(None, pod)
        reservation = self.engine.ledger.held(gone.holder)
        self.engine.apply(Release(gone.holder))
        if reservation is not None:
            self.freed(reservation.queue)

    def _covered(self, pod: PodView) -> bool:
        """Whether a pod is counted with the Workload that it names: that one has started it."""
        workload = self.world.workloads.get((pod.namespace, pod.workload))
        return workload is not None and workload.admission is not None and pod.is_of(workload)
