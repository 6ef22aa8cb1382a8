"""Reads manifests as a user would apply them, and orders them on a timeline."""

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from operator import itemgetter
from typing import Any, Final

from admitter.api.base import Resource, problems
from admitter.api.kinds import KINDS
from admitter.api.shapes import shape_problem
from admitter.cache.timestamps import seconds
from admitter.documents import ManifestError, documents, generated_names, title
from admitter.kinds import KindError
from admitter.names import (
    API_VERSION,
    DEFAULT_QUEUE_LABEL,
    EXPECTED_RUNTIME_ANNOTATION,
    MANAGED_LABEL,
    SIMULATED_AT_ANNOTATION,
    SIMULATED_READY_AFTER_ANNOTATION,
    SIMULATED_RUNTIME_ANNOTATION,
    SIMULATED_UNTIL_ANNOTATION,
)
from admitter.quantities.durations import InvalidDurationError, parse_duration
from admitter.simulate import pods
from admitter.simulate.described import DESCRIBED, DescribedKinds, job_kinds_in

Json = dict[str, Any]

NEVER: Final = "never"
"""In an annotation on when pods are ready."""
OWN: Final[dict[str, type[Resource]]] = {kind.__name__: kind for kind in KINDS}
READ: Final = {
    ("v1", "Namespace"),
    ("v1", "Node"),
    ("v1", "LimitRange"),
    ("v1", "ResourceQuota"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("node.k8s.io/v1", "RuntimeClass"),
    ("batch/v1", "Job"),
    pods.POD,
    *((API_VERSION, kind) for kind in OWN),
}
"""Kinds that matter here; others are ignored."""

SNAPSHOT: Final = (API_VERSION, "Snapshot")
ELASTIC_QUOTA: Final = (API_VERSION, "ElasticQuota")
NAMESPACE: Final = ("v1", "Namespace")

NAMESPACED: Final = {"LimitRange", "ResourceQuota", "Job", "Pod"} | {
    kind.__name__ for kind in KINDS if kind.namespaced
}
DEFAULT_START: Final = "2000-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Invalid:
    """An object that can't be used: which one, and why."""

    object: str
    message: str


@dataclass(order=True, frozen=True, slots=True)
class Change:
    """An object that comes, changes or goes."""

    time: float  # when, in seconds since the epoch
    serial: int  # the order in which they were written
    object: Json = field(compare=False)
    gone: bool = field(compare=False, default=False)


@dataclass(slots=True)
class Timeline:
    """All that was read."""

    start: float  # the time at which the simulation begins
    changes: list[Change]  # in order of time
    errors: list[Invalid]  # objects that were left out


def read(
    paths: Iterable[str],
    begin: Callable[[str, Json], float] | None = None,
    namespace: str = "default",
    job_kinds: Iterable[Json] = (),
    all_pods_in: Iterable[str] = (),
) -> Timeline:
    """The timeline in files and folders of YAML or JSON; `-` is standard input.

    `begin` takes in a snapshot of a cluster, which is called by its place, and returns when the simulation
    begins then; None: a snapshot can't be used. Objects that name no namespace are in `namespace`. The
    `job_kinds` of a cluster are known, as are those of a snapshot. Pods that name no queue are left out where
    no quota here or in a snapshot manages all pods, and there is no default queue; `all_pods_in` are further
    namespaces where pods are counted.

    Raises:
        ManifestError: a file can't be read; with its name and the reason.
    """
    objects: list[Json] = []
    makers: list[tuple[Json, list[Json]]] = []
    errors: list[Invalid] = []
    begins: float | None = None
    everything = list(documents(paths))
    names = generated_names((manifest for _, manifest in everything), namespace)
    snapshots = [each for _, each in everything if isinstance(each, dict) and _kind_of(each) == SNAPSHOT]
    kinds = DescribedKinds(
        (manifest for _, manifest in everything), [*job_kinds, *chain(*map(job_kinds_in, snapshots))]
    )
    quotas = (each for _, each in everything if isinstance(each, dict) and _kind_of(each) == ELASTIC_QUOTA)
    managing = {*all_pods_in, *managing_all_pods([*quotas, *chain(*map(_quotas_in, snapshots))], namespace)}
    spaces = (each for each in map(itemgetter(1), everything) if isinstance(each, dict))
    namespaces = [each for each in spaces if _kind_of(each) == NAMESPACE]
    managing |= {*with_default_queues([*namespaces, *chain(*map(_namespaces_in, snapshots))])}
    is_queued = partial(_is_queued, managing=managing, default=namespace)
    for number, (place, manifest) in enumerate(everything):
        if number in names:
            manifest["metadata"]["name"] = names[number]
        if begin is not None and isinstance(manifest, dict) and _kind_of(manifest) == SNAPSHOT:
            begins = begin(place, manifest)
            continue
        found = (
            str(manifest)
            if isinstance(manifest, ManifestError)
            else _problem(manifest, namespace, kinds, is_queued)
        )
        if found is None:
            assert isinstance(manifest, dict)
            try:
                counted = _counted(manifest, kinds, is_queued)
                makers.append((manifest, counted))
                objects += counted
            except (KindError, InvalidDurationError) as error:
                found = str(error)
        if found:
            errors.append(Invalid(title(manifest, place), found))
    errors += [each for defect in kinds.defects() if (each := Invalid(*defect)) not in errors]
    pods.end_left_out(makers)
    given = [o["metadata"]["creationTimestamp"] for o in objects if o["metadata"].get("creationTimestamp")]
    start = seconds(min(given, key=seconds, default=DEFAULT_START)) if begins is None else begins
    return Timeline(start, sorted(_changes(objects, start)), errors)


def managing_all_pods(quotas: Iterable[object], default: str = "") -> Iterator[str]:
    """The namespaces of elastic quotas that manage all pods; nothing about these is checked yet."""
    for quota in quotas:
        spec, metadata = (
            quota.get(part) if isinstance(quota, dict) else None for part in ("spec", "metadata")
        )
        if isinstance(spec, dict) and isinstance(metadata, dict) and spec.get("manageAllPods"):
            yield str(metadata.get("namespace") or default)


def with_default_queues(namespaces: Iterable[object]) -> Iterator[str]:
    """The namespaces where pods that name no queue have a default one; nothing about these is checked yet."""
    for namespace in namespaces:
        metadata = namespace.get("metadata") if isinstance(namespace, dict) else None
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        if isinstance(metadata, dict) and isinstance(labels, dict) and default_queue_of_pods(labels):
            yield str(metadata.get("name"))


def default_queue_of_pods(labels: Mapping[str, str]) -> str:
    """The default queue of pods in a namespace with these labels; empty if they have none.

    It is managed, so that each of its pods has a queue.
    """
    return labels.get(DEFAULT_QUEUE_LABEL, "") if labels.get(MANAGED_LABEL) == "true" else ""


def _namespaces_in(snapshot: Json) -> list[object]:
    """The namespaces in a document that should be a snapshot."""
    objects = snapshot.get("objects")
    found = objects.get("namespaces") if isinstance(objects, dict) else None
    return found if isinstance(found, list) else []


def _quotas_in(snapshot: Json) -> list[object]:
    """The elastic quotas in a document that should be a snapshot."""
    objects = snapshot.get("objects")
    found = objects.get("elasticquotas") if isinstance(objects, dict) else None
    return found if isinstance(found, list) else []


def _is_queued(manifest: Json, managing: Container[str], default: str) -> bool:
    """Whether something is a pod of a queue or makes such pods, or may be one, for want of another queue."""
    if not pods.is_pods(manifest):
        return False
    metadata = manifest.get("metadata")
    namespace = (metadata.get("namespace") or default) if isinstance(metadata, dict) else default
    return pods.names_queue(manifest) or (isinstance(namespace, str) and namespace in managing)


def _counted(manifest: Json, kinds: DescribedKinds, is_queued: Callable[[Json], bool]) -> list[Json]:
    """What is decided about: the object itself, a Job or pods that stand for it, or nothing for a child.

    Raises:
        KindError: its pods can't be counted.
        InvalidDurationError: an annotation of its pods is no duration.
    """
    if "ownerReferences" in manifest["metadata"] and kinds.is_child(manifest):
        return []
    if pods.is_pods(manifest):
        counted = pods.belongs(manifest, kinds.related, lambda each: kinds.describe(each) or is_queued(each))
        return [] if counted else pods.pods_of(manifest)
    if not _is_read(manifest):
        return [kinds.as_job(manifest)]
    manifest.pop(DESCRIBED, None)
    return [manifest]


def _problem(
    manifest: object, namespace: str, kinds: DescribedKinds, is_queued: Callable[[Json], bool]
) -> str | None:
    """Why an object can't be used; empty if it does not matter here, None if it is valid."""
    if not isinstance(manifest, dict) or not isinstance(manifest.get("kind"), str):
        return "is no Kubernetes object: it has no kind"
    version, kind = _kind_of(manifest)
    if not isinstance(version, str) and kind in {kind for _, kind in READ}:
        return "apiVersion: is missing" if version is None else "apiVersion: Input should be a valid string"
    if (version, kind) == SNAPSHOT:
        return "is a snapshot of a cluster and no manifest: --state takes it"
    is_pods = pods.is_pods(manifest)
    described = not is_pods and not _is_read(manifest)
    if (is_pods and not is_queued(manifest)) or (described and not kinds.describe(manifest)):
        return ""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name", "") == "":
        return "metadata.name: is missing"
    if kind not in NAMESPACED and not described and not is_pods:
        metadata.pop("namespace", None)
    elif metadata.get("namespace", "") == "":
        metadata["namespace"] = namespace
    return _wrong(manifest, described=described) or _time_problem(metadata)


def _is_read(manifest: Json) -> bool:
    """Whether it is of a kind that is read without a description."""
    version, kind = _kind_of(manifest)
    return isinstance(version, str) and (version, kind) in READ


def _kind_of(manifest: Json) -> tuple[Any, Any]:
    return manifest.get("apiVersion"), manifest.get("kind")


def _wrong(manifest: Json, *, described: bool) -> str | None:
    """Which fields of an object of a known kind are wrong, and why; annotations are texts if none is."""
    if pods.is_pods(manifest):
        wrong = pods.problem(manifest)
    else:
        model = OWN.get(manifest["kind"]) if not described else None
        found = problems(model, manifest) if model is not None else []
        wrong = "; ".join(str(problem) for problem in found) or shape_problem(manifest, described=described)
    if wrong is not None:
        return wrong
    for place in (manifest["metadata"], _template_metadata(manifest) if not described else {}):
        if "annotations" in place:  # numbers are taken too, and mean what is written
            place["annotations"] = {name: str(text) for name, text in place["annotations"].items()}
    return None


def _template_metadata(manifest: Json) -> Json:
    """The metadata of a Job's pods; empty of anything else."""
    template = manifest["spec"]["template"] if manifest["kind"] == "Job" else {}
    return template.get("metadata") or {}


def _time_problem(metadata: Json) -> str | None:
    try:
        for name in (SIMULATED_AT_ANNOTATION, SIMULATED_UNTIL_ANNOTATION):
            _annotation(metadata, name)
    except InvalidDurationError as error:
        return str(error)
    return None


def _changes(objects: list[Json], start: float) -> Iterator[Change]:
    for serial, manifest in enumerate(objects):
        metadata, time = manifest["metadata"], start
        if manifest["kind"] in {"Job", "Pod", "Workload"} and metadata.get("creationTimestamp"):
            time = seconds(metadata["creationTimestamp"])
        begins = _annotation(metadata, SIMULATED_AT_ANNOTATION)
        yield Change(time if begins is None else start + begins, serial, manifest)
        ends = _annotation(metadata, SIMULATED_UNTIL_ANNOTATION)
        if ends is not None:
            yield Change(start + ends, serial + len(objects), manifest, gone=True)


def runtime(manifest: Json) -> float | None:
    """Seconds that a Job or Workload runs; None: for ever.

    The annotation of the object itself is the runtime of the whole object. That of a Job's pod template,
    which simulated nodes use, is the runtime of a pod: with more completions than parallelism the Job takes
    several times as long. Without both, the stated runtime counts.

    Raises:
        InvalidDurationError: names the annotation.
    """
    own = _annotation(manifest.get("metadata"), SIMULATED_RUNTIME_ANNOTATION)
    if own is not None:
        return own
    spec = manifest.get("spec") or {}
    pod = _annotation((spec.get("template") or {}).get("metadata"), SIMULATED_RUNTIME_ANNOTATION)
    if pod is None:
        return _annotation(manifest.get("metadata"), EXPECTED_RUNTIME_ANNOTATION)
    parallelism, completions = spec.get("parallelism", 1), spec.get("completions")
    waves = math.ceil(completions / parallelism) if completions and parallelism else 1
    return pod * waves


def ready_after(manifest: Json) -> float | None:
    """How long after an admission the pods of a Job are ready, in seconds; None: at once.

    Raises:
        InvalidDurationError: names the annotation.
    """
    template = (manifest.get("spec") or {}).get("template") or {}
    for metadata in (manifest.get("metadata"), template.get("metadata")):
        if ((metadata or {}).get("annotations") or {}).get(SIMULATED_READY_AFTER_ANNOTATION) == NEVER:
            return math.inf
        found = _annotation(metadata, SIMULATED_READY_AFTER_ANNOTATION)
        if found is not None:
            return found
    return None


def _annotation(metadata: Json | None, name: str) -> float | None:
    """The duration in an annotation, in seconds."""
    text = ((metadata or {}).get("annotations") or {}).get(name)
    try:
        return None if text is None else parse_duration(text)
    except InvalidDurationError as error:
        raise InvalidDurationError(f"metadata.annotations[{name}]: {error}") from error
