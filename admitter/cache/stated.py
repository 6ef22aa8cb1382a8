"""What annotations of a Job object state, beside fields that say the same: kept with its spec."""

from collections.abc import Mapping
from typing import Any, Final

from admitter.names import EXPECTED_RUNTIME_ANNOTATION, MAX_RUNTIME_ANNOTATION, READY_TIMEOUT_ANNOTATION
from admitter.quantities.durations import LONGEST_TEXT

Json = dict[str, Any]

READY_TIMEOUT: Final = "readyTimeout"
"""The field of a view's spec with the text of `admitter.dev/ready-timeout`."""
LONGEST_WORD: Final = LONGEST_TEXT + 1
"""Characters that are kept of a duration: one more than a valid one has, so that it stays too long."""


def stated(annotations: Mapping[str, str], spec: Json) -> Json:
    """What a Job says of its runtime, and of the time that its pods need to be ready; most say nothing."""
    of_pods = spec["template"]["spec"].get("activeDeadlineSeconds")
    found = {
        "activeDeadlineSeconds": spec.get("activeDeadlineSeconds"),
        "expected": _text(annotations.get(EXPECTED_RUNTIME_ANNOTATION)),
        "maxRuntime": _text(annotations.get(MAX_RUNTIME_ANNOTATION)),
        "podDeadlineSeconds": of_pods,
        "backoffLimit": spec.get("backoffLimit") if of_pods is not None else None,
        READY_TIMEOUT: _text(annotations.get(READY_TIMEOUT_ANNOTATION)),
    }
    return {field: value for field, value in found.items() if value is not None}


def _text(said: str | None) -> str | None:
    return said.strip()[:LONGEST_WORD] if said is not None else None
