"""From nos and scheduler-plugins: elastic quotas, and pods of their schedulers (docs/design/import.md)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from admitter.api.base import own_name
from admitter.importers.dispatch import Handler, dispatch, metadata
from admitter.importers.jobs import DEFAULT_SCHEDULER, JobImporter
from admitter.importers.naming import Names
from admitter.importers.reading import Collection, Document
from admitter.importers.translation import Fidelity, Json, ManifestSource, Translation, below, exact, own
from admitter.names import CAPACITY_ALIAS_LABEL, ELASTIC_QUOTA_QUEUE

NOS: Final = "nos.nebuly.com"
NOS_COLLECTIONS: Final = (
    Collection((f"/apis/{NOS}/v1alpha1/elasticquotas",)),
    Collection((f"/apis/{NOS}/v1alpha1/compositeelasticquotas",)),
)
SCHEDULER_PLUGINS: Final = ("scheduling.x-k8s.io", "scheduling.sigs.k8s.io")
"""The newer and the older name of its API."""
SCHEDULER_PLUGINS_COLLECTIONS: Final = (
    Collection(tuple(f"/apis/{group}/v1alpha1/elasticquotas" for group in SCHEDULER_PLUGINS)),
)

_QUOTAS: Final = ("ElasticQuota", "CompositeElasticQuota")
_POD_GROUPS: Final = ("scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io")
_SCHEDULING: Final = "concerns where pods run, which the scheduler goes on to decide"


def translate_nos(documents: Sequence[Document], into: Translation) -> None:
    memory = "nvidiaGpuResourceMemoryGB"
    handlers: dict[tuple[str, str], Handler] = {
        (f"config.{NOS}", "OperatorConfig"): lambda source: _gpu_memory(source, memory),
        # What its chart is installed with; older charts have no global section.
        ("", ""): lambda source: _gpu_memory(source, f"global.{memory}", memory),
    }
    _ElasticImporter(documents, (NOS,)).translate(documents, into, handlers)


def translate_scheduler_plugins(documents: Sequence[Document], into: Translation) -> None:
    handlers = {(group, "PodGroup"): _pod_group for group in SCHEDULER_PLUGINS}
    _ElasticImporter(documents, SCHEDULER_PLUGINS).translate(documents, into, handlers)


class _ElasticImporter:
    """Translates quotas, and what runs in their namespaces: both systems mean the same by the same kinds."""

    def __init__(self, documents: Sequence[Document], groups: tuple[str, ...]) -> None:
        """Take all that is translated, and the groups of the system's API.

        What runs is queued if a quota governs its namespace.
        """
        self._groups = groups
        self._governed = set(_governed(documents, groups))
        self._made: list[tuple[ManifestSource, Json]] = []
        self._names = Names()
        self._names.keep_all(documents, {kind: f"{kind}/" for kind in _QUOTAS})
        self._jobs = JobImporter(self._names, groups, self._queue)
        self._jobs.keep_names(documents)

    def translate(
        self, documents: Sequence[Document], into: Translation, own: Mapping[tuple[str, str], Handler]
    ) -> None:
        """Translate all documents; `own` has the handlers of the system's own kinds beside quotas."""
        handlers = {
            **self._jobs.handlers(),
            **{(group, kind): self._quota for group in self._groups for kind in _QUOTAS},
            ("kubescheduler.config.k8s.io", "KubeSchedulerConfiguration"): _scheduler,
            **own,
        }
        dispatch(documents, into, handlers, self._finish)

    def _quota(self, source: ManifestSource) -> None:
        kind = source.text("kind")
        namespace = source.text("metadata.namespace")
        name = self._names.take(source, "metadata.name", f"{kind}/{namespace}")
        if not name:
            return
        if namespace:
            source.translated("metadata.namespace", namespace)
        spec: Json = {part: _limits(source, f"spec.{part}") for part in ("min", "max")}
        if kind == "CompositeElasticQuota":
            spec["namespaces"] = source.sequence("spec.namespaces")
            source.translated("spec.namespaces", "the same")
        limits = {part: each for part, each in spec.items() if each}
        made = own(kind, metadata(source, name, self._groups, namespace), limits)
        if source.add(made):
            self._made.append((source, made["spec"]))

    def _finish(self) -> None:
        """Write what a quota does not name as there: 0 of `min` and no `max`, so all of it is borrowed.

        Here it would not be counted, so that what others own of it would be lent twice.
        """
        guaranteed = sorted({name for _, spec in self._made for name in spec.get("min", ())})
        for source, spec in self._made:
            named = {*spec.get("min", ()), *spec.get("max", ())}
            missing = [name for name in guaranteed if name not in named]
            if missing:
                spec["min"] = {**spec.get("min", {}), **dict.fromkeys(missing, 0)}
                source.translated("spec.min", f"by default 0 of {', '.join(missing)}: all of it is borrowed")
            elif not named:
                words = "no quota guarantees anything: what its Jobs use is neither limited nor counted"
                source.approximated("spec.min", words)

    def _queue(self, source: ManifestSource, template: str) -> str | None:
        """What other schedulers than the default one hold back, waits for the quota of its namespace."""
        for place in ("metadata.labels", f"{template}.metadata.labels") if template else ("metadata.labels",):
            _marks(source, place)
        at = f"{template}.spec.schedulerName".lstrip(".")
        scheduler = source.text(at) or DEFAULT_SCHEDULER
        namespace = source.text("metadata.namespace") or "default"
        if namespace in self._governed and scheduler != DEFAULT_SCHEDULER:
            return ELASTIC_QUOTA_QUEUE
        if namespace in self._governed:
            words = "counts in the quota there, but is not held back; here it does neither"
            source.approximated("metadata.namespace", words)
        elif scheduler != DEFAULT_SCHEDULER:
            words = f"no quota of namespace {namespace} is imported with it: it stays as it is, not queued"
            source.approximated(at, words)
        return None


