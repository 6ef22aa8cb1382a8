"""Which columns fit into how many characters."""

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from admitter.top.columns import Column, fitting, headings, line, shortened
from admitter.top.queues import COLUMNS

ALL = [column.title for column in COLUMNS]


def titles(width: int) -> list[str]:
    return [column.title for column, _ in fitting(COLUMNS, width)]


def test_80_characters_have_room_for_all_but_the_problem() -> None:
    assert titles(80) == [title for title in ALL if title != "PROBLEM"]
    assert titles(110) == ALL


@pytest.mark.parametrize(
    ("width", "left"),
    [
        (72, ["NAME", "USE", "USED", "MIN", "MAX", "LOAN", "WAIT"]),
        (60, ["NAME", "USE", "USED", "LOAN", "WAIT"]),
        (40, ["NAME", "USE", "USED"]),
        (30, ["NAME", "USED"]),
        (10, ["NAME"]),
    ],
)
def test_those_that_matter_least_are_left_out_first(width: int, left: list[str]) -> None:
    assert titles(width) == left


@pytest.mark.parametrize("width", range(8, 240, 7))
def test_a_line_is_never_wider_than_it_may_be(width: int) -> None:
    columns: list[Column[str]] = [
        Column("NAME", 8, 0, lambda words, _: words, most=50),
        Column("OTHER", 4, 1, lambda words, _: words),
    ]
    placed = fitting(columns, width)
    for text in (headings(placed), line(placed, "a-rather-long-name-that-does-not-fit-everywhere" * 2)):
        assert cell_len(text.plain) <= width


def test_the_current_line_is_reversed_but_its_bar_is_not() -> None:
    columns: list[Column[str]] = [
        Column("NAME", 4, 0, lambda words, _: words, style="red"),
        Column("USE", 4, 1, lambda words, _: words, style="cyan", drawn=True),
    ]
    placed = fitting(columns, 20)
    assert [str(span.style) for span in line(placed, "a").spans] == ["red", "cyan"]
    assert [str(span.style) for span in line(placed, "0").spans] == ["cyan"], "zeros have no colour"
    assert [str(span.style) for span in line(placed, "a", current=True).spans] == [
        *("reverse", "reverse", "cyan"),
    ]


def test_a_name_is_shortened_in_its_middle() -> None:
    assert shortened("team-a", 6) == "team-a"
    assert shortened("team-with-a-long-name-0007", 11) == "team-…-0007"
    assert cell_len(shortened("漢字漢字漢字", 7)) <= 7


def test_the_page_says_from_which_width_on_there_is_each_column() -> None:
    page = (Path(__file__).parents[2] / "docs/top.md").read_text()
    told = dict(re.findall(r"^\| `([A-Z/]+)` \|.*\| (\w+) \|$", page, flags=re.MULTILINE))
    assert set(told) == set(ALL)
    assert told.pop("NAME") == "always"
    for title, width in told.items():
        assert title in titles(int(width))
        assert title not in titles(int(width) - 1)
