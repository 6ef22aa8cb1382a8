"""Durations as texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from admitter.quantities.durations import LONGEST_SECONDS, parse_duration, written_duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.25, "0.25s"), (90, "1m30s"), (3600, "1h"), (90_061.5, "1d1h1m1.5s"), (-90, "-1m30s")],
)
def test_a_length_of_time_is_written_in_its_units(seconds: float, text: str) -> None:
    assert written_duration(seconds) == text


@given(st.integers(0, LONGEST_SECONDS * 1000))
def test_what_is_written_is_read_as_the_same_length(milliseconds: int) -> None:
    assert parse_duration(written_duration(milliseconds / 1000)) == milliseconds / 1000
