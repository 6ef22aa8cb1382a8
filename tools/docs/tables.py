"""Tables of Markdown."""

from collections.abc import Iterable, Iterator


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """The lines of a table; an upright bar in a cell is escaped."""
    names = list(headings)
    yield _row(names)
    yield "|" + "---|" * len(names)
    for cells in rows:
        yield _row(cell.replace("|", "\\|") for cell in cells)


def _row(cells: Iterable[str]) -> str:
    return "".join(f"| {cell} " if cell else "| " for cell in cells) + "|"
