"""Columns that fit: those that matter least are left out, the others share what is left of the line."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from rich.cells import cell_len
from rich.text import Text

from admitter.visible import visible

T = TypeVar("T")

GAP: Final = 1
"""Characters between two columns."""


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """One column of a table."""

    title: str
    width: int  # the least number of characters
    rank: int  # the highest is left out first
    cell: Callable[[T, int], str]  # what it says of an item, in so many characters
    most: int = 0  # the largest number of characters; 0: no more than the least
    right: bool = False
    style: str = ""  # a style of rich, for all but zeros
    drawn: bool = False  # whether it is a picture, which must not be reversed where the cursor is


Placed = tuple[tuple[Column[T], int], ...]
"""Columns with the number of characters that each one has."""


def fitting(columns: Sequence[Column[T]], width: int) -> Placed[T]:
    """Those columns that a line has room for, and how wide they are."""
    kept = list(columns)
    while len(kept) > 1 and _total(kept) > width:
        kept.remove(max(kept, key=lambda column: column.rank))
    left = max(0, width - _total(kept))
    widths = {column.title: column.width for column in kept}
    growing = [column for column in kept if column.most > column.width]
    while left and growing:
        each = max(1, left // len(growing))
        for column in list(growing):
            more = min(each, left, column.most - widths[column.title])
            widths[column.title] += more
            left -= more
            if widths[column.title] == column.most or not left:
                growing.remove(column)
    return tuple((column, min(widths[column.title], width)) for column in kept)


def _total(columns: Sequence[Column[T]]) -> int:
    return sum(column.width for column in columns) + GAP * (len(columns) - 1)


def headings(placed: Placed[T]) -> Text:
    cells = [(_set(column, width, column.title), "") for column, width in placed]
    return _joined(cells, "")


def line(placed: Placed[T], item: T, *, current: bool = False) -> Text:
    """One line of a table; the current one is reversed instead of coloured."""
    cells = []
    for column, width in placed:
        words = visible(column.cell(item, width))
        plain = "reverse" if current else ""
        style = column.style if column.drawn or (not current and words != "0") else plain
        cells.append((_set(column, width, words), style))
    return _joined(cells, "reverse" if current else "")


def _set(column: Column[T], width: int, words: str) -> str:
    cut = shortened(words, width)
    blank = " " * (width - cell_len(cut))
    return blank + cut if column.right else cut + blank


def _joined(cells: Sequence[tuple[str, str]], gap: str) -> Text:
    """Cells, with a gap in a style between two."""
    made = Text(no_wrap=True, end="")
    for number, (words, style) in enumerate(cells):
        if number:
            made.append(" " * GAP, gap)
        made.append(words, style)
    return made


def shortened(words: str, width: int) -> str:
    """A text with its middle left out, if it is too long: ends of names differ as often as beginnings."""
    if cell_len(words) <= width:
        return words
    if len(words) != cell_len(words):  # wide characters: only names of files and contexts have them
        text = Text(words)
        text.truncate(width, overflow="ellipsis")
        return text.plain
    back = (width - 1) // 2
    return words[: width - 1 - back] + "…" + words[len(words) - back :] if width > 2 else words[:width]


def clipped(words: str, width: int) -> str:
    """A sentence without its end, if it is too long."""
    return words if len(words) <= width else words[: width - 1] + "…"
