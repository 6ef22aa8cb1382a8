"""Paths of fields in objects, and in the schemas of their definitions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

Json = dict[str, Any]
Segment = str | int
Change = tuple[Sequence[Segment], Any]
"""A place in an object, and the merge patch of what stands there."""

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


def merged(before: Any, patch: Any) -> Any:  # noqa: ANN401  # whatever JSON has
    """A value after a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(before) if isinstance(before, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def merge_patch(changes: Iterable[Change], raw: Json | None) -> Json:
    """One merge patch of several, each at its place in an object.

    It replaces lists as a whole: `raw` is the object, and may be None if no place is in a list.
    """
    body: Json = {}
    for path, patch in changes:
        body = _joined(body, path, patch, raw)
    return body


def _joined(body: Json, path: Sequence[Segment], patch: Any, raw: Any) -> Json:  # noqa: ANN401  # whatever JSON has
    """A merge patch of what stands at the beginning of a path, with another one at its end."""
    if not path:
        return {**body, **{name: _joined_at(body, name, each) for name, each in patch.items()}}
    step, rest = str(path[0]), path[1:]
    below = raw.get(step) if isinstance(raw, Mapping) else None
    if rest and isinstance(rest[0], int):
        changed = body.get(step) or below
        return {**body, step: _in_list(changed, rest, patch)}
    if not rest and not isinstance(patch, Mapping):
        return {**body, step: patch}
    return {**body, step: _joined(body.get(step) or {}, rest, patch, below)}


def _joined_at(body: Json, name: str, patch: Any) -> Any:  # noqa: ANN401  # whatever JSON has
    inner = body.get(name)
    if isinstance(inner, dict) and isinstance(patch, Mapping):
        return _joined(inner, (), patch, None)
    return patch


def _in_list(value: Any, path: Sequence[Segment], patch: Any) -> Any:  # noqa: ANN401  # whatever JSON has
    """A value in a list as it is after a merge patch at a path in it."""
    if not path:
        return merged(value, patch)
    step, rest = path[0], path[1:]
    if isinstance(step, int):
        return [_in_list(each, rest, patch) if n == step else each for n, each in enumerate(value or ())]
    inner: Json = value if isinstance(value, dict) else {}
    return {**inner, step: _in_list(inner.get(step), rest, patch)}