def _limits(source: ManifestSource, path: str) -> Json:
    limits = {}
    for resource, quantity in source.mapping(path).items():
        name = own_name(resource)
        limits[name] = exact(quantity)
        source.translated(below(path, resource), "the same" if name == resource else f"as {name}")
    return limits


def _marks(source: ManifestSource, labels: str) -> None:
    """Labels of pods that the system reads, or writes."""
    for key in source.mapping(labels):
        path = below(labels, key)
        if key == CAPACITY_ALIAS_LABEL:
            source.translated(path, "written anew, since it is a result")
        elif key.startswith(_POD_GROUPS) and source.text("kind") == "Pod":
            source.refused(path, "each Pod becomes a Job of its own: make one of the group's")
        elif key.startswith(_POD_GROUPS):
            source.approximated(path, "the pods of a Job are admitted together")


def _scheduler(source: ManifestSource) -> None:
    """A scheduler's configuration: what holds pods back is not needed, all else stays the scheduler's."""
    for profile in source.items("profiles"):
        source.translated(f"{profile}.schedulerName", "not needed: any scheduler places what is admitted")
        for point in source.mapping(f"{profile}.plugins"):
            for part in ("enabled", "disabled"):
                for at in source.items(f"{profile}.plugins.{point}.{part}"):
                    _plugin(source, at)
        for at in source.items(f"{profile}.pluginConfig"):
            if source.text(f"{at}.name") == "CapacityScheduling":
                _gpu_memory(source, f"{at}.args.nvidiaGpuResourceMemoryGB")
            _plugin(source, at)
    for key in source.raw:
        if key != "profiles" and not source.known(key):
            source.translated(key, _SCHEDULING)


def _gpu_memory(source: ManifestSource, *paths: str) -> None:
    """The memory of a whole GPU, where the system has a setting for it."""
    for path in paths:
        if memory := source.number(path, 0):
            source.approximated(path, f"an option of the controller: admitter run --gpu-memory-gb {memory}")


def _plugin(source: ManifestSource, at: str) -> None:
    name = source.text(f"{at}.name")
    if name == "Coscheduling":
        words = "the pods of a Job are admitted together, but may be placed one after another"
        source.approximated(at, f"{name}: {words}")
    elif name == "CapacityScheduling":
        source.translated(at, f"{name}: not needed, since quotas hold Jobs back before they have pods")
    else:
        source.translated(at, f"{name}: {_SCHEDULING}")


def _governed(documents: Iterable[Document], groups: tuple[str, ...]) -> Iterable[str]:
    for document in documents:
        if document.group not in groups or document.kind not in _QUOTAS:
            continue
        spec = document.raw.get("spec")
        listed = spec.get("namespaces") if isinstance(spec, dict) else None
        if document.kind == "ElasticQuota":
            yield document.namespace
        elif isinstance(listed, list):
            yield from (each for each in listed if isinstance(each, str))


def _pod_group(source: ManifestSource) -> None:
    """A group is what a Job is here anyway."""
    metadata = ("name", "namespace", "labels", "annotations")
    source.account(Fidelity.APPROXIMATED, dict.fromkeys(metadata, "no group is needed"), "metadata")
    words = "all pods of a Job are admitted together, not the least number"
    source.account(Fidelity.APPROXIMATED, {"minMember": words, "minResources": words}, "spec")
    source.account(Fidelity.REFUSED, {"spec.scheduleTimeoutSeconds": "a Job waits as long as it takes"})
