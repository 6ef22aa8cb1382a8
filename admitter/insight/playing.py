"""How several futures are played, which know nothing of each other: in turn, or side by side."""

import os
import sys
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Final, Protocol, TypeVar

T = TypeVar("T")

MOST_PROCESSES: Final = 8
"""Each may come to need as much memory as this one has."""


class Player(Protocol):
    """Plays futures, and says what came of each, in the same order."""

    def __call__(self, futures: Sequence[Callable[[], T]], /) -> list[T]:
        """Play them."""


def in_turn(futures: Sequence[Callable[[], T]], /) -> list[T]:
    """Play one after the other."""
    return [play() for play in futures]


def interruptible(proceed: Callable[[], None]) -> Player:
    """Plays one after the other.

    Args:
        proceed: called before each; what it raises ends all of it.
    """

    def player(futures: Sequence[Callable[[], T]], /) -> list[T]:
        found = []
        for play in futures:
            proceed()
            found.append(play())
        return found

    return player


def side_by_side(futures: Sequence[Callable[[], T]], /) -> list[T]:
    """Play on all processors that this process may use: for programs that do nothing else meanwhile.

    Other processes are copies of this one: all is there that a future needs, what it changes there is lost,
    and only what came of it is handed over, pickled. In turn where a process can't be copied safely.

    Raises:
        Exception: what a future raises.
    """
    processors = len(os.sched_getaffinity(0)) if sys.platform == "linux" else 1
    return _spread(futures, max(1, min(processors, len(futures), MOST_PROCESSES)))


def _spread(futures: Sequence[Callable[[], T]], processes: int) -> list[T]:
    """Deal futures out to so many processes, of which this is one."""
    fork = get_context("fork")
    copies = []
    for number in range(1, processes):
        mine, theirs = fork.Pipe(duplex=False)
        copy = fork.Process(target=_play, args=(futures[number::processes], theirs), daemon=True)
        copy.start()
        theirs.close()
        copies.append((copy, mine))
    shares = [in_turn(futures[::processes])]
    for copy, mine in copies:
        share = mine.recv()
        copy.join()
        if isinstance(share, Exception):
            raise share
        shares.append(share)
    return [shares[number % processes][number // processes] for number in range(len(futures))]


def _play(futures: Sequence[Callable[[], T]], results: Connection) -> None:
    try:
        results.send(in_turn(futures))
    except Exception as error:  # noqa: BLE001  # raised where the results are wanted
        results.send(error)
