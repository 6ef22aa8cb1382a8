"""For how long a workload of a simulation runs once it is admitted."""

import math
from typing import Any

from admitter.names import EXPECTED_RUNTIME_ANNOTATION, SIMULATED_RUNTIME_ANNOTATION
from admitter.quantities.durations import InvalidDurationError, parse_duration


def runtime(manifest: dict[str, Any]) -> float | None:
    """Seconds that a Job or Workload runs; None: for ever.

    An annotation on the object itself is the time of all of it. One on a Job's pod template, which is
    what simulated nodes go by, is the time of a pod: with more completions than parallelism the Job
    takes several times that. Without both, what its user expects counts.

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
