"""The generated part of docs/reference/api.md: every field of every kind."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from pydantic import TypeAdapter

from admitter.api.base import GeneratedName, LabelKey, LabelValue, Name, NamespaceName, Resource, ResourceName
from admitter.api.crds import definition
from admitter.api.kinds import KINDS
from tools.docs.tables import table

Schema = dict[str, Any]

_WORDS: Final = re.compile(r"\^\(([A-Za-z|]+)\)\$")
"""A pattern that only lists words."""
_KNOWN: Final = {
    (schema["pattern"], schema["maxLength"]): word
    for word, annotated in (
        ("name", Name),
        ("name", NamespaceName),
        ("name", GeneratedName),
        ("resource", ResourceName),
        ("label key", LabelKey),
        ("label value", LabelValue),
    )
    for schema in [TypeAdapter(annotated).json_schema()]
}
"""Patterns and longest lengths of texts that the page explains once."""
_WIDEST: Final = {2**31 - 1, -(2**31)}
"""Limits that the type has anyhow."""
_UNSAID: Final = frozenset({"apiVersion", "kind", "metadata"})
"""What every object has."""


def lines() -> Iterator[str]:
    """The lines of the page below its mark."""
    for kind in KINDS:
        yield from _section(kind)


def _section(kind: type[Resource]) -> Iterator[str]:
    spec = definition(kind)["spec"]
    (version,) = spec["versions"]
    root = version["schema"]["openAPIV3Schema"]
    names = spec["names"]
    yield ""
    yield f"## {names['kind']}"
    yield ""
    yield root["description"]
    yield ""
    known = ", ".join(f"`{name}`" for name in (names["plural"], *names.get("shortNames", [])))
    where = "In a namespace" if spec["scope"] == "Namespaced" else "For the whole cluster"
    yield f"{where}. For kubectl: {known}. {_columns(version)}"
    for part, schema in root["properties"].items():
        if part in _UNSAID:
            continue
        yield ""
        yield f"### {names['kind']} {part}"
        yield ""
        yield schema["description"]
        yield ""
        yield from table(("field", "type", "default", "meaning"), _rows(schema, ""))


def _columns(version: Schema) -> str:
    """What `kubectl get` shows of it."""
    columns = version["additionalPrinterColumns"]
    shown = ", ".join(column["name"] for column in columns if not column.get("priority"))
    wide = ", ".join(column["name"] for column in columns if column.get("priority"))
    return f"Columns: {shown}{f'; with `-o wide` also {wide}' if wide else ''}."


def _rows(schema: Schema, prefix: str) -> Iterator[list[str]]:
    """A row a field, those below it behind it."""
    needed = schema.get("required", ())
    for name, each in schema["properties"].items():
        path = f"{prefix}{name}"
        yield [f"`{path}`", kind_of(each), _default(each, name in needed), _one_line(each["description"])]
        inner = each.get("items", each)
        if "properties" in inner:
            yield from _rows(inner, f"{path}[]." if "items" in each else f"{path}.")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _default(schema: Schema, required: bool) -> str:
    if required:
        return "required"
    if "default" not in schema or "properties" in schema:
        return ""
    value = schema["default"]
    return f"`{value}`" if isinstance(value, str) and value else f"`{json.dumps(value)}`"


def kind_of(schema: Schema) -> str:
    """The type of a field in words, with its limits."""
    match schema.get("type"):
        case None if schema.get("x-kubernetes-int-or-string"):
            return "duration" if "maximum" in schema else "quantity"
        case "string":
            return _text(schema)
        case "integer":
            return f"integer{_limits(schema.get('minimum'), schema.get('maximum'))}"
        case "array":
            of = "" if "properties" in schema["items"] else f" of {_inner(schema['items'])}"
            return f"list{of}{_limits(schema.get('minItems'), schema.get('maxItems'), ' entries')}"
        case "object" if "additionalProperties" in schema:
            most = _limits(schema.get("minProperties"), schema.get("maxProperties"), " keys")
            return f"map to {_inner(schema['additionalProperties'])}{most}"
        case other:
            return str(other or "boolean or text")


def _inner(schema: Schema) -> str:
    """The type of what is in a list or map, its own limits in brackets."""
    what, comma, limits = kind_of(schema).partition(", ")
    return f"{what} ({limits})" if comma else what


def _text(schema: Schema) -> str:
    if words := schema.get("enum"):
        return " or ".join(f"`{word}`" for word in words)
    pattern, longest = schema.get("pattern", ""), schema.get("maxLength")
    if (pattern, longest) in _KNOWN:
        return _KNOWN[pattern, longest]
    if found := _WORDS.fullmatch(pattern):
        return " or ".join(f"`{word}`" for word in found[1].split("|"))
    if schema.get("format") == "date-time":
        return "time"
    return f"text{_limits(None, longest, ' characters')}"


def _limits(least: int | None, most: int | None, of: str = "") -> str:
    """Limits as they follow on a type; what the type or the word says already is left out."""
    low = least if least not in _WIDEST and (least or not of) else None
    high = most if most not in _WIDEST else None
    if low is None and high is None:
        return ""
    if low is None:
        return f", at most {high}{of}"
    return f", at least {low}{of}" if high is None else f", {low} to {high}{of}"
