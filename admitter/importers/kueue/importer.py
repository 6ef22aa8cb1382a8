"""From Kueue: queues, flavors, cohorts, and the Jobs that wait in them (docs/design/import.md)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from admitter.importers.described import group_kinds
from admitter.importers.dispatch import dispatch, metadata
from admitter.importers.jobs import JobImporter
from admitter.importers.kueue import configuration as kueue_configuration
from admitter.importers.kueue.pods import PodImporter
from admitter.importers.kueue.quota import FOREIGN, GROUP, QuotaImporter, same
from admitter.importers.naming import Names
from admitter.importers.reading import Collection, Document
from admitter.importers.translation import Fidelity, Json, ManifestSource, Translation, below, own, said
from admitter.names import MAX_RUNTIME_ANNOTATION, MIN_PARALLELISM_ANNOTATION, PRIORITY_CLASS_LABEL
from admitter.names import PRIORITY_CLASS_ALIAS_LABEL as PRIORITY

VERSIONS: Final = ("v1beta2", "v1beta1", "v1alpha2", "v1alpha1")
QUEUE: Final = f"{GROUP}/queue-name"
MAX_EXEC_TIME: Final = f"{GROUP}/max-exec-time-seconds"
MIN_PARALLELISM: Final = f"{GROUP}/job-min-parallelism"
MOST: Final = 2**31 - 1
"""The largest number that these two have."""
_DEFAULTING: Final = (f"{GROUP}/v1beta2", f"{GROUP}/v1")
"""Versions with which a LocalQueue called default is where Jobs wait that name none."""
HIGHEST_PRIORITY: Final = 1_000_000_000
"""The largest value of a WorkloadPriorityClass, as of a PriorityClass that is not Kubernetes' own."""


def _served(plural: str) -> Collection:
    return Collection(tuple(f"/apis/{GROUP}/{version}/{plural}" for version in VERSIONS))


COLLECTIONS: Final = (
    Collection(("/api/v1/namespaces/kueue-system/configmaps/kueue-manager-config",)),
    _served("resourceflavors"),
    _served("cohorts"),
    _served("clusterqueues"),
    _served("localqueues"),
    _served("workloadpriorityclasses"),
    Collection(("/apis/batch/v1/jobs",), labels=QUEUE),
    Collection(("/api/v1/pods",), labels=QUEUE),
    Collection(("/apis/apps/v1/deployments",), labels=QUEUE),
    Collection(("/apis/apps/v1/statefulsets",), labels=QUEUE),
    Collection(("/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets",), labels=QUEUE),
)

_REFUSED: Final = {
    "AdmissionCheck": "a Job starts as soon as there is quota for it: nothing else is asked",
    "ProvisioningRequestConfig": "no nodes are asked for: quota is what there is",
    "MultiKueueConfig": "one cluster is looked after, not several",
    "MultiKueueCluster": "one cluster is looked after, not several",
    "Topology": "quota is counted without the places of nodes: the scheduler finds those",
}
_FLAVOR_FIELDS: Final = {
    "topologyName": _REFUSED["Topology"],
    "resourceWeights": "each resource counts the same in a share",
}
_LOCAL_QUEUE_FIELDS: Final = {
    "fairSharing": "LocalQueues of a ClusterQueue are served in one order, without weights",
    "wallTimePolicy": "time is not budgeted",
}
_JOB_MARKS: Final = {
    f"{GROUP}/job-completions-equal-parallelism": "a Job is admitted with all of its pods",
    f"{GROUP}/prebuilt-workload-name": "a Workload is made of its Job, never the other way round",
}

_SCOPES: Final = {
    "ResourceFlavor": "ResourceFlavor",
    "ClusterQueue": "ClusterQueue",
    "Cohort": "Cohort",
    "LocalQueue": "LocalQueue/",
    "Queue": "LocalQueue/",
    "WorkloadPriorityClass": "WorkloadPriorityClass",
}
"""Among which names those of a kind must differ."""


def translate(documents: Sequence[Document], into: Translation) -> None:
    documents = kueue_configuration.unpacked(documents, into)
    names = Names()
    names.keep_all(documents, _SCOPES)
    fair_sharing = kueue_configuration.enables_fair_sharing(documents)
    quota = QuotaImporter(into, names, fair_sharing=fair_sharing)
    queues = _QueueImporter(names)
    jobs = JobImporter(names, FOREIGN, queues.queue, queues.marks)
    pods = PodImporter(names, jobs)
    for importer in (jobs, pods):
        importer.keep_names(documents)
    handlers = {
        **jobs.handlers(),
        **pods.handlers(),
        (GROUP, "ResourceFlavor"): queues.flavor,
        (GROUP, "ClusterQueue"): quota.cluster_queue,
        (GROUP, "Cohort"): quota.cohort,
        (GROUP, "LocalQueue"): queues.local_queue,
        (GROUP, "Queue"): queues.local_queue,
        (GROUP, "WorkloadPriorityClass"): queues.priority_class,
        (GROUP, "Workload"): _workload,
        **{(GROUP, kind): _refused for kind in _REFUSED},
        (kueue_configuration.GROUP, kueue_configuration.KIND): kueue_configuration.configuration,
    }
    dispatch(documents, into, handlers, quota.finish)


