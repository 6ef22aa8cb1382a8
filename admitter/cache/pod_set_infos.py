"""What an admission puts beside components of which the templates can't change, as in an AppWrapper.

Its operator makes each of `spec.components` from its template, and adds to the pod templates in it what
`podSetInfos` of the component say. It says in `status.componentStatus` which entry is for which template:
`podSets` there have the paths, that of a component beginning with `template`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from admitter.kinds.beside import COMPONENTS, POD_SET_INFOS
from admitter.kinds.paths import Change, Segment, get, segments, text
from admitter.names import WORKLOAD_LABEL

Json = dict[str, Any]
Place = tuple[Segment, ...]
"""Where a pod template is in an object."""

_TOLD: Final = ("status", "componentStatus")


class PlaceError(ValueError):
    """There is no place for what a pod set gets; the words say why, and what to do."""


class NotSaidError(Exception):
    """The operator has not said yet which entry is for which template."""


def without_own(raw: Json) -> Json:
    """The object without the lists that the controller has written; others are a user's."""
    components = _components(raw)
    if not any(map(_has_own, components)):
        return raw
    kept = [_without_list(each) if _has_own(each) else each for each in components]
    return {**raw, "spec": {**raw["spec"], "components": kept}}


def own_parts(raw: Json, places: Iterable[Place]) -> Iterator[Json]:
    """What the lists say for each of some templates, as part of it; nothing is empty."""
    for place in places:
        here, inner = place[:3], place[3:]
        infos, listed = get(raw, (*here, POD_SET_INFOS)), _listed(raw, here) if inner else []
        index = listed.index(inner) if inner in listed else len(listed)
        info = infos[index] if isinstance(infos, list) and index < len(infos) else None
        yield {"metadata": _metadata(info) if isinstance(info, dict) else {}}


def changes(raw: Json | None, parts: Mapping[Place, Json]) -> Iterator[Change]:
    """The changes of an object that let its lists have these parts of templates, and nothing else.

    Raises:
        NotSaidError: the status says nothing of the components.
        PlaceError: a template is none of those that the operator adds to.
    """
    lost = next((place for place in parts if place[:2] != COMPONENTS or len(place) < 4), None)
    if lost is not None:
        raise PlaceError(f"{text(lost)} is in none of {text(COMPONENTS)}")
    for n, component in enumerate(_components(raw)):
        here = (*COMPONENTS, n)
        wanted = {place[3:]: part for place, part in parts.items() if place[:3] == here}
        if wanted:
            yield here, {POD_SET_INFOS: _infos(raw, here, wanted)}
        elif _has_own(component):
            yield here, {POD_SET_INFOS: None}


def _components(raw: Json | None) -> list[Any]:
    found = get(raw, COMPONENTS)
    return found if isinstance(found, list) else []


def _infos(raw: Json | None, here: Place, wanted: Mapping[Place, Json]) -> list[Json]:
    """The list of a component, in the order that its operator has told."""
    if not isinstance(get(raw, (*_TOLD, here[-1])), dict):
        raise NotSaidError
    listed = _listed(raw, here)
    unknown = next((place for place in wanted if place not in listed), None)
    if unknown is not None:
        raise PlaceError(
            f"its operator adds nothing to {text((*here, *unknown))}: name {text(unknown)} as a path in "
            f"{text(here)}.podSets"
        )
    return [_info(wanted[each]) if each is not None and each in wanted else {} for each in listed]


def _info(part: Json) -> Json:
    fields = {**part["metadata"], **part["spec"]}
    return {name: value for name, value in fields.items() if value}


def _metadata(info: Json) -> Json:
    """The labels and annotations of an entry, of which a user may have written anything."""
    found = {part: info.get(part) for part in ("labels", "annotations")}
    return {part: value for part, value in found.items() if isinstance(value, dict)}


def _listed(raw: Json | None, here: Place) -> list[Place | None]:
    """The templates of a component in the order of their entries; None for one that is no path."""
    told = get(raw, (*_TOLD, here[-1], "podSets"))
    return [_place(each) for each in told] if isinstance(told, list) else []


def _place(pod_set: object) -> Place | None:
    try:
        return segments(str(get(pod_set, ("path",))))
    except ValueError:
        return None


def _has_own(component: object) -> bool:
    infos = get(component, (POD_SET_INFOS,))
    marked = (get(each, ("labels", WORKLOAD_LABEL)) for each in (infos if isinstance(infos, list) else ()))
    return any(isinstance(each, str) for each in marked)


def _without_list(component: Json) -> Json:
    return {name: value for name, value in component.items() if name != POD_SET_INFOS}
