"""Pod templates as a JobKind finds them, and containers that it says more of than the template does."""

from typing import Any

from admitter.api.job_kind import AddedResources
from admitter.api.shapes import template_problem
from admitter.kinds import KindError
from admitter.kinds.paths import MISSING, Segment, text

Json = dict[str, Any]


def checked(template: object, path: tuple[Segment, ...], *, whole: bool = True) -> Json:
    """A pod template of which all fields that are read are what they have to be.

    One that is not whole may lack containers, which stand elsewhere.

    Raises:
        KindError: they are not; the words name the field.
    """
    if template is MISSING:
        raise KindError(f"{text(path)}: is missing")
    wrong = template_problem(template, text(path), whole=whole)
    if wrong is not None:
        raise KindError(wrong)
    assert isinstance(template, dict), "that was checked"
    return template


def given_to(containers: list[Json], added: AddedResources, resources: Json) -> list[Json]:
    """Containers of which one gets resources."""
    if not added.replaces and not any(each.get("name") == added.name for each in containers):
        return [*containers, {"name": added.name, "resources": resources}]
    return [
        {
            **each,
            "resources": resources if added.replaces else _joined(each.get("resources") or {}, resources),
        }
        if each.get("name") == added.name
        else each
        for each in containers
    ]


def _joined(old: Json, new: Json) -> Json:
    parts = ("requests", "limits")
    return {**old, **{part: {**(old.get(part) or {}), **(new.get(part) or {})} for part in parts}}
