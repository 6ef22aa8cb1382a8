"""Paths of fields in objects, and in the schemas of their definitions."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

Json = dict[str, Any]
Segment = str | int

_PART: Final = re.compile(r"([A-Za-z][-A-Za-z0-9_]*)((?:\[[0-9]{1,4}\])*)")
MOST_SEGMENTS: Final = 32


class Missing:
    """The value of a field that is not there."""


MISSING: Final = Missing()


def segments(path: str) -> tuple[Segment, ...]:
    """The steps of a path such as `spec.tasks[0].template`.

    Raises:
        ValueError: it is none.
    """
    found: list[Segment] = []
    for part in path.split("."):
        match = _PART.fullmatch(part)
        if match is None or len(found) >= MOST_SEGMENTS:
            raise ValueError(f"{path[:80]!r} is no path of fields")
        found += [match[1], *map(int, re.findall("[0-9]+", match[2]))]
    return tuple(found)


def text(path: Sequence[Segment]) -> str:
    """Steps as messages show them."""
    return "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path).removeprefix(".")


def get(value: object, path: Sequence[Segment]) -> Any:  # noqa: ANN401  # whatever JSON has
    """What stands at a path; MISSING if nothing does."""
    for step in path:
        if isinstance(step, str) and isinstance(value, Mapping):
            value = value.get(step, MISSING)
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        else:
            return MISSING
    return value


def unknown(schema: Json, path: Sequence[Segment]) -> str | None:
    """The first field of a path that a schema does not have, as a path; None if it has all of them.

    `*` is any element of a list or a map.
    """
    for place, step in enumerate(path):
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            return None
        elements = schema.get("items") or schema.get("additionalProperties")
        known = schema.get("properties") or {}
        if isinstance(step, str) and step in known:
            schema = known[step]
        elif isinstance(elements, dict) and (step == "*" or isinstance(step, int) or "items" not in schema):
            schema = elements
        elif elements is True or (schema.get("type") == "object" and not known and step != "*"):
            return None  # a map of anything, or an object about which nothing is said
        else:
            return text(path[: place + 1])
    return None
