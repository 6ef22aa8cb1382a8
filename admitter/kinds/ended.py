"""What the status of an object says of pods that have ended for good.

It is looked up by names: expressions over lists would cost too much for each of eight pod sets.
"""

from typing import Any, Final

from admitter.api.job_kind import EndedPods
from admitter.kinds.paths import get, segments

MOST: Final = 256
"""Elements of a list that are looked at; no object has as many pod sets."""


def done(form: EndedPods, raw: dict[str, Any], name: str) -> int:
    """How many parts of a pod set have succeeded; 0 if the status does not say, or says what is no number."""
    listed = get(raw, segments(form.path))
    for each in listed[:MOST] if isinstance(listed, list) else ():
        if isinstance(each, dict) and str(each.get(form.name)).lower() == name:
            count = each.get(form.count)
            return count if isinstance(count, int) and not isinstance(count, bool) and count > 0 else 0
    return 0
