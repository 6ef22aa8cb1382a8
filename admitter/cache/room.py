"""How namespaces share the memory that is for large objects: a flood of others leaves each something."""

from typing import Final

ROOM_BYTES: Final = 64 * 2**20
"""Of JSON, for all of a kind that are large."""
OF_ONE: Final = ROOM_BYTES // 4
"""What a namespace may fill of it."""
OWN_BYTES: Final = 256 * 2**10
"""What each namespace has for itself, however full the room is."""


def fits(of_namespace: int, total: int, size: int) -> bool:
    """Whether an object of such a size has room beside what its namespace, and all together, have there."""
    if of_namespace + size <= OWN_BYTES:
        return True
    return of_namespace + size <= OF_ONE and total + size <= ROOM_BYTES
