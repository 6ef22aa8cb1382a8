"""The cluster at one moment, as a file: what decisions depend on, and nothing else.

Of a pod template only what pods request and which nodes they accept is kept: no image, command, environment,
volume or Secret's name. Snapshots can be passed on, and tried out without a cluster.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final

import orjson
from pydantic import Field, ValidationError

from admitter.api.base import problems_of
from admitter.api.forms import RECORDS, checker, fields, fitted, needed
from admitter.cache.declared_kinds import declared_kinds
from admitter.cache.described_views import parse_record, record_of
from admitter.cache.timestamps import seconds
from admitter.cache.views import JobView, at, timestamp
from admitter.cache.world import World
from admitter.client.errors import UnreadableError
from admitter.client.source import Json, Source
from admitter.convert.gpus import GpuSettings
from admitter.convert.pod_sets import kept_template
from admitter.convert.settings import Settings
from admitter.convert.workloads import RequeueBy
from admitter.documents import ManifestError
from admitter.names import API_VERSION, GROUP, NAMESPACE_WEIGHT_RESOURCES
from admitter.policy.snapshot import QUEUED_PODS, Facts, sources_of
from admitter.visible import visible

log = logging.getLogger(__name__)

KIND: Final = "Snapshot"
LONGEST_LINE: Final = 500
"""Characters of a message about an object that can't be read."""
_METADATA: Final = (
    *("namespace", "name", "uid", "resourceVersion", "generation"),
    *("creationTimestamp", "deletionTimestamp", "labels"),
)
_PREFIXES: Final = (f"{GROUP}/", "yunikorn.apache.org/", "kueue.x-k8s.io/")
"""Prefixes of the annotations that are read, and of the labels of Jobs and pods."""
_SETTINGS: Final = fields(
    requeueBy=needed(str),
    gpuMemoryGB=needed(Annotated[int, Field(ge=1)]),
    gpuResources=needed(dict[str, Annotated[int, Field(ge=1)] | None]),
)
_FILE: Final = fields(taken=needed(str), settings=needed(_SETTINGS), objects=needed(dict[str, list[Any]]))
_OWNED: Final = frozenset({"jobs", "pods", QUEUED_PODS, "statefulsets", "workloads"})
"""Kinds with labels that users choose freely."""
_TOLD_OF_PODS: Final = frozenset({"Ready", "PodScheduled"})
"""Conditions of pods of which it is kept whether they hold."""
_ENDS: Final = ("activeDeadlineSeconds",)
"""Fields that bound the runtime of a Job's pods."""


@dataclass(frozen=True, slots=True)
class SnapshotFile:
    """The cluster at one moment."""

    taken: float  # when, in seconds since the epoch
    settings: Settings  # of the controller
    # by the plural of their kind, reduced to the fields that are read; of a described kind that was read by
    # plural and group, with what its JobKind has found in them
    objects: Mapping[str, list[Json]]


def reduced(plural: str, raw: Json) -> Json:
    """An object without the fields that no decision reads."""
    metadata = _metadata(raw["metadata"], all_labels=plural not in _OWNED)
    return {"metadata": metadata, **_BODIES.get(plural, _body)(raw)}


def _metadata(raw: Json, *, all_labels: bool) -> Json:
    made: Json = {field: raw[field] for field in _METADATA if field in raw}
    if not all_labels:
        made["labels"] = _ours(raw.get("labels"))
    annotations = _ours(raw.get("annotations"))
    if annotations:
        made["annotations"] = annotations
    owners = [
        {
            field: owner[field]
            for field in ("apiVersion", "kind", "name", "uid", "controller")
            if field in owner
        }
        for owner in raw.get("ownerReferences") or ()
    ]
    return made | ({"ownerReferences": owners} if owners else {})


def _ours(texts: Mapping[str, str] | None) -> dict[str, str]:
    return {name: text for name, text in (texts or {}).items() if name.startswith(_PREFIXES)}


