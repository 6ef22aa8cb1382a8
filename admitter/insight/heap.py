"""Memory of a view that stays open for days and makes snapshots in threads."""

from contextlib import suppress
from ctypes import CDLL
from typing import Final

_M_ARENA_MAX: Final = -8
"""Of glibc's malloc.h."""


def one_heap() -> None:
    """Make all threads of this process share one heap. Call it before the first thread starts.

    Any idle thread of a pool may make a snapshot. glibc gives each thread a heap of its own, and no other
    thread can use the free memory in it: the process grows until every thread has made its largest snapshot.
    Python threads take turns, and gain nothing from heaps of their own. Does nothing if the C library
    has no such setting.
    """
    with suppress(AttributeError, OSError):
        CDLL(None).mallopt(_M_ARENA_MAX, 1)
