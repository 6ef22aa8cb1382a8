"""What annotations of a Job say of its parallelism: with how few pods it can do, how many it can use.

Beside its user's, those that say what it was before, and for which grant it was patched last.
"""

from collections.abc import Mapping
from typing import Any, Final

from admitter.names import (
    GRANTED_PARALLELISM_ANNOTATION,
    MAX_PARALLELISM_ANNOTATION,
    MIN_PARALLELISM_ANNOTATION,
    PARALLELISM_ANNOTATION,
)

Json = dict[str, Any]

LONGEST: Final = 16
"""Characters of a number that are kept: more than the largest has, so that it stays too large."""
MOST: Final = 2**31 - 1


def said(annotations: Mapping[str, str]) -> Json:
    """What a Job says; most say nothing. `least` and `most` are words as they stand, the others numbers."""
    found: Json = {}
    if MIN_PARALLELISM_ANNOTATION in annotations:
        found["least"] = annotations[MIN_PARALLELISM_ANNOTATION].strip()[:LONGEST]
    if MAX_PARALLELISM_ANNOTATION in annotations:
        found["most"] = annotations[MAX_PARALLELISM_ANNOTATION].strip()[:LONGEST]
    noted = (("original", PARALLELISM_ANNOTATION), ("applied", GRANTED_PARALLELISM_ANNOTATION))
    for name, annotation in noted:
        written = number(annotations.get(annotation, "")[:LONGEST])
        if written is not None:
            found[name] = written
    return found


def number(text: str) -> int | None:
    """A number of pods; None if the text is none."""
    written = text.isascii() and text.isdecimal() and 0 < int(text) <= MOST
    return int(text) if written else None
