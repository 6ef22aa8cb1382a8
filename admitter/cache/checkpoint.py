"""What a Job says of its last checkpoint (docs/design/eviction-limits.md)."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from admitter.names import CHECKPOINT_ANNOTATION

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
"""A time as RFC 3339 has it."""


def checkpoint_of(annotations: Mapping[str, str]) -> float:
    """When a Job says that it has last saved its work, in seconds since the epoch; 0: nothing readable."""
    said = annotations.get(CHECKPOINT_ANNOTATION)
    if not said or not _TIME.fullmatch(said):
        return 0.0
    try:
        return max(0.0, datetime.fromisoformat(said.upper()).astimezone(UTC).timestamp())
    except (ValueError, OverflowError):  # no such day, or not of the years 1 to 9999
        return 0.0
