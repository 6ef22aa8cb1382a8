"""What an object remembers of its bounds while the controller sets them (docs/design/growing.md)."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from admitter.names import BOUNDS_ANNOTATION

Json = dict[str, Any]

LONGEST: Final = 4096
"""Characters of the annotation: eight pod sets take a quarter of that."""
_MOST: Final = 2**31 - 1


def bounds_of(annotations: Mapping[str, str]) -> dict[str, Json]:
    """By pod set `bound`, and `replicas`, as its user wrote them; None where nothing was written.

    What is no such record, as users can write one, counts as none.
    """
    text = annotations.get(BOUNDS_ANNOTATION, "")
    if not text or len(text) > LONGEST:
        return {}
    try:
        record = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    found = record.items() if isinstance(record, dict) else ()
    return {name: each for name, each in found if isinstance(each, dict) and _is_bound(each)}


def _is_bound(record: Json) -> bool:
    fields = ("bound", "replicas")
    return record.keys() <= set(fields) and all(_is_number(record.get(field)) for field in fields)


def _is_number(value: object) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value is None or (whole and 0 <= int(str(value)) <= _MOST)
