"""Containers of a pod template that a JobKind says more of than the template does."""

from typing import Any

from admitter.api.job_kind import AddedResources

Json = dict[str, Any]


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
