"""Futures that are played until a deadline: what comes in time is kept, what does not is ended."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event

import psutil
import pytest

from admitter.insight.forecast.deadline import Deadline, OutOfTimeError
from admitter.insight.forecast.timed import until


class Marks:
    """Futures leave marks in a file: processes that are copies have nothing else in common.

    As a clock it stands still until there are so many marks, and then shows that the time is over.
    """

    def __init__(self, path: Path, enough: int) -> None:
        self._path = path
        self._enough = enough
        path.touch()

    def leave(self, number: int) -> tuple[int, int]:
        with self._path.open("ab") as file:
            file.write(b"x")
        return number, os.getpid()

    def __call__(self) -> float:
        return 100.0 if self._path.stat().st_size >= self._enough else 0.0


def _never_ends() -> tuple[int, int]:
    Event().wait()
    return -1, 0


def _fails(number: int) -> tuple[int, int]:
    raise ValueError(f"{number} is wrong")


def _dies() -> tuple[int, int]:
    os._exit(1)


@pytest.fixture(autouse=True)
def _two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})


Future = Callable[[], tuple[int, int]]


def test_all_come_in_order_where_there_is_time(tmp_path: Path) -> None:
    marks = Marks(tmp_path / "marks", enough=100)
    futures: list[Future] = [partial(marks.leave, number) for number in range(9)]
    found = until(Deadline(10.0, marks)).player(futures)
    assert [number for number, _ in found] == list(range(9))
    processes = {process for _, process in found}
    assert os.getpid() not in processes, "this one sees to the time"
    assert len(processes) <= 2


def test_one_that_never_comes_to_its_next_step_is_ended_and_holds_up_no_other(tmp_path: Path) -> None:
    marks = Marks(tmp_path / "marks", enough=8)
    futures: list[Future] = [_never_ends, *(partial(marks.leave, number) for number in range(8))]
    found = until(Deadline(10.0, marks)).player(futures)
    assert [number for number, _ in found] in ([*range(8)], [*range(7)]), "the last may be on its way"


def test_where_all_are_stuck_nothing_comes() -> None:
    looks = iter([0.0] * 5)
    deadline = Deadline(0.01, lambda: next(looks, 1.0))
    futures: list[Future] = [_never_ends] * 3
    assert until(deadline).player(futures) == []


def test_when_the_time_is_over_nothing_is_begun(tmp_path: Path) -> None:
    marks = Marks(tmp_path / "marks", enough=0)
    assert until(Deadline(10.0, marks)).player([partial(marks.leave, 1)]) == []
    assert (tmp_path / "marks").read_bytes() == b""


def test_futures_are_to_end_by_themselves_a_little_sooner() -> None:
    times = iter([0.0, 8.9, 9.0])
    playing = until(Deadline(10.0, lambda: next(times)))
    playing.proceed()
    with pytest.raises(OutOfTimeError):
        playing.proceed()


def test_what_a_future_raises_is_raised_here() -> None:
    futures: list[Future] = [partial(_fails, number) for number in range(3)]
    with pytest.raises(ValueError, match="is wrong"):
        until(Deadline(10.0, lambda: 0.0)).player(futures)


def test_a_process_that_the_system_has_ended_takes_its_future_along(tmp_path: Path) -> None:
    marks = Marks(tmp_path / "marks", enough=100)
    futures: list[Future] = [_dies, *(partial(marks.leave, number) for number in range(4))]
    found = until(Deadline(10.0, marks)).player(futures)
    assert [number for number, _ in found] == [0, 1, 2, 3]


def test_no_process_is_left(tmp_path: Path) -> None:
    """Nor is one that has ended and is still listed. A browser of other tests may be there."""
    before = psutil.Process().children()
    marks = Marks(tmp_path / "marks", enough=4)
    futures: list[Future] = [_never_ends, *(partial(marks.leave, number) for number in range(4))]
    until(Deadline(10.0, marks)).player(futures)
    assert set(psutil.Process().children()) <= set(before)


def test_where_a_process_can_not_be_copied_all_are_played_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    marks = Marks(tmp_path / "marks", enough=100)
    futures: list[Future] = [partial(marks.leave, number) for number in range(3)]
    assert until(Deadline(10.0, marks)).player(futures) == [(number, os.getpid()) for number in range(3)]
