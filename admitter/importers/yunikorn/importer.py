"""YuniKorn: queue configuration, namespaces with quota, pods of its scheduler (docs/design/import.md)."""

import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

import orjson

from admitter.importers.dispatch import Handler, copied, dispatch, embedded, with_name
from admitter.importers.jobs import JobImporter
from admitter.importers.naming import Names
from admitter.importers.queue_tree import LocalQueues, manifests
from admitter.importers.reading import Collection, Document
from admitter.importers.translation import Fidelity, Json, ManifestSource, Translation, below
from admitter.importers.yunikorn.placement import RuleReader, WorkloadReader, named, policy
from admitter.importers.yunikorn.queues import QueueReader, roles
from admitter.names import (
    DEPRECATED_QUOTA_ANNOTATIONS,
    NAMESPACE_QUOTA_ANNOTATIONS,
    PARENT_QUEUE_ANNOTATIONS,
    ROOT_COHORT,
)
from admitter.quotas import namespaces

DOMAIN: Final = "yunikorn.apache.org"

COLLECTIONS: Final = (
    Collection(("/api/v1/namespaces/yunikorn/configmaps/yunikorn-configs",)),
    Collection(("/api/v1/namespaces/yunikorn/configmaps/yunikorn-defaults",)),
    Collection(("/api/v1/namespaces",)),
)
"""What is read from a cluster. Pods are not: most are made again by what made them."""

_CONFIGS: Final = ("yunikorn-configs", "yunikorn-defaults")
"""The ConfigMaps of YuniKorn; what the first one says counts."""

_GROUP: Final = "service.policyGroup"
_ONLY: Final = "admissionController.filtering.processNamespaces"
_NEVER: Final = "admissionController.filtering.bypassNamespaces"
_ENABLED: Final = f"{DOMAIN}/namespace.enableYuniKorn"
_LITERAL: Final = re.compile(r"\^([-a-z0-9]+)\$")
_SETTINGS: Final = "says how YuniKorn itself runs"


def translate(documents: Sequence[Document], into: Translation) -> None:
    """Translate ConfigMaps, bare `queues.yaml`, Namespaces, and Jobs, Deployments and Pods."""
    importer = _YuniKornImporter(documents, into)
    for _, ranked in groupby(sorted(documents, key=_rank), key=_rank):
        dispatch(ranked, into, importer.handlers())
    importer.finish()


def _rank(document: Document) -> int:
    """Configurations come first, and of two ConfigMaps the one that counts."""
    name = document.name.rpartition("/")[2].removeprefix("ConfigMap ")
    ranks = {name: rank for rank, name in enumerate(_CONFIGS)}
    if not document.kind or document.kind == "ConfigMap":
        return ranks.get(name, len(ranks))
    return len(ranks) + (1 if document.kind == "Namespace" else 2)


