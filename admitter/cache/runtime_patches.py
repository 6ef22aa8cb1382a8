"""What an admission puts into an object of which the pods are described elsewhere, such as a TrainJob.

Its operator merges `spec.runtimePatches` into the templates of a runtime. One entry is the controller's.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from admitter.kinds.beside import RUNTIME_PATCHES
from admitter.kinds.paths import Change, get
from admitter.names import GROUP

Json = dict[str, Any]

MANAGER: Final = f"{GROUP}/manager"


def patches_of(raw: Json | None) -> list[Json]:
    """The entries that an object has."""
    found = get(raw, RUNTIME_PATCHES)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def without_own(raw: Json) -> Json:
    """The object without the controller's entry, as its user wrote it."""
    others = [each for each in patches_of(raw) if each.get("manager") != MANAGER]
    if len(others) == len(patches_of(raw)):
        return raw
    spec = {name: value for name, value in raw["spec"].items() if name != "runtimePatches"}
    return {**raw, "spec": spec | ({"runtimePatches": others} if others else {})}


def own_parts(raw: Json) -> dict[str, Json]:
    """The parts of pod templates in the controller's entry, by the names of their pod sets."""
    return dict(_parts(next((p for p in patches_of(raw) if p.get("manager") == MANAGER), {})))


def _parts(patch: Json) -> Iterator[tuple[str, Json]]:
    try:
        for job in patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]:
            yield str(job["name"]), dict(job["template"]["spec"]["template"])
    except (KeyError, TypeError, ValueError):
        return  # there is none, or a user has overwritten it


def changes(raw: Json | None, parts: Mapping[str, Json]) -> Iterator[Change]:
    """The change of an object that lets the controller's entry have these parts of templates, by pod set."""
    jobs = [{"name": name, "template": {"spec": {"template": part}}} for name, part in parts.items()]
    own = {"manager": MANAGER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}}}
    others = [each for each in patches_of(raw) if each.get("manager") != MANAGER]
    yield RUNTIME_PATCHES, [*others, *([own] if jobs else [])] or None
