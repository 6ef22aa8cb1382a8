"""How several futures are played, which know nothing of each other: in turn, or side by side."""

import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from signal import SIG_IGN, SIGINT, signal
from typing import Final, Generic, Protocol, TypeVar

from admitter.insight.forecast.deadline import Proceed, without_end

T = TypeVar("T")

MOST_PROCESSES: Final = 8
"""Each may come to need as much memory as this one has."""


class Player(Protocol):
    """Plays futures, and says what came of each, in the same order; nothing of one of which nothing came."""

    def __call__(self, futures: Sequence[Callable[[], T]], /) -> list[T]:
        """Play them."""


def in_turn(futures: Sequence[Callable[[], T]], /) -> list[T]:
    """Play one after the other."""
    return [play() for play in futures]


@dataclass(frozen=True, slots=True)
class Playing:
    """How futures are played.

    Attributes:
        player: plays them.
        proceed: called at each step of each; what it raises, but for the want of time, ends all of it.
    """

    player: Player = in_turn
    proceed: Proceed = without_end


ALL_IN_TURN: Final = Playing()
"""One after the other, for as long as it takes."""


def side_by_side(futures: Sequence[Callable[[], T]], /) -> list[T]:
    """Play on all processors that this process may use: for programs that do nothing else meanwhile.

    Other processes are copies of this one: all is there that a future needs, what it changes there is lost,
    and only what came of it is handed over, pickled. In turn where a process can't be copied safely.

    Raises:
        Exception: what a future raises.
    """
    most = min(processes(), len(futures))
    return _spread(futures, most) if most > 1 else in_turn(futures)


def processes() -> int:
    """In how many processes `side_by_side` plays at most."""
    processors = len(os.sched_getaffinity(0)) if can_copy() else 1
    return min(processors, MOST_PROCESSES)


def can_copy() -> bool:
    """Whether a copy of this process can be made safely."""
    return sys.platform == "linux"


def _spread(futures: Sequence[Callable[[], T]], processes: int) -> list[T]:
    """Deal futures out to so many processes, of which this is one."""
    shares = [futures[number::processes] for number in range(processes)]
    copies = [_Copy(share) for share in shares[1:]]
    found = [in_turn(shares[0]), *(copy.result() for copy in copies)]
    return [found[number % processes][number // processes] for number in range(len(futures))]


class _Copy(Generic[T]):
    """A copy of this process that plays some futures."""

    def __init__(self, futures: Sequence[Callable[[], T]]) -> None:
        fork = get_context("fork")
        self._futures = futures
        self._results, there = fork.Pipe(duplex=False)
        self._process = fork.Process(target=_play, args=(futures, there), daemon=True)
        self._process.start()
        there.close()

    def result(self) -> list[T]:
        """What came of them. If the copy has failed they are played here, where what goes wrong is told."""
        try:
            found: list[T] = self._results.recv()
        except EOFError:
            return in_turn(self._futures)
        finally:
            self._process.join()
        return found


def _play(futures: Sequence[Callable[[], T]], results: Connection) -> None:
    signal(SIGINT, SIG_IGN)  # who interrupts the command interrupts the process that waits for this one
    with suppress(Exception):
        results.send(in_turn(futures))