class _YuniKornImporter:
    """One run."""

    def __init__(self, documents: Sequence[Document], into: Translation) -> None:
        self._into = into
        self._names = Names()
        self._rules: RuleReader | None = None  # of the first partition that is read
        self._origin = ""
        self._homes: list[tuple[str, str]] = []
        self._only: list[str] = []
        self._never: list[str] = ["kube-system"]
        self._settled: set[str] = set()
        self._group = _policy_group(documents)
        self._workloads = WorkloadReader(self._names, LocalQueues(into))
        self._jobs = JobImporter(self._names, (DOMAIN,), self._workloads.queue)
        self._jobs.keep_names(documents)
        self._names.keep_all(documents, {"Namespace": "ClusterQueue"})  # rules make a queue of its name
        for path in named(documents):
            self._names.keep("ClusterQueue", path)

    def handlers(self) -> Mapping[tuple[str, str], Handler]:
        return {
            **{kind: with_name(handler) for kind, handler in self._jobs.handlers().items()},
            ("", "ConfigMap"): self._config_map,
            ("", "Namespace"): self._namespace,
            ("", ""): self._bare,
        }

    def finish(self) -> None:
        if self._rules is None:
            return
        tree = self._rules.tree
        made = manifests(tree.root, self._workloads.local_queues.requested)
        if self._rules.rules:
            made.append(policy(self._rules.rules, self._only, self._never))
        made += roles(None, tree.everywhere)
        if not tree.everywhere.open:
            for _, place in tree.leaves():
                made += roles(place.node.name, place.access)
            for namespace, parent in self._homes:
                if parent in tree.places:
                    made += roles(namespace, tree.places[parent].access)
        for manifest in made:
            self._into.add(manifest, self._origin)

    def _bare(self, source: ManifestSource) -> None:
        if "partitions" not in source.raw:
            source.refused("", "is neither a Kubernetes object nor a queue configuration with partitions")
            return
        self._configuration(source)

    def _config_map(self, source: ManifestSource) -> None:
        if source.text("metadata.name") not in _CONFIGS:
            source.refused("", "is no configuration of YuniKorn")
            return
        source.translated("metadata", "nothing is left of the ConfigMap itself")
        for key in source.mapping("data"):
            path = below("data", key)
            if key in self._settled:
                source.translated(path, f"{_CONFIGS[0]} says it, which counts")
                continue
            self._settled.add(key)
            if key == f"{self._group}.yaml":
                inner = embedded(source, path, "must be one map with partitions")
                if inner is not None:
                    self._configuration(inner)
                    inner.close()
            elif key == _GROUP:
                source.translated(path, f"{self._group}.yaml is the configuration")
            elif key in {_ONLY, _NEVER}:
                self._filtering(source, path, key)
            elif key.endswith(".yaml"):
                source.refused(path, f"{self._group}.yaml is the configuration")
            else:
                source.refused(path, _SETTINGS)

    def _filtering(self, source: ManifestSource, path: str, key: str) -> None:
        patterns = [pattern.strip() for pattern in source.text(path).split(",") if pattern.strip()]
        matches = [_LITERAL.fullmatch(pattern) for pattern in patterns]
        names = [match[1] for match in matches if match]
        if len(names) < len(patterns):
            source.refused(path, "namespaces are selected by labels or whole names (^name$), not by patterns")
        else:
            source.translated(path, f"namespaceSelector of the PlacementPolicy: {', '.join(names) or 'all'}")
            if key == _ONLY:
                self._only = names
            else:
                self._never = [*names, *self._never[1:]]

    def _configuration(self, source: ManifestSource) -> None:
        source.account(Fidelity.TRANSLATED, {"checksum": "nothing checks it"})
        for place in source.items("partitions"):
            name = source.text(f"{place}.name") or "default"
            if name != "default":
                source.refused(place, "there is one cluster, and so one partition: default")
            elif self._rules is not None:
                source.refused(place, f"{self._origin} has one already, which counts")
            else:
                self._origin = source.title
                self._partition(source, place)

    def _partition(self, source: ManifestSource, place: str) -> None:
        preempts = source.value(f"{place}.preemption.enabled")
        words = f"reclaimWithinCohort: {'Any' if preempts else 'Never'}"
        source.account(Fidelity.TRANSLATED, {"preemption.enabled": words}, place)
        tree = QueueReader(source, self._names, preempts=preempts is not False).read(f"{place}.queues")
        rules = self._rules = self._workloads.rules = RuleReader(source, tree, self._names)
        rules.read(f"{place}.placementrules")
        words = "no placementrules: a label names the queue" if rules.by_default else "the whole cluster"
        source.account(Fidelity.TRANSLATED, {"name": words}, place)
        source.account(Fidelity.REFUSED, _PARTITION, place)

    def _namespace(self, source: ManifestSource) -> None:
        """A Namespace stays, and what says something about its queue gets our names."""
        name, annotations = source.text("metadata.name"), source.mapping("metadata.annotations")
        renamed = self._quota(source, annotations) | self._parent(source, name, annotations)
        if _ENABLED in annotations:
            source.translated(_annotation(_ENABLED), "namespaceSelector of the PlacementPolicy")
            if str(annotations[_ENABLED]).lower() == "false":
                self._never.append(name)
        for key in [key for key in annotations if source.known(_annotation(key))]:
            del annotations[key]
        changed = any(source.known(_annotation(key)) for key in _SPEAKING)
        annotations |= {key: each for key, each in renamed.items() if key not in annotations}
        copied(source, but="its annotations" if changed else "")

    def _parent(self, source: ManifestSource, name: str, annotations: Json) -> Json:
        """The annotation with the queue above the namespace's own."""
        ours, theirs = PARENT_QUEUE_ANNOTATIONS
        if not isinstance(annotations.get(theirs), str):
            return {}
        path = annotations[theirs].lower().removeprefix(f"{ROOT_COHORT}.")
        known = self._rules.tree.places.get(path) if self._rules is not None else None
        renamed = {ours: known.node.name if known is not None else annotations[theirs]}
        if why := _unusable(renamed):
            source.refused(_annotation(theirs), why)
            return {}
        self._homes.append((name, path))
        _rename(source, theirs, ours, asked=self._rules is None or self._rules.asks_parent)
        return renamed

    def _quota(self, source: ManifestSource, annotations: Json) -> Json:
        """The annotation with the namespace's quota; what YuniKorn can't read it passes over too."""
        ours, theirs = NAMESPACE_QUOTA_ANNOTATIONS
        old = {key: each for key, each in DEPRECATED_QUOTA_ANNOTATIONS.items() if key in annotations}
        if theirs in annotations:
            quota = _json(annotations[theirs])
            if quota is None:
                source.refused(_annotation(theirs), "is no JSON of quantities by resource")
                return {}
            for key in old:
                source.translated(_annotation(key), f"{theirs} is there, which counts")
            said = [theirs]
        else:
            quota = {resource: annotations[key] for key, resource in old.items()}
            said = list(old)
        renamed = {ours: orjson.dumps(quota).decode()} if quota else {}
        why = _unusable(renamed)
        for key in said:
            if why:
                source.refused(_annotation(key), why)
            else:
                _rename(source, key, ours, asked=self._rules is None or self._rules.makes_by_namespace)
        if why:
            return {}
        self._workloads.local_queues.requested |= set(quota)
        return renamed


