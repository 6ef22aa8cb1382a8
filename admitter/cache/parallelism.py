"""What annotations of a Job say of its parallelism: with how few pods it can do, and what it was before."""

from collections.abc import Mapping
from typing import Any, Final

from admitter.names import MIN_PARALLELISM_ANNOTATION, PARALLELISM_ANNOTATION

Json = dict[str, Any]

LONGEST: Final = 16
"""Characters of a number that are kept: more than the largest has, so that it stays too large."""
MOST: Final = 2**31 - 1


def said(annotations: Mapping[str, str]) -> Json:
    """What a Job says; most say nothing. `least` is the word as it stands, `original` a number."""
    found: Json = {}
    if MIN_PARALLELISM_ANNOTATION in annotations:
        found["least"] = annotations[MIN_PARALLELISM_ANNOTATION].strip()[:LONGEST]
    original = number(annotations.get(PARALLELISM_ANNOTATION, "")[:LONGEST])
    if original is not None:
        found["original"] = original
    return found


def number(text: str) -> int | None:
    """A number of pods; None if the text is none."""
    written = text.isascii() and text.isdecimal() and 0 < int(text) <= MOST
    return int(text) if written else None