def _body(raw: Json) -> Json:
    kept = ("spec", "status", "value", "globalDefault", "overhead")
    return {field: raw[field] for field in kept if field in raw}


def record(raw: Json, view: JobView) -> Json:
    """What is kept of an object of a described kind, by its view."""
    return record_of(_metadata(raw["metadata"], all_labels=False), view)


def _job(raw: Json) -> Json:
    spec, template = raw["spec"], raw["spec"]["template"]
    fields = ("suspend", "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit")
    kept = {field: spec[field] for field in fields if field in spec}
    metadata = template.get("metadata") or {}
    ends = {field: template["spec"][field] for field in _ENDS if field in template["spec"]}
    kept["template"] = {
        "metadata": {part: _ours(metadata.get(part)) for part in ("labels", "annotations")},
        "spec": {**kept_template(template["spec"]), **ends},
    }
    return {"spec": kept, "status": raw.get("status") or {}}


def _pod(raw: Json) -> Json:
    """What it uses, on which node, and whether it is ready; what kubelets say of it is left out."""
    spec, status = raw["spec"], raw.get("status") or {}
    node = {"nodeName": spec["nodeName"]} if spec.get("nodeName") else {}
    told = [
        {field: condition[field] for field in ("type", "status")}
        for condition in status.get("conditions") or ()
        if condition["type"] in _TOLD_OF_PODS
    ]
    kept = {"phase": status.get("phase")} | ({"conditions": told} if told else {})
    return {"spec": {**kept_template(spec), **node}, "status": kept}


def _queued_pod(raw: Json) -> Json:
    spec, status = raw["spec"], raw.get("status") or {}
    kept = {field: spec[field] for field in ("schedulingGates", *_ENDS) if field in spec}
    told = {field: status[field] for field in ("phase", "reason") if field in status}
    disruptions = [c for c in status.get("conditions") or () if c["type"] == "DisruptionTarget"]
    return {"spec": {**kept_template(spec), **kept}, "status": {**told, "conditions": disruptions}}


def _node(raw: Json) -> Json:
    spec, status = raw.get("spec") or {}, raw.get("status") or {}
    ready = [c for c in status.get("conditions") or () if c["type"] == "Ready"]
    amounts = {field: status[field] for field in ("allocatable", "capacity") if field in status}
    kept = {field: spec[field] for field in ("taints", "unschedulable") if field in spec}
    return {"spec": kept, "status": {**amounts, "conditions": ready}}


def _resource_quota(raw: Json) -> Json:
    hard = (raw.get("spec") or {}).get("hard") or {}
    return {"spec": {"hard": {name: hard[name] for name in NAMESPACE_WEIGHT_RESOURCES if name in hard}}}


_BODIES: Final[dict[str, Callable[[Json], Json]]] = {
    "jobs": _job,
    "pods": _pod,
    QUEUED_PODS: _queued_pod,
    "nodes": _node,
    "namespaces": lambda _: {},
    "statefulsets": lambda raw: {"spec": {"replicas": (raw.get("spec") or {}).get("replicas")}},
    "resourcequotas": _resource_quota,
}


def dump(snapshot: SnapshotFile) -> bytes:
    gpus = snapshot.settings.gpus
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "taken": timestamp(at(snapshot.taken)),
        "settings": {
            "requeueBy": snapshot.settings.requeue_by,
            "gpuMemoryGB": gpus.memory,
            "gpuResources": dict(gpus.more),
        },
        "objects": snapshot.objects,
    }
    return orjson.dumps(document, option=orjson.OPT_APPEND_NEWLINE)


def load(path: Path) -> SnapshotFile:
    """The snapshot in a file.

    Raises:
        ManifestError: there is none, or it is not what `dump` makes.
    """
    try:
        document = orjson.loads(path.read_bytes())
    except OSError as error:
        raise ManifestError(f"{path}: can't be read: {error.strerror}") from error
    except orjson.JSONDecodeError as error:
        raise ManifestError(f"{path}: is no JSON: {error}") from error
    return parsed(str(path), document)


