"""Manifests of kinds that are described instead of coded: an object becomes a Job with pod sets of its own.

From there on it is decided about as a batch/v1 Job is. Its name has its kind before it, as kubectl takes it:
`jobset/train`. The JobKinds that Admitter ships are known; those among the manifests add to them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from admitter.cache.job_resources import PodSetView
from admitter.cache.views import JobView, parse_job
from admitter.convert.pod_sets import kept_template
from admitter.documents import bundled, documents, title
from admitter.names import API_VERSION, QUEUE_LABEL, SIMULATED_RUNTIME_ANNOTATION
from admitter.quantities.durations import parse_duration

if TYPE_CHECKING:
    from admitter.kinds.compiled import CompiledKind, FoundPodSet
    from admitter.kinds.registry import Kinds

Json = dict[str, Any]

JOB_KIND: Final = (API_VERSION, "JobKind")
_DEFINITION: Final = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
DESCRIBED: Final = "described"
"""Beside the spec of a Job that stands for an object of another kind: the object, as a `_Described`."""


class _Described(NamedTuple):
    title: str
    pod_sets: "list[FoundPodSet]"


class DescribedKinds:
    """What the JobKinds, Admitter's and those among some manifests, say of these manifests."""

    def __init__(self, manifests: Iterable[object], job_kinds: Iterable[Json] = ()) -> None:
        """With the `job_kinds` of a cluster: those that work there come before those of Admitter."""
        self._manifests = [each for each in manifests if isinstance(each, dict)]
        self._job_kinds = list(filter(_works, job_kinds))

    def describe(self, manifest: object) -> bool:
        """Whether an object is of a kind that a JobKind describes."""
        return self._find(manifest) is not None

    def as_job(self, manifest: Json) -> Json:
        """The Job that stands for an object of a described kind.

        Raises:
            KindError: its pods can't be counted; the words name the field.
            InvalidDurationError: an annotation of its pods is no duration.
        """
        kind = self._find(manifest)
        assert kind is not None, "it is described"
        metadata = manifest["metadata"]
        related = partial(self.related, metadata["namespace"])
        found = kind.pod_sets(manifest, related, self._kinds.embedded)
        state = kind.state(manifest)
        name = kind.priority_class(manifest, found, related)
        runtime = _longest_runtime(found)
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {**metadata, "name": f"{kind.resource.kind.lower()}/{metadata['name']}"},
            "spec": {
                "template": {
                    "metadata": {"annotations": {SIMULATED_RUNTIME_ANNOTATION: runtime} if runtime else {}},
                    "spec": _all_of(found) | {"priorityClassName": name},
                }
            },
            "status": {
                "active": int(state.active),
                "conditions": [{"type": state.finished, "status": "True", "message": state.message}]
                if state.finished
                else [],
            },
            DESCRIBED: _Described(title(manifest, ""), found),
        }

    def is_child(self, manifest: Json) -> bool:
        """Whether an object was made by the operator of another one here, with which it is counted.

        One that has no queue of its own is never counted beside its parent, as elastic quotas would.
        """
        metadata = manifest["metadata"]
        for owner in metadata.get("ownerReferences") or ():
            if not owner.get("controller"):
                continue
            key = (str(owner.get("apiVersion")), owner["kind"], owner["name"])
            parent = self.related(metadata.get("namespace", ""), *key)
            kind = self._find(parent)
            if parent is None or kind is None or (_names_queue(manifest) and not _names_queue(parent)):
                continue
            group = str(manifest.get("apiVersion")).rpartition("/")[0]
            if any((each.group, each.kind) == (group, manifest["kind"]) for each in kind.spec.children):
                return True
        return False

    def defects(self) -> Iterator[tuple[str, str]]:
        """The JobKinds that do not work, and why: those among the manifests, and those that were used.

        One without a name is no object at all.
        """
        if any(_kind_of(each) == JOB_KIND for each in self._manifests):
            self._kinds.find_all()
        for each in self._kinds.defects if "_kinds" in vars(self) else ():
            if each.name:
                yield f"JobKind {each.name}", "; ".join(map(str, each.problems))

    def _find(self, manifest: object) -> "CompiledKind | None":
        if not isinstance(manifest, dict):
            return None
        found: CompiledKind | None = self._kinds.find(*_kind_of(manifest))
        return found

    @cached_property
    def _kinds(self) -> "Kinds":
        """Loaded once something has to be looked up: the library for expressions is slow to load."""
        from admitter.kinds.registry import Kinds  # noqa: PLC0415

        taken = Kinds(self._job_kinds, {}).declared
        there = {(each.spec.resource.api_version, each.spec.resource.kind) for each in taken}
        shipped = [
            each
            for _, each in documents([str(bundled("manifests") / "kinds")])
            if _described_by(each) not in there
        ]
        own = [each for each in self._manifests if _kind_of(each) == JOB_KIND]
        return Kinds([*self._job_kinds, *shipped, *own], dict(_schemas(self._manifests)))

    @cached_property
    def _objects(self) -> dict[tuple[object, ...], Json]:
        """All objects by namespace, version, kind and name."""
        found: dict[tuple[object, ...], Json] = {}
        for each in self._manifests:
            metadata = each.get("metadata")
            if isinstance(metadata, dict):
                version, kind = _kind_of(each)
                keys = (metadata.get("namespace"), version, kind, metadata.get("name"))
                if all(key is None or isinstance(key, str) for key in keys):
                    found[keys] = each
        return found

    def related(self, namespace: str, version: str, kind: str, name: str) -> Json | None:
        """An object in a namespace, or one of which no namespace is said."""
        found = (self._objects.get((place, version, kind, name)) for place in (namespace, None))
        return next(filter(None, found), None)


