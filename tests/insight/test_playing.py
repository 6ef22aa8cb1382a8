"""Futures are played in turn or side by side, to the same end."""

import os
from functools import partial

import pytest

from admitter.insight.forecast import playing
from admitter.insight.forecast.playing import in_turn, side_by_side


def _process(number: int) -> tuple[int, int]:
    return number, os.getpid()


def _fails_at(wrong: int, number: int) -> int:
    if number == wrong:
        raise ValueError(f"{number} is wrong")
    return number


@pytest.mark.parametrize("processors", [1, 2, 3, 20])
@pytest.mark.parametrize("futures", [0, 1, 2, 7])
def test_what_came_of_each_is_in_order(
    processors: int, futures: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(processors)))
    found = side_by_side([partial(_process, number) for number in range(futures)])
    assert [number for number, _ in found] == list(range(futures))
    processes = {process for _, process in found}
    assert len(processes) == min(processors, futures)
    assert os.getpid() in processes or not futures


def test_there_are_not_too_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(64)))
    found = side_by_side([partial(_process, number) for number in range(20)])
    assert len({process for _, process in found}) == playing.MOST_PROCESSES


@pytest.mark.parametrize("wrong", [0, 1, 2])
def test_what_a_future_raises_is_raised(wrong: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    with pytest.raises(ValueError, match=f"{wrong} is wrong"):
        side_by_side([partial(_fails_at, wrong, number) for number in range(3)])


def _dies_elsewhere(here: int) -> int:
    if os.getpid() != here:
        os._exit(1)
    return here


def test_what_a_copy_does_not_come_to_is_played_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    here = os.getpid()
    assert side_by_side([partial(_dies_elsewhere, here)] * 4) == [here] * 4


class _LostOnTheWayError(Exception):
    """Can be pickled, but not be made again from that."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(f"{number} {why}")


def _fails_in_its_own_way(number: int) -> int:
    if number:
        raise _LostOnTheWayError(number, "is wrong")
    return number


def test_what_is_raised_there_is_raised_here_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    with pytest.raises(_LostOnTheWayError, match="1 is wrong"):
        side_by_side([partial(_fails_in_its_own_way, number) for number in range(2)])


def test_where_a_process_can_not_be_copied_all_is_played_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    futures = [partial(_process, number) for number in range(3)]
    assert side_by_side(futures) == [(number, os.getpid()) for number in range(3)] == in_turn(futures)
