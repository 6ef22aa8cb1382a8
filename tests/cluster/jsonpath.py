"""What kubectl prints by `--output=jsonpath=…`, for the templates that tests use."""

import json
import re
from collections.abc import Iterator
from typing import Any

_PART = re.compile(r"\{([^{}]*)\}|([^{}]+)")
_STEP = re.compile(r"\.((?:[^.\[\\]|\\.)+)|\[\*\]|\[(\d+)\]|\[\?\(@\.(\w+)==\"([^\"]*)\"\)\]")


class UnknownPathError(Exception):
    """A template has something that is not known here."""


def rendered(template: str, found: Any) -> str:
    """What a template shows of an object; a field that is not there is empty.

    Raises:
        UnknownPathError: it takes kubectl to tell.
    """
    parts = [(match[1], match[2]) for match in _PART.finditer(template)]
    return "".join(_rendered(iter(parts), found))


def _rendered(parts: Iterator[tuple[str | None, str | None]], found: Any) -> Iterator[str]:
    for path, text in parts:
        if path is None:
            yield text or ""
        elif path.startswith("range "):
            inner = []
            for part in parts:
                if part[0] == "end":
                    break
                inner.append(part)
            for each in _values(path.removeprefix("range "), found):
                yield from _rendered(iter(inner), each)
        elif path.startswith("'"):
            yield path.strip("'")
        else:
            yield " ".join(map(_shown, _values(path, found)))


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)


def _values(path: str, found: Any) -> list[Any]:
    """All that a path leads to."""
    values, at = [found], 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise UnknownPathError(path)
        at = step.end()
        name, number, field, value = step.groups()
        if name is not None:
            key = re.sub(r"\\(.)", r"\1", name)
            values = [each[key] for each in values if isinstance(each, dict) and key in each]
            continue
        items = [each for each in values if isinstance(each, list)]
        if number is not None:
            if any(int(number) >= len(each) for each in items):
                raise UnknownPathError(path)
            values = [each[int(number)] for each in items]
        elif field is not None:
            values = [one for each in items for one in each if one.get(field) == value]
        else:
            values = [one for each in items for one in each]
    return values