def parsed(place: str, document: Any) -> SnapshotFile:  # noqa: ANN401  # whatever JSON has
    """The snapshot in a document, which is called `place` in messages.

    Raises:
        ManifestError: it is not what `dump` makes.
    """
    given = document if isinstance(document, dict) else {}
    if (given.get("apiVersion"), given.get("kind")) != (API_VERSION, KIND):
        raise ManifestError(f"{place}: is no {KIND} of {API_VERSION}: admitter snapshot makes them")
    try:
        whole = checker(_FILE).validate_python(given, strict=True)
        settings, objects = whole["settings"], whole["objects"]
        made = Settings(
            RequeueBy(settings["requeueBy"]), GpuSettings(settings["gpuMemoryGB"], settings["gpuResources"])
        )
        known = {plural: objects.get(plural, []) for plural in sources_of(World())}
        if QUEUED_PODS not in objects:
            del known[QUEUED_PODS]  # nothing is known of them
        known |= {name: of_kind for name, of_kind in objects.items() if "." in name}
        return SnapshotFile(seconds(whole["taken"]), made, known)
    except ValidationError as error:
        words = "; ".join(map(str, problems_of(error)))
    except ValueError as error:
        words = str(error)
    raise ManifestError(f"{place}: is no whole {KIND}: {words}")


def facts(snapshot: SnapshotFile) -> Facts:
    """The facts of a snapshot. An unreadable object is logged and left out, except for the quota it holds."""
    views = {
        plural: {view.key: view for view in readable(snapshot.objects[plural], plural)}
        for plural in sources_of(World())
        if plural in snapshot.objects
    }
    read = set()
    for kind in declared_kinds(views["jobkinds"].values()):
        name, resource = kind.resource.collection, kind.resource
        if name in snapshot.objects:
            read.add(name)
            parse = partial(parse_record, resource=resource)
            source = Source(resource.path, parse, fitted=partial(fitted, RECORDS))
            views["jobs"] |= {view.key: view for view in _read(snapshot.objects[name], name, source)}
    return Facts(snapshot.taken, snapshot.settings, views, frozenset(read) if views["jobkinds"] else None)


def readable(raws: Iterable[Json], plural: str) -> Iterator[Any]:
    """The views of objects of a kind. An unreadable one is logged, and left out but for the quota it holds.

    Answers about other objects do not need it.
    """
    return _read(raws, plural, sources_of(World())[plural])


def _read(raws: Iterable[Json], plural: str, source: Source[Any]) -> Iterator[Any]:
    for raw in raws:
        if wrong := _identity_problem(raw):
            say_left_out(plural, raw, wrong)
            continue
        try:
            view = source.read(raw)
        except UnreadableError as error:
            say_left_out(plural, raw, str(error))
            view = source.rest_of(raw)(None)
        if view is not None:
            yield view


def _identity_problem(raw: object) -> str:
    """Why an object can't be told from others; empty if it can: an API server has no such object."""
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    if not isinstance(metadata, dict):
        return "metadata: is missing"
    given = {field: metadata.get(field, "") for field in ("namespace", "name", "uid")}
    return "; ".join(
        f"metadata.{f}: must be a text" for f, text in given.items() if not isinstance(text, str)
    )


def say_left_out(plural: str, raw: Json, error: str) -> None:
    """Log that an object is left out: not on standard output, where an answer may follow."""
    metadata = raw.get("metadata") if isinstance(raw, dict) else None
    place = [metadata.get(field) for field in ("namespace", "name")] if isinstance(metadata, dict) else []
    name = "/".join(str(each) for each in (plural, *place) if each)
    log.warning(visible(f"left out: {name} can't be read: {error}"[:LONGEST_LINE]))