def parse_any_job(raw: Json) -> JobView:
    """A Job, or what stands for an object of another kind."""
    described: _Described | None = raw.get(DESCRIBED)
    job = parse_job(raw)
    if described is None:
        return job
    sets = (
        PodSetView(each.name, each.count, kept_template(each.template["spec"])) for each in described.pod_sets
    )
    return replace(job, pod_sets=tuple(sets))


def title_of(raw: Json) -> str:
    """A Job, or the object that it stands for, as messages name it."""
    described: _Described | None = raw.get(DESCRIBED)
    return described.title if described is not None else title(raw, "")


def _names_queue(manifest: Json) -> bool:
    """Whether an object has the label of a queue; nothing about it is checked yet."""
    labels = manifest["metadata"].get("labels")
    return isinstance(labels, dict) and QUEUE_LABEL in labels


def job_kinds_in(snapshot: Json) -> list[Json]:
    """The JobKinds in a document that should be a snapshot; nothing about it is checked yet."""
    objects = snapshot.get("objects")
    found = objects.get("jobkinds") if isinstance(objects, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _works(job_kind: Json) -> bool:
    """Whether the controller of its cluster says so."""
    status = job_kind.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    active = {"type": "Active", "status": "True"}
    return any(
        isinstance(each, dict) and each.items() >= active.items()
        for each in (conditions if isinstance(conditions, list) else ())
    )


def _described_by(job_kind: Any) -> tuple[str, str]:  # noqa: ANN401  # one of Admitter's own
    resource = job_kind["spec"]["resource"]
    return f"{resource['group']}/{resource['version']}", resource["kind"]


def _kind_of(manifest: Json) -> tuple[Any, Any]:
    return manifest.get("apiVersion"), manifest.get("kind")


def _schemas(manifests: Iterable[Json]) -> Iterator[tuple[tuple[str, str], Json]]:
    """The schemas of the definitions among some manifests, as far as they have any."""
    for each in manifests:
        if _kind_of(each) != _DEFINITION:
            continue
        try:
            spec = each["spec"]
            for version in spec["versions"]:
                key = (f"{spec['group']}/{version['name']}", str(spec["names"]["kind"]))
                yield key, dict(version["schema"]["openAPIV3Schema"])
        except (KeyError, TypeError, ValueError):
            continue  # an API server would refuse it


def _all_of(found: "list[FoundPodSet]") -> Json:
    """A pod's spec with all containers and claims of some pod sets, for what is asked of a Job as a whole."""
    specs = [each.template["spec"] for each in found]
    return {
        part: [each for spec in specs for each in spec.get(part) or ()]
        for part in ("containers", "initContainers", "resourceClaims")
    }


def _longest_runtime(found: "list[FoundPodSet]") -> str:
    """The longest of the runtimes that annotations of pods say; empty if none says any.

    Raises:
        InvalidDurationError: one is no duration.
    """
    said = [
        str(text)
        for each in found
        if (
            text := ((each.template.get("metadata") or {}).get("annotations") or {}).get(
                SIMULATED_RUNTIME_ANNOTATION
            )
        )
    ]
    return max(said, key=parse_duration, default="")
