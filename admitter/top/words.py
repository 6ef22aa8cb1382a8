"""Amounts, times and bars in few characters, and without colour."""

from collections.abc import Iterator
from typing import Final

from admitter.engine.model import FlavorResource
from admitter.insight.overview import OverviewUse
from admitter.names import ANY_NODE
from admitter.quantities.amounts import CPU, to_quantity
from admitter.quotas.elastic import POOL

OWN, BORROWED, UNUSED, MINIMUM, MAXIMUM = "█▒·│]"
_BINARY: Final = tuple((f"{letter}i", 1024.0**power) for power, letter in enumerate("KMGTPE", start=1))
_DECIMAL: Final = tuple((letter, 1000.0**power) for power, letter in enumerate("kMGTPE", start=1))
_AGES: Final = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))
EXACT: Final = 6
"""An amount that is as short in full is not rounded."""


def amount(resource: str, value: int) -> str:
    """An amount in six characters or less, rounded to three digits if it must be.

    The value is in the engine's unit, and less than 2**63; memory and the like are shown in binary units.
    """
    cores = resource == CPU and value % 1000 != 0
    exact = to_quantity(resource, value)
    if (not cores and len(exact) <= EXACT) or (cores and value < 10):
        return exact
    left = value / 1000 if resource == CPU else float(value)
    steps = _BINARY if _is_bytes(resource) else _DECIMAL
    suffix, size = "", 1.0
    for next_suffix, next_size in steps:
        if left / size >= 999.5:
            suffix, size = next_suffix, next_size
    return f"{_three(left / size)}{suffix}"


def _is_bytes(resource: str) -> bool:
    return resource in {"memory", "ephemeral-storage"} or resource.startswith("hugepages-")


def _three(number: float) -> str:
    """A number below 1024, in three digits."""
    digits = 0 if number >= 99.5 else 1 if number >= 9.95 else 2
    written = f"{number:.{digits}f}"
    return written.rstrip("0").rstrip(".") if digits else written


def age(seconds: float) -> str:
    """A length of time in its largest unit, as kubectl shows ages."""
    left = max(0, int(seconds))
    return next((f"{left // size}{unit}" for size, unit in _AGES if left >= 2 * size), f"{left}s")


def place(key: FlavorResource) -> str:
    """A resource in a flavor, or in the pool that counts all of them."""
    flavor, resource = key
    return f"{resource} in {'any flavor' if flavor in {ANY_NODE, POOL} else flavor}"


def bar(use: OverviewUse, width: int) -> str:
    """Use against what a place has: own, then borrowed, then unused; marks where its min and its max are.

    The width has two characters for the marks, whether they are needed or not.
    """
    cells = width - 2
    scale = max(use.used, use.minimum, use.maximum or 0)
    if not scale or cells < 1:
        return " " * width
    filled, own = _cells(use.used, scale, cells), _cells(use.used - use.borrowed, scale, cells)
    drawn = list(OWN * own + BORROWED * (filled - own) + UNUSED * (cells - filled))
    if use.maximum is not None:
        drawn.insert(_cells(use.maximum, scale, cells), MAXIMUM)
    if use.minimum:
        drawn.insert(_cells(use.minimum, scale, cells), MINIMUM)
    return "".join(drawn).ljust(width)


def _cells(value: int, scale: int, cells: int) -> int:
    """How many cells an amount is: more than none if it is anything, all only if it is everything."""
    if value >= scale:
        return cells
    return min(max(round(value * cells / scale), 1), cells - 1) if value > 0 and cells > 1 else 0


def spelled_use(use: OverviewUse) -> str:
    """All that there is to say of one resource at one place."""
    return f"{place((use.flavor, use.resource))}: {', '.join(_spelled(use))}"


def _spelled(use: OverviewUse) -> Iterator[str]:
    yield f"{amount(use.resource, use.used)} used"
    yield f"min {amount(use.resource, use.minimum)}"
    yield f"max {amount(use.resource, use.maximum)}" if use.maximum is not None else "no max"
    if use.borrowed:
        yield f"{amount(use.resource, use.borrowed)} borrowed"
    if use.lent:
        yield f"{amount(use.resource, use.lent)} lent"
