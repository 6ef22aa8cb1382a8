"""Which trees of quota this process decides about, and which of them it must leave alone for now.

The shard of a tree follows from the name at its root, and that from what Cohorts and ClusterQueues say now:
from their objects alone, so that processes that know the same objects agree, whatever they knew before.
"""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache

from admitter.cache.views import JobView, ObjectView, WorkloadView
from admitter.client.signal import Signal
from admitter.client.store import Key, Store, either
from admitter.election.rendezvous import shard_of
from admitter.engine.quota.tree import Node
from admitter.names import ELASTIC_QUOTA_QUEUE

ELASTIC: Node = ("cohort", ELASTIC_QUOTA_QUEUE)
Versions = tuple[int, int]
"""Up to which resource versions changes of Cohorts and of ClusterQueues are known."""

_shard_of = lru_cache(maxsize=65_536)(shard_of)


class Shards:
    """Which tree belongs to which shard, and which shards are this process's."""

    def __init__(self, cohorts: Store[ObjectView], cluster_queues: Store[ObjectView]) -> None:
        """Begin with a single shard; for more, call `spread` before the stores are filled."""
        self.number = 1  # of shards
        self.epochs: dict[int, int] = {}  # the shards in which this process decides, each with its epoch
        # trees that may have got queues in which another process has decided until now, and perhaps still
        # does; a number for each that grows with every such change. They are left alone
        self.contested: dict[Node, int] = {}
        self.active = False  # whether this process has any shard, or is taking one
        # namespaces that an elastic quota governs (`policy.elastic_quotas` keeps it)
        self.governed: AbstractSet[str] = frozenset()
        self.on_contested: Signal[[]] = Signal()  # a tree is contested
        self._cohorts = cohorts
        self._cluster_queues = cluster_queues
        self._parents: dict[str, str] = {}
        self._known: dict[str, tuple[str, str]] = {}
        self._changes = 0

    def spread(self, number: int) -> None:
        """There are so many shards."""
        self.number = number
        if number > 1:
            self._cohorts.listen(self._cohort_changed)
            self._cluster_queues.listen(self._queue_changed)

    @property
    def versions(self) -> Versions:
        """Up to where the trees are known."""
        return self._cohorts.version, self._cluster_queues.version

    def owns(self, shard: int) -> bool:
        """Whether a shard is this process's; of one that follows, a single one may be soon."""
        return self.number == 1 or shard in self.epochs

    def leads_queue(self, queue: str) -> bool:
        """Whether this process leads the shard of a queue of the engine."""
        return self.of_queue(queue) in self.epochs

    def decides(self, root: Node) -> bool:
        return self.of_tree(root) in self.epochs and root not in self.contested

    def epoch_of(self, queue: str) -> tuple[int, int] | None:
        """The shard of a queue, and the epoch in which this process admits there; None if it may not now."""
        root = self.root(queue)
        return (self.of_tree(root), self.epochs[self.of_tree(root)]) if self.decides(root) else None

    def of_tree(self, root: Node) -> int:
        return _shard_of(root[1], self.number) if self.number > 1 else 0

    def of_queue(self, queue: str) -> int:
        """The shard of a queue of the engine; one that does not exist is a tree by itself."""
        return self.of_tree(self.root(queue)) if self.number > 1 else 0

    def of_cohort(self, cohort: str) -> int:
        return self.of_tree(self._top(cohort)) if self.number > 1 else 0

    def root(self, queue: str) -> Node:
        """The root of the tree that a queue is in now."""
        if "_" in queue:  # no ClusterQueue's name has one: it is that of an elastic quota
            return ELASTIC
        view = self._cluster_queues.get(("", queue))
        cohort = _cohort(view) if view is not None else ""
        return self._top(cohort) if cohort else ("queue", queue)

    def _top(self, cohort: str) -> Node:
        """The top of the tree that a cohort is in; each one of a cycle is at the top itself."""
        passed: set[str] = set()
        while cohort not in passed and cohort in self._parents:
            passed.add(cohort)
            cohort = self._parents[cohort]
        return ("cohort", cohort)

    def _cohort_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        name = either(old, new).name
        parent = str(new.spec.get("parent") or "") if new is not None and name != ELASTIC_QUOTA_QUEUE else ""
        if self._parents.get(name, "") == parent and not _is_gap(old, new, self._cohorts.listing):
            return
        before = {each: self._top(each) for each in self._parents} if self.active else {}
        self._parents.pop(name, None)
        if parent:
            self._parents[name] = parent
        moved = {self._top(each) for each, top in before.items() if self._top(each) != top}
        self._contest({self._top(name), *moved})

    def _queue_changed(self, old: ObjectView | None, new: ObjectView | None) -> None:
        """A queue came, changed or went; a name that is new can be in no decision of another process."""
        if new is None:
            return
        now, before = (_cohort(new), new.uid), self._known.get(new.name)
        self._known[new.name] = now
        if before not in {now, None} or _is_gap(old, new, self._cluster_queues.listing):
            self._contest([self.root(new.name)])

    def _contest(self, roots: Iterable[Node]) -> None:
        self._changes += 1
        self.contested.update(dict.fromkeys(roots, self._changes))
        self.on_contested()

    def mark_agreed(self, contested: dict[Node, int]) -> None:
        """All other owners know of some changes: these trees, unless contested again, may be decided about.

        `contested` is as it was when the others were asked.
        """
        for root, change in contested.items():
            if self.contested.get(root) == change:
                del self.contested[root]
        for name in [name for name in self._known if self._cluster_queues.get(("", name)) is None]:
            del self._known[name]


@dataclass(eq=False)
class Owners:
    """The shard of a Workload or a Job: that of the queue that has admitted it, or that it asks for."""

    shards: Shards
    workloads: Store[WorkloadView]
    local_queues: Store[ObjectView]
    job_of: Callable[[Key], JobView | None]

    def owns(self, key: Key) -> bool:
        """Whether the Workload of a key, or the Job that has none yet, is this process's."""
        return self.shards.number == 1 or self.shards.owns(self.shard(key))

    def shard(self, key: Key) -> int:
        """The shard of a Workload, or of the Job that has none yet; what is in no tree is in shard 0."""
        workload = self.workloads.get(key)
        if workload is not None and workload.admission is not None:
            return self.shards.of_queue(workload.admission.queue)
        if workload is not None:
            return self.of_local_queue(workload.namespace, workload.queue)
        job = self.job_of(key)
        return self.of_local_queue(job.namespace, job.queue or "") if job is not None else 0

    def of_local_queue(self, namespace: str, name: str) -> int:
        """The shard of the queue behind a LocalQueue, or of elastic quotas if it stands for one."""
        view = self.local_queues.get((namespace, name))
        if name == ELASTIC_QUOTA_QUEUE and (view is None or namespace in self.shards.governed):
            return self.shards.of_tree(ELASTIC)
        return self.shards.of_queue(str(view.spec["clusterQueue"])) if view is not None else 0


def _cohort(queue: ObjectView) -> str:
    return str(queue.spec.get("cohort") or "")


def _is_gap(old: ObjectView | None, new: ObjectView | None, listing: bool) -> bool:
    """Whether an object may have been something else between what was known of it and what is known now."""
    if new is None:
        return False
    if old is None:
        return listing or new.generation > 1
    return old.uid != new.uid or new.generation > old.generation + 1
