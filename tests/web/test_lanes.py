"""Bars in lanes: none overlap, none is lost, and what comes later moves nothing."""

from dataclasses import dataclass
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from admitter.web.lanes import SHORTEST, Placed, drawn, in_range, packed


@dataclass(frozen=True)
class Some:
    """A bar of a test."""

    number: int
    group: str
    begins: float
    ends: float | None
    high: int = 1


def some(number: int, drawn_of: tuple[str, int, int | None, int]) -> Some:
    group, begins, long, high = drawn_of
    return Some(number, group, float(begins), None if long is None else float(begins + long), high)


def bars_of(highest: int) -> st.SearchStrategy[list[Some]]:
    one = st.tuples(
        st.sampled_from("ab"),
        st.integers(0, 100),
        st.none() | st.integers(0, 40),
        st.integers(1, highest),
    )
    return st.lists(one, max_size=40).map(lambda all_: [some(*each) for each in enumerate(all_)])


bars = bars_of(1) | bars_of(4)
moments = st.tuples(st.integers(-10, 150), st.integers(1, 100)).map(lambda each: (each[0], sum(each)))


def overlap(one: Placed[Some], other: Placed[Some]) -> bool:
    def until(bar: Some) -> float:
        return max(bar.begins + SHORTEST, float("inf") if bar.ends is None else bar.ends)

    in_time = one.bar.begins < until(other.bar) and other.bar.begins < until(one.bar)
    return in_time and one.lane < other.lane + other.bar.high and other.lane < one.lane + one.bar.high


@given(bars)
def test_no_two_bars_of_a_lane_overlap(given_bars: list[Some]) -> None:
    placed = packed(given_bars)
    assert sorted(each.bar.number for each in placed) == list(range(len(given_bars)))
    for one, other in combinations(placed, 2):
        assert one.bar.group != other.bar.group or not overlap(one, other)


@given(bars, moments)
def test_the_same_holds_of_what_is_in_view_and_lanes_without_bars_are_left_out(
    given_bars: list[Some], moment: tuple[int, int]
) -> None:
    view = in_range(packed(given_bars), *moment, order={"b": 0}, head=2)
    for one, other in combinations(view.bars, 2):
        assert not overlap(one, other)
    used = {lane for each in view.bars for lane in range(each.lane, each.lane + each.bar.high)}
    heads = {group.first + lane for group in view.groups for lane in range(2)}
    assert not used & heads
    assert used | heads == set(range(view.lanes))
    assert [group.name for group in view.groups] in ([], ["a"], ["b"], ["b", "a"])
    for group in view.groups:
        of_it = [each for each in view.bars if each.bar.group == group.name]
        assert min(each.lane for each in of_it) == group.first + 2
        assert max(each.lane + each.bar.high for each in of_it) == group.first + group.lanes


@given(bars, moments, st.floats(0, 60), st.integers(1, 20))
def test_every_bar_in_the_range_is_drawn_once_alone_or_with_others(
    given_bars: list[Some], moment: tuple[int, int], narrow: float, most: int
) -> None:
    begins, ends = moment
    view = in_range(packed(given_bars), begins, ends, order={})
    found, joined = drawn(view.bars, view, narrow, most)
    expected = [
        each.number
        for each in given_bars
        if each.begins < ends and (each.ends is None or max(each.ends, each.begins + SHORTEST) > begins)
    ]
    assert sorted(bar.number for each in found for bar in each.bars) == expected
    assert joined >= narrow
    for each in found:
        assert all(each.begins <= bar.begins for bar in each.bars)
        alone = len(each.bars) == 1
        assert alone or all(bar.ends is not None and bar.ends - bar.begins < joined for bar in each.bars[1:])
    if len(found) > most:
        assert joined > ends - begins, "as few as there can be"


@given(bars_of(1), st.integers(0, 40))
def test_what_comes_later_moves_nothing(given_bars: list[Some], number: int) -> None:
    in_order = sorted(given_bars, key=lambda each: each.begins)
    before = {each.bar: each.lane for each in packed(in_order[:number])}
    after = {each.bar: each.lane for each in packed(in_order)}
    assert before.items() <= after.items()


def test_rows_are_those_that_reach_into_some_lanes() -> None:
    given_bars = [Some(0, "a", 0, 10), Some(1, "a", 0, 10, 3), Some(2, "b", 5, 10)]
    view = in_range(packed(given_bars), 0, 20, order={})
    assert [each.lane for each in view.bars] == [0, 1, 4]
    assert [each.bar.number for each in view.rows(0, 1)] == [0]
    assert [each.bar.number for each in view.rows(2, 1)] == [1]
    assert [each.bar.number for each in view.rows(3, 5)] == [1, 2]


def test_a_lane_of_very_short_bars_is_one_bar_from_afar_and_many_from_near() -> None:
    given_bars = [Some(number, "a", number * 2.0, number * 2.0 + 1) for number in range(1000)]
    far = in_range(packed(given_bars), 0, 100_000, order={})
    assert [(each.begins, each.ends, len(each.bars)) for each in drawn(far.bars, far, 100.0, 500)[0]] == [
        (0.0, 1999.0, 1000)
    ]
    near = in_range(packed(given_bars), 0, 100, order={})
    found, narrow = drawn(near.bars, near, 0.1, 500)
    assert (len(found), narrow) == (50, 0.1)