def _annotation(key: str) -> str:
    return below("metadata.annotations", key)


def _rename(source: ManifestSource, theirs: str, ours: str, *, asked: bool) -> None:
    """Account for an annotation that gets our name; without a rule that asks for it, it said nothing."""
    if asked:
        source.translated(_annotation(theirs), ours)
    else:
        words = f"{ours}: it counts here, though no placement rule of YuniKorn's asks for it"
        source.approximated(_annotation(theirs), words)


def _policy_group(documents: Sequence[Document]) -> str:
    """The key, without its ending, under which a ConfigMap has the queues."""
    for document in sorted(documents, key=_rank):
        data = document.raw.get("data") if document.kind == "ConfigMap" else None
        if isinstance(data, dict) and isinstance(data.get(_GROUP), str):
            return str(data[_GROUP])
    return "queues"


def _unusable(annotations: Json) -> str:
    """Why Admitter could not follow annotations of a namespace; empty if it could."""
    try:
        namespaces.cluster_queue("any", annotations, lambda _: True)
    except namespaces.AnnotationError as error:
        return str(error)
    return ""


def _json(text: object) -> dict[str, str] | None:
    """Quantities by resource in JSON; None if it is something else."""
    try:
        found = orjson.loads(text) if isinstance(text, str) else None
    except orjson.JSONDecodeError:
        return None
    return {name: str(each) for name, each in found.items()} if isinstance(found, dict) else None


_SPEAKING: Final = (
    NAMESPACE_QUOTA_ANNOTATIONS[1],
    *DEPRECATED_QUOTA_ANNOTATIONS,
    PARENT_QUEUE_ANNOTATIONS[1],
    _ENABLED,
)
"""Annotations of namespaces that YuniKorn reads."""

_PARTITION: Final = {
    "limits": "quota is a queue's: give each user or group that needs a limit a queue of its own",
    "nodesortpolicy": "nodes are the scheduler's matter",
    "statedumpfilepath": _SETTINGS,
}
"""Fields of a partition that nothing here means, and why."""
