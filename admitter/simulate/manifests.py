"""Reads manifests as a user would apply them, and orders them on a timeline."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from admitter.api.base import Resource, problems
from admitter.api.kinds import KINDS
from admitter.api.shapes import shape_problem
from admitter.cache.views import seconds
from admitter.documents import ManifestError, documents, title
from admitter.names import API_VERSION, SIMULATED_AT_ANNOTATION, SIMULATED_UNTIL_ANNOTATION
from admitter.quantities.durations import InvalidDurationError, parse_duration

Json = dict[str, Any]

OWN: Final[dict[str, type[Resource]]] = {kind.__name__: kind for kind in KINDS}
READ: Final = {
    ("v1", "Namespace"),
    ("v1", "Node"),
    ("v1", "LimitRange"),
    ("v1", "ResourceQuota"),
    ("scheduling.k8s.io/v1", "PriorityClass"),
    ("node.k8s.io/v1", "RuntimeClass"),
    ("batch/v1", "Job"),
    *((API_VERSION, kind) for kind in OWN),
}
"""Kinds that matter here; others are ignored."""

SNAPSHOT: Final = (API_VERSION, "Snapshot")

NAMESPACED: Final = {"LimitRange", "ResourceQuota", "Job"} | {
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
    """An object that comes, changes or goes.

    Attributes:
        time: when, in seconds since the epoch.
        serial: the order in which they were written.
        object: its manifest.
        gone: whether it goes.
    """

    time: float
    serial: int
    object: Json = field(compare=False)
    gone: bool = field(compare=False, default=False)


@dataclass(slots=True)
class Timeline:
    """All that was read.

    Attributes:
        start: the time at which the simulation begins.
        changes: in order of time.
        errors: objects that were left out.
    """

    start: float
    changes: list[Change]
    errors: list[Invalid]


def read(paths: Iterable[str], begin: Callable[[str, Json], float] | None = None) -> Timeline:
    """The timeline in files and folders of YAML or JSON; `-` is standard input.

    Args:
        paths: of the files.
        begin: takes in a snapshot of a cluster, which is called by its place, and returns when the
            simulation begins then; None: a snapshot can't be used.

    Raises:
        ManifestError: a file can't be read; with its name and the reason.
    """
    objects: list[Json] = []
    errors: list[Invalid] = []
    begins: float | None = None
    for place, manifest in documents(paths):
        if begin is not None and isinstance(manifest, dict) and _kind_of(manifest) == SNAPSHOT:
            begins = begin(place, manifest)
            continue
        found = str(manifest) if isinstance(manifest, ManifestError) else _problem(manifest)
        if found is None:
            assert isinstance(manifest, dict)
            objects.append(manifest)
        elif found:
            errors.append(Invalid(title(manifest, place), found))
    given = [o["metadata"]["creationTimestamp"] for o in objects if o["metadata"].get("creationTimestamp")]
    start = seconds(min(given, key=seconds, default=DEFAULT_START)) if begins is None else begins
    return Timeline(start, sorted(_changes(objects, start)), errors)


def _problem(manifest: object) -> str | None:
    """Why an object can't be used; empty if it does not matter here, None if it is valid."""
    if not isinstance(manifest, dict) or not isinstance(manifest.get("kind"), str):
        return "is no Kubernetes object: it has no kind"
    version, kind = _kind_of(manifest)
    if not isinstance(version, str) and kind in {kind for _, kind in READ}:
        return "apiVersion: is missing" if version is None else "apiVersion: Input should be a valid string"
    if (version, kind) == SNAPSHOT:
        return "is a snapshot of a cluster and no manifest: --state takes it"
    if (version, kind) not in READ:
        return ""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or metadata.get("name", "") == "":
        return "metadata.name: is missing"
    if kind not in NAMESPACED:
        metadata.pop("namespace", None)
    elif metadata.get("namespace", "") == "":
        metadata["namespace"] = "default"
    return _wrong(manifest) or _time_problem(metadata)


def _kind_of(manifest: Json) -> tuple[Any, Any]:
    return manifest.get("apiVersion"), manifest.get("kind")


def _wrong(manifest: Json) -> str | None:
    """Which fields of an object of a known kind are wrong, and why; annotations are texts if none is."""
    model = OWN.get(manifest["kind"])
    found = problems(model, manifest) if model is not None else []
    wrong = "; ".join(str(problem) for problem in found) or shape_problem(manifest)
    if wrong is not None:
        return wrong
    for place in (manifest["metadata"], _template_metadata(manifest)):
        if "annotations" in place:  # numbers are taken too, and mean what is written
            place["annotations"] = {name: str(text) for name, text in place["annotations"].items()}
    return None


def _template_metadata(manifest: Json) -> Json:
    """The metadata of a Job's pods; empty of anything else."""
    template = manifest["spec"]["template"] if manifest["kind"] == "Job" else {}
    return template.get("metadata") or {}


def _time_problem(metadata: Json) -> str | None:
    for name in (SIMULATED_AT_ANNOTATION, SIMULATED_UNTIL_ANNOTATION):
        text = metadata.get("annotations", {}).get(name)
        try:
            if text is not None:
                parse_duration(text)
        except InvalidDurationError as error:
            return f"metadata.annotations[{name}]: {error}"
    return None


def _changes(objects: list[Json], start: float) -> Iterator[Change]:
    for serial, manifest in enumerate(objects):
        metadata = manifest["metadata"]
        annotations = metadata.get("annotations") or {}
        time = start
        if manifest["kind"] in {"Job", "Workload"} and metadata.get("creationTimestamp"):
            time = seconds(metadata["creationTimestamp"])
        if SIMULATED_AT_ANNOTATION in annotations:
            time = start + parse_duration(annotations[SIMULATED_AT_ANNOTATION])
        yield Change(time, serial, manifest)
        if SIMULATED_UNTIL_ANNOTATION in annotations:
            end = start + parse_duration(annotations[SIMULATED_UNTIL_ANNOTATION])
            yield Change(end, serial + len(objects), manifest, gone=True)
