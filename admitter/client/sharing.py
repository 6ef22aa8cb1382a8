"""Equal parts of many objects, kept once: Jobs of one kind differ in little but their names."""

from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from typing import Any, Final, TypeVar

import orjson

DIFFERENT: Final = 1024
"""So many different values are remembered; what is forgotten is merely kept more than once."""
LARGE_BYTES: Final = 4096
FEW: Final = 64
"""So many of those that are larger: else the largest that can be written would fill the memory."""

T = TypeVar("T")


def remembered(function: Callable[..., T]) -> Callable[..., T]:
    """A function of a text that returns the same object for the same arguments, as far as it remembers."""
    small = lru_cache(maxsize=DIFFERENT)(function)
    large = lru_cache(maxsize=FEW)(function)

    @wraps(function)
    def found(text: bytes, *args: Hashable) -> T:
        return (small if len(text) <= LARGE_BYTES else large)(text, *args)

    return found


def shared(value: Any) -> Any:  # noqa: ANN401  # JSON comes and goes as it is
    """A JSON value that is equal to this one, and the same object for all that are equal.

    It must not be changed.
    """
    return _read(orjson.dumps(value))


@remembered
def _read(text: bytes) -> Any:  # noqa: ANN401
    return orjson.loads(text)
