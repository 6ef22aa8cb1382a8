"""Reads manifests as a user would apply them, and orders them on a timeline."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from admitter.api.base import Resource, problems
from admitter.api.durations import InvalidDurationError, parse_duration
from admitter.api.kinds import KINDS
from admitter.controllers.views import seconds
from admitter.names import API_VERSION, SIMULATED_AT_ANNOTATION, SIMULATED_UNTIL_ANNOTATION
from admitter.simulate.shapes import shape_problem, without_nulls

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
"""Kinds that mean something here; others are passed over."""

NAMESPACED: Final = {"LimitRange", "ResourceQuota", "Job"} | {
    kind.__name__ for kind in KINDS if kind.namespaced
}
DEFAULT_START: Final = "2000-01-01T00:00:00Z"


class _Loader(yaml.SafeLoader):
    """As Kubernetes reads YAML: a timestamp is a text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class ManifestError(Exception):
    """A file that can't be read as manifests."""


@dataclass(frozen=True, slots=True)
class Invalid:
    """An object that can't be used: which one, and why."""

    object: str
    message: str


@dataclass(order=True, frozen=True, slots=True)
class Change:
    """An object that comes, or changes, or goes.

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


def read(paths: Iterable[str]) -> Timeline:
    """The timeline in files and folders of YAML or JSON; `-` is standard input.

    Raises:
        ManifestError: with the file and the reason.
    """
    objects: list[Json] = []
    errors: list[Invalid] = []
    for place, document in _documents(paths):
        for manifest in _flat(document):
            found = _problem(manifest)
            if found is None:
                assert isinstance(manifest, dict)
                objects.append(manifest)
            elif found:
                errors.append(Invalid(_title(manifest, place), found))
    given = [o["metadata"]["creationTimestamp"] for o in objects if o["metadata"].get("creationTimestamp")]
    start = seconds(min(given, key=seconds, default=DEFAULT_START))
    return Timeline(start, sorted(_changes(objects, start)), errors)


def title(manifest: Json) -> str:
    """An object as messages name it."""
    return _title(manifest, "")


def _title(manifest: object, place: str) -> str:
    if not isinstance(manifest, dict) or not isinstance(manifest.get("metadata"), dict):
        return place
    metadata = manifest["metadata"]
    name = "/".join(str(metadata[part]) for part in ("namespace", "name") if metadata.get(part))
    return f"{manifest.get('kind')} {name}"


def _documents(paths: Iterable[str]) -> Iterator[tuple[str, Any]]:
    for given in paths:
        if given == "-":
            yield from _parsed("standard input", sys.stdin.read())
            continue
        path = Path(given)
        files = sorted(p for p in path.rglob("*") if p.suffix in {".yaml", ".yml", ".json"})
        if path.is_dir() and not files:
            raise ManifestError(f"{path}: has no manifests in it (*.yaml, *.yml, *.json)")
        for file in files if path.is_dir() else [path]:
            try:
                text = file.read_text()
            except (OSError, UnicodeDecodeError) as error:
                reason = error.strerror if isinstance(error, OSError) else error
                raise ManifestError(f"{file}: can't be read: {reason}") from error
            yield from _parsed(str(file), text)


def _parsed(place: str, text: str) -> Iterator[tuple[str, Any]]:
    try:
        documents = list(yaml.load_all(text, Loader=_Loader))
    except yaml.YAMLError as error:
        raise ManifestError(f"{place}: is no YAML: {error}") from error
    for number, document in enumerate(documents, start=1):
        if document is not None:
            yield f"{place}: document {number}", without_nulls(document)


def _flat(document: object) -> Iterator[object]:
    if isinstance(document, dict) and str(document.get("kind", "")).endswith("List"):
        items = document.get("items")
        for item in items if isinstance(items, list) else ():
            yield from _flat(item)
    else:
        yield document


def _problem(manifest: object) -> str | None:
    """Why an object can't be used; empty if it means nothing here, None if it is good."""
    if not isinstance(manifest, dict) or not isinstance(manifest.get("kind"), str):
        return "is no Kubernetes object: it has no kind"
    if (manifest.get("apiVersion"), manifest["kind"]) not in READ:
        return ""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        return "metadata.name: is missing"
    if manifest["kind"] in NAMESPACED:
        metadata.setdefault("namespace", "default")
    else:
        metadata.pop("namespace", None)
    model = OWN.get(manifest["kind"])
    found = problems(model, manifest) if model is not None else []
    if found:
        return "; ".join(str(problem) for problem in found)
    return shape_problem(manifest) or _time_problem(metadata)


def _time_problem(metadata: Json) -> str | None:
    created = metadata.get("creationTimestamp")
    try:
        if created:
            seconds(created)
    except (ValueError, TypeError):
        return f"metadata.creationTimestamp: {created!r} is no time"
    for name in (SIMULATED_AT_ANNOTATION, SIMULATED_UNTIL_ANNOTATION):
        text = (metadata.get("annotations") or {}).get(name)
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
