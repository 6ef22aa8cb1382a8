"""Pods that outlive their Workload's admission still use quota until they are gone.

A Job may be deleted, or its Workload by hand, while its pods take their time to end. The labels and
the annotation injected at admission say what such a pod uses, also after a restart.
"""

from collections.abc import Callable

from admitter.cluster.store import Key
from admitter.cluster.transport import Transport
from admitter.cluster.workqueue import WorkQueue
from admitter.controllers.views import PodView, WorkloadView, parse_pod
from admitter.controllers.world import World, pods_path
from admitter.engine.cycle import Engine
from admitter.names import WORKLOAD_LABEL

Gone = tuple[str, str, str]
"""Namespace, name and UID of a Workload that went while it held quota."""


class Remainders:
    """Counts labelled pods whose Workload holds nothing."""

    def __init__(
        self, world: World, engine: Engine, transport: Transport, freed: Callable[[str], None]
    ) -> None:
        """Prepare; `freed` is called with a queue whose quota became free."""
        self._freed = freed
        self._world = world
        self._engine = engine
        self._transport = transport
        self.queue: WorkQueue[Gone] = WorkQueue(self._settle, workers=4)
        self._unsettled: dict[Key, Gone] = {}

    def pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        """A labelled pod came, changed or went."""
        pod = new if new is not None else old
        if pod is not None and (pod.namespace, pod.workload) in self._unsettled:
            return  # it is counted with all that its Workload held
        if new is not None and new.live and not self._covered(new):
            self._engine.reserve(new.uid, new.usage, since=new.created, namespace=new.namespace)
        elif old is not None:
            self._engine.release(old.uid)

    def workload_gone(self, workload: WorkloadView) -> None:
        """A Workload that held quota is deleted: all of it stays reserved until its pods are counted."""
        assert workload.admission is not None
        since, namespace = workload.since, workload.namespace
        self._engine.reserve(workload.uid, workload.admission, since=since, namespace=namespace)
        gone = (workload.namespace, workload.name, workload.uid)
        self._unsettled[workload.key] = gone
        self.queue.add(gone)

    def job_changed(self, key: Key) -> None:
        """A Job changed: one whose Workload is gone may have stopped."""
        gone = self._unsettled.get(key)
        if gone is not None:
            self.queue.add(gone)

    async def _settle(self, gone: Gone) -> None:
        """Replace what the Workload held by what its pods still use.

        A Job that is there still may be about to make pods: that is over when it has stopped. The pods
        are read from the API server, since the store may not have the newest ones yet.
        """
        namespace, name, uid = gone
        job = self._world.job_of((namespace, name))
        if job is not None and not job.finished and not (job.suspended and job.stopped):
            return  # its next change brings us here again
        query = {"labelSelector": f"{WORKLOAD_LABEL}={name}"}
        listed = await self._transport.get(pods_path(namespace), query)
        for raw in listed["items"]:
            self._world.pods.apply(parse_pod(raw))
        if self._unsettled.get((namespace, name)) == gone:
            del self._unsettled[namespace, name]
        for pod in self._world.pods_of((namespace, name)):
            self.pod_changed(None, pod)
        reservation = self._engine.ledger.held(uid)
        self._engine.release(uid)
        if reservation is not None:
            self._freed(reservation.queue)

    def _covered(self, pod: PodView) -> bool:
        workload = self._world.workloads.get((pod.namespace, pod.workload))
        return workload is not None and workload.admission is not None
