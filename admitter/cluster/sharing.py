"""Equal parts of many objects, kept once: Jobs of one kind differ in little but their names."""

from functools import lru_cache
from typing import Any, Final

import orjson

DIFFERENT: Final = 1024
"""So many different values are remembered; what is forgotten is merely kept more than once."""


def shared(value: Any) -> Any:  # noqa: ANN401  # JSON comes and goes as it is
    """A JSON value that is equal to this one, and the same object for all that are equal.

    Nobody may change it.
    """
    return _read(orjson.dumps(value))


@lru_cache(maxsize=DIFFERENT)
def _read(text: bytes) -> Any:  # noqa: ANN401
    return orjson.loads(text)
