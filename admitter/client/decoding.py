"""JSON of the API server, also such as the fast parser refuses: one odd object must not hide all others.

A list or an event that `orjson` can't parse is read again by steps that take more time: what is nested too
deep is cut out, halves of characters are replaced, and a number that no machine has is infinite.
"""

import json
import re
from typing import Any, Final

import orjson

DEEPEST: Final = 300
"""Levels: of what is nested deeper nothing is kept. `orjson` writes 254, so such a field can't be used."""
_BRACKETS: Final = re.compile(r'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+([\[\]{}])', re.DOTALL)
"""The next bracket that is not in a text."""
_CHARACTERS: Final = re.compile(
    r"(\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)
"""A backslash that is meant, or both halves of a character; or a half alone."""
_REPLACED: Final = "\\ufffd"
_MOST_DIGITS: Final = 400
"""So many digits are more than any float has."""


def decoded(text: bytes) -> Any:  # noqa: ANN401  # whatever JSON has
    """The value of a JSON text; ValueError if it is none, such as one that is cut off."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return _patiently(text)


def _patiently(text: bytes) -> Any:  # noqa: ANN401
    """The same of a text with what `orjson` does not take."""
    readable = _CHARACTERS.sub(lambda found: found[1] or _REPLACED, text.decode(errors="replace"))
    try:
        return json.loads(readable, parse_int=_number, strict=False)
    except RecursionError:
        return json.loads(_shallow(readable), parse_int=_number, strict=False)


def _shallow(text: str) -> str:
    """A text in which `null` stands for what is nested too deep."""
    kept, depth, begin = [], 0, 0
    for found in _BRACKETS.finditer(text):
        if found[1] in "[{":
            depth += 1
            if depth == DEEPEST + 1:
                kept.append(text[begin : found.start(1)])
        else:
            if depth == DEEPEST + 1:
                kept.append("null")
                begin = found.end(1)
            depth -= 1
    if depth > DEEPEST:
        raise ValueError("it is cut off")
    return "".join((*kept, text[begin:]))


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)
