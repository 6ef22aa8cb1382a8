"""The weights of namespaces that share a queue, from their ResourceQuotas (docs/namespace-fairness.md)."""

from collections.abc import Iterable
from typing import Final

from admitter.quantities.amounts import InvalidQuantityError, parse_quantity

DEFAULT_WEIGHT: Final = 1


def weight(entries: Iterable[str]) -> int:
    """The highest of some weights; what is no positive whole number counts as 1, and so does their absence.

    Args:
        entries: the weights in all ResourceQuotas of a namespace, as quantities: 2000m is 2.
    """
    return max(map(_weight, entries), default=DEFAULT_WEIGHT)


def _weight(entry: str) -> int:
    try:
        value = parse_quantity(entry)
    except InvalidQuantityError:
        return DEFAULT_WEIGHT
    return int(value) if value.denominator == 1 and value > 0 else DEFAULT_WEIGHT
