"""Times by which answers have to be there, by a clock that is turned by hand."""

from math import inf

import pytest

from admitter.insight.forecast.deadline import NO_LIMIT, Allowance, Deadline, OutOfTimeError


class Hands:
    """A clock that shows what it is set to."""

    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def test_it_is_over_when_its_time_has_passed() -> None:
    clock = Hands()
    deadline = Deadline.after(2.0, clock)
    clock.time = 101.5
    deadline.proceed()
    assert (deadline.left, deadline.is_over()) == (0.5, False)
    clock.time = 102.0
    assert deadline.is_over()
    with pytest.raises(OutOfTimeError):
        deadline.proceed()


def test_a_sooner_one_has_a_part_of_what_is_left_when_it_is_made() -> None:
    clock = Hands()
    deadline = Deadline.after(2.0, clock)
    clock.time = 101.0
    assert deadline.sooner(0.5).at == 101.5


def test_an_allowance_runs_from_when_it_is_taken() -> None:
    clock = Hands()
    allowance = Allowance(4.0, clock)
    clock.time = 200.0
    assert allowance.begin().at == 204.0
    assert allowance.begin(0.25).at == 201.0


def test_without_a_limit_it_is_never_over() -> None:
    assert NO_LIMIT.begin(0.5).left == inf
