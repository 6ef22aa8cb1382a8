"""Objects that can't be read: users get an event, and definitions admit nothing.

Previous step: a store notes that the newest version of an object can't be read (`admitter.client.source`).
An event on the object says which field; `quota_status.statuses` writes the condition `Active`.
"""

from dataclasses import dataclass
from functools import partial
from typing import Final

from admitter.api import kinds
from admitter.api.conditions import EventReason
from admitter.cache.job_resources import sort_of
from admitter.cache.world import World
from admitter.client.source import Source
from admitter.client.store import Key, Unreadable, V
from admitter.controllers.quota_status.statuses import QuotaStatuses
from admitter.controllers.telemetry.events import Events, Subject
from admitter.controllers.workload.admission import Admissions
from admitter.controllers.workload.jobs import Jobs
from admitter.names import API_VERSION
from admitter.policy.catalog import Catalog

KINDS: Final = {
    "jobs": ("batch/v1", "Job"),
    "pods": ("v1", "Pod"),
    "namespaces": ("v1", "Namespace"),
    "resourcequotas": ("v1", "ResourceQuota"),
    "nodes": ("v1", "Node"),
    "statefulsets": ("apps/v1", "StatefulSet"),
    "limitranges": ("v1", "LimitRange"),
    "priorityclasses": ("scheduling.k8s.io/v1", "PriorityClass"),
    "runtimeclasses": ("node.k8s.io/v1", "RuntimeClass"),
    **{kind.plural: (API_VERSION, kind.__name__) for kind in kinds.KINDS},
}
"""API version and kind by plural."""


@dataclass(eq=False)
class UnreadableObjects:
    """Follows what can't be read in all stores."""

    world: World
    events: Events
    catalog: Catalog
    queues: QuotaStatuses
    admissions: Admissions
    jobs: Jobs

    def follow(self) -> None:
        """Report what can't be read now, and from now on."""
        for source in self.world.sources:
            source.store.unreadable_changed.listen(partial(self._spoilt, source))
            for unreadable in list(source.store.unreadable.values()):
                self._spoilt(source, unreadable)

        self.world.jobs.unreadable_changed.listen(self._object_spoilt)
        for unreadable in list(self.world.jobs.unreadable.values()):
            self._object_spoilt(unreadable)

    def lead(self) -> None:
        """Report what can't be read: an earlier leader may have ended before it could."""
        for source in self.world.sources:
            for unreadable in source.store.unreadable.values():
                self._tell(_plural(source), unreadable)
        for unreadable in list(self.world.jobs.unreadable.values()):
            self._object_spoilt(unreadable)

    def _object_spoilt(self, unreadable: Unreadable) -> None:
        """An object of a described kind can't be read, or can again; Jobs have a source of their own."""
        title = unreadable.key[1]
        if not sort_of(title):
            return
        if self.world.jobs.unreadable.get(unreadable.key) is unreadable:
            kind = self.world.kinds[sort_of(title)].resource
            self._event(
                (kind.api_version, kind.kind), unreadable.key[0], title.rpartition("/")[2], unreadable
            )
        job = self.world.jobs.get(unreadable.key)
        if job is not None:
            self.jobs.queue.add((job.namespace, job.workload))

    def _spoilt(self, source: Source[V], unreadable: Unreadable) -> None:
        plural, key = _plural(source), unreadable.key
        if source.store.unreadable.get(key) is unreadable:
            self._tell(plural, unreadable)
        if plural == "workloads":
            self.admissions.feed.reconsider(key)
            self.jobs.queue.add(key)
        elif plural == "jobs" and (job := self.world.jobs.get(key)) is not None:
            self.jobs.queue.add((job.namespace, job.workload))
        elif plural in self.queues.kinds:
            self._look(plural, key)

    def _look(self, plural: str, key: Key) -> None:
        """Look at a definition again: it admits nothing any more, or does so again."""
        match plural:
            case "clusterqueues":
                self.catalog.queue_changed(key[1])
            case "resourceflavors":
                self.catalog.flavor_changed(key[1])
            case "elasticquotas" | "compositeelasticquotas":
                self.catalog.elastic.refresh()
        self.queues.touch(plural, key)
        self.admissions.schedule_cycle()

    def _tell(self, plural: str, unreadable: Unreadable) -> None:
        namespace, name = unreadable.key
        self._event(KINDS[plural], name if plural == "namespaces" else namespace, name, unreadable)

    def _event(self, kind: tuple[str, str], place: str, name: str, unreadable: Unreadable) -> None:
        subject = Subject(*kind, place, name, unreadable.uid)
        words = f"it can't be read, so what was known of it before counts: {unreadable.words}"
        self.events.record(subject, EventReason.UNREADABLE, words, lasting=True, topic="unreadable")


def _plural(source: Source[V]) -> str:
    return source.path.rsplit("/", 1)[-1]
