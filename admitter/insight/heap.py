"""How memory is allotted to a view that is left open for days and makes pictures in threads."""

from contextlib import suppress
from ctypes import CDLL
from typing import Final

_M_ARENA_MAX: Final = -8
"""Of glibc's malloc.h."""


def one_heap() -> None:
    """Let all threads of this process share one heap; to be called before there are any.

    Pictures are made in whichever thread of a pool is idle. glibc gives each a heap of its own, whose free
    pieces no other thread can use: so the process grows until each of them has made its largest picture.
    Threads of Python take turns, and gain nothing from heaps of their own. Does nothing where the C library
    has no such setting.
    """
    with suppress(AttributeError, OSError):
        CDLL(None).mallopt(_M_ARENA_MAX, 1)
