"""Objects of the kinds that Admitter describes, such as JobSets: each stays what it is."""

from collections.abc import Iterator
from copy import deepcopy
from functools import cache, reduce
from typing import TYPE_CHECKING, Any, Final

from admitter.documents import bundled, documents
from admitter.importers.reading import Collection
from admitter.importers.translation import Json, ManifestSource, below
from admitter.kinds import KindError

if TYPE_CHECKING:
    from admitter.kinds.compiled import CompiledKind
    from admitter.kinds.registry import Kinds

_JOB: Final = "Job"  # has rules of its own


@cache
def job_kinds() -> dict[tuple[str, str], Json]:
    """The JobKinds that Admitter ships, but for that of Jobs, by group and version, and kind."""
    found = {}
    for _, raw in documents([str(bundled("manifests") / "kinds")]):
        assert isinstance(raw, dict), "it is Admitter's own"
        resource = raw["spec"]["resource"]
        if resource["kind"] != _JOB:
            found[f"{resource['group']}/{resource['version']}", resource["kind"]] = raw
    return found


@cache
def group_kinds() -> frozenset[tuple[str, str]]:
    """The group and the kind of all that they describe."""
    return frozenset((version.partition("/")[0], kind) for version, kind in job_kinds())


def collections(label: str) -> Iterator[Collection]:
    """Where objects of these kinds that have a label are read from a cluster."""
    for (version, _), raw in job_kinds().items():
        yield Collection((f"/apis/{version}/{raw['spec']['resource']['plural']}",), labels=label)


def is_child(source: ManifestSource) -> bool:
    """Whether an object is made by the operator of one of these kinds."""
    owners = source.value("metadata.ownerReferences")
    return any(
        (str(owner.get("apiVersion")).partition("/")[0], owner.get("kind")) in group_kinds()
        for owner in (owners if isinstance(owners, list) else ())
        if isinstance(owner, dict) and owner.get("controller")
    )


def state_of(source: ManifestSource) -> str:
    """`finished`, `active`, or an empty text; nothing is known of an object that can't be read."""
    kind = _compiled(source)
    try:
        state = kind.state(source.raw) if kind is not None else None
    except KindError:
        return ""
    return "" if state is None else "finished" if state.finished else "active" if state.active else ""


def templates(source: ManifestSource) -> list[str]:
    """The paths of the pod templates in an object, as far as they are in it."""
    kind = _compiled(source)
    try:
        found = kind.pod_sets(source.raw, lambda *_: None, lambda *_: None) if kind is not None else []
    except KindError:
        return []
    places = (each.place for each in found if each.place is not None)
    paths = (reduce(_below, place, "") for place in places)
    return [path for path in paths if isinstance(source.value(below(path, "spec")), dict)]


def stopped(source: ManifestSource) -> Json:
    """A copy of an object, told to have no pods, without what an API server wrote."""
    made = deepcopy(source.raw)
    made.pop("status", None)
    suspend = job_kinds()[source.text("apiVersion"), source.text("kind")]["spec"]["suspend"]
    *above, last = suspend["path"].split(".")
    inner: Any = made
    for step in above:
        inner = inner.setdefault(step, {})
    inner[last] = suspend.get("stopped", True)
    return made


@cache
def _kinds() -> "Kinds":
    from admitter.kinds.registry import Kinds  # noqa: PLC0415  # slow to load

    return Kinds(job_kinds().values(), {})


def _compiled(source: ManifestSource) -> "CompiledKind | None":
    return _kinds().find(source.raw.get("apiVersion"), source.raw.get("kind"))


def _below(path: str, step: str | int) -> str:
    return f"{path}[{step}]" if isinstance(step, int) else below(path, step)