@dataclass(slots=True)
class _QueueImporter:
    """Translates what stands around ClusterQueues."""

    _names: Names

    def flavor(self, source: ManifestSource) -> None:
        """A ResourceFlavor stays one; before v1beta1 its labels and taints stand outside of a spec."""
        name = self._names.take(source, "metadata.name", "ResourceFlavor")
        if not name:
            return
        early = source.value("spec") is None
        places = ("metadata.labels", "labels", "nodeSelector") if early else ("spec.nodeLabels",)
        labels: Json = {}
        for place in places:
            for key, each in source.mapping(place).items():
                labels[key] = each
                source.translated(below(place, key), "a label of its nodes")
        taints = list(_taints(source, "taints" if early else "spec.nodeTaints"))
        spec = said(nodeLabels=labels, nodeTaints=taints)
        if source.sequence("spec.tolerations"):
            spec["tolerations"] = source.sequence("spec.tolerations")
            source.translated("spec.tolerations", "the same")
        source.refuse_unless_empty(_FLAVOR_FIELDS, "spec")
        source.add(own("ResourceFlavor", metadata(source, name, FOREIGN), spec))

    def local_queue(self, source: ManifestSource) -> None:
        """A LocalQueue stays one; it used to be called Queue."""
        namespace = source.text("metadata.namespace")
        name = self._names.take(source, "metadata.name", f"LocalQueue/{namespace}")
        queue = self._names.take(source, "spec.clusterQueue", "ClusterQueue")
        if not name or not queue:
            return
        if namespace:
            source.translated("metadata.namespace", namespace)
        if name == "default" and source.text("apiVersion") in _DEFAULTING:
            words = (
                "Jobs without a label wait here in Kueue: label the namespace "
                "admitter.dev/default-queue=default"
            )
            source.approximated("metadata.name", words)
        spec = {"clusterQueue": queue, **same(source, "stopPolicy")}
        source.refuse_unless_empty(_LOCAL_QUEUE_FIELDS, "spec")
        source.add(own("LocalQueue", metadata(source, name, FOREIGN, namespace), spec))

    def priority_class(self, source: ManifestSource) -> None:
        """A WorkloadPriorityClass stays one, for all queues."""
        name = self._names.take(source, "metadata.name", "WorkloadPriorityClass")
        value = source.number("value", 0)
        if not name:
            return
        if value > HIGHEST_PRIORITY:
            source.refused("value", f"is more than {HIGHEST_PRIORITY}, the most that a class has here")
            return
        source.translated("value", str(value))
        spec: Json = {"value": value}
        if source.text("description"):
            spec["description"] = source.text("description")
            source.translated("description", "the same")
        source.add(own("WorkloadPriorityClass", metadata(source, name, FOREIGN), spec))

    def queue(self, source: ManifestSource, template: str) -> str | None:
        """The LocalQueue that a label names, or before v1alpha2 an annotation; on a template for its pods."""
        places = [f"metadata.{part}" for part in ("labels", "annotations")]
        if template:
            places.append(f"{template}.metadata.labels")
        found = ""
        for place in places:
            path = below(place, QUEUE)
            if not source.text(path):
                continue
            scope = f"LocalQueue/{source.text('metadata.namespace')}"
            found = found or self._names.take(source, path, scope)
            source.ignored(path)
        for place in places:
            marks = {below(place, mark): words for mark, words in _JOB_MARKS.items()}
            source.account(Fidelity.REFUSED, marks)
        return found or None

    def marks(self, source: ManifestSource) -> dict[str, Json]:
        """What an object says of its class, of its time to run, and with how many pods it can do."""
        path = below("metadata.labels", PRIORITY)
        name = self._names.take(source, path, "WorkloadPriorityClass") if source.text(path) else ""
        path = below("metadata.labels", MAX_EXEC_TIME)
        seconds = _number(source, path, f"the annotation {MAX_RUNTIME_ANNOTATION}")
        annotations = {MAX_RUNTIME_ANNOTATION: f"{seconds}s"} if seconds else {}
        path = below("metadata.annotations", MIN_PARALLELISM)
        if source.text("kind") != "Job":
            source.account(Fidelity.REFUSED, {path: "only a Job can start with fewer pods"})
        elif least := _number(source, path, f"the annotation {MIN_PARALLELISM_ANNOTATION}"):
            annotations[MIN_PARALLELISM_ANNOTATION] = str(least)
        return said(labels={PRIORITY_CLASS_LABEL: name} if name else {}, annotations=annotations)


def _number(source: ManifestSource, path: str, becomes: str) -> int:
    """The number at a path, which becomes something else; 0 if there is none."""
    text = source.text(path)
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(MOST)) else 0
    if 0 < number <= MOST:
        source.translated(path, becomes)
        return number
    if text:
        source.refused(path, f"is no number from 1 to {MOST}")
    return 0


def _taints(source: ManifestSource, path: str) -> Iterable[Json]:
    for at in source.items(path):
        taint = source.mapping(at)
        kept = {key: each for key, each in taint.items() if key in {"key", "value", "effect"}}
        for key in kept:
            source.translated(f"{at}.{key}", "a taint of its nodes")
        if "timeAdded" in taint:
            source.translated(f"{at}.timeAdded", "not needed: it was written by a server")
        yield kept


def _workload(source: ManifestSource) -> None:
    owners = source.value("metadata.ownerReferences")
    of = [str(o.get("kind")) for o in owners if isinstance(o, dict)] if isinstance(owners, list) else []
    kinds = sorted(set(of))
    known = {"Job", "Pod", "StatefulSet", "LeaderWorkerSet", *(kind for _, kind in group_kinds())}
    if len(kinds) == 1 and kinds[0] in known:
        source.translated("", f"is made again of its {kinds[0]}")
    else:
        words = "Workloads are made of Jobs, of pods, and of kinds that are described"
        source.refused("", f"belongs to {kinds[0] if kinds else 'no Job'}: {words}")


def _refused(source: ManifestSource) -> None:
    source.refused("", _REFUSED[source.text("kind")])
