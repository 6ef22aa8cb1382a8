"""How several independent playouts run: in turn, or side by side."""

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
"""Each may need as much memory as this one."""


class Player(Protocol):
    """Runs playouts, and returns their results in the same order; one without a result is left out."""

    def __call__(self, futures: Sequence[Callable[[], T]], /) -> list[T]: ...


def in_turn(futures: Sequence[Callable[[], T]], /) -> list[T]:
    return [play() for play in futures]


@dataclass(frozen=True, slots=True)
class Playing:
    """How playouts run."""

    player: Player = in_turn
    # called at each step of each playout; any error but OutOfTimeError ends all of them
    proceed: Proceed = without_end


ALL_IN_TURN: Final = Playing()
"""One after the other, for as long as it takes."""


def side_by_side(futures: Sequence[Callable[[], T]], /) -> list[T]:
    """Play on all processors that this process may use: for programs that do nothing else meanwhile.

    The other processes are copies of this one: they have all that a playout needs, its changes are lost, and
    only its pickled result or error comes back. In turn where a process can't be copied safely.
    """
    most = min(processes(), len(futures))
    return _spread(futures, most) if most > 1 else in_turn(futures)


def processes() -> int:
    """The most processes that `side_by_side` uses."""
    processors = len(os.sched_getaffinity(0)) if can_copy() else 1
    return min(processors, MOST_PROCESSES)


def can_copy() -> bool:
    return sys.platform == "linux"


def _spread(futures: Sequence[Callable[[], T]], processes: int) -> list[T]:
    """Deal playouts out to several processes, this one included."""
    shares = [futures[number::processes] for number in range(processes)]
    copies = [_Copy(share) for share in shares[1:]]
    found = [in_turn(shares[0]), *(copy.result() for copy in copies)]
    return [found[number % processes][number // processes] for number in range(len(futures))]


class _Copy(Generic[T]):
    """A copy of this process that runs some playouts."""

    def __init__(self, futures: Sequence[Callable[[], T]]) -> None:
        fork = get_context("fork")
        self._futures = futures
        self._results, there = fork.Pipe(duplex=False)
        self._process = fork.Process(target=_play, args=(futures, there), daemon=True)
        self._process.start()
        there.close()

    def result(self) -> list[T]:
        """Their results. If the copy has failed they run here, where an error is reported."""
        try:
            found: list[T] = self._results.recv()
        except EOFError:
            return in_turn(self._futures)
        finally:
            self._process.join()
        return found


def _play(futures: Sequence[Callable[[], T]], results: Connection) -> None:
    signal(SIGINT, SIG_IGN)  # an interrupt ends the process that waits for this one
    with suppress(Exception):
        results.send(in_turn(futures))
