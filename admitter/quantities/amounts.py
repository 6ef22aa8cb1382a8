"""Quantities as exact integers, and the resource vectors made of them.

CPU counts in thousandths of a core, every other resource in its own unit; a fraction of a
unit is rounded up, so that no workload is charged less than it asked for. Python's integers have
no largest value, so sums never overflow and "unlimited" is written `None`, never a number.
"""

import re
from fractions import Fraction
from functools import lru_cache

Amounts = dict[str, int]  # resource name to amount, in the resource's unit

CPU = "cpu"

MAX_VALUE = 2**63 - 1  # the largest value of a quantity that Kubernetes can represent

_GRAMMAR = re.compile(
    r"[+-]?(?:[0-9]{1,32}(?:\.[0-9]{0,32})?|\.[0-9]{1,32})(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?"
)
"""Kubernetes' grammar of quantities, with bounds on the number of digits."""

_SPLIT = re.compile(r"^([+-]?[0-9.]+)(.*)$")
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_ROUND = [
    *((suffix, size) for suffix, size in _BINARY.items() if size >= 10**6),
    *((suffix, 10**power) for suffix, power in _DECIMAL.items() if power >= 6),
]
"""Suffixes of what is written, and what they stand for: 1024 GPUs are not 1Ki GPUs, and 1000 not 1k."""


class InvalidQuantityError(ValueError):
    """A text that is no quantity, or one that no resource can have."""


@lru_cache(maxsize=4096, typed=True)
def parse_quantity(text: str | int) -> Fraction:
    """The exact value of a Kubernetes quantity, such as `2`, `500m`, `36Gi` or `1e3`.

    Raises:
        InvalidQuantityError: `text` is not in the grammar, negative, or larger than Kubernetes represents.
    """
    written = str(text)
    if not written:
        raise InvalidQuantityError("a quantity is empty")
    if len(written) > 64 or not _GRAMMAR.fullmatch(written):
        raise InvalidQuantityError(f"{_shown(written)} is not a quantity")
    match = _SPLIT.match(written)
    assert match is not None, "the grammar starts with digits"
    number, suffix = match.groups()
    value = Fraction(number) * _scale(suffix)
    if value < 0:
        raise InvalidQuantityError(f"{_shown(written)} is negative")
    if value > MAX_VALUE:
        raise InvalidQuantityError(f"{_shown(written)} is larger than 2^63-1, the most Kubernetes represents")
    return value


def _scale(suffix: str) -> Fraction:
    if suffix in _BINARY:
        return Fraction(_BINARY[suffix])
    if suffix in _DECIMAL:
        return Fraction(10) ** _DECIMAL[suffix]
    return Fraction(10) ** int(suffix[1:])


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def to_amount(resource: str, quantity: str | int) -> int:
    """The amount of a resource that a quantity stands for, rounded up to a whole unit; thousandths of `cpu`.

    Raises:
        InvalidQuantityError: as `parse_quantity`.
    """
    return rounded_up(resource, parse_quantity(quantity))


def rounded_up(resource: str, value: Fraction) -> int:
    """An exact value, such as a sum of quantities, as an amount.

    Raises:
        InvalidQuantityError: it is larger than Kubernetes represents.
    """
    if value > MAX_VALUE:
        raise InvalidQuantityError(f"{resource} comes to more than 2^63-1, the most Kubernetes represents")
    if resource == CPU:
        value *= 1000
    return -(-value.numerator // value.denominator)


def to_quantity(resource: str, amount: int) -> str:
    """An amount as the shortest exact Kubernetes quantity, for status fields and messages.

    Round decimal amounts have decimal suffixes and round binary ones binary suffixes, as users write them; of
    two that are as short the binary one counts. An amount has one text only.
    """
    if resource == CPU:
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    written = [f"{amount // size}{suffix}" for suffix, size in _ROUND if amount and amount % size == 0]
    return min([*written, str(amount)], key=len)
