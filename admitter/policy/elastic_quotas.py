"""Elastic quotas as they come and go: checked, put in force by age, and handed to the engine as queues.

The rules are in `admitter.quotas.elastic`; the objects are read here.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from admitter.api.conditions import ActiveReason
from admitter.api.elastic_quota import (
    CompositeElasticQuota,
    CompositeElasticQuotaSpec,
    ElasticQuota,
    ElasticQuotaSpec,
    SharedQuotaSpec,
)
from admitter.cache.timestamps import seconds
from admitter.cache.views import JobView, Json, ObjectView, at, timestamp
from admitter.cache.world import World
from admitter.client.store import Key, Store
from admitter.engine.commands import Define, SetFlavor
from admitter.engine.cycle import Engine
from admitter.engine.model import Flavor
from admitter.engine.policy import Queue
from admitter.names import ANY_NODE, MANAGED_LABEL
from admitter.policy.defects import Defect, parsed, unreadable
from admitter.quotas import elastic
from admitter.quotas.elastic import Declared

PLURALS: Final = {"ElasticQuota": "elasticquotas", "CompositeElasticQuota": "compositeelasticquotas"}

QuotaKey = tuple[str, Key]  # the kind of a quota, and its namespace and name


@dataclass(frozen=True, slots=True)
class _ParsedQuota:
    """An object as it was read last, its last valid spec, and why the present one (`raw`) is not valid."""

    uid: str
    raw: Json
    declared: Declared | None
    spec: SharedQuotaSpec | None
    problem: Defect | None


class ElasticQuotas:
    """Says which elastic quota governs a namespace, and keeps the engine's queues equal to them."""

    def __init__(
        self,
        world: World,
        engine: Engine,
        flavor_problem: Callable[[str, str], Defect | None],
        gpu_memory: int,
        changed: Callable[[set[str], set[QuotaKey]], None],
    ) -> None:
        """Call `refresh` after every change.

        `flavor_problem` says why a flavor, named in a field, can't be used; `gpu_memory` is that of a whole
        GPU on any node, in GB. `changed` is called with the namespaces that have another quota now, and the
        quotas that have another condition.
        """
        self._world = world
        self._engine = engine
        self._flavor_problem = flavor_problem
        self._changed = changed
        self._read: dict[QuotaKey, _ParsedQuota] = {}
        self._problems: dict[QuotaKey, Defect] = {}
        self._by_namespace: dict[str, Declared] = {}
        self._by_queue: dict[str, Declared] = {}
        self._made: dict[str, tuple[_ParsedQuota, Queue]] = {}
        self._flavors: set[str] = set()
        self.any_node = Flavor(ANY_NODE, gpu_memory=gpu_memory)
        engine.apply(SetFlavor(self.any_node))

    @property
    def composite(self) -> bool:
        """Whether there are quotas for other namespaces than their own."""
        return any(kind == "CompositeElasticQuota" for kind, _ in self._read)

    def governing(self, namespace: str) -> Declared | None:
        """The quota that governs a namespace."""
        return self._by_namespace.get(namespace)

    def manages(self, job: JobView) -> bool:
        """Whether a Job that names no queue belongs to a quota all the same: it was made since that was."""
        quota = self.governing(job.namespace)
        if quota is None or not quota.manages_all:
            return False
        since = self.managed_since(quota).get(job.namespace)
        return since is not None and job.created >= seconds(since)

    def manages_pods(self, namespace: str) -> bool:
        """Whether pods that are created in a namespace, and name no queue, are its quota's."""
        quota = self.governing(namespace)
        managed = self._world.labels_of(namespace).get(MANAGED_LABEL) == "true"
        return quota is not None and quota.manages_pods and managed

    def managed_since(self, quota: Declared) -> dict[str, str]:
        """Since when a quota that manages all Jobs does so, by namespace: for a new one since it was made."""
        view = self._store(quota.kind).get((quota.namespace, quota.name))
        return self.managed_by(quota.kind, view) if view is not None else {}

    @staticmethod
    def managed_by(kind: str, view: ObjectView) -> dict[str, str]:
        """The same, as the object says."""
        if not view.status.get("conditions"):
            composite = kind == "CompositeElasticQuota"
            namespaces = view.spec.get("namespaces") or () if composite else (view.namespace,)
            return dict.fromkeys(namespaces, timestamp(at(view.created)))
        return dict(view.status.get("managedSince") or {})

    def of_queue(self, name: str) -> Declared | None:
        """The quota in force that a queue of the engine stands for."""
        return self._by_queue.get(name)

    def title(self, queue: str) -> str | None:
        """What users call a queue of an elastic quota; None if it is none, or the quota is gone."""
        quota = self.of_queue(queue)
        return str(quota) if quota is not None else None

    def problem(self, kind: str, key: Key) -> Defect | None:
        """What is wrong with a quota; one in force may name a namespace that does not exist."""
        return self._problems.get((kind, key))

    def problem_in(self, namespace: str) -> str | None:
        """Why no quota governs a namespace though one is for it."""
        for (kind, key), problem in sorted(self._problems.items()):
            declared = self._read[kind, key].declared
            if namespace in (declared.namespaces if declared is not None else (key[0],)):
                return f"{kind} {key[0]}/{key[1]}: {problem[1]}"
        return None

    def naming(self, flavor: str) -> Iterator[Declared]:
        """The quotas in force that name a flavor."""
        for quota in self._by_queue.values():
            spec = self._made[quota.queue][0].spec
            if spec is not None and flavor in spec.flavors:
                yield quota

    def uses(self, flavor: str) -> bool:
        return flavor in self._flavors

    def refresh(self) -> None:
        """Read all quotas again, and put them in force."""
        read_before = self._read
        self._reread()
        declared = {read.declared: read for read in self._read.values() if read.declared is not None}
        by_namespace, conflicts = elastic.governing(declared)
        before, problems_before, queues = self._by_namespace, self._problems, self._engine.tree.queues
        self._by_namespace = by_namespace
        self._world.shards.governed = by_namespace.keys()
        self._by_queue = {quota.queue: quota for quota in by_namespace.values()}
        self._flavors = {name for read in self._read.values() if read.spec for name in read.spec.flavors}
        self._problems = dict(self._find_problems(conflicts))
        changed = {n for n in before.keys() | by_namespace.keys() if before.get(n) != by_namespace.get(n)}
        made = {quota: self._queue(quota, declared[quota]) for quota in self._by_queue.values()}
        news = {quota: queue for quota, queue in made.items() if queues.get(queue.name) != queue}
        changed.update(namespace for quota in news for namespace in quota.namespaces)
        gone = {quota.queue for quota in before.values()} - self._by_queue.keys()
        self._engine.apply(Define(tuple(news.values()), gone=tuple(gone)))
        for name in gone:
            del self._made[name]
        places = problems_before.keys() | self._problems.keys()
        different = {p for p in places if problems_before.get(p) != self._problems.get(p)}
        for place in places:
            reads = [read for read in (read_before.get(place), self._read.get(place)) if read is not None]
            if place in different or len({read.declared for read in reads}) > 1:
                for read in reads:
                    changed |= set(read.declared.namespaces) if read.declared is not None else {place[1][0]}
        if changed or different:
            self._changed(changed, different)

    def _queue(self, quota: Declared, read: _ParsedQuota) -> Queue:
        assert read.spec is not None, "what is declared was valid once"
        flavored = all(self._flavor_problem("", name) is None for name in read.spec.flavors)
        readable = unreadable(self._store(quota.kind), (quota.namespace, quota.name)) is None
        admits = read.problem is None and flavored and readable
        made = self._made.get(quota.queue)
        if made is None or made[0] is not read or made[1].admits != admits:
            made = self._made[quota.queue] = (read, elastic.queue(quota, read.spec, admits=admits))
        return made[1]

    def _reread(self) -> None:
        found: dict[QuotaKey, _ParsedQuota] = {}
        for kind in PLURALS:
            for view in self._store(kind):
                place = (kind, view.key)
                known = self._read.get(place)
                same = known is not None and (known.uid, known.raw) == (view.uid, view.spec)
                found[place] = known if known is not None and same else self._parse(kind, view, known)
        self._read = found

    def _parse(self, kind: str, view: ObjectView, known: _ParsedQuota | None) -> _ParsedQuota:
        model: type[ElasticQuota | CompositeElasticQuota] = (
            ElasticQuota if kind == "ElasticQuota" else CompositeElasticQuota
        )
        made, wrong = parsed(model, view)
        if made is None:
            before = (known.declared, known.spec) if known is not None else (None, None)
            return _ParsedQuota(view.uid, view.spec, *before, wrong)
        spec = made.spec
        namespaces: tuple[str, ...] = (view.namespace,)
        if isinstance(spec, CompositeElasticQuotaSpec):
            namespaces = tuple(spec.namespaces)
        manages = (spec.manage_all_jobs, isinstance(spec, ElasticQuotaSpec) and spec.manage_all_pods is True)
        declared = Declared(kind, view.namespace, view.name, view.created, namespaces, *manages)
        return _ParsedQuota(view.uid, view.spec, declared, spec, None)

    def _find_problems(self, conflicts: dict[Declared, str]) -> Iterator[tuple[QuotaKey, Defect]]:
        for place, read in self._read.items():
            kind, key = place
            found = unreadable(self._store(kind), key) or read.problem
            if found is None and read.declared in conflicts:
                found = (ActiveReason.CONFLICT, conflicts[read.declared])
            if found is None and read.spec is not None:
                named = enumerate(read.spec.flavors)
                fields = ((f"spec.flavors[{number}] names {name}", name) for number, name in named)
                found = next((p for f, name in fields if (p := self._flavor_problem(f, name))), None)
            if found is None and read.declared is not None and kind == "CompositeElasticQuota":
                found = self._missing(read.declared)
            if found is None and read.declared is not None and read.declared.manages_pods:
                found = self._unmanaged(read.declared)
            if found is not None:
                yield place, found

    def _missing(self, quota: Declared) -> Defect | None:
        missing = [n for n in quota.namespaces if self._world.namespaces.get(("", n)) is None]
        if not missing:
            return None
        words = f"spec.namespaces names {', '.join(missing)}, which does not exist; it works for the others"
        return ActiveReason.NAMESPACE_NOT_FOUND, words

    def _unmanaged(self, quota: Declared) -> Defect | None:
        namespace = self._world.namespaces.get(("", quota.namespace))
        if namespace is None or namespace.labels.get(MANAGED_LABEL) == "true":
            return None
        words = (
            f"spec.manageAllPods has no effect: namespace {quota.namespace} is not managed by its label "
            f'{MANAGED_LABEL}: "true"; all else works'
        )
        return ActiveReason.NAMESPACE_NOT_MANAGED, words

    def _store(self, kind: str) -> Store[ObjectView]:
        composite = kind == "CompositeElasticQuota"
        return self._world.composite_elastic_quotas if composite else self._world.elastic_quotas
