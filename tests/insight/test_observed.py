"""What futures tell of a start if some were not played far enough."""

import pytest

from admitter.insight.forecast.observed import Observed

PLACES = [(place + 0.5) / 20 for place in range(20)]


def test_of_futures_that_were_all_played_it_is_the_start_at_that_place() -> None:
    starts = [float(number) for number in range(20)]
    assert [Observed(starts, 0, []).within(part) for part in PLACES] == starts


def test_those_in_which_it_never_starts_are_the_last() -> None:
    found = [Observed([1.0, 2.0, 3.0], 17, []).within(part) for part in PLACES]
    assert found == [1.0, 2.0, 3.0, *[None] * 17]


@pytest.mark.parametrize(
    ("starts", "reached", "bounds"),
    [
        pytest.param([5.0], [], (5.0, 5.0, 5.0), id="one future is all that is known"),
        pytest.param([5.0, 9.0], [], (5.0, 9.0, 9.0), id="of two the later one is the middle"),
        pytest.param([5.0, 7.0, 9.0], [1.0, 2.0], (5.0, 7.0, 9.0), id="some were hardly begun"),
        pytest.param([5.0, 7.0, 9.0], [30.0, 30.0], (5.0, 9.0, None), id="some were played for long"),
        pytest.param([5.0], [6.0, 6.0, 6.0], (5.0, None, None), id="most are later than is known"),
        pytest.param([], [6.0], (None, None, None), id="none tells anything"),
    ],
)  # fmt: skip
def test_some_were_not_played_far_enough(
    starts: list[float], reached: list[float], bounds: tuple[float | None, ...]
) -> None:
    observed = Observed(starts, 0, reached)
    assert tuple(observed.within(PLACES[place]) for place in (1, 10, 18)) == bounds
    assert observed.told == len(starts)
