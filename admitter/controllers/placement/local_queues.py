"""LocalQueues by rule: takes a namespace's name, reads the world, converges.

Previous step: a Namespace, a LocalQueue or the rule of a ClusterQueue changed, or a LocalQueue that is to go
has become empty. What is to be done says `admitter.policy.local_queue_rules`; what is in its way is told on
the ClusterQueue by `admitter.controllers.quota_status.statuses`.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from admitter.cache.namespace_views import NamespaceView
from admitter.cache.views import JobView, ObjectView, WorkloadView
from admitter.cache.world import World
from admitter.client.signal import Signal
from admitter.client.store import Key, either
from admitter.client.transport import Transport
from admitter.client.workqueue import WorkQueue
from admitter.controllers.placement.generator import GeneratedObjectWriter
from admitter.policy.catalog import Catalog
from admitter.policy.defects import Defect
from admitter.policy.generated import Origin, is_generated
from admitter.policy.local_queue_rules import PLURAL, plan, told

WORKERS: Final = 16


@dataclass(eq=False)
class LocalQueueRules:
    """Makes, sets right and deletes the LocalQueues that ClusterQueues ask for."""

    world: World
    catalog: Catalog
    transport: Transport

    def __post_init__(self) -> None:
        self.queue: WorkQueue[str] = WorkQueue(self.converge, WORKERS)
        # what is in the way of this ClusterQueue's LocalQueues may be something else now
        self.changed: Signal[[str]] = Signal()
        self._generator = GeneratedObjectWriter(self.world, self.transport)
        self._leaving: set[Key] = set()  # LocalQueues that are to be deleted once they are empty
        # namespaces in which something has changed; each process looks at them when it tells of its queues
        self._changed: set[str] = set()
        self._taken: defaultdict[str, dict[str, str]] = defaultdict(dict)

    async def converge(self, namespace: str) -> None:
        """Give a namespace the LocalQueues that are asked for there."""
        now = plan(self.world, self.catalog.local_queue_rules, namespace)
        self._leaving = {key for key in self._leaving if key[0] != namespace} | now.leaving
        for wanted in now.put:
            await self._generator.put(wanted)
        for view in now.delete:
            await self._generator.delete(PLURAL, view)

    def touch_all(self) -> None:
        """Any namespace may lack LocalQueues, or have some that it should not have."""
        for namespace in self.world.namespaces:
            self._touch(namespace.name)

    def namespace_changed(self, old: NamespaceView | None, new: NamespaceView | None) -> None:
        """A namespace came or went, or has other labels."""
        before, after = ((view.labels, view.terminating) if view else None for view in (old, new))
        if before != after:
            self._touch(either(old, new).name)

    def rules_changed(self, cluster_queue: str) -> None:
        """A ClusterQueue came, changed or went."""
        made = self.world.local_queues_by_cluster_queue.get(cluster_queue)
        if cluster_queue in self.catalog.local_queue_rules or any(map(self._is_by_rule, made)):
            self.touch_all()

    def local_queue_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        """A LocalQueue came or went, leads elsewhere, or has other marks of what made it."""
        if old is not None and new is not None and (old.spec, old.labels) == (new.spec, new.labels):
            return
        if self.catalog.local_queue_rules or any(map(_is_made, filter(None, (old, new)))):
            self._touch(either(old, new).namespace)

    def workload_changed(self, old: WorkloadView | None, new: WorkloadView | None) -> None:
        """A Workload has finished, or is gone: its LocalQueue may be empty now."""
        if old is not None and (new is None or new.finished or new.queue != old.queue):
            self._left((old.namespace, old.queue))

    def job_changed(self, old: JobView | None, new: JobView | None) -> None:
        """Likewise something that is queued."""
        if old is not None and old.queue and (new is None or new.finished or new.queue != old.queue):
            self._left((old.namespace, old.queue))

    def taken(self, cluster_queue: str) -> Defect | None:
        """What is in the way of the LocalQueues that a ClusterQueue asks for; None if nothing is."""
        changed, self._changed = self._changed, set()
        for namespace in changed:
            for names in self._taken.values():
                names.pop(namespace, None)
            found = plan(self.world, self.catalog.local_queue_rules, namespace).taken
            for queue, name in found.items():
                self._taken[queue][namespace] = name
        return told(self._taken.get(cluster_queue, {}).values())

    def _touch(self, namespace: str) -> None:
        """Something has changed in a namespace; queues that ask for LocalQueues tell what is in the way."""
        self.queue.add(namespace)
        if not self._changed:
            for name in {*self.catalog.local_queue_rules, *self._taken}:
                self.changed(name)
        self._changed.add(namespace)

    def _left(self, local_queue: Key) -> None:
        if local_queue in self._leaving:
            self._leaving.discard(local_queue)
            self.queue.add(local_queue[0])

    def _is_by_rule(self, key: Key) -> bool:
        view = self.world.local_queues.get(key)
        return view is not None and _is_made(view)


def _is_made(view: ObjectView) -> bool:
    return is_generated(view, view.namespace, Origin.CLUSTER_QUEUE)
