"""Quantities, and what a pod requests: a small reading of Kubernetes' rules with no code of Admitter's.

What observers of the tests count by, so that a mistake of the tested code is not theirs too.
"""

import re
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import ceil
from typing import Any, Final

Json = dict[str, Any]

_NUMBER: Final = re.compile(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)")
_LARGE: Final = "kMGTPE"
_FACTORS: Final = (
    {"": Fraction(1), "Ki": Fraction(1024)}
    | {suffix: Fraction(1000**power) for power, suffix in enumerate(_LARGE, start=1)}
    | {f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate(_LARGE, start=1)}
    | {suffix: Fraction(1, 1000**power) for power, suffix in enumerate("mun", start=1)}
)


def thousandths(quantity: str | float) -> int:
    """A quantity in thousandths, rounded up.

    Raises:
        ValueError: it is none.
    """
    found = _NUMBER.fullmatch(str(quantity))
    if found is None or found[2] not in _FACTORS:
        raise ValueError(f"{quantity} is no quantity")
    return ceil(Fraction(found[1]) * _FACTORS[found[2]] * 1000)


def pod_requests(spec: Json) -> Counter[str]:
    """Resource → thousandths that the scheduler counts for a pod, given its spec as the API server stores it.

    Containers and sidecars run together. Before them each other init container runs beside the sidecars
    that were started earlier. What the pod itself requests replaces both, and the overhead comes on top.
    """
    running = _sum(_of(container) for container in spec.get("containers") or ())
    most: Counter[str] = Counter()
    sidecars: Counter[str] = Counter()
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            sidecars += _of(container)
            most |= sidecars
        else:
            most |= sidecars + _of(container)
    most |= running + sidecars
    for resource, amount in _of(spec).items():
        most[resource] = amount
    return most + Counter({r: thousandths(q) for r, q in (spec.get("overhead") or {}).items()})


def _of(whose: Json) -> Counter[str]:
    requests = (whose.get("resources") or {}).get("requests") or {}
    return Counter({resource: thousandths(quantity) for resource, quantity in requests.items()})


def _sum(amounts: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for amount in amounts:
        total += amount
    return total
