"""The runtime of a workload in a simulation."""

import math
from typing import Any

from admitter.names import EXPECTED_RUNTIME_ANNOTATION, SIMULATED_RUNTIME_ANNOTATION
from admitter.quantities.durations import InvalidDurationError, parse_duration


def runtime(manifest: dict[str, Any]) -> float | None:
    """Seconds that a Job or Workload runs; None: for ever.

    The annotation of the object itself is the runtime of the whole object. That of a Job's pod template,
    which simulated nodes use, is the runtime of a pod: with more completions than parallelism the Job takes
    several times as long. Without both, the stated runtime counts.

    Raises:
        InvalidDurationError: names the annotation.
    """
    own = _annotation(manifest.get("metadata"), SIMULATED_RUNTIME_ANNOTATION)
    if own is not None:
        return own
    spec = manifest.get("spec") or {}
    pod = _annotation((spec.get("template") or {}).get("metadata"), SIMULATED_RUNTIME_ANNOTATION)
    if pod is None:
        return _annotation(manifest.get("metadata"), EXPECTED_RUNTIME_ANNOTATION)
    parallelism, completions = spec.get("parallelism", 1), spec.get("completions")
    waves = math.ceil(completions / parallelism) if completions and parallelism else 1
    return pod * waves


def _annotation(metadata: dict[str, Any] | None, name: str) -> float | None:
    text = ((metadata or {}).get("annotations") or {}).get(name)
    try:
        return None if text is None else parse_duration(text)
    except InvalidDurationError as error:
        raise InvalidDurationError(f"metadata.annotations[{name}]: {error}") from error
