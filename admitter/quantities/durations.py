"""Durations as people and Go write them."""

import re
from fractions import Fraction

_UNITS = {
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}
LONGEST_TEXT = 64  # characters: without a bound a duration could have a megabyte of digits
LONGEST_SECONDS = 1000 * 365 * 86400
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")
_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]+)?")


class InvalidDurationError(ValueError):
    """A text that is no duration."""


def parse_duration(text: str) -> float:
    """Seconds in a duration such as `30`, `500ms`, `90s` or `1h30m`.

    Raises:
        InvalidDurationError: it is none.
    """
    written = str(text).strip()
    if len(written) > LONGEST_TEXT:
        raise InvalidDurationError(f"{written[:LONGEST_TEXT]!r}... is too long for a duration")
    seconds = _seconds(written)
    if seconds > LONGEST_SECONDS:
        raise InvalidDurationError(f"{text!r} is longer than 1000 years")
    return float(seconds)


def _seconds(written: str) -> Fraction:
    if _SECONDS.fullmatch(written):
        return Fraction(written)
    parts = _PART.findall(written)
    if not parts or "".join(number + unit for number, unit in parts) != written:
        raise InvalidDurationError(f"{written!r} is not a duration such as 30, 500ms, 90s or 1h30m")
    return sum((Fraction(number) * _UNITS[unit] for number, unit in parts), Fraction())
