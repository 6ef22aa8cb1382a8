"""Playouts that run side by side until a deadline, even if one of them hangs.

A playout checks at each step whether there is time for the next. One that does not reach its next step in
time is ended from outside, together with its process.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from signal import SIG_IGN, SIGINT, signal
from typing import Final, Generic, TypeVar

from admitter.insight.forecast.deadline import Deadline
from admitter.insight.forecast.playing import Playing, can_copy, in_turn, processes

T = TypeVar("T")

_BY_THEMSELVES: Final = 0.9
_LONGEST_WAIT: Final = 3600.0
"""The longest wait at once, in seconds: the limit of the system is not far above it."""


def until(deadline: Deadline) -> Playing:
    """Play on all processors that this process may use: for programs that do nothing else meanwhile.

    A process that has ended a playout gets the next one, so a very long one occupies one process only. Where
    a process can't be copied safely playouts run in turn, and only their own checks of the clock end them.
    Results after the deadline are left out. Playouts end by themselves a little sooner, so that they can tell
    how far they ran.
    """

    def player(futures: Sequence[Callable[[], T]], /) -> list[T]:
        if deadline.is_over():
            return []
        if not can_copy():
            return in_turn(futures)
        return _raced(futures, min(processes(), len(futures)), deadline)

    return Playing(player, deadline.sooner(_BY_THEMSELVES).proceed)


def _raced(futures: Sequence[Callable[[], T]], processes: int, deadline: Deadline) -> list[T]:
    """The results in time, in the order of the playouts."""
    following = iter(range(len(futures)))
    found: dict[int, T] = {}
    copies: list[_RacedCopy[T]] = []
    try:
        copies += (_RacedCopy(futures) for _ in range(processes))
        playing = [copy for copy in copies if copy.begin(next(following, None))]
        while playing and not deadline.is_over():
            for copy in _ready(playing, deadline):
                playing.remove(copy)
                with suppress(EOFError):  # the system has ended it: its playout has no result
                    found[copy.number] = copy.result()
                    playing += [copy] if copy.begin(next(following, None)) else []
    finally:
        for copy in copies:
            copy.end()
    return [found[number] for number in sorted(found)]


def _ready(playing: "list[_RacedCopy[T]]", deadline: Deadline) -> "list[_RacedCopy[T]]":
    """The copies that have ended a playout, once there are any, or the time is over."""
    ready = wait([copy.results for copy in playing], min(max(0.0, deadline.left), _LONGEST_WAIT))
    return [copy for copy in playing if copy.results in ready]


class _RacedCopy(Generic[T]):
    """A copy of this process that runs one playout after the other."""

    def __init__(self, futures: Sequence[Callable[[], T]]) -> None:
        fork = get_context("fork")
        self.number = -1  # the place of the playout that it runs
        self.results, there = fork.Pipe()  # results arrive here
        self._futures = futures
        self._process = fork.Process(target=_play, args=(futures, there, self.results), daemon=True)
        self._process.start()
        there.close()

    def begin(self, number: int | None) -> bool:
        """Start a playout, if there is one; returns whether there is."""
        if number is not None:
            self.number = number
            self.results.send(number)
        return number is not None

    def result(self) -> T:
        """The result of the playout. If it has failed it runs here again, where an error is reported.

        Raises:
            EOFError: the copy has been ended.
        """
        came: tuple[T] | None = self.results.recv()
        return came[0] if came is not None else self._futures[self.number]()

    def end(self) -> None:
        """End it, wherever it is."""
        self._process.kill()
        self._process.join()
        self.results.close()


def _play(futures: Sequence[Callable[[], object]], asked: Connection, parents: Connection) -> None:
    """Run the requested playouts, until the process that requests them is gone."""
    signal(SIGINT, SIG_IGN)  # an interrupt ends the process that waits for this one
    parents.close()
    with suppress(EOFError):
        while True:
            number = asked.recv()
            try:
                asked.send((futures[number](),))
            except Exception:  # noqa: BLE001  # it runs again where errors are reported
                asked.send(None)
